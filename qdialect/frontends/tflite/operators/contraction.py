"""Plans CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV and FULLY_CONNECTED of quantized numbers of 8 and 16 bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tflite
from numpy.typing import NDArray

from qdialect.arithmetic import Multiplier, Rounding
from qdialect.arithmetic.block_weights import pack_weights
from qdialect.arithmetic.choices import I16Rounding
from qdialect.arithmetic.profiles import TFLITE
from qdialect.dialect import (
    Conv2DOp,
    ConvTranspose2DOp,
    DenseOp,
    I16Conv2DOp,
    I16DenseOp,
    I16RequantizeOp,
)
from qdialect.dialect.type_constraints import NUMPY_DTYPES, shape_of
from qdialect.frontends.building.checks import require
from qdialect.frontends.building.slices import framed, spaced
from qdialect.frontends.planning.block_weights import dynamic_block_product, takes_quantized_rows
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.flatbuffer.reader import read_options
from qdialect.frontends.tflite.operators.checks import (
    Pair,
    WindowOptions,
    activation_range,
    check_rescale,
    check_scales,
    constant,
    dense_options,
    eight_bit,
    integers,
    operands,
    sixteen_bit,
    window_options,
)
from qdialect.frontends.tflite.operators.matmul import Product, transposed
from qdialect.frontends.tflite.operators.registry import Building, Emitter, imports
from qdialect.ir._mlir import ir

# CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV and FULLY_CONNECTED.

# The largest distance of a byte from its zero point, and the bits of a float32 number.
_LARGEST_OFFSET, _F32_BITS = 255, 24
_OUTPUT_AXIS = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0, "TRANSPOSE_CONV": 0}


@dataclass(frozen=True)
class _Contraction:
    """The tensors of a node, checked; `weight` has the output channels first."""

    data: Tensor
    output: Tensor
    weight: NDArray[Any]
    weight_scales: tuple[float, ...]
    weight_zero_points: tuple[int, ...]
    bias: NDArray[Any] | None
    rounding: Rounding
    multiplier: Multiplier
    bounds: tuple[int, int]
    bits: int = 0
    """Of each weight in the file, where these are fewer than 8."""

    def products(self, emitter: Emitter, rows: ir.Value) -> ir.Value:
        """The accumulators of rows of bytes [M, K].

        Weights of few bits stay packed if all sums are exact in f32: half the bytes, and a row takes half the time.
        Those of convolutions do not, whose many pixels meet few weights.
        """
        depth = self.weight.shape[1]
        is_exact = depth * _LARGEST_OFFSET << max(self.bits - 1, 0) < 1 << _F32_BITS
        packed = None
        if self.bits and is_exact and not any(self.weight_zero_points):
            packed = pack_weights(self.weight, np.ones((len(self.weight), 1), np.float32), None, depth)
        if packed is None or not takes_quantized_rows(packed):
            return self.accumulate(emitter, DenseOp, rows)
        point = emitter.constant(np.array([self.data.zero_point], np.int8))
        total = dynamic_block_product(emitter, rows, emitter.number(1.0, (1,)), point, packed)
        found = emitter.convert("arith.fptosi", total, "i32")
        if self.bias is None:
            return found
        return emitter.float_op(
            "arith.addi", found, emitter.broadcast(emitter.constant(self.bias), shape_of(found.type))
        )

    def accumulate(self, emitter: Emitter, op_class: type[Any], data: ir.Value, **attributes: Any) -> ir.Value:
        bias = None if self.bias is None else emitter.constant(self.bias)
        return emitter.build(
            op_class,
            data,
            emitter.constant(self.weight),
            bias,
            element="i32",
            input_scale=self.data.scale,
            input_zero_point=self.data.zero_point,
            weight_scales=self.weight_scales,
            weight_zero_points=self.weight_zero_points,
            **attributes,
        )

    def finish(self, emitter: Emitter, acc: ir.Value, axis: int) -> ir.Value:
        requantized = emitter.requantize(
            acc,
            self.output,
            self.data.scale,
            self.multiplier,
            rounding=self.rounding,
            weight_scales=self.weight_scales,
            axis=axis,
        )
        return emitter.clip(requantized, self.bounds)


def _contraction(
    operator: Operator, tensors: Sequence[Tensor], activation: int, rank: int
) -> _Contraction | I16Contraction:
    """`tensors` are data, weight and perhaps bias."""
    data, weight, *rest = tensors
    if data.element == "i16":
        bounds = activation_range(activation, sixteen_bit(operator.outputs[0], "output"))
        return i16_contraction(operator, tensors, rank, _OUTPUT_AXIS[operator.kind], bounds)
    output = eight_bit(operator.outputs[0], "output")
    eight_bit(data, "input")
    types = (data.element, weight.element, output.element)
    require(len(set(types)) == 1, f"input, weight and output must be all i8 or all ui8, but got {', '.join(types)}")
    require(len(weight.shape) == rank, f"weight must have {rank} dimensions, but got {len(weight.shape)}")
    values, axis = constant(weight, "weight"), _OUTPUT_AXIS[operator.kind]
    channels = weight.shape[axis]
    _check_weight_quantization(operator, weight, axis)
    rounding, multiplier = _arithmetic(operator, weight)
    check_rescale(data.scale, weight.scales, output.scale, multiplier)
    bias = _bias_of_eight_bit(rest[0], channels) if rest else None
    zero_points = weight.zero_points if len(set(weight.zero_points)) > 1 else weight.zero_points[:1]
    channels_first = np.moveaxis(values, axis, 0)
    bounds = activation_range(activation, output)
    how = rounding, multiplier, bounds, weight.bits
    return _Contraction(data, output, channels_first, weight.scales, zero_points, bias, *how)


def _check_weight_quantization(operator: Operator, weight: Tensor, axis: int) -> None:
    check_scales(weight, "weight")
    if len(weight.scales) > 1:
        require(weight.axis == axis, f"weight scales must lie along axis {axis}, but got {weight.axis}")
        require(weight.element == "i8", f"weight with scales by channel must be i8, but got {weight.element}")
    # These kernels ignore the zero point; what another value would mean is nowhere defined.
    symmetric = weight.element == "i8" and (operator.kind != "FULLY_CONNECTED" or len(weight.scales) > 1)
    require(not symmetric or not any(weight.zero_points), "i8 weight must have zero point 0")


def _arithmetic(operator: Operator, weight: Tensor) -> tuple[Rounding, Multiplier]:
    """What the reference kernels do, which is not the same everywhere.

    FULLY_CONNECTED rounds once, ties away from zero, by a factor evaluated in double.  Convolutions round twice; those
    of `ui8` take the product of the scales in float32, those of `i8`, whose factors are by channel, in double.
    """
    if operator.kind == "FULLY_CONNECTED":
        return Rounding.FIXED64_NEAREST, Multiplier.F64
    return TFLITE.rounding, TFLITE.multiplier if weight.element == "i8" else Multiplier.F32_PRODUCT


def _bias_of_eight_bit(bias: Tensor, channels: int) -> NDArray[Any]:
    require(bias.element == "i32", f"bias must be i32, but got {bias.element}")
    values = constant(bias, "bias")
    require(values.size == channels, f"bias must have {channels} entries, but got {values.size}")
    return values.reshape(channels)


@imports("CONV_2D")
def _conv_2d(operator: Operator) -> Building:
    options = window_options(operator)
    node = _contraction(operator, operands(operator, 2, 3), options.activation, rank=4)
    depth = node.weight.shape[3]
    require(depth >= 1 and len(node.data.shape) == 4, "input must have 4 dimensions and the weight a depth")
    return _convolution(node, options, groups=node.data.shape[3] // depth)


@imports("DEPTHWISE_CONV_2D")
def _depthwise_conv_2d(operator: Operator) -> Building:
    options = window_options(operator)
    # [1, KH, KW, OC] has become [OC, 1, KH, KW]: the depth of one goes last.
    node = _contraction(operator, operands(operator, 2, 3), options.activation, rank=4)
    require(node.weight.shape[1] == 1, f"weight must have a first dimension of 1, but got {node.weight.shape[1]}")
    require(len(node.data.shape) == 4, f"input must have 4 dimensions, but got {len(node.data.shape)}")
    last = replace(node, weight=np.moveaxis(node.weight, 1, 3))
    return _convolution(last, options, groups=node.data.shape[3])


def _convolution(node: _Contraction | I16Contraction, options: WindowOptions, groups: int) -> Building:
    padding = options.explicit(node.data.shape[1:3], node.weight.shape[1:3])
    attributes = {"strides": options.strides, "padding": padding, "dilation": options.dilation, "groups": groups}
    emitter = yield
    data = emitter.value(node.data)
    return node.finish(emitter, node.accumulate(emitter, Conv2DOp, data, **attributes), axis=3)


@imports("TRANSPOSE_CONV")
def _transpose_conv(operator: Operator) -> Building:
    """The padding is that of the convolution of which the output would be the input (TFLite transpose_conv.cc)."""
    options = window_options(operator)
    shape, weight, data, *bias = operands(operator, 3, 4)
    node = _contraction(operator, (data, weight, *bias), options.activation, rank=4)
    require(len(data.shape) == 4, f"input must have 4 dimensions, but got {len(data.shape)}")
    depth = weight.shape[3]
    require(data.shape[3] == depth, f"input must have {depth} channels, but got {data.shape[3]}")
    output = node.output.shape
    require(integers(shape, "output shape") == output, f"output shape must be {list(output)}")
    require(len(output) == 4, f"output must have 4 dimensions, but got {len(output)}")
    strides, window = options.strides, weight.shape[1:3]
    top, left, *_ = options.explicit(output[1:3], window)
    full = [(data.shape[1 + i] - 1) * strides[i] + window[i] for i in range(2)]
    # What of the full extent lies behind the output is cropped; what lies behind it in the output holds the bias.
    rests = [full[i] - before - output[1 + i] for i, before in enumerate((top, left))]
    cropped, extra = [max(rest, 0) for rest in rests], [max(-rest, 0) for rest in rests]
    attributes = {"strides": strides, "padding": (top, left, *cropped), "output_padding": tuple(extra)}
    emitter = yield
    acc = node.accumulate(emitter, ConvTranspose2DOp, emitter.value(node.data), **attributes)
    return node.finish(emitter, acc, axis=3)


@imports("FULLY_CONNECTED")
def _fully_connected(operator: Operator) -> Building:
    activation, _ = dense_options(operator)
    data, weight, *bias = operands(operator, 2, 3)
    depth, elements = weight.shape[1], math.prod(data.shape)
    require(weight.data is not None or data.element != "i16", "weight of an i16 input must be constant")
    if weight.data is None:
        return (yield from _fully_connected_at_run_time(data, weight, bias, operator.outputs[0], activation))
    node = _contraction(operator, (data, weight, *bias), activation, rank=2)
    emitter = yield
    rows = emitter.reshape(emitter.value(node.data), (elements // depth, depth))
    is_bytes = isinstance(node, _Contraction)
    total = node.products(emitter, rows) if is_bytes else node.accumulate(emitter, DenseOp, rows)
    result = node.finish(emitter, total, axis=1)
    # With keep_num_dims the output has the input's leading dimensions.
    return emitter.reshape(result, node.output.shape)


def _fully_connected_at_run_time(
    data: Tensor, weight: Tensor, bias: Sequence[Tensor], output: Tensor, activation: int
) -> Building:
    channels, depth = weight.shape
    node = Product(data, weight, output, Rounding.FIXED64_NEAREST, Multiplier.F64)
    values = _bias_of_eight_bit(bias[0], channels) if bias else None
    bounds = activation_range(activation, output)
    emitter = yield
    rows = emitter.reshape(emitter.value(data), (math.prod(data.shape) // depth, depth))
    start = None if values is None else emitter.constant(values)
    result = node.emit(emitter, rows, transposed(emitter, emitter.value(weight)), start)
    return emitter.reshape(emitter.clip(result, bounds), output.shape)


# Convolutions and matrix products of 16-bit activations with constant 8-bit weights.

_ROUNDINGS = {"i32": I16Rounding.FIXED32_DOUBLE, "i64": I16Rounding.FIXED16_UP}
_BIAS_OPTIONS: dict[str, Any] = {
    "CONV_2D": tflite.Conv2DOptions,
    "FULLY_CONNECTED": tflite.FullyConnectedOptions,
    "TRANSPOSE_CONV": tflite.TransposeConvOptions,
}
_I16_OPS = {Conv2DOp: I16Conv2DOp, DenseOp: I16DenseOp}


@dataclass(frozen=True)
class I16Contraction:
    """The tensors of a node, checked; `weight` has the output channels first, accumulators are of type `element`."""

    data: Tensor
    output: Tensor
    weight: NDArray[Any]
    weight_scales: tuple[float, ...]
    bias: NDArray[Any] | None
    element: str
    rounding: I16Rounding
    multiplier: Multiplier
    bounds: tuple[int, int]

    def accumulate(self, emitter: Emitter, op_class: type[Any], data: ir.Value, **attributes: Any) -> ir.Value:
        """The accumulators of what would be `op_class` on bytes."""
        if op_class is ConvTranspose2DOp:
            return self._transposed(emitter, data, **attributes)
        return self._sums(emitter, _I16_OPS[op_class], data, self.weight, **attributes)

    def finish(self, emitter: Emitter, acc: ir.Value, axis: int) -> ir.Value:
        """The output of accumulators, whose channels lie along `axis`, the last one."""
        return emitter.build(
            I16RequantizeOp,
            acc,
            element="i16",
            input_scale=self.data.scale,
            weight_scales=self.weight_scales,
            output_scale=self.output.scale,
            output_min=self.bounds[0],
            output_max=self.bounds[1],
            rounding=self.rounding,
            multiplier=self.multiplier,
        )

    def _sums(
        self, emitter: Emitter, op_class: type[Any], data: ir.Value, weight: NDArray[Any], **attributes: Any
    ) -> ir.Value:
        bias = None if self.bias is None else emitter.constant(self.bias)
        return emitter.build(op_class, data, emitter.constant(weight), bias, element=self.element, **attributes)

    def _transposed(
        self, emitter: Emitter, data: ir.Value, strides: Pair, padding: Sequence[int], output_padding: Pair
    ) -> ir.Value:
        """A convolution of the data with zeros between them, by the weights from the last tap to the first."""
        apart = spaced(emitter, data, (1, *strides, 1))
        before = [self.weight.shape[1 + i] - 1 - padding[i] for i in range(2)]
        # After the last element there are zeros already, one fewer than the stride.
        after = [self.weight.shape[1 + i] - strides[i] - padding[2 + i] + output_padding[i] for i in range(2)]
        low, high = ((0, *(min(n, 0) for n in side), 0) for side in (before, after))
        added = tuple(max(n, 0) for n in (*before, *after))
        cropped = framed(emitter, apart, low, high)
        return self._sums(emitter, I16Conv2DOp, cropped, self.weight[:, ::-1, ::-1], padding=added)


def i16_contraction(
    operator: Operator, tensors: Sequence[Tensor], rank: int, axis: int, bounds: tuple[int, int]
) -> I16Contraction:
    """That of a node; `tensors` are data, weight, which has `rank` dimensions with channels along `axis`, and bias."""
    data, weight, *rest = tensors
    output = sixteen_bit(operator.outputs[0], "output")
    sixteen_bit(data, "input")
    is_dense = operator.kind == "FULLY_CONNECTED"
    known = ("i8", "i16") if is_dense else ("i8",)
    require(weight.element in known, f"weight must be {' or '.join(known)}, but got {weight.element}")
    require(len(weight.shape) == rank, f"weight must have {rank} dimensions, but got {len(weight.shape)}")
    values, channels = constant(weight, "weight"), weight.shape[axis]
    check_scales(weight, "weight")
    along = len(weight.scales) == 1 or weight.axis == axis
    require(along, f"weight scales must lie along axis {axis}, but got {weight.axis}")
    require(not any(weight.zero_points), "weight of an i16 input must have zero point 0")
    check_rescale(data.scale, weight.scales, output.scale, Multiplier.F64)
    # Products of words are summed up in 64 bits whatever the bias is.
    element = _accumulator(operator, rest) if weight.element == "i8" else "i64"
    bias = _bias_of_i16(rest[0], channels).astype(NUMPY_DTYPES[element]) if rest else None
    rounding = I16Rounding.F64_NEAREST if is_dense and weight.element == "i8" else _ROUNDINGS[element]
    multiplier = _multiplier(weight) if is_dense else Multiplier.F64
    channels_first = np.moveaxis(values, axis, 0)
    scales = weight.scales
    return I16Contraction(data, output, channels_first, scales, bias, element, rounding, multiplier, bounds)


def _multiplier(weight: Tensor) -> Multiplier:
    """The product of two scales is one of float32 where words are multiplied by a single one."""
    return Multiplier.F32_PRODUCT if weight.element == "i16" and len(weight.scales) == 1 else Multiplier.F64


def _accumulator(operator: Operator, bias: Sequence[Tensor]) -> str:
    """The type of sums: that of the bias, which an option may name; i64 where neither says anything."""
    table = _BIAS_OPTIONS.get(operator.kind)
    named = read_options(operator, table, lambda options: options.QuantizedBiasType()) if table else 0
    wanted = {tflite.TensorType.INT32: "i32", tflite.TensorType.INT64: "i64"}.get(named)
    known = ("i64",) if table is None else (wanted,) if wanted else ("i32", "i64")
    found = bias[0].element if bias else wanted or "i64"
    require(found in known, f"bias must be {' or '.join(known)}, but got {found}")
    return found


def _bias_of_i16(bias: Tensor, channels: int) -> NDArray[Any]:
    values = constant(bias, "bias")
    require(values.size == channels, f"bias must have {channels} entries, but got {values.size}")
    return values.reshape(channels)
