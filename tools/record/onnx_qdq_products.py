"""QDQ groups of ONNX's convolutions and matrix products: biases, activations, windows, weights of every kind."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx_graphs import CONTRIB, ModelBuilder

from tools.record.drawing import BYTES, Draw, Type, covering_scale
from tools.record.family import Array, Case
from tools.record.onnx_nodes import Node, Operand, Result, dequantized, qlinear

_BIAS_BOUND = 20000
_F32_BIAS = 1.0
# The kinds of biases and of activations that stand in the names.
_CONVOLUTIONS = [(bias, clamp) for bias in ("none", "i32", "f32") for clamp in ("none", "relu0", "relu", "clip")]
_DENSE = [(bias, clamp) for bias in ("none", "i32", "f32") for clamp in ("none", "relu0", "relu")]


@dataclass(frozen=True)
class Layer:
    """Data, weights with one scale or one for each output channel, and how many products an output adds."""

    data: Operand
    data_scale: float
    weight: Operand
    weight_scale: Array
    attributes: dict[str, Any]
    terms: int

    @property
    def channels(self) -> int:
        values = self.weight.values
        return int(np.shape(values)[0 if values.ndim > 2 or "transB" in self.attributes else 1])

    def bias(self, draw: Draw) -> Operand:
        """i32, by the product of the scales; of the size that the sums have."""
        each = self.weight_scale * np.float32(self.data_scale)
        return Operand(draw.bias(self.channels, _BIAS_BOUND), each, is_constant=True)

    def result(self, draw: Draw, zero_point: int | None = None) -> Result:
        dtype = self.data.values.dtype.type
        scale = covering_scale(self.data_scale, self.weight_scale, self.terms)
        return Result(dtype, scale, draw.inner_point(dtype) if zero_point is None else zero_point)


def products() -> Iterator[Case]:
    """Every case of this module."""
    for bias, clamp in _CONVOLUTIONS:
        for index in range(2 if (bias, clamp) == ("i32", "none") else 1):
            name = f"conv_{bias}_{clamp}_{index}"
            draw = Draw(name)
            yield _layer(name, draw, "Conv", convolution(draw, 2), bias, clamp)
    for bias, clamp in _DENSE:
        name = f"gemm_{bias}_{clamp}_0"
        draw = Draw(name)
        yield _layer(name, draw, "Gemm", _dense(draw), bias, clamp)
    draw = Draw("conv1d_0")
    yield _layer("conv1d_0", draw, "Conv", convolution(draw, 1), "none", "none")
    draw = Draw("matmul_0")
    yield _layer("matmul_0", draw, "MatMul", _dense(draw, transposes=False), "none", "none")
    yield from _to_f32()
    yield from _qlinear()


def convolution(draw: Draw, rank: int) -> Layer:
    """A window of any kind over images whose extents are small and odd."""
    kernel = [draw.integer(1, 3) for _ in range(rank)]
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": [draw.integer(1, 3) for _ in kernel]}
    padding = draw.one_of("", "pads", "dilated", "SAME_UPPER", "SAME_LOWER", "VALID")
    spread = 2 if padding == "dilated" else 1
    if padding in ("pads", "dilated"):
        attributes["pads"] = [draw.integer(0, 2) for _ in range(2 * rank)]
    elif padding:
        attributes["auto_pad"] = padding
    if padding == "dilated":
        attributes["dilations"] = [2] * rank
    groups = draw.one_of(1, 1, 3)
    channels, outputs = draw.one_of((1, 1), (1, 18), (2, 3), (3, 7), (5, 1), (8, 3), (16, 7))
    attributes["group"] = groups
    extents = [draw.integer((extent - 1) * spread + 1, 9) for extent in kernel]
    image = (draw.integer(1, 2), groups * channels, *extents)
    return _weighted(draw, image, (groups * outputs, channels, *kernel), 0, attributes, channels * math.prod(kernel))


def _dense(draw: Draw, *, transposes: bool = True) -> Layer:
    rows, depth, columns = draw.integer(1, 5), draw.one_of(1, 3, 16, 33), draw.one_of(1, 5, 16, 19)
    is_transposed = transposes and draw.one_of(True, False)
    shape = (columns, depth) if is_transposed else (depth, columns)
    attributes = {"transB": 1} if is_transposed else {}
    return _weighted(draw, (rows, depth), shape, 0 if is_transposed else 1, attributes, depth)


def _weighted(
    draw: Draw, data: tuple[int, ...], weight: tuple[int, ...], axis: int, attributes: dict[str, Any], terms: int
) -> Layer:
    dtype = draw.one_of(*BYTES)
    # ONNX Runtime has no integer kernel for unsigned weights of signed data.
    weight_type = draw.one_of(*BYTES) if dtype is np.uint8 else np.int8
    scale = draw.one_of(draw.power_of_two(-7, -4), draw.scale(0.008, 0.08))
    operand = Operand(draw.values(data, dtype), scale, draw.zero_point(dtype))
    per_channel = draw.one_of(True, False)
    scales = draw.scales(weight[axis], 0.001, 0.016) if per_channel else np.array(draw.scale(0.001, 0.016), np.float32)
    point = draw.one_of(128, draw.inner_point(np.uint8)) if weight_type is np.uint8 else 0
    known = Operand(draw.values(weight, weight_type), scales, point, axis, is_constant=True)
    return Layer(operand, scale, known, scales, attributes, terms)


def _layer(name: str, draw: Draw, kind: str, layer: Layer, bias: str, clamp: str) -> Case:
    builder = ModelBuilder()
    inputs = [dequantized(builder, layer.data, "x0"), dequantized(builder, layer.weight, "")]
    if bias == "i32":
        inputs.append(dequantized(builder, layer.bias(draw), ""))
    elif bias == "f32":
        inputs.append(builder.constant(draw.normal((layer.channels,), _F32_BIAS)))
    value = builder.node(kind, *inputs, **layer.attributes)
    if clamp.startswith("relu"):
        value = builder.node("Relu", value)
    elif clamp == "clip":
        value = builder.node("Clip", value, builder.constant(0.0), builder.constant(6.0))
    lowest = int(np.iinfo(layer.data.values.dtype).min)
    result = layer.result(draw, lowest if clamp == "relu0" else None)
    output = builder.quantize(value, (result.scale, result.zero_point), result.dtype)
    return Case(name, builder.finish(output, dtype=result.dtype), (layer.data.values,))


def _to_f32() -> Iterator[Case]:
    """Products without a quantization behind them."""
    for name in ("gemm_float_0", "gemm_i32_float_0"):
        draw, builder = Draw(name), ModelBuilder()
        layer = _dense(draw)
        inputs = [dequantized(builder, layer.data, "x0"), dequantized(builder, layer.weight, "")]
        if "i32" in name:
            inputs.append(dequantized(builder, layer.bias(draw), ""))
        output = builder.node("Gemm", *inputs, **layer.attributes)
        yield Case(name, builder.finish(output, dtype=np.float32), (layer.data.values,))


def _qlinear() -> Iterator[Case]:
    for name in ("qlinearconv_0", "qlinearconv_1", "qlinearconv_bias_0"):
        draw = Draw(name)
        layer = convolution(draw, 2)
        bias = [layer.bias(draw).values] if "bias" in name else []
        result = layer.result(draw)
        node = Node("QLinearConv", attributes=layer.attributes)
        # Signed weights need not be symmetric in this form.
        point = draw.inner_point(layer.weight.values.dtype.type) if bias else layer.weight.zero_point
        weight = replace(layer.weight, zero_point=point)
        yield qlinear(name, node, [layer.data, weight, result, *bias], result.dtype)
    yield _integer("convinteger_0", "ConvInteger", convolution(Draw("convinteger_0"), 2))
    yield _integer("matmulinteger_0", "MatMulInteger", _dense(Draw("matmulinteger_0"), transposes=False))
    draw = Draw("qlinearmatmul_0")
    layer = _dense(draw, transposes=False)
    batch = replace(layer.data, values=draw.values((2, *layer.data.values.shape), layer.data.values.dtype.type))
    result = layer.result(draw)
    yield qlinear("qlinearmatmul_0", Node("QLinearMatMul"), [batch, layer.weight, result], result.dtype)
    for name, dtype in {"qgemm_0": None, "qgemm_nobias_0": None, "qgemm_float_0": np.float32}.items():
        yield _qgemm(name, dtype)


def _integer(name: str, kind: str, layer: Layer) -> Case:
    """Sums as they are; zero points are inputs behind the operands."""
    points = [np.array(side.zero_point, dtype=side.values.dtype) for side in (layer.data, layer.weight)]
    sides = [replace(side, scale=None) for side in (layer.data, layer.weight)]
    return qlinear(name, Node(kind, attributes=layer.attributes), [*sides, *points], np.int32)


def _qgemm(name: str, dtype: Type | None) -> Case:
    """Without a result the sums become f32 numbers."""
    draw = Draw(name)
    layer = _dense(draw)
    bias = None if "nobias" in name else layer.bias(draw).values
    result = layer.result(draw)
    node = Node(f"{CONTRIB}.QGemm", attributes={"alpha": 1.0, **layer.attributes})
    ends = [result] if dtype is None else []
    return qlinear(name, node, [layer.data, layer.weight, bias, *ends], dtype or result.dtype)
