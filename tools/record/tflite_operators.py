"""TFLite operators with options, shapes and parameters of every kind, in both types.

`_any` has drawn scales; `_tie` powers of two, so that many quotients lie half-way between two quantized values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import tflite
from tflite_graphs import options

from tools.record import litert
from tools.record.drawing import BYTES, Draw, Type
from tools.record.family import Case, Family
from tools.record.tflite_models import (
    Tensor,
    activation,
    bits,
    constant,
    drawn,
    given,
    integers,
    one_operator,
    per_tensor,
    result,
)
from tools.record.tflite_windows import average_pool, convolution, depthwise, fully_connected, max_pool

_OPERATOR, _OPTIONS = tflite.BuiltinOperator, tflite.BuiltinOptions
_PAIR = (2, 3, 4, 5)
_IMAGE = (1, 3, 4, 2)
_ALPHAS = (0.01, 0.2, 0.3)
# Name, type, whether scales are powers of two.
Build = Callable[[str, Type, bool], Case]


@dataclass(frozen=True)
class _Function:
    """An operator of one tensor; `fixed` is the scale of its output and how far its zero point is above the lowest."""

    code: int
    fixed: tuple[float, int] | None = None


_FUNCTIONS: dict[str, _Function] = {
    "hswish": _Function(_OPERATOR.HARD_SWISH),
    "logistic": _Function(_OPERATOR.LOGISTIC, (1 / 256, 0)),
    "relu": _Function(_OPERATOR.RELU),
    "relu6": _Function(_OPERATOR.RELU6),
    "relun1": _Function(_OPERATOR.RELU_N1_TO_1),
    "tanh": _Function(_OPERATOR.TANH, (1 / 128, 128)),
}
_SIGNED_FUNCTIONS: dict[str, _Function] = {
    "elu": _Function(_OPERATOR.ELU),
    "exp": _Function(_OPERATOR.EXP),
    "log": _Function(_OPERATOR.LOG),
}


def _draw() -> Iterator[Case]:
    for form in ("any", "tie"):
        is_tie = form == "tie"
        for dtype in BYTES:
            yield from _of_type(dtype, form, is_tie)
        for kind, function in _SIGNED_FUNCTIONS.items():
            yield _function(f"{kind}_{form}", function, np.int8, is_tie)


def _of_type(dtype: Type, form: str, is_tie: bool) -> Iterator[Case]:
    suffix = f"{np.dtype(dtype).name}_{form}"
    for kind, build in _BUILDERS.items():
        yield build(f"{kind}_{suffix}", dtype, is_tie)
    for kind, function in _FUNCTIONS.items():
        yield _function(f"{kind}_{suffix}", function, dtype, is_tie)
    for to, name in ((np.int8, "i8"), (np.uint8, "u8")):
        yield _requantize(f"q_{np.dtype(dtype).name}_{name}_{form}", dtype, to, is_tie)


def _scale(draw: Draw, is_tie: bool) -> float:
    return draw.power_of_two(-8, -1) if is_tie else draw.scale(0.003, 0.5)


def _ratio(draw: Draw, is_tie: bool) -> float:
    """Of an output's scale to an input's."""
    return draw.power_of_two(-1, 1) if is_tie else draw.scale(0.5, 2)


def _every(dtype: Type, scale: float, point: int) -> Tensor:
    info = np.iinfo(np.dtype(dtype).name)
    return given(np.arange(info.min, info.max + 1).astype(dtype), per_tensor(scale, point))


def _function(name: str, function: _Function, dtype: Type, is_tie: bool) -> Case:
    draw = Draw(name)
    scale = draw.power_of_two(-5, -2) if is_tie else draw.scale(0.02, 0.3)
    output = result(draw, (256,), dtype, scale * _ratio(draw, is_tie))
    if function.fixed is not None:
        scale /= 4
        fixed, above = function.fixed
        output = Tensor((256,), dtype, per_tensor(fixed, int(np.iinfo(np.dtype(dtype).name).min) + above))
    return one_operator(name, function.code, [_every(dtype, scale, draw.inner_point(dtype))], [output])


def _requantize(name: str, dtype: Type, to: Type, is_tie: bool) -> Case:
    draw = Draw(name)
    scale = _scale(draw, is_tie)
    ratio = draw.power_of_two(-1, 1) if is_tie else draw.one_of(0.5, 1.0, draw.scale(0.5, 2))
    output = result(draw, (256,), to, scale * ratio)
    return one_operator(name, _OPERATOR.QUANTIZE, [_every(dtype, scale, draw.inner_point(dtype))], [output])


def _quantize(name: str, dtype: Type, is_tie: bool) -> Case:
    """Of f32 numbers, many of them half-way between two quantized values."""
    draw = Draw(name)
    scale = draw.power_of_two(-4, -1) if is_tie else draw.one_of(0.01, 0.5, draw.scale(0.01, 0.5))
    halves = draw.rng.integers(-400, 401, 512) * np.float32(scale / 2)
    output = result(draw, (512,), dtype, scale)
    return one_operator(name, _OPERATOR.QUANTIZE, [given(halves.astype(np.float32))], [output])


def _dequantize(name: str, dtype: Type, is_tie: bool) -> Case:
    draw = Draw(name)
    data = _every(dtype, _scale(draw, is_tie), int(draw.values((), dtype)))
    return one_operator(name, _OPERATOR.DEQUANTIZE, [data], [Tensor((256,), np.float32)])


def _leaky_relu(name: str, dtype: Type, is_tie: bool) -> Case:
    draw = Draw(name)
    scale = _scale(draw, is_tie)
    output = result(draw, (256,), dtype, scale * _ratio(draw, is_tie))
    fields = options(bits(draw.one_of(*_ALPHAS)))
    data = _every(dtype, scale, draw.inner_point(dtype))
    return one_operator(name, _OPERATOR.LEAKY_RELU, [data], [output], _OPTIONS.LeakyReluOptions, fields)


def _softmax(name: str, dtype: Type, is_tie: bool) -> Case:
    draw = Draw(name)
    shape = (3, draw.integer(10, 60))
    scale = draw.power_of_two(-5, -3) if is_tie else draw.scale(0.02, 0.5)
    output = Tensor(shape, dtype, per_tensor(1 / 256, int(np.iinfo(np.dtype(dtype).name).min)))
    fields = options(bits(draw.one_of(0.5, 1.0)))
    data = drawn(draw, shape, dtype, scale)
    return one_operator(name, _OPERATOR.SOFTMAX, [data], [output], _OPTIONS.SoftmaxOptions, fields)


def _add(name: str, dtype: Type, is_tie: bool) -> Case:
    draw = Draw(name)
    left = _scale(draw, is_tie)
    right = left * draw.scale(0.3, 2)
    output = result(draw, _PAIR, dtype, left if is_tie else max(left, right) * draw.scale(0.8, 1.5))
    return _of_pair(name, draw, (left, right), output, _OPERATOR.ADD, _OPTIONS.AddOptions)


def _mul(name: str, dtype: Type, is_tie: bool) -> Case:
    draw = Draw(name)
    left, right = _scale(draw, is_tie), _scale(draw, is_tie)
    output = result(draw, _PAIR, dtype, left * right * draw.one_of(64, 128))
    return _of_pair(name, draw, (left, right), output, _OPERATOR.MUL, _OPTIONS.MulOptions)


def _of_pair(name: str, draw: Draw, scales: tuple[float, float], output: Tensor, code: int, options_type: int) -> Case:
    shapes = _PAIR, draw.one_of(_PAIR, (1, 1, 1, 5), (2, 1, 1, 5))
    inputs = [drawn(draw, shape, output.dtype, scale) for shape, scale in zip(shapes, scales, strict=True)]
    return one_operator(name, code, inputs, [output], options_type, options(activation(draw, output)))


def _concatenation(name: str, dtype: Type, is_tie: bool) -> Case:
    """Signed parts have the output's quantization, as the kernel demands; unsigned ones have their own."""
    draw = Draw(name)
    scale = _scale(draw, is_tie)
    extents = [draw.integer(5, 60) for _ in range(draw.one_of(1, 3, 3))]
    output = result(draw, (2, sum(extents), 3), dtype, scale)
    parts = [drawn(draw, (2, extent, 3), dtype, scale * _ratio(draw, is_tie)) for extent in extents]
    if dtype is np.int8:
        parts = [given(draw.values(part.shape, dtype), output.quantization) for part in parts]
    fields = options(draw.one_of(1, -2))
    return one_operator(name, _OPERATOR.CONCATENATION, parts, [output], _OPTIONS.ConcatenationOptions, fields)


def _mean(name: str, dtype: Type, is_tie: bool) -> Case:
    draw = Draw(name)
    shape = draw.shape(4, 8)
    axes = sorted(int(axis) for axis in draw.rng.permutation(4)[: draw.integer(1, 4)])
    keeps = draw.integer(0, 1)
    to = [1 if k in axes else extent for k, extent in enumerate(shape) if keeps or k not in axes]
    scale = _scale(draw, is_tie)
    output = result(draw, to, dtype, scale * (1 if is_tie else draw.scale(0.5, 1.2)))
    # The last axis also under its other name.
    inputs = [drawn(draw, shape, dtype, scale), integers(*(-1 if axis == 3 else axis for axis in axes))]
    return one_operator(name, _OPERATOR.MEAN, inputs, [output], _OPTIONS.ReducerOptions, options(keeps))


def _pad(name: str, dtype: Type, is_tie: bool) -> Case:
    draw = Draw(name)
    data, amounts, output = _padded(draw, dtype, is_tie)
    return one_operator(name, _OPERATOR.PAD, [data, amounts], [output])


def _pad_v2(name: str, dtype: Type, is_tie: bool) -> Case:
    """With a border of a drawn quantized value."""
    draw = Draw(name)
    data, amounts, output = _padded(draw, dtype, is_tie)
    border = constant(draw.values((1,), dtype), data.quantization)
    return one_operator(name, _OPERATOR.PADV2, [data, amounts, border], [output])


def _padded(draw: Draw, dtype: Type, is_tie: bool) -> tuple[Tensor, Tensor, Tensor]:
    pairs = [(draw.integer(0, 2), draw.integer(0, 2)) for _ in _IMAGE]
    data = drawn(draw, _IMAGE, dtype, _scale(draw, is_tie))
    to = tuple(extent + sum(pair) for extent, pair in zip(_IMAGE, pairs, strict=True))
    return data, integers(*pairs), Tensor(to, dtype, data.quantization)


def _transpose(name: str, dtype: Type, is_tie: bool) -> Case:
    draw = Draw(name)
    permutation = [int(axis) for axis in draw.rng.permutation(4)]
    data = drawn(draw, _IMAGE, dtype, _scale(draw, is_tie))
    output = Tensor(tuple(_IMAGE[axis] for axis in permutation), dtype, data.quantization)
    return one_operator(name, _OPERATOR.TRANSPOSE, [data, integers(*permutation)], [output])


_BUILDERS: dict[str, Build] = {
    "add": _add,
    "avg": average_pool,
    "concat": _concatenation,
    "conv": convolution,
    "deq": _dequantize,
    "dw": depthwise,
    "fc": fully_connected,
    "leaky": _leaky_relu,
    "max": max_pool,
    "mean": _mean,
    "mul": _mul,
    "pad": _pad,
    "padv2": _pad_v2,
    "qf": _quantize,
    "softmax": _softmax,
    "transpose": _transpose,
}

FAMILY = Family("tflite_operators", _draw, litert.reference)
