"""TFLite's operators of windows and FULLY_CONNECTED, for the family `tflite_operators`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import tflite
from tflite_graphs import options

from qdialect.frontends.tflite.flatbuffer.writer import Quantization
from tools.record.drawing import Draw, Type, covering_scale
from tools.record.family import Case
from tools.record.tflite_models import Tensor, activation, bias, constant, drawn, one_operator, result

_OPERATOR, _OPTIONS = tflite.BuiltinOperator, tflite.BuiltinOptions
_SAME, _VALID = 0, 1
_BIAS_BOUND = 10000


def _data_scale(draw: Draw, is_tie: bool) -> float:
    return draw.power_of_two(-6, -2) if is_tie else draw.scale(0.003, 0.3)


def _weight(draw: Draw, shape: Sequence[int], axis: int, dtype: Type, is_tie: bool) -> tuple[Tensor, tuple[float, ...]]:
    """Signed weights are symmetric, with one scale or one for each output channel; and the scales."""
    is_per_channel = dtype is np.int8 and draw.one_of(True, False)
    count = shape[axis] if is_per_channel else 1
    scales = tuple(draw.power_of_two(-5, -2) if is_tie else draw.scale(0.002, 0.3) for _ in range(count))
    point = 0 if dtype is np.int8 else draw.inner_point(dtype)
    return constant(draw.values(shape, dtype), Quantization(scales, (point,) * count, axis)), scales


def _output_scale(data: float, weights: Sequence[float], terms: int, is_tie: bool) -> float:
    step = covering_scale(data, np.array(weights), 2 * terms)
    return 2.0 ** round(math.log2(step)) if is_tie else step


def _windows(extent: int, window: int, stride: int, dilation: int, padding: int) -> int:
    reached = (window - 1) * dilation + 1
    return -(-extent // stride) if padding == _SAME else (extent - reached) // stride + 1


def convolution(name: str, dtype: Type, is_tie: bool) -> Case:
    draw = Draw(name)
    channels, outputs = draw.one_of(1, 5, 7), draw.one_of(3, 4, 7)
    kernel, strides, padding, dilation = _window(draw)
    image = (draw.integer(1, 2), *(draw.integer((extent - 1) * dilation + 1, 8) for extent in kernel), channels)
    scale = _data_scale(draw, is_tie)
    data = drawn(draw, image, dtype, scale)
    weight, scales = _weight(draw, (outputs, *kernel, channels), 0, dtype, is_tie)
    to = [_windows(*sizes, dilation, padding) for sizes in zip(image[1:3], kernel, strides, strict=True)]
    step = _output_scale(scale, scales, channels * math.prod(kernel), is_tie)
    output = result(draw, (image[0], *to, outputs), dtype, step)
    inputs = [data, weight, bias(draw, outputs, _BIAS_BOUND, scale, scales)]
    fields = options(padding, strides[1], strides[0], activation(draw, output), dilation, dilation)
    return one_operator(name, _OPERATOR.CONV_2D, inputs, [output], _OPTIONS.Conv2DOptions, fields)


def depthwise(name: str, dtype: Type, is_tie: bool) -> Case:
    draw = Draw(name)
    channels, multiplier = draw.one_of(4, 5, 7), draw.one_of(1, 2)
    kernel, strides, padding, dilation = _window(draw)
    image = (1, *(draw.integer((extent - 1) * dilation + 1, 8) for extent in kernel), channels)
    scale = _data_scale(draw, is_tie)
    data = drawn(draw, image, dtype, scale)
    outputs = channels * multiplier
    weight, scales = _weight(draw, (1, *kernel, outputs), 3, dtype, is_tie)
    to = [_windows(*sizes, dilation, padding) for sizes in zip(image[1:3], kernel, strides, strict=True)]
    output = result(draw, (1, *to, outputs), dtype, _output_scale(scale, scales, math.prod(kernel), is_tie))
    inputs = [data, weight, bias(draw, outputs, _BIAS_BOUND, scale, scales)]
    fields = options(padding, strides[1], strides[0], multiplier, activation(draw, output), dilation, dilation)
    code, kind = _OPERATOR.DEPTHWISE_CONV_2D, _OPTIONS.DepthwiseConv2DOptions
    return one_operator(name, code, inputs, [output], kind, fields)


def _window(draw: Draw) -> tuple[list[int], list[int], int, int]:
    """Kernel, strides (1 where the kernel is dilated), padding and dilation."""
    kernel, dilation = [draw.integer(1, 3), draw.integer(1, 3)], draw.one_of(1, 1, 2)
    stride = draw.integer(1, 2)
    strides = [1, 1] if dilation > 1 else [stride, stride]
    return kernel, strides, draw.one_of(_SAME, _VALID), dilation


def fully_connected(name: str, dtype: Type, is_tie: bool) -> Case:
    draw = Draw(name)
    depth, outputs, keeps = draw.integer(5, 32), draw.integer(10, 40), draw.integer(0, 1)
    rows = (2, 2) if keeps else (draw.integer(1, 2),)
    scale = _data_scale(draw, is_tie)
    weight, scales = _weight(draw, (outputs, depth), 0, dtype, is_tie)
    output = result(draw, (*rows, outputs), dtype, _output_scale(scale, scales, depth, is_tie))
    inputs = [drawn(draw, (*rows, depth), dtype, scale), weight, bias(draw, outputs, _BIAS_BOUND, scale, scales)]
    fields = options(activation(draw, output), 0, keeps)
    code, kind = _OPERATOR.FULLY_CONNECTED, _OPTIONS.FullyConnectedOptions
    return one_operator(name, code, inputs, [output], kind, fields)


def average_pool(name: str, dtype: Type, is_tie: bool) -> Case:
    return _pool(name, _OPERATOR.AVERAGE_POOL_2D, dtype, is_tie)


def max_pool(name: str, dtype: Type, is_tie: bool) -> Case:
    return _pool(name, _OPERATOR.MAX_POOL_2D, dtype, is_tie)


def _pool(name: str, code: int, dtype: Type, is_tie: bool) -> Case:
    """With one quantization before and after, as the kernels demand."""
    draw = Draw(name)
    kernel, strides = [draw.integer(1, 4), draw.integer(1, 4)], [draw.integer(1, 3), draw.integer(1, 3)]
    image = (1, draw.integer(kernel[0], 8), draw.integer(kernel[1], 8), 5)
    padding = draw.one_of(_SAME, _VALID)
    data = drawn(draw, image, dtype, _data_scale(draw, is_tie))
    to = [_windows(*sizes, 1, padding) for sizes in zip(image[1:3], kernel, strides, strict=True)]
    output = Tensor((1, *to, 5), dtype, data.quantization)
    fields = options(padding, strides[1], strides[0], kernel[1], kernel[0], activation(draw, output))
    return one_operator(name, code, [data], [output], _OPTIONS.Pool2DOptions, fields)
