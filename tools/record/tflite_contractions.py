"""TFLite TRANSPOSE_CONV, BATCH_MATMUL and FULLY_CONNECTED with computed weights; `_tie` has powers of two as scales."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import tflite
from tflite_graphs import options

from qdialect.frontends.tflite.flatbuffer.writer import Quantization
from tools.record import litert
from tools.record.drawing import Draw, Type, covering_scale
from tools.record.family import Case, Family
from tools.record.tflite_models import bias, constant, drawn, integers, one_operator, result

_OPERATOR, _OPTIONS = tflite.BuiltinOperator, tflite.BuiltinOptions
_BIAS_BOUND = 2000
_SAME, _VALID = 0, 1
_RELU, _RELU6 = 1, 3
Shape = tuple[int, ...]


@dataclass(frozen=True)
class _Transposed:
    """Of a batch of images to (height, width); the weight is (outputs, height, width)."""

    image: Shape
    weight: Shape
    to: Shape
    strides: tuple[int, int]
    padding: int = _SAME
    activation: int = 0
    dtype: Type = np.int8
    has_bias: bool = True
    is_per_channel: bool = True


_VALID_3 = _Transposed((1, 3, 3, 5), (3, 3, 2), (7, 8), (2, 3), _VALID, has_bias=False)
_SQUARE = _Transposed((1, 4, 4, 5), (8, 4, 4), (8, 8), (2, 2))
_WIDE = _Transposed((1, 4, 5, 7), (5, 4, 4), (8, 10), (2, 2))
_UNSIGNED = _Transposed((2, 4, 3, 3), (5, 3, 3), (9, 7), (2, 2), _VALID, dtype=np.uint8, has_bias=False)
_TRANSPOSED: dict[str, _Transposed] = {
    "same": _WIDE,
    "same_odd": _Transposed((2, 3, 4, 4), (9, 3, 3), (5, 7), (2, 2)),
    "valid": _VALID_3,
    "valid_more": _Transposed((1, 3, 3, 5), (3, 2, 2), (9, 10), (3, 3), _VALID),
    "same_small": _Transposed((1, 3, 3, 6), (4, 2, 1), (9, 9), (3, 3), activation=_RELU),
    "relu6": _Transposed((1, 3, 5, 3), (4, 3, 3), (3, 10), (1, 2), activation=_RELU6),
    "tie": _SQUARE,
    "tensor": replace(_SQUARE, is_per_channel=False, has_bias=False),
    "uint8": replace(_WIDE, dtype=np.uint8),
    "uint8_valid": _UNSIGNED,
    "uint8_tie": replace(_UNSIGNED, image=(1, 4, 3, 3)),
}


@dataclass(frozen=True)
class _Product:
    """BATCH_MATMUL, either side transposed."""

    left: Shape
    right: Shape
    to: Shape
    transposes: tuple[int, int] = (0, 0)
    right_is_constant: bool = False


_PRODUCTS: dict[str, _Product] = {
    "plain": _Product((3, 5, 7), (3, 7, 9), (3, 5, 9)),
    "adj_y": _Product((2, 2, 5, 16), (2, 2, 33, 16), (2, 2, 5, 33), (0, 1)),
    "adj_x": _Product((2, 6, 5), (2, 6, 17), (2, 5, 17), (1, 0)),
    "adj_both": _Product((6, 5), (17, 6), (5, 17), (1, 1)),
    "broadcast": _Product((2, 1, 3, 6), (4, 6, 10), (2, 4, 3, 10)),
    "broadcast_left": _Product((3, 6), (2, 4, 6, 8), (2, 4, 3, 8)),
    "constant": _Product((2, 3, 6), (6, 11), (2, 3, 11), right_is_constant=True),
    "constant_turned": _Product((2, 3, 6), (1, 11, 6), (2, 3, 11), (0, 1), right_is_constant=True),
    "constant_batch": _Product((2, 3, 6), (2, 6, 11), (2, 3, 11), right_is_constant=True),
    "tie": _Product((2, 8, 6), (2, 6, 11), (2, 8, 11)),
}


@dataclass(frozen=True)
class _Dense:
    """FULLY_CONNECTED whose weights (outputs, depth) the caller passes."""

    data: Shape
    outputs: int
    dtype: Type = np.int8
    activation: int = 0
    keeps: bool = False
    has_bias: bool = True
    weights_are_constant: bool = False


_DENSE: dict[str, _Dense] = {
    "run_time": _Dense((4, 7), 9),
    "run_time_keep": _Dense((2, 3, 8), 17, activation=_RELU, keeps=True, has_bias=False),
    "run_time_tie": _Dense((4, 6), 9),
    "run_time_uint8": _Dense((4, 6), 9, np.uint8),
    "keep": _Dense((2, 3, 8), 5, keeps=True, weights_are_constant=True),
}


def _draw() -> Iterator[Case]:
    for name, transposed in _TRANSPOSED.items():
        yield _transpose_conv(f"transpose_conv_{name}", transposed)
    for name, product in _PRODUCTS.items():
        yield _batch_matmul(f"batch_matmul_{name}", product)
    for name, dense in _DENSE.items():
        yield _fully_connected(f"fully_connected_{name}", dense)


def _scale(draw: Draw, name: str, low: float, high: float) -> float:
    return draw.power_of_two(-6, -4) if name.endswith("_tie") else draw.scale(low, high)


def _transpose_conv(name: str, case: _Transposed) -> Case:
    draw, channels = Draw(name), case.image[3]
    scale = _scale(draw, name, 0.01, 0.1)
    data = drawn(draw, case.image, case.dtype, scale)
    is_per_channel = case.is_per_channel and case.dtype is np.int8
    count = case.weight[0] if is_per_channel else 1
    scales = tuple(_scale(draw, name, 0.002, 0.02) for _ in range(count))
    values = draw.values((*case.weight, channels), case.dtype)
    # Signed weights are symmetric.
    point = draw.inner_point(np.uint8) if case.dtype is np.uint8 else 0
    weight = constant(np.maximum(values, -127) if point == 0 else values, Quantization(scales, (point,) * count))
    terms = channels * math.prod(case.weight[1:]) / math.prod(case.strides)
    step = _output_scale(name, scale, scales, terms)
    output = result(draw, (case.image[0], *case.to, case.weight[0]), case.dtype, step)
    inputs = [integers(*output.shape), weight, data]
    if case.has_bias:
        inputs.append(bias(draw, case.weight[0], _BIAS_BOUND, scale, scales))
    # The format has the width before the height.
    fields = options(case.padding, case.strides[1], case.strides[0], case.activation)
    return one_operator(name, _OPERATOR.TRANSPOSE_CONV, inputs, [output], _OPTIONS.TransposeConvOptions, fields)


def _output_scale(name: str, left: float, right: tuple[float, ...], terms: float) -> float:
    step = covering_scale(left, np.array(right), terms)
    return 2.0 ** round(math.log2(step)) if name.endswith("_tie") else step


def _batch_matmul(name: str, case: _Product) -> Case:
    draw = Draw(name)
    left, right = _scale(draw, name, 0.01, 0.1), _scale(draw, name, 0.01, 0.1)
    lhs, rhs = drawn(draw, case.left, np.int8, left), drawn(draw, case.right, np.int8, right)
    depth = case.left[-2 if case.transposes[0] else -1]
    output = result(draw, case.to, np.int8, _output_scale(name, left, (right,), 2 * depth))
    inputs = [lhs, replace(rhs, is_constant=case.right_is_constant)]
    fields = options(*case.transposes)
    return one_operator(name, _OPERATOR.BATCH_MATMUL, inputs, [output], _OPTIONS.BatchMatMulOptions, fields)


def _fully_connected(name: str, case: _Dense) -> Case:
    draw = Draw(name)
    scale, of_weights = _scale(draw, name, 0.01, 0.1), _scale(draw, name, 0.01, 0.1)
    depth = case.data[-1]
    data = drawn(draw, case.data, case.dtype, scale)
    weights = drawn(draw, (case.outputs, depth), case.dtype, of_weights)
    step = _output_scale(name, scale, (of_weights,), 2 * depth)
    output = result(draw, (*case.data[:-1], case.outputs), case.dtype, step)
    offsets = bias(draw, case.outputs, _BIAS_BOUND, scale, (of_weights,)) if case.has_bias else None
    inputs = [data, replace(weights, is_constant=case.weights_are_constant), offsets]
    fields = options(case.activation, 0, int(case.keeps))
    return one_operator(name, _OPERATOR.FULLY_CONNECTED, inputs, [output], _OPTIONS.FullyConnectedOptions, fields)


FAMILY = Family("tflite_contractions", _draw, litert.reference)
