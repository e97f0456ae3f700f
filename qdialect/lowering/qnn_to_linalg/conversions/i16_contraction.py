"""Contractions of 16-bit activations, and their accumulators to 16-bit quantized values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import Rounding, real_multiplier, requantize_parameters
from qdialect.arithmetic.choices import I16Rounding
from qdialect.arithmetic.requantization import reduced_multipliers
from qdialect.dialect import AnyI16Contraction, I16Conv2DOp, I16DenseOp, I16MatmulOp, I16RequantizeOp
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.cost.strategy import TILE_LANES
from qdialect.lowering.ir.strides import row_major
from qdialect.lowering.qnn_to_linalg.bodies.quantization import emit_scale, requantization
from qdialect.lowering.qnn_to_linalg.contractions.contraction import emit_contraction
from qdialect.lowering.qnn_to_linalg.contractions.epilogue import Epilogue
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import CenteredWeights
from qdialect.lowering.qnn_to_linalg.contractions.word_contraction import (
    Part,
    WordContraction,
    channel_parts,
    fits_words,
)
from qdialect.lowering.qnn_to_linalg.conversions.maps import AxisArray, Source, Stored, map_stored
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.qnn_to_linalg.graph.padding import padding_of
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import Emit, MapOperand, flipped
from qdialect.lowering.qnn_to_linalg.kernels.geometry import Window
from qdialect.lowering.qnn_to_linalg.kernels.reduction import Finish, Fold, Reduced, Reduction, emit_reduction
from qdialect.lowering.qnn_to_linalg.program.operands import required_constant
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value
from qdialect.lowering.qnn_to_linalg.program.storage import storage_of

# Sums of products of 16-bit data by dot products: accumulators of 32 bits, in as many parts as must be kept apart.


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
        # What 32 bits do not hold, an i32 result does not have either.
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
        channels = weight.shape[0]
        zeros = np.zeros(channels, np.int32)
        centered = CenteredWeights(np.ascontiguousarray(weight), zeros)
        data = lowering.slot(op.data, padding_of(op))
        window = window_of(op, data)
        contraction = WordContraction(data, output, Epilogue(), window, centered, zeros, groups_of(op), first=first)
        emit_contraction(lowering.program, contraction, op.operation.name)
        return output


def taps_of(op: AnyI16Contraction) -> NDArray[Any]:
    """The weights as [OC, KH, KW, IC / groups]; the rows of a matrix are taps of a 1x1 kernel."""
    weight = required_constant("weight", op.weight)
    return weight.reshape(weight.shape[0], *(weight.shape[1:-1] or (1, 1)), -1)


def groups_of(op: AnyI16Contraction) -> int:
    """Groups of a contraction."""
    return op.groups if isinstance(op, I16Conv2DOp) else 1


def _is_depthwise(op: AnyI16Contraction) -> bool:
    return isinstance(op, I16Conv2DOp) and op.groups > 1 and shape_of(op.weight.type)[3] == 1


def window_of(op: AnyI16Contraction, data: BufferSlot) -> Window:
    """The window of a convolution; every row of a matrix is a pixel that one tap looks at."""
    if isinstance(op, I16DenseOp):
        images, height, width, _ = data.storage.shape
        return Window(images, (height, width), (1, 1), (1, 1), (1, 1), (0, 0))
    images, height, width, _ = shape_of(op.output.type)
    _, rows, columns, _ = shape_of(op.weight.type)
    strides, dilation = (op.strides[0], op.strides[1]), (op.dilation[0], op.dilation[1])
    return Window(images, (height, width), (rows, columns), strides, dilation, (op.padding[0], op.padding[1]))


def sums_inside(value: ir.Value) -> PartialSums | None:
    """The sums that `value` is, where a requantization is their only user and computes them in its own kernels."""
    owner = value.owner
    op = owner.opview if isinstance(owner, ir.Operation | ir.OpView) else None
    if not isinstance(op, AnyI16Contraction):
        return None
    users = [use.owner for use in value.uses]
    is_alone = len(users) == 1 and isinstance(users[0].opview, I16RequantizeOp)
    return PartialSums.of(op) if is_alone else None


# Accumulators to 16-bit quantized values, per tensor or per channel.

EmitScaled = Callable[[Body, Value, Sequence[Value]], Value]
"""(body, accumulator, parameters) -> i32."""


@dataclass(frozen=True)
class I16Scaling:
    """The parameters of a requantization, with one entry or one a channel, and what computes an i32 with them."""

    parameters: Sequence[NDArray[Any]]
    emit: EmitScaled

    @classmethod
    def of(cls, op: I16RequantizeOp) -> I16Scaling:
        """That of `op`."""
        multipliers = real_multiplier(op.input_scale, op.weight_scales, op.output_scale, op.multiplier)
        if op.rounding is I16Rounding.F64_NEAREST:
            # A number of 64 bits has the bits of an i64.
            return cls([multipliers.view(np.int64)], _nearest)
        if op.rounding is I16Rounding.FIXED16_UP:
            return cls(reduced_multipliers(multipliers), _reduced)
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
        low, high = (kernel.number(name, bound, "i32") for name, bound in _bounds(op))

        def emit(body: Body, values: Sequence[Value]) -> Value:
            acc = values[0] if sums is None else sums.total(body, values[: len(stored)])
            scaled = scaling.emit(body, acc, values[len(stored) :])
            return body.cast("arith.trunci", body.clamp(scaled, low, high), "i16")

        return emit

    arrays = [AxisArray(values, max(len(shape) - 1, 0)) for values in scaling.parameters]
    target = Stored(lowering.result(op.output), shape)
    map_stored(lowering, target, [*stored, *arrays], declare, op.operation.name, TILE_LANES)


def _bounds(op: I16RequantizeOp) -> list[tuple[str, int]]:
    return [("low", op.output_min), ("high", op.output_max)]


def _reduced(body: Body, acc: Value, parameters: Sequence[Value]) -> Value:
    """``(acc * r + 2^(n - 1)) >> n`` in 64 bits, of which 32 stay."""
    r, n = parameters
    one = body.constant(1, "i64")
    half = body.binary("arith.shli", one, body.subtract(n, one))
    product = body.multiply(body.cast("arith.extsi", acc, "i64"), r)
    shifted = body.binary("arith.shrsi", body.add(product, half), n)
    return body.cast("arith.trunci", shifted, "i32")


def _nearest(body: Body, acc: Value, parameters: Sequence[Value]) -> Value:
    """Half away from zero; what lies beyond int32 is cut before."""
    multiplier = body.cast("arith.bitcast", parameters[0], "f64")
    product = body.multiply(body.cast("arith.sitofp", acc, "f64"), multiplier)
    inside = body.clamp(product, body.constant(-(2.0**31), "f64"), body.constant(2.0**31 - 1, "f64"))
    whole = body.cast("arith.fptosi", inside, "i32")
    rest = body.subtract(inside, body.cast("arith.sitofp", whole, "f64"))
    zero, one, minus = (body.constant(number, "i32") for number in (0, 1, -1))
    up = body.select(body.compare("oge", rest, body.constant(0.5, "f64")), one, zero)
    down = body.select(body.compare("ole", rest, body.constant(-0.5, "f64")), minus, zero)
    return body.add(whole, body.add(up, down))


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


def _finish(element: str) -> Finish:
    """Sums as `element`, and the bias on top where there is one."""

    def finish(body: Body, total: Value, extras: Sequence[Value]) -> Value:
        wide = body.cast("arith.extsi", total, element)
        return body.add(wide, extras[0]) if extras else wide

    return finish


def _bias_of(op: AnyI16Contraction, first: int, count: int, axes: int) -> list[MapOperand]:
    """The bias of `count` channels from `first` on, for results with so many axes."""
    if op.bias is None:
        return []
    bias = required_constant("bias", op.bias)[first : first + count]
    return [MapOperand(np.ascontiguousarray(bias), (*(0,) * (axes - 1), 1))]


def _accumulator(op: AnyI16Contraction, weight: NDArray[Any]) -> str:
    """The type of the sums over all of `weight`, [OC, ...]."""
    return "i32" if fits_words(weight) else element_of(op.output.type)


@lowers(I16DenseOp)
def _dense(lowering: GraphLowering, op: I16DenseOp) -> None:
    if not _lower_sums(lowering, op):
        _reduce_dense(lowering, op)


@lowers(I16Conv2DOp)
def _conv2d(lowering: GraphLowering, op: I16Conv2DOp) -> None:
    if not _lower_sums(lowering, op):
        _reduce_conv2d(lowering, op)


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


def _reduce_dense(lowering: GraphLowering, op: I16DenseOp) -> None:
    weight = required_constant("weight", op.weight)
    shape, (channels, depth) = shape_of(op.output.type), weight.shape
    data, output = _operand(lowering, op.data), _result(lowering, op.output)
    extras, finish = _bias_of(op, 0, channels, len(shape)), _finish(element_of(op.output.type))
    columns = MapOperand(np.ascontiguousarray(weight.T), (*(0,) * (len(shape) - 1), 1))
    rows = MapOperand(data.source, (*data.strides[:-1], 0), data.offset)
    inputs = [Reduced(columns, (channels,)), Reduced(rows, (1,))]
    fold = _products(_accumulator(op, weight))
    _emit(lowering, op, Reduction(shape, (depth,), inputs, extras, output, fold, finish, TILE_LANES, _ROWS))


def _reduce_conv2d(lowering: GraphLowering, op: I16Conv2DOp) -> None:
    """Groups are reductions of their own; those of one channel are one, along the channels."""
    weight = required_constant("weight", op.weight)
    data, output = lowering.slot(op.data, padding_of(op)), _result(lowering, op.output)
    channels, rows, columns, depth = weight.shape
    is_depthwise = depth == 1 and channels == op.groups
    groups = 1 if is_depthwise else op.groups
    across = channels // groups
    window = window_of(op, data)
    kept = (*window.pixels, across)
    fold, finish = _products(_accumulator(op, weight)), _finish(element_of(op.output.type))
    for group in range(groups):
        first = group * across
        taps = np.ascontiguousarray(weight[first : first + across].transpose(1, 2, 3, 0))
        steps = (*window.pixel_strides(data.storage), int(is_depthwise))
        source = MapOperand(data, steps, window.start(data.storage) + group * depth)
        inputs = [
            Reduced(MapOperand(taps, (0, 0, 0, 1)), (columns * depth * across, depth * across, across)),
            Reduced(source, (*window.tap_strides(data.storage), 1)),
        ]
        extras = _bias_of(op, first, across, 4)
        target = MapOperand(output.source, output.strides, output.offset + first)
        reduced = (rows, columns, depth)
        _emit(lowering, op, Reduction(kept, reduced, inputs, extras, target, fold, finish, TILE_LANES, _ROWS))


@lowers(I16MatmulOp)
def _matmul(lowering: GraphLowering, op: I16MatmulOp) -> None:
    shape = shape_of(op.output.type)
    before, depth = shape[:-2], shape_of(op.data.type)[-1]
    data, matrix = (_spread(_operand(lowering, value), value, before) for value in (op.data, op.weight))
    inputs = [
        Reduced(MapOperand(matrix.source, (*matrix.strides[:-2], 0, 1), matrix.offset), matrix.strides[-2:-1]),
        Reduced(MapOperand(data.source, (*data.strides[:-1], 0), data.offset), (1,)),
    ]
    element = element_of(op.output.type)
    fold, finish = _products(element, is_stored_weight=constant_value(op.weight) is None), _finish(element)
    output = _result(lowering, op.output)
    _emit(lowering, op, Reduction(shape, (depth,), inputs, [], output, fold, finish, TILE_LANES, _ROWS))


def _emit(lowering: GraphLowering, op: AnyI16Contraction | I16MatmulOp, reduction: Reduction) -> None:
    kernel = Kernel(lowering.program)
    emit_reduction(kernel, reduction)
    lowering.program.call(kernel, op.operation.name, math.prod((*reduction.kept, *reduction.reduced)))


def _operand(lowering: GraphLowering, value: ir.Value) -> MapOperand:
    """A tensor where it is stored, a constant where it lies."""
    shape, array = shape_of(value.type), constant_value(value)
    if array is not None:
        return MapOperand(np.ascontiguousarray(array), row_major(shape))
    slot = lowering.slot(value)
    return MapOperand(slot, dim_strides(shape, slot.storage), slot.storage.origin)


def _spread(operand: MapOperand, value: ir.Value, leading: Sequence[int]) -> MapOperand:
    """Matrices whose leading dimensions broadcast to `leading`."""
    own = shape_of(value.type)[:-2]
    missing = len(leading) - len(own)
    steps = [0 if extent == 1 else step for extent, step in zip(own, operand.strides[: len(own)], strict=True)]
    return MapOperand(operand.source, (*(0,) * missing, *steps, *operand.strides[-2:]), operand.offset)


def _result(lowering: GraphLowering, value: ir.Value) -> MapOperand:
    slot = lowering.result(value)
    return MapOperand(slot, dim_strides(shape_of(value.type), slot.storage), slot.storage.origin)
