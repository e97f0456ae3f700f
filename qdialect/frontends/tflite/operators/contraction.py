"""Plans CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV and FULLY_CONNECTED of quantized numbers of 8 and 16 bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tflite

from qdialect import arithmetic
from qdialect import dialect as qnn
from qdialect.arithmetic import Multiplier, Rounding
from qdialect.arithmetic.block_weights import pack_weights
from qdialect.arithmetic.choices import I16Rounding
from qdialect.arithmetic.profiles import TFLITE
from qdialect.dialect.type_constraints import NUMPY_DTYPES, shape_of
from qdialect.frontends.building.checks import Array, Shape, require
from qdialect.frontends.building.slices import framed, spaced
from qdialect.frontends.planning.block_weights import block_product, dynamic_block_product, takes_quantized_rows
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators import checks
from qdialect.frontends.tflite.operators.f32 import packed_weight
from qdialect.frontends.tflite.operators.registry import Building, Emitter, imports, imports_f32, imports_i16
from qdialect.ir._mlir import ir

# The largest distance of a byte from its zero point, and the bits of a float32 number.
_LARGEST_OFFSET, _F32_BITS = 255, 24
_OUTPUT_AXIS = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0, "TRANSPOSE_CONV": 0}


_ROUNDINGS = {"i32": I16Rounding.FIXED32_DOUBLE, "i64": I16Rounding.FIXED16_UP}
_I16_OPS: dict[type[qnn.QnnOp], type[qnn.QnnOp]] = {qnn.Conv2DOp: qnn.I16Conv2DOp, qnn.DenseOp: qnn.I16DenseOp}


@dataclass(frozen=True)
class _Contraction:
    """The tensors of a node, checked; `weight` has the output channels first, accumulators are of type `element`."""

    data: Tensor
    output: Tensor
    weight: Array
    weight_scales: tuple[float, ...]
    weight_zero_points: tuple[int, ...]
    bias: Array | None
    element: str
    rounding: Rounding | I16Rounding
    multiplier: Multiplier
    bounds: tuple[int, int]
    bits: int = 0
    """Of each weight in the file, where these are fewer than 8."""

    def products(self, emitter: Emitter, rows: ir.Value) -> ir.Value:
        """The accumulators of rows [M, K].

        Weights of few bits stay packed if all sums are exact in f32: half the bytes, and a row takes half the time.
        Those of convolutions do not, whose many pixels meet few weights.
        """
        depth = self.weight.shape[1]
        is_exact = depth * _LARGEST_OFFSET << max(self.bits - 1, 0) < 1 << _F32_BITS
        packed = None
        if self.bits and is_exact and not any(self.weight_zero_points):
            packed = pack_weights(self.weight, np.ones((len(self.weight), 1), np.float32), None, depth)
        if packed is None or not takes_quantized_rows(packed):
            return self.accumulate(emitter, qnn.DenseOp, rows)
        point = emitter.constant(np.array([self.data.zero_point], np.int8))
        total = dynamic_block_product(emitter, rows, emitter.number(1.0, (1,)), point, packed)
        found = emitter.convert("arith.fptosi", total, "i32")
        if self.bias is None:
            return found
        return emitter.upstream(
            "arith.addi", found, emitter.broadcast(emitter.constant(self.bias), shape_of(found.type))
        )

    def accumulate(self, emitter: Emitter, op_class: type[qnn.QnnOp], data: ir.Value, **attributes: Any) -> ir.Value:
        """The accumulators of `op_class`, or of what that is on words."""
        if self.data.element == "i16" and op_class is qnn.ConvTranspose2DOp:
            return self._transposed(emitter, data, **attributes)
        if self.data.element == "i16":
            op_class = _I16_OPS[op_class]
        else:
            attributes |= {"input_scale": self.data.scale, "input_zero_point": self.data.zero_point}
            attributes |= {"weight_scales": self.weight_scales, "weight_zero_points": self.weight_zero_points}
        bias = None if self.bias is None else emitter.constant(self.bias)
        return emitter.build(op_class, data, emitter.constant(self.weight), bias, element=self.element, **attributes)

    def finish(self, emitter: Emitter, acc: ir.Value, axis: int) -> ir.Value:
        """The output of accumulators, whose channels lie along `axis`, the last one."""
        how: dict[str, Any] = {"rounding": self.rounding, "weight_scales": self.weight_scales}
        if self.data.element != "i16":
            if self.rounding is Rounding.FIXED64_NEAREST:
                result = rescaled_dense(emitter, acc, self.output, self.data.scale, self.weight_scales)
            else:
                result = emitter.requantize(acc, self.output, self.data.scale, self.multiplier, **how, axis=axis)
            return emitter.clip(result, self.bounds)
        how |= {"input_scale": self.data.scale, "output_scale": self.output.scale, "multiplier": self.multiplier}
        low, high = self.bounds
        return emitter.build(qnn.I16RequantizeOp, acc, element="i16", output_min=low, output_max=high, **how)

    def _transposed(
        self, emitter: Emitter, data: ir.Value, strides: Shape, padding: Sequence[int], output_padding: Shape
    ) -> ir.Value:
        """A convolution of the data with zeros between them, by the weights from the last tap to the first."""
        apart = spaced(emitter, data, (1, *strides, 1))
        before = [self.weight.shape[1 + i] - 1 - padding[i] for i in range(2)]
        # After the last element there are zeros already, one fewer than the stride.
        after = [self.weight.shape[1 + i] - strides[i] - padding[2 + i] + output_padding[i] for i in range(2)]
        low, high = ((0, *(min(n, 0) for n in side), 0) for side in (before, after))
        added = tuple(max(n, 0) for n in (*before, *after))
        cropped = framed(emitter, apart, low, high)
        backwards = replace(self, weight=self.weight[:, ::-1, ::-1])
        return backwards.accumulate(emitter, qnn.Conv2DOp, cropped, padding=added)


def _contraction(operator: Operator, tensors: Sequence[Tensor], activation: int, rank: int) -> _Contraction:
    """`tensors` are data, weight and perhaps bias."""
    data, weight, *bias = tensors
    is_i16, axis = data.element == "i16", _OUTPUT_AXIS[operator.kind]
    check = checks.sixteen_bit if is_i16 else checks.eight_bit
    output = check(operator.outputs[0], "output")
    check(data, "input")
    bounds = checks.activation_range(activation, output)
    if is_i16:
        known = ("i8", "i16") if operator.kind == "FULLY_CONNECTED" else ("i8",)
        require(weight.element in known, f"weight must be {' or '.join(known)}, but got {weight.element}")
    else:
        types = (data.element, weight.element, output.element)
        require(len(set(types)) == 1, f"input, weight and output must be all i8 or all ui8, but got {', '.join(types)}")
    require(len(weight.shape) == rank, f"weight must have {rank} dimensions, but got {len(weight.shape)}")
    values = checks.constant(weight, "weight")
    _check_weight_quantization(operator, weight, axis, is_i16=is_i16)
    # Products of words are summed up in 64 bits whatever the bias is.
    element = "i32" if not is_i16 else _accumulator(operator, bias) if weight.element == "i8" else "i64"
    rounding, multiplier = _arithmetic(operator, weight, element, is_i16=is_i16)
    checks.check_rescale(data.scale, weight.scales, output.scale, Multiplier.F64 if is_i16 else multiplier)
    start = _bias(bias[0], weight.shape[axis], element, is_i16=is_i16) if bias else None
    zero_points = weight.zero_points if len(set(weight.zero_points)) > 1 else weight.zero_points[:1]
    parts = (np.moveaxis(values, axis, 0), weight.scales, zero_points, start, element)
    return _Contraction(data, output, *parts, rounding, multiplier, bounds, weight.bits)


def _check_weight_quantization(operator: Operator, weight: Tensor, axis: int, *, is_i16: bool) -> None:
    checks.check_scales(weight, "weight")
    if len(weight.scales) > 1:
        require(weight.axis == axis, f"weight scales must lie along axis {axis}, but got {weight.axis}")
        holds = is_i16 or weight.element == "i8"
        require(holds, f"weight with scales by channel must be i8, but got {weight.element}")
    # These kernels ignore the zero point; what another value would mean is nowhere defined.
    is_dense = operator.kind == "FULLY_CONNECTED" and len(weight.scales) == 1
    is_symmetric = is_i16 or (weight.element == "i8" and not is_dense)
    what = "weight of an i16 input" if is_i16 else "i8 weight"
    require(not is_symmetric or not any(weight.zero_points), f"{what} must have zero point 0")


def _arithmetic(
    operator: Operator, weight: Tensor, element: str, *, is_i16: bool
) -> tuple[Rounding | I16Rounding, Multiplier]:
    """The arithmetic of the reference kernels, which is not the same everywhere.

    FULLY_CONNECTED rounds once, ties away from zero, by a factor evaluated in double; where words are multiplied by a
    single one, the product of two scales is one of float32.  Convolutions round twice; those of `ui8` take the product
    of the scales in float32, those of `i8`, whose factors are by channel, in double.
    """
    is_dense = operator.kind == "FULLY_CONNECTED"
    if is_i16:
        of_words = is_dense and weight.element == "i16" and len(weight.scales) == 1
        rounding = I16Rounding.F64_NEAREST if is_dense and weight.element == "i8" else _ROUNDINGS[element]
        return rounding, Multiplier.F32_PRODUCT if of_words else Multiplier.F64
    if is_dense:
        return Rounding.FIXED64_NEAREST, Multiplier.F64
    return TFLITE.rounding, TFLITE.multiplier if weight.element == "i8" else Multiplier.F32_PRODUCT


def _bias(bias: Tensor, channels: int, element: str = "i32", *, is_i16: bool = False) -> Array:
    require(is_i16 or bias.element == "i32", f"bias must be i32, but got {bias.element}")
    values = checks.constant(bias, "bias")
    require(values.size == channels, f"bias must have {channels} entries, but got {values.size}")
    return values.reshape(channels).astype(NUMPY_DTYPES[element])


def _accumulator(operator: Operator, bias: Sequence[Tensor]) -> str:
    """The type of sums: that of the bias, which an option may name; i64 without both."""
    is_free = operator.kind != "DEPTHWISE_CONV_2D"
    named = operator.option("QuantizedBiasType") if is_free else 0
    wanted = {tflite.TensorType.INT32: "i32", tflite.TensorType.INT64: "i64"}.get(named)
    known = ("i64",) if not is_free else (wanted,) if wanted else ("i32", "i64")
    found = bias[0].element if bias else wanted or "i64"
    require(found in known, f"bias must be {' or '.join(known)}, but got {found}")
    return found


@imports("CONV_2D", "DEPTHWISE_CONV_2D")
def _convolution(operator: Operator) -> Building:
    options = checks.window_options(operator)
    node = _contraction(operator, checks.operands(operator, 2, 3), options.activation, rank=4)
    if operator.kind == "DEPTHWISE_CONV_2D":
        # [1, KH, KW, OC] has become [OC, 1, KH, KW]: the depth of one goes last.
        require(node.weight.shape[1] == 1, f"weight must have a first dimension of 1, but got {node.weight.shape[1]}")
        node = replace(node, weight=np.moveaxis(node.weight, 1, 3))
    depth = node.weight.shape[3]
    require(depth >= 1 and len(node.data.shape) == 4, "input must have 4 dimensions and the weight a depth")
    padding = options.explicit(node.data.shape[1:3], node.weight.shape[1:3])
    attributes = {"strides": options.strides, "padding": padding, "dilation": options.dilation}
    emitter = yield
    data = emitter.value(node.data)
    acc = node.accumulate(emitter, qnn.Conv2DOp, data, **attributes, groups=node.data.shape[3] // depth)
    return node.finish(emitter, acc, axis=3)


@imports("TRANSPOSE_CONV")
def _transpose_conv(operator: Operator) -> Building:
    """The padding is that of the convolution of which the output would be the input (TFLite transpose_conv.cc)."""
    options = checks.window_options(operator)
    shape, weight, data, *bias = checks.operands(operator, 3, 4)
    node = _contraction(operator, (data, weight, *bias), options.activation, rank=4)
    require(len(data.shape) == 4, f"input must have 4 dimensions, but got {len(data.shape)}")
    depth = weight.shape[3]
    require(data.shape[3] == depth, f"input must have {depth} channels, but got {data.shape[3]}")
    output = node.output.shape
    require(checks.integers(shape, "output shape") == output, f"output shape must be {list(output)}")
    require(len(output) == 4, f"output must have 4 dimensions, but got {len(output)}")
    strides, window = options.strides, weight.shape[1:3]
    top, left, *_ = options.explicit(output[1:3], window)
    full = [(data.shape[1 + i] - 1) * strides[i] + window[i] for i in range(2)]
    # Pixels of the full extent behind the output are cropped; pixels of the output behind that extent hold the bias.
    rests = [full[i] - before - output[1 + i] for i, before in enumerate((top, left))]
    cropped, extra = [max(rest, 0) for rest in rests], [max(-rest, 0) for rest in rests]
    attributes = {"strides": strides, "padding": (top, left, *cropped), "output_padding": tuple(extra)}
    emitter = yield
    acc = node.accumulate(emitter, qnn.ConvTranspose2DOp, emitter.value(node.data), **attributes)
    return node.finish(emitter, acc, axis=3)


@imports("FULLY_CONNECTED")
def _fully_connected(operator: Operator) -> Building:
    activation, _ = checks.dense_options(operator)
    data, weight, *bias = checks.operands(operator, 2, 3)
    depth, elements = weight.shape[1], math.prod(data.shape)
    require(weight.data is not None or data.element != "i16", "weight of an i16 input must be constant")
    if weight.data is None:
        return (yield from _fully_connected_at_run_time(data, weight, bias, operator.outputs[0], activation))
    node = _contraction(operator, (data, weight, *bias), activation, rank=2)
    emitter = yield
    rows = emitter.reshape(emitter.value(node.data), (elements // depth, depth))
    result = node.finish(emitter, node.products(emitter, rows), axis=1)
    # With keep_num_dims the output has the input's leading dimensions.
    return emitter.reshape(result, node.output.shape)


def _fully_connected_at_run_time(
    data: Tensor, weight: Tensor, bias: Sequence[Tensor], output: Tensor, activation: int
) -> Building:
    channels, depth = weight.shape
    node = Product(data, weight, output, Rounding.FIXED64_NEAREST, Multiplier.F64)
    values = _bias(bias[0], channels) if bias else None
    bounds = checks.activation_range(activation, output)
    emitter = yield
    rows = emitter.reshape(emitter.value(data), (math.prod(data.shape) // depth, depth))
    start = None if values is None else emitter.constant(values)
    result = node.emit(emitter, rows, transposed(emitter, emitter.value(weight)), start)
    return emitter.reshape(emitter.clip(result, bounds), output.shape)


_LARGEST_I32 = 2.0**31 - 4


@dataclass(frozen=True)
class Product:
    """The tensors of a product, checked, and how its accumulators are rounded."""

    lhs: Tensor
    rhs: Tensor
    output: Tensor
    rounding: Rounding
    multiplier: Multiplier

    def __post_init__(self) -> None:
        for tensor, what in ((self.lhs, "left operand"), (self.rhs, "right operand"), (self.output, "output")):
            checks.eight_bit(tensor, what)
        types = (self.lhs.element, self.rhs.element, self.output.element)
        require(len(set(types)) == 1, f"operands and output must be all i8 or all ui8, but got {', '.join(types)}")
        checks.check_rescale(self.lhs.scale, self.rhs.scales, self.output.scale, self.multiplier)

    def emit(self, emitter: Emitter, lhs: ir.Value, rhs: ir.Value, bias: ir.Value | None) -> ir.Value:
        """``lhs [..., M, K] x rhs [..., K, N]``, requantized."""
        acc = emitter.build(qnn.MatMulOp, lhs, rhs, bias, element="i32", **self._parameters())
        return self.requantized(emitter, acc)

    def emit_dense(self, emitter: Emitter, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        """``lhs [..., K] x rhs [N, K]``, requantized."""
        return self.requantized(
            emitter, emitter.build(qnn.DenseOp, lhs, rhs, None, element="i32", **self._parameters())
        )

    def _parameters(self) -> dict[str, object]:
        return {
            "input_scale": self.lhs.scale,
            "input_zero_point": self.lhs.zero_point,
            "weight_scales": self.rhs.scales,
            "weight_zero_points": (self.rhs.zero_point,),
        }

    def requantized(self, emitter: Emitter, acc: ir.Value) -> ir.Value:
        """Accumulators as quantized values of the output."""
        if self.rounding is Rounding.FIXED64_NEAREST:
            return rescaled_dense(emitter, acc, self.output, self.lhs.scale, self.rhs.scales)
        how = {"weight_scales": self.rhs.scales, "axis": len(shape_of(acc.type)) - 1}
        return emitter.requantize(acc, self.output, self.lhs.scale, self.multiplier, self.rounding, **how)


def rescaled_dense(
    emitter: Emitter, acc: ir.Value, output: Tensor, scale: float, weight_scales: Sequence[float]
) -> ir.Value:
    """Accumulators of FULLY_CONNECTED: the reference kernel multiplies in float64, ties away from zero.

    A factor of 31 bits is faster, and does the same unless an accumulator is next to a tie.
    """
    factors = arithmetic.real_multiplier(scale, weight_scales, output.scale, Multiplier.F64)
    how: dict[str, Any] = {"input_scale": scale, "weight_scales": weight_scales}
    bounds = checks.quantized_range(output)
    if emitter.is_delegated or _is_held(factors, bounds[1] - bounds[0]):
        how |= {"multiplier": Multiplier.F64, "rounding": Rounding.FIXED64_NEAREST, "axis": len(shape_of(acc.type)) - 1}
        return emitter.requantize(acc, output, **how)
    how |= {"output_scale": output.scale, "output_zero_point": output.zero_point, "rounding": I16Rounding.F64_NEAREST}
    words = emitter.build(qnn.I16RequantizeOp, acc, element="i16", output_min=bounds[0], output_max=bounds[1], **how)
    narrow = emitter.convert("arith.trunci", words, "i8")
    return narrow if output.element == "i8" else emitter.convert("tensor.bitcast", narrow, output.element)


def _is_held(factors: Array, most: int) -> bool:
    """Whether 31 bits of each factor round the accumulators around all ties up to `most` as float64 does."""
    with np.errstate(all="ignore"):
        ties = (np.arange(most + 1) + 0.5)[:, None, None] / factors[:, None]
    near = np.maximum(np.floor(np.minimum(ties, _LARGEST_I32)) + np.arange(-1, 3), 0)
    q, e = np.array([arithmetic.quantize_multiplier(float(factor)) for factor in factors]).T[:, :, None]
    found = arithmetic.multiply_by_quantized_multiplier(near.astype(np.int64), q, e, Rounding.FIXED64_NEAREST)
    return np.array_equal(np.minimum(found, most + 1), np.minimum(np.floor(near * factors[:, None] + 0.5), most + 1))


@imports("BATCH_MATMUL")
def _batch_matmul(operator: Operator) -> Building:
    """The product of the scales is one of float32 (TFLite GetQuantizedConvolutionMultipler)."""

    lhs, rhs, transpose_lhs, transpose_rhs = sides_of(operator)
    node = Product(lhs, rhs, operator.outputs[0], Rounding.FIXED32_DOUBLE, Multiplier.F32_PRODUCT)
    right = _transposed(rhs.shape, transpose_rhs)
    emitter = yield
    data = transposed(emitter, emitter.value(lhs)) if transpose_lhs else emitter.value(lhs)
    if rhs.data is not None and math.prod(right[:-2]) == 1:
        matrix = rhs.data.reshape(rhs.data.shape[-2:])
        result = node.emit_dense(emitter, data, emitter.constant(matrix if transpose_rhs else matrix.T))
    else:
        weight = transposed(emitter, emitter.value(rhs)) if transpose_rhs else emitter.value(rhs)
        result = node.emit(emitter, data, weight, None)
    return emitter.reshape(result, node.output.shape)


def transposed(emitter: Emitter, value: ir.Value) -> ir.Value:
    """`value` with its last two dimensions exchanged."""
    rank = len(shape_of(value.type))
    return emitter.transpose(value, (*range(rank - 2), rank - 1, rank - 2))


def _transposed(shape: tuple[int, ...], is_transposed: bool) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2]) if is_transposed else shape


def adjoint_options(operator: Operator) -> tuple[bool, ...]:
    """Whether each operand is transposed, and whether floats are quantized around a zero point."""
    return operator.options("AdjX", "AdjY", "AsymmetricQuantizeInputs")


def check_columns(weight: Tensor, rank: int, is_transposed: bool) -> None:
    """A right operand has one scale, or one for each column."""
    axis = rank - 2 if is_transposed else rank - 1
    fits = len(weight.scales) <= 1 or weight.axis == axis
    require(fits, f"scales of the right operand must lie along axis {axis}, but got {weight.axis}")


def sides_of(operator: Operator) -> tuple[Tensor, Tensor, bool, bool]:
    """Both operands of a product, which fit, and whether each is transposed."""
    transpose_lhs, transpose_rhs, _ = adjoint_options(operator)
    lhs, rhs = checks.operands(operator, 2)
    for tensor, what in ((lhs, "left operand"), (rhs, "right operand")):
        require(len(tensor.shape) >= 2, f"{what} must have at least 2 dimensions, but got {len(tensor.shape)}")
    left, right = _transposed(lhs.shape, transpose_lhs), _transposed(rhs.shape, transpose_rhs)
    require(left[-1] == right[-2], f"right operand must have {left[-1]} rows, but got {right[-2]}")
    pairs = zip(reversed(left[:-2]), reversed(right[:-2]), strict=False)
    broadcasts = all(a == b or 1 in (a, b) for a, b in pairs)
    require(broadcasts, f"batches must broadcast, but got {list(left[:-2])} and {list(right[:-2])}")
    return lhs, rhs, transpose_lhs, transpose_rhs


@imports_f32("BATCH_MATMUL")
def _f32_batch_matmul(operator: Operator) -> Building:
    """Terms are added in the order of the depth; the reference kernel rounds them before."""
    lhs, rhs, transpose_lhs, transpose_rhs = sides_of(operator)
    require(rhs.element == "f32", f"right operand must be f32, but got {rhs.element}")
    batches = np.broadcast_shapes(lhs.shape[:-2], rhs.shape[:-2])
    packed = packed_weight(rhs, is_transposed=transpose_rhs)
    emitter = yield
    data = transposed(emitter, emitter.value(lhs)) if transpose_lhs else emitter.value(lhs)
    if packed is not None:
        product = block_product(emitter, data, packed, rounded_products=True)
        return emitter.reshape(product, (*batches, *shape_of(product.type)[-2:]))
    matrix = transposed(emitter, emitter.value(rhs)) if transpose_rhs else emitter.value(rhs)
    sides = [emitter.broadcast(side, (*batches, *shape_of(side.type)[-2:])) for side in (data, matrix)]
    # XNNPACK's delegate takes no transposed left operand.
    is_rounded = not emitter.is_delegated or transpose_lhs
    return emitter.build(qnn.F32MatmulOp, *sides, element="f32", rounded_products=is_rounded)


# BATCH_MATMUL of 16-bit activations with 16- or 8-bit ones, summed up in 64 bits.


@imports_i16("BATCH_MATMUL")
def _batch_matmul_i16(operator: Operator) -> Building:
    """The product of the scales is one of float32 (TFLite GetQuantizedConvolutionMultipler)."""
    lhs, rhs, transpose_lhs, transpose_rhs = sides_of(operator)
    output = checks.output_of(operator)
    checks.sixteen_bit(lhs, "left operand")
    require(rhs.element in ("i8", "i16"), f"right operand must be i16 or i8, but got {rhs.element}")
    require(len(rhs.scales) == 1, f"right operand must have one scale, but got {len(rhs.scales)}")
    checks.check_scales(rhs, "right operand")
    require(rhs.zero_point == 0, f"right operand zero point must be 0, but got {rhs.zero_point}")
    checks.check_rescale(lhs.scale, rhs.scales, output.scale, Multiplier.F32_PRODUCT)
    emitter = yield
    data = transposed(emitter, emitter.value(lhs)) if transpose_lhs else emitter.value(lhs)
    weight = transposed(emitter, emitter.value(rhs)) if transpose_rhs else emitter.value(rhs)
    acc = emitter.build(qnn.I16MatmulOp, data, weight, element="i64")
    scales = {"input_scale": lhs.scale, "weight_scales": rhs.scales, "output_scale": output.scale}
    how = {"rounding": I16Rounding.FIXED16_UP, "multiplier": Multiplier.F32_PRODUCT}
    return emitter.reshape(emitter.build(qnn.I16RequantizeOp, acc, element="i16", **scales, **how), output.shape)
