"""TFLite operators as the XNNPACK delegate computes them.

The delegate and the reference kernels differ where a result lies close to half-way between two quantized values, so
half of the elements are drawn there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import tflite
from tflite_graphs import options

from tools.record import litert
from tools.record.drawing import Draw, Type
from tools.record.family import Array, Case, Family
from tools.record.tflite_models import Tensor, bits, drawn, given, integers, one_operator, per_tensor, result
from tools.record.tflite_resize import CENTERS, resized

_OPERATOR, _OPTIONS = tflite.BuiltinOperator, tflite.BuiltinOptions
_TYPES: dict[str, Type] = {"i8": np.int8, "u8": np.uint8}
_ROW = (1, 512)
_IMAGE, _SIZE = (1, 7, 9, 5), (13, 20)
_SCALES = (0.01, 0.1)
# Columns of an image from which those with the closest means are taken.
_CANDIDATES = 200


@dataclass(frozen=True)
class _Pair:
    """An operator of two tensors and what it means on f32 numbers."""

    code: int
    options_type: int
    formula: Callable[[Array, Array], Array]
    cases: tuple[int, ...] = (0, 1, 3)


_PAIRS: dict[str, _Pair] = {
    "ADD": _Pair(_OPERATOR.ADD, _OPTIONS.AddOptions, np.add),
    "MUL": _Pair(_OPERATOR.MUL, _OPTIONS.MulOptions, np.multiply),
    "SUB": _Pair(_OPERATOR.SUB, _OPTIONS.SubOptions, np.subtract, (0, 1, 2, 3)),
}
_RESIZES = (CENTERS["half_"], CENTERS["corners_"], CENTERS["half_"], CENTERS[""])


def _draw() -> Iterator[Case]:
    for kind, pair in _PAIRS.items():
        yield from (_pair(f"{kind}_{key}_{index}", pair, _TYPES[key]) for key in _TYPES for index in pair.cases)
    for kind, build in {"LEAKY_RELU": _leaky_relu, "MEAN": _mean, "QUANTIZE": _requantize}.items():
        yield from (build(f"{kind}_{key}_{index}", _TYPES[key]) for key in _TYPES for index in (0, 1, 3))
    for key, dtype in _TYPES.items():
        for index, centers in enumerate(_RESIZES):
            draw = Draw(f"RESIZE_{key}_{index}")
            data = drawn(draw, _IMAGE, dtype, draw.scale(*_SCALES))
            yield resized(f"RESIZE_{key}_{index}", "bilinear", data, _SIZE, centers)


def _pair(name: str, pair: _Pair, dtype: Type) -> Case:
    draw = Draw(name)
    scales = draw.scale(*_SCALES), draw.scale(*_SCALES)
    points = draw.inner_point(dtype), draw.inner_point(dtype)
    info = np.iinfo(np.dtype(dtype).name)
    values = np.arange(info.min, info.max + 1)
    numbers = [(values - point) * scale for scale, point in zip(scales, points, strict=True)]
    exact = pair.formula(numbers[0][:, None], numbers[1][None, :])
    output = result(draw, _ROW, dtype, float(np.float32(exact.std() / 60)))
    chosen = draw.rng.permutation(np.concatenate([_closest(exact / _scale_of(output), 256), _any(draw, exact.size)]))
    sides = np.unravel_index(chosen, exact.shape)
    inputs = [
        given(values[side].astype(dtype).reshape(_ROW), per_tensor(scale, point))
        for side, scale, point in zip(sides, scales, points, strict=True)
    ]
    return one_operator(name, pair.code, inputs, [output], pair.options_type, options())


def _scale_of(output: Tensor) -> float:
    assert output.quantization
    return output.quantization.scales[0]


def _closest(results: Array, count: int) -> Array:
    """Flat indices of the results, within an output's range, that are closest to half-way between two integers."""
    distances = np.abs(results - np.floor(results) - 0.5)
    return np.argsort(np.where(np.abs(results) < 64, distances, 1), axis=None, kind="stable")[:count]


def _any(draw: Draw, count: int) -> Array:
    return draw.rng.integers(0, count, 256)


def _requantize(name: str, dtype: Type) -> Case:
    return _of_every_value(name, dtype, _OPERATOR.QUANTIZE, _OPTIONS.QuantizeOptions, ())


def _leaky_relu(name: str, dtype: Type) -> Case:
    alpha = bits(Draw(f"alpha of {name}").scale(0.1, 0.4))
    return _of_every_value(name, dtype, _OPERATOR.LEAKY_RELU, _OPTIONS.LeakyReluOptions, (alpha,))


def _of_every_value(name: str, dtype: Type, code: int, options_type: int, fields: tuple[int, ...]) -> Case:
    draw = Draw(name)
    scale = draw.scale(*_SCALES)
    data = given(draw.every_value(_ROW, dtype), per_tensor(scale, draw.inner_point(dtype)))
    output = result(draw, _ROW, dtype, scale * draw.scale(0.3, 1.5))
    return one_operator(name, code, [data], [output], options_type, options(*fields))


def _mean(name: str, dtype: Type) -> Case:
    """Over height and width, of channels whose mean lies close to half-way between two quantized values."""
    draw = Draw(name)
    scale, point = draw.scale(*_SCALES), draw.inner_point(dtype)
    output = result(draw, (1, _IMAGE[3]), dtype, scale * draw.scale(0.1, 1.5))
    columns = draw.values((*_IMAGE[:3], _CANDIDATES), dtype)
    means = (columns.mean(axis=(0, 1, 2)) - point) * scale / _scale_of(output)
    image = np.ascontiguousarray(columns[..., _closest(means, _IMAGE[3])])
    inputs = [given(image, per_tensor(scale, point)), integers(1, 2)]
    return one_operator(name, _OPERATOR.MEAN, inputs, [output], _OPTIONS.ReducerOptions, options(0))


FAMILY = Family("xnnpack", _draw, litert.delegate)
