"""Contractions of 16-bit activations, and their accumulators to 16-bit quantized values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import Rounding, real_multiplier, requantize_parameters
from qdialect.arithmetic.choices import I16Rounding
from qdialect.arithmetic.requantization import (
    even_product,
    multiply_by_reduced_multiplier,
    nearest_product,
    reduced_multipliers,
)
from qdialect.dialect import AnyI16Contraction, I16Conv2DOp, I16DenseOp, I16MatmulOp, I16RequantizeOp
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.cost.strategy import TILE_LANES
from qdialect.lowering.ir.functions import only_user, required_constant
from qdialect.lowering.qnn_to_linalg.bodies.quantization import emit_scale, requantization
from qdialect.lowering.qnn_to_linalg.contractions.contraction import Epilogue, convolution
from qdialect.lowering.qnn_to_linalg.contractions.emission import emit
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import CenteredWeights, ConstantWeights
from qdialect.lowering.qnn_to_linalg.conversions.contraction import data_of, groups_of, taps_of, window_of
from qdialect.lowering.qnn_to_linalg.conversions.f32_contraction import ReducedProducts, operand_of
from qdialect.lowering.qnn_to_linalg.conversions.maps import AxisArray, Source, Stored, broadcast_strides, map_stored
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, lowers
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand
from qdialect.lowering.qnn_to_linalg.kernels.reduction import Finish, Fold
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, storage_of
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Emit, Value, flipped
from qdialect.passes.pattern import producer

# Sums of products of 16-bit data by dot products: K groups of two words, accumulated in 32 bits.
#
# The weights are packed as words, so that an instruction multiplies word by word.  A sum of 32 bits holds every sum of
# products x w with |x| <= 2^15 as long as the magnitudes of a channel's weights add up to less than 2^16.  Weights
# beyond that are cut into parts along the input channels, each with accumulators of its own.

K_GROUP = 2
_LARGEST_SUM = 2**16 - 1
Part = tuple[int, int]
"""The first input channel of a part and their number."""


def channel_parts(weights: NDArray[Any]) -> list[Part] | None:
    """As few parts of the input channels of int8[OC, KH, KW, depth] as have sums of 32 bits; None where none have."""
    depth = weights.shape[3]
    magnitudes = np.abs(weights.astype(np.int64)).sum(axis=(1, 2))
    ends = [*range(K_GROUP, depth, K_GROUP), depth]
    totals = np.concatenate([np.zeros((1, len(magnitudes)), np.int64), magnitudes.cumsum(axis=1).T[np.array(ends) - 1]])
    starts, parts = [0, *ends[:-1]], list[Part]()
    while not parts or sum(parts[-1]) < depth:
        first = sum(parts[-1]) if parts else 0
        begin = starts.index(first)
        fits = ((totals[begin + 1 :] - totals[begin]) <= _LARGEST_SUM).all(axis=1)
        count = int(np.argmin(fits)) if not fits.all() else len(fits)
        if count == 0:
            return None
        parts.append((first, ends[begin + count - 1] - first))
    return parts


@dataclass(frozen=True)
class PartialSums:
    """Stored sums of 32 bits and a bias, which add up to the result of a contraction."""

    op: AnyI16Contraction
    parts: Sequence[Part]

    @classmethod
    def of(cls, op: AnyI16Contraction) -> PartialSums | None:
        """Those of `op`; None for weights of 16 bits, groups of single channels, and where no part is small enough."""
        weight = taps_of(op)
        if weight.dtype != np.int8 or _is_depthwise(op):
            return None
        # A sum that exceeds 32 bits cannot be in an i32 result either.
        wraps = element_of(op.output.type) == "i32"
        parts = [(0, weight.shape[3])] if wraps else channel_parts(weight)
        if parts is None or (len(parts) > 1 and groups_of(op) > 1):
            return None
        return cls(op, parts)

    def emit(self, lowering: GraphLowering) -> list[Source]:
        """Append a kernel call for each part; what `total` adds up."""
        shape = shape_of(self.op.output.type)
        slots = [self._emit_part(lowering, *part) for part in self.parts]
        bias = [] if self.op.bias is None else [required_constant("bias", self.op.bias)]
        return [*(Stored(slot, shape) for slot in slots), *(AxisArray(array, len(shape) - 1) for array in bias)]

    def total(self, body: Body, values: Sequence[Value]) -> Value:
        """The result of the contraction, from the values of its sources."""
        element = element_of(self.op.output.type)
        first, *others = (body.cast("arith.extsi", value, element) for value in values)
        for other in others:
            first = body.add(first, other)
        return first

    def _emit_part(self, lowering: GraphLowering, first: int, count: int) -> BufferSlot:
        op, weight = self.op, taps_of(self.op)[..., first : first + count]
        output = lowering.program.buffer(replace(storage_of(op.output.type), element="i32"))
        zeros = np.zeros(weight.shape[0], np.int32)
        weights = ConstantWeights(CenteredWeights(np.ascontiguousarray(weight), zeros), zeros, K_GROUP, first)
        data = data_of(lowering, op)
        contraction = convolution(data, output, Epilogue(), window_of(op, data), weights, groups_of(op))
        emit(lowering.program, contraction, op.operation.name)
        return output


def _is_depthwise(op: AnyI16Contraction) -> bool:
    return isinstance(op, I16Conv2DOp) and op.groups > 1 and shape_of(op.weight.type)[3] == 1


def sums_inside(value: ir.Value) -> PartialSums | None:
    """The sums that `value` is, where a requantization is their only user and computes them in its own kernels."""
    op = producer(value)
    if not isinstance(op, AnyI16Contraction):
        return None
    return PartialSums.of(op) if isinstance(only_user(value), I16RequantizeOp) else None


# Accumulators to 16-bit quantized values, per tensor or per channel.

EmitScaled = Callable[[Body, Value, Sequence[Value]], Value]
"""(body, accumulator, parameters) -> i32."""


_F64_PRODUCTS: Mapping[I16Rounding, Callable[[Body, Value, Value], Value]] = {
    I16Rounding.F64_NEAREST: nearest_product,
    I16Rounding.F64_EVEN: even_product,
}


@dataclass(frozen=True)
class I16Scaling:
    """The parameters of a requantization, with one entry or one a channel, and what computes an i32 with them."""

    parameters: Sequence[NDArray[Any]]
    emit: EmitScaled

    @classmethod
    def of(cls, op: I16RequantizeOp) -> I16Scaling:
        multipliers = real_multiplier(op.input_scale, op.weight_scales, op.output_scale, op.multiplier)
        if op.rounding in _F64_PRODUCTS:
            # A number of 64 bits has the bits of an i64.
            product = _F64_PRODUCTS[op.rounding]
            return cls(
                [multipliers.view(np.int64)],
                lambda body, acc, given: product(body, acc, body.cast("arith.bitcast", given[0], "f64")),
            )
        if op.rounding is I16Rounding.FIXED16_UP:
            emit = multiply_by_reduced_multiplier
            return cls(reduced_multipliers(multipliers), lambda body, acc, given: emit(body, acc, *given))
        how = requantization(Rounding.FIXED32_DOUBLE, requantize_parameters(Rounding.FIXED32_DOUBLE, multipliers))
        values = [parameter.values for parameter in how.parameters]
        return cls(values, lambda body, acc, given: body.cast("arith.trunci", emit_scale(body, how, acc, given), "i32"))


@lowers(I16RequantizeOp, takes_arrays=True)
def _requantize(lowering: GraphLowering, op: I16RequantizeOp) -> None:
    """Accumulators that nothing else reads are never stored as a whole: their parts are added up here."""
    scaling, sums = I16Scaling.of(op), sums_inside(op.input)
    shape = shape_of(op.output.type)
    stored = [Stored(lowering.slot(op.input), shape)] if sums is None else sums.emit(lowering)

    def declare(kernel: Kernel) -> Emit:
        zero_point = op.output_zero_point
        low, high = kernel.limits((op.output_min - zero_point, op.output_max - zero_point), "i32")
        point = kernel.number("zero_point", zero_point, "i32") if zero_point else None

        def emit(body: Body, values: Sequence[Value]) -> Value:
            acc = values[0] if sums is None else sums.total(body, values[: len(stored)])
            scaled = scaling.emit(body, acc, values[len(stored) :])
            # A value that is clamped first cannot leave i32 when the zero point is added.
            inside = body.clamp(scaled, low, high)
            return body.cast("arith.trunci", inside if point is None else body.add(inside, point), "i16")

        return emit

    arrays = [AxisArray(values, max(len(shape) - 1, 0)) for values in scaling.parameters]
    target = Stored(lowering.result(op.output), shape)
    map_stored(lowering, target, [*stored, *arrays], declare, op.operation.name, TILE_LANES)


# Contractions of 16-bit activations: by dot products, else as reductions that run along vectors of results.

_ROWS = 8


def _products(element: str, is_stored_weight: bool = False) -> Fold:
    """Sums of `element`; a product of two 16-bit integers fits i32. A stored i8 has its sign flipped."""

    def emit(body: Body, total: Value, values: Sequence[Value]) -> Value:
        weight, data = values
        if is_stored_weight and weight.type == "i8":
            weight = flipped(body, weight)
        product = body.multiply(*(body.cast("arith.extsi", value, "i32") for value in (weight, data)))
        return body.add(total, body.cast("arith.extsi", product, element))

    return Fold(element, 0, emit, lambda body, a, b: body.add(a, b))


def _accumulator(op: AnyI16Contraction, weight: NDArray[Any]) -> str:
    """The type of the sums over all of `weight`, [OC, ...]."""
    largest = np.abs(weight.astype(np.int64)).reshape(len(weight), -1).sum(axis=1).max()
    return "i32" if largest <= _LARGEST_SUM else element_of(op.output.type)


@lowers(I16DenseOp)
def _dense(lowering: GraphLowering, op: I16DenseOp) -> None:
    if _lower_sums(lowering, op):
        return
    weight = required_constant("weight", op.weight)
    data, output = operand_of(lowering, op.data), lowering.result(op.output)
    matrix = MapOperand(np.ascontiguousarray(weight.T), (weight.shape[0], 1))
    _summed(op, _products(_accumulator(op, weight))).emit_matrices(lowering, op, data, matrix, output)


@lowers(I16Conv2DOp)
def _conv2d(lowering: GraphLowering, op: I16Conv2DOp) -> None:
    if _lower_sums(lowering, op):
        return
    fold, data = _products(_accumulator(op, required_constant("weight", op.weight))), data_of(lowering, op)
    windows = MapOperand(data, data.storage.strides, window_of(op, data).start(data.storage))
    _summed(op, fold).emit_convolution(lowering, op, windows, lowering.result(op.output))


def _lower_sums(lowering: GraphLowering, op: AnyI16Contraction) -> bool:
    """Compute `op` by dot products where that is exact; a requantization after it may do so itself."""
    if sums_inside(op.output) is not None:
        return True
    sums = PartialSums.of(op)
    if sums is None:
        return False
    sources = sums.emit(lowering)
    target = Stored(lowering.result(op.output), shape_of(op.output.type))
    map_stored(lowering, target, sources, lambda _: sums.total, op.operation.name, TILE_LANES)
    return True


@lowers(I16MatmulOp)
def _matmul(lowering: GraphLowering, op: I16MatmulOp) -> None:
    before = shape_of(op.output.type)[:-2]
    data, matrix = (_spread(operand_of(lowering, value), value, before) for value in (op.data, op.weight))
    fold = _products(element_of(op.output.type), is_stored_weight=constant_value(op.weight) is None)
    _summed(op, fold).emit_matrices(lowering, op, data, matrix, lowering.result(op.output))


def _summed(op: AnyI16Contraction | I16MatmulOp, fold: Fold) -> ReducedProducts:
    """Sums as the result's element, and the bias on top where there is one."""
    rank, element = len(shape_of(op.output.type)), element_of(op.output.type)
    bias = None if isinstance(op, I16MatmulOp) or op.bias is None else required_constant("bias", op.bias)

    def finish(body: Body, total: Value, extras: Sequence[Value]) -> Value:
        wide = body.cast("arith.extsi", total, element)
        return body.add(wide, extras[0]) if extras else wide

    def epilogue(channels: slice) -> tuple[list[MapOperand], Finish]:
        parts = [] if bias is None else [np.ascontiguousarray(bias[channels])]
        return [MapOperand(part, (*(0,) * (rank - 1), 1)) for part in parts], finish

    return ReducedProducts(fold, epilogue, TILE_LANES, _ROWS)


def _spread(operand: MapOperand, value: ir.Value, leading: tuple[int, ...]) -> MapOperand:
    """Matrices whose leading dimensions broadcast to `leading`."""
    steps = broadcast_strides(shape_of(value.type)[:-2], operand.strides[:-2], leading)
    return replace(operand, strides=(*steps, *operand.strides[-2:]))
