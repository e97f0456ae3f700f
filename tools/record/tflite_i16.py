"""TFLite operators of 16-bit activations with 8-bit weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tflite
from tflite_graphs import options

from qdialect.frontends.tflite.flatbuffer.writer import Quantization
from tools.record import litert
from tools.record.drawing import Draw, Type
from tools.record.family import Case, Family
from tools.record.tflite_models import Tensor, bits, constant, given, integers, one_operator, per_tensor

_OPERATOR, _OPTIONS = tflite.BuiltinOperator, tflite.BuiltinOptions
_BIAS_TYPES: dict[Type, int] = {np.int32: tflite.TensorType.INT32, np.int64: tflite.TensorType.INT64}
_SAME, _RELU, _RELU6 = 0, 1, 3
_DATA_SCALE, _UNIT = 0.003, 2.0**-15
Shape = tuple[int, ...]


def _data(draw: Draw, shape: Shape, scale: float = _DATA_SCALE) -> Tensor:
    # Small and large numbers alike.
    return given(draw.values(shape, np.int16) >> draw.rng.integers(0, 12, shape).astype(np.int16), per_tensor(scale, 0))


def _output(shape: Sequence[int], scale: float) -> Tensor:
    return Tensor(tuple(shape), np.int16, per_tensor(scale, 0))


def _weights(draw: Draw, shape: Shape, axis: int, bias_type: Type) -> list[Tensor]:
    channels = shape[axis]
    scales = tuple(map(float, draw.rng.uniform(0.001, 0.01, channels)))
    points = (0,) * channels
    bias = draw.bias(channels, 2**18).astype(bias_type)
    bias_scales = tuple(_DATA_SCALE * scale for scale in scales)
    weight = constant(draw.values(shape, np.int8), Quantization(scales, points, axis))
    return [weight, constant(bias, Quantization(bias_scales, points))]


def _contractions() -> Iterator[Case]:
    for bias_type, bias_code in _BIAS_TYPES.items():
        suffix = np.dtype(bias_type).name
        name = f"i16_conv_2d_{suffix}"
        draw, table = Draw(name), _OPTIONS.Conv2DOptions
        inputs = [_data(draw, (1, 6, 7, 19)), *_weights(draw, (21, 3, 3, 19), 0, bias_type)]
        option = options(_SAME, 2, 2, _RELU, 1, 1, bias_code)
        yield one_operator(name, _OPERATOR.CONV_2D, inputs, [_output((1, 3, 4, 21), 0.1)], table, option)
        name = f"i16_fully_connected_{suffix}"
        draw, table = Draw(name), _OPTIONS.FullyConnectedOptions
        inputs = [_data(draw, (3, 67)), *_weights(draw, (10, 67), 0, bias_type)]
        option = options(0, 0, 0, 0, bias_code)
        yield one_operator(name, _OPERATOR.FULLY_CONNECTED, inputs, [_output((3, 10), 0.1)], table, option)
        name = f"i16_transpose_conv_{suffix}"
        draw, table = Draw(name), _OPTIONS.TransposeConvOptions
        weight, bias = _weights(draw, (7, 3, 3, 5), 0, bias_type)
        inputs = [integers(1, 6, 8, 7), weight, _data(draw, (1, 3, 4, 5)), bias]
        option = options(_SAME, 2, 2, 0, bias_code)
        yield one_operator(name, _OPERATOR.TRANSPOSE_CONV, inputs, [_output((1, 6, 8, 7), 0.05)], table, option)
    name = "i16_depthwise_conv_2d"
    draw, table = Draw(name), _OPTIONS.DepthwiseConv2DOptions
    inputs = [_data(draw, (1, 6, 7, 19)), *_weights(draw, (1, 3, 3, 19), 3, np.int64)]
    option = options(_SAME, 1, 1, 1, _RELU6, 1, 1)
    yield one_operator(name, _OPERATOR.DEPTHWISE_CONV_2D, inputs, [_output((1, 6, 7, 19), 0.02)], table, option)
    name = "i16_batch_matmul"
    draw, table = Draw(name), _OPTIONS.BatchMatMulOptions
    inputs = [_data(draw, (2, 3, 17)), _data(draw, (2, 17, 5), 0.007)]
    yield one_operator(name, _OPERATOR.BATCH_MATMUL, inputs, [_output((2, 3, 5), 1.7)], table, options(0, 0))


_PAIRS: dict[str, tuple[int, int, Sequence[int], float]] = {
    "add": (_OPERATOR.ADD, _OPTIONS.AddOptions, (_RELU,), 0.007),
    "sub": (_OPERATOR.SUB, _OPTIONS.SubOptions, (0,), 0.007),
    "mul": (_OPERATOR.MUL, _OPTIONS.MulOptions, (0,), 0.03),
    "maximum": (_OPERATOR.MAXIMUM, _OPTIONS.MaximumMinimumOptions, (), _DATA_SCALE),
    "minimum": (_OPERATOR.MINIMUM, _OPTIONS.MaximumMinimumOptions, (), _DATA_SCALE),
}
_FUNCTIONS: dict[str, tuple[int, float, float, Any]] = {
    "abs": (_OPERATOR.ABS, 0.003, 0.0037, ()),
    "exp": (_OPERATOR.EXP, 1e-4, 0.001, ()),
    "gelu": (_OPERATOR.GELU, 2e-4, 2.1e-4, (_OPTIONS.GeluOptions, options(0))),
    "log": (_OPERATOR.LOG, 1e-3, 2e-4, ()),
    "logistic": (_OPERATOR.LOGISTIC, 3.7e-4, _UNIT, ()),
    "logistic_tie": (_OPERATOR.LOGISTIC, 2.0**-12, _UNIT, ()),
    "relu": (_OPERATOR.RELU, 0.003, 0.0037, ()),
    "relu6": (_OPERATOR.RELU6, 0.003, 0.003, ()),
    "tanh": (_OPERATOR.TANH, 1e-4, _UNIT, ()),
    "tanh_tie": (_OPERATOR.TANH, 2.0**-11, _UNIT, ()),
}


def _elementwise() -> Iterator[Case]:
    for kind, (code, table, entries, scale) in _PAIRS.items():
        name = f"i16_{kind}"
        draw = Draw(name)
        right = _DATA_SCALE if kind in ("maximum", "minimum") else 0.005
        inputs = [_data(draw, (4, 5, 37)), _data(draw, (5, 37), right)]
        yield one_operator(name, code, inputs, [_output((4, 5, 37), scale)], table, options(*entries))
    for kind, (code, before, after, how) in _FUNCTIONS.items():
        name = f"i16_{kind}"
        inputs = [_data(Draw(name), (32, 32), before)]
        yield one_operator(name, code, inputs, [_output((32, 32), after)], *how)
    name = "i16_prelu"
    draw = Draw(name)
    slope = constant(draw.values((1, 1, 19), np.int8), per_tensor(0.01, 3))
    inputs = [_data(draw, (1, 4, 5, 19)), slope]
    yield one_operator(name, _OPERATOR.PRELU, inputs, [_output((1, 4, 5, 19), 0.0037)])


def _windows() -> Iterator[Case]:
    for kind, code in (("average", _OPERATOR.AVERAGE_POOL_2D), ("max", _OPERATOR.MAX_POOL_2D)):
        name = f"i16_{kind}_pool_2d"
        inputs = [_data(Draw(name), (1, 7, 6, 19))]
        option = options(_SAME, 2, 2, 3, 3, 0)
        yield one_operator(name, code, inputs, [_output((1, 4, 3, 19), _DATA_SCALE)], _OPTIONS.Pool2DOptions, option)
    reductions = {"mean": (_OPERATOR.MEAN, 0.0037), "reduce_max": (_OPERATOR.REDUCE_MAX, _DATA_SCALE)}
    for kind, (code, scale) in reductions.items():
        name = f"i16_{kind}"
        inputs = [_data(Draw(name), (2, 7, 6, 19)), integers(1, 2)]
        yield one_operator(name, code, inputs, [_output((2, 19), scale)], _OPTIONS.ReducerOptions, options(0))
    name = "i16_resize_bilinear"
    inputs = [_data(Draw(name), (1, 5, 4, 3)), integers(9, 7)]
    result, option = _output((1, 9, 7, 3), _DATA_SCALE), options(0, 0, 0, 1)
    yield one_operator(name, _OPERATOR.RESIZE_BILINEAR, inputs, [result], _OPTIONS.ResizeBilinearOptions, option)
    name = "i16_softmax"
    inputs, option = [_data(Draw(name), (5, 67))], options(bits(1.0))
    yield one_operator(name, _OPERATOR.SOFTMAX, inputs, [_output((5, 67), _UNIT)], _OPTIONS.SoftmaxOptions, option)


def _conversions() -> Iterator[Case]:
    name = "i16_quantize_to_i8"
    result = Tensor((32, 32), np.int8, per_tensor(0.7, -5))
    yield one_operator(name, _OPERATOR.QUANTIZE, [_data(Draw(name), (32, 32))], [result])
    name = "i16_quantize_from_i8"
    inputs = [given(Draw(name).values((32, 32), np.int8), per_tensor(0.1, -5))]
    yield one_operator(name, _OPERATOR.QUANTIZE, inputs, [_output((32, 32), 0.0007)])


def _draw() -> Iterator[Case]:
    yield from _contractions()
    yield from _elementwise()
    yield from _windows()
    yield from _conversions()


FAMILY = Family("tflite_i16", _draw, litert.reference)
