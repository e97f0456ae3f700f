"""Plans BATCH_MATMUL, and what FULLY_CONNECTED with weights that are known at run time only shares with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect import arithmetic
from qdialect.arithmetic import Multiplier, Rounding
from qdialect.arithmetic.choices import I16Rounding
from qdialect.dialect import DenseOp, F32MatmulOp, I16MatmulOp, I16RequantizeOp, MatMulOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import require
from qdialect.frontends.planning.block_weights import block_product
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators import checks
from qdialect.frontends.tflite.operators.f32 import packed_weight
from qdialect.frontends.tflite.operators.registry import Building, Emitter, imports, imports_f32, imports_i16
from qdialect.ir._mlir import ir

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
        acc = emitter.build(MatMulOp, lhs, rhs, bias, element="i32", **self._parameters())
        return self.requantized(emitter, acc)

    def emit_dense(self, emitter: Emitter, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        """``lhs [..., K] x rhs [N, K]``, requantized."""
        return self.requantized(emitter, emitter.build(DenseOp, lhs, rhs, None, element="i32", **self._parameters()))

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
    words = emitter.build(I16RequantizeOp, acc, element="i16", output_min=bounds[0], output_max=bounds[1], **how)
    narrow = emitter.convert("arith.trunci", words, "i8")
    return narrow if output.element == "i8" else emitter.convert("tensor.bitcast", narrow, output.element)


def _is_held(factors: NDArray[np.float64], most: int) -> bool:
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
    return emitter.build(F32MatmulOp, *sides, element="f32", rounded_products=is_rounded)


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
    acc = emitter.build(I16MatmulOp, data, weight, element="i64")
    scales = {"input_scale": lhs.scale, "weight_scales": rhs.scales, "output_scale": output.scale}
    how = {"rounding": I16Rounding.FIXED16_UP, "multiplier": Multiplier.F32_PRODUCT}
    return emitter.reshape(emitter.build(I16RequantizeOp, acc, element="i16", **scales, **how), output.shape)
