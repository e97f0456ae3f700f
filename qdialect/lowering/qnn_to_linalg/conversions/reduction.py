"""Reductions over axes of quantized values, of integers and of f32 numbers, and the index of an extreme value."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from math import gcd, inf, prod

import numpy as np
from numpy.typing import NDArray

from qdialect import dialect as qnn
from qdialect.arithmetic import real_multiplier, requantize_parameters
from qdialect.arithmetic.float32.machine import partial_sums
from qdialect.arithmetic.multipliers import mean_parameters
from qdialect.dialect.reduction_ops import ArgOp
from qdialect.dialect.type_constraints import EIGHT_BIT, element_of, range_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.cost.strategy import TILE_LANES, split
from qdialect.lowering.ir.views import Axis, collapse
from qdialect.lowering.qnn_to_linalg.bodies.quantization import Rescaling, requantization
from qdialect.lowering.qnn_to_linalg.conversions.movement import Windows, windows_of
from qdialect.lowering.qnn_to_linalg.conversions.range import ends_of, lower_ends
from qdialect.lowering.qnn_to_linalg.conversions.resize import exact_bilinear, is_computed_by_reader
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.qnn_to_linalg.kernels import reduction as reductions
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand, emit_map
from qdialect.lowering.qnn_to_linalg.kernels.gathering import index_loops
from qdialect.lowering.qnn_to_linalg.kernels.ordering import Line, emit_largest
from qdialect.lowering.qnn_to_linalg.kernels.resizing import Bilinear, Pixels, emit_pixels
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, signed_shift
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value, flipped, unchanged
from qdialect.support.diagnostics import CompileError

# Reductions over axes of a tensor, laid over how it and its result are stored.

ROWS = 8


@dataclass(frozen=True)
class OverAxes:
    """A reduction of the quantized values of `input` over `axes` (ascending), to `output`."""

    input: ir.Value
    output: ir.Value
    axes: Sequence[int]
    keep_dims: bool

    def emit(
        self,
        lowering: GraphLowering,
        kernel: Kernel,
        fold: reductions.Fold,
        finish: reductions.Finish,
        width: int,
        label: str,
        along_axes: Sequence[MapOperand] = (),
        rows: int = ROWS,
    ) -> None:
        """Append the call of `kernel`; the operands `along_axes` move only along the reduced axes."""
        shape = shape_of(self.input.type)
        data, output = lowering.slot(self.input), lowering.result(self.output)
        kept = [i for i in range(len(shape)) if i not in self.axes]
        strides = dim_strides(shape, data.storage)
        extents = list(shape)
        if len(shape) - 1 in kept:
            extents[-1] = min(data.storage.pitch, output.storage.pitch)
        after = shape_of(self.output.type)
        steps = dim_strides(after or (1,), output.storage)
        kept_steps = tuple(steps[i] for i in kept) if self.keep_dims else steps[: len(kept)]
        source = MapOperand(data, tuple(strides[i] for i in kept), data.storage.origin)
        inputs = [reductions.Reduced(source, tuple(strides[i] for i in self.axes))]
        inputs += [reductions.Reduced(MapOperand(o.source, (0,) * len(kept), o.offset), o.strides) for o in along_axes]
        fold, finish = _on_stored_values(fold, finish, data, output)
        reduction = reductions.Reduction(
            tuple(extents[i] for i in kept),
            tuple(extents[i] for i in self.axes),
            inputs,
            [],
            MapOperand(output, kept_steps, output.storage.origin),
            fold,
            finish,
            width,
            rows,
        )
        reductions.emit_reduction(kernel, reduction)
        lowering.program.call(kernel, label)


def _on_stored_values(
    fold: reductions.Fold, finish: reductions.Finish, data: BufferSlot, output: BufferSlot
) -> tuple[reductions.Fold, reductions.Finish]:
    """Both where quantized values are those of users' arrays."""

    def add(body: Body, acc: Value, values: Sequence[Value]) -> Value:
        return fold.emit(body, acc, [flipped(body, values[0]), *values[1:]])

    def end(body: Body, acc: Value, values: Sequence[Value]) -> Value:
        return flipped(body, finish(body, acc, values))

    return replace(fold, emit=add) if data.signed else fold, end if output.signed else finish


# The largest or smallest quantized value over axes.

_LANES = 64


@lowers(qnn.ReduceMaxOp, qnn.ReduceMinOp, takes_arrays=True)
def _extreme(lowering: GraphLowering, op: qnn.ReduceMaxOp | qnn.ReduceMinOp) -> None:
    over, fold = (
        OverAxes(op.input, op.output, op.axes, op.keep_dims),
        reductions.MAX if isinstance(op, qnn.ReduceMaxOp) else reductions.MIN,
    )
    over.emit(lowering, Kernel(lowering.program), fold, reductions.as_folded, _LANES, op.operation.name)


# Reductions of plain integers over axes.


@lowers(qnn.IntSumOp, qnn.IntProdOp, qnn.IntMaxOp, qnn.IntMinOp, takes_arrays=True)
def _reduce(lowering: GraphLowering, op: qnn.IntegerReduceOp) -> None:
    over = OverAxes(op.input, op.output, op.axes, op.keep_dims)
    element = element_of(op.input.type)
    if element in EIGHT_BIT.elements:
        kernel = Kernel(lowering.program)
        zero_points = kernel.number("zero_points", _count(op) * signed_shift(op.input.type), "i32")
        finish = partial(_less, zero_points)
        over.emit(lowering, kernel, reductions.SUM, finish, _lanes_of_sums(op), op.operation.name)
        return
    low = -(2 ** (int(element[1:]) - 1))
    folds: dict[type[qnn.IntegerReduceOp], tuple[str, int]] = {
        qnn.IntSumOp: ("arith.addi", 0),
        qnn.IntProdOp: ("arith.muli", 1),
        qnn.IntMaxOp: ("arith.maxsi", low),
        qnn.IntMinOp: ("arith.minsi", -1 - low),
    }
    name, start = folds[type(op)]
    fold = reductions.folded(element, start, name)
    over.emit(lowering, Kernel(lowering.program), fold, reductions.as_folded, TILE_LANES, op.operation.name)


def _less(number: Value, body: Body, acc: Value, _: Sequence[Value]) -> Value:
    return body.subtract(acc, number)


# Sums over axes, requantized; a mean's multiplier has the number of elements in it.

_SUM_LANES = 32
"""Two vectors of sums, whose additions overlap."""
_MANY_BYTES = 256
_MAX_ELEMENTS = 2**23
_LARGEST_CODE = 255


@lowers(qnn.MeanOp, qnn.SumOp, takes_arrays=True)
def _over_axes(lowering: GraphLowering, op: qnn.MeanOp | qnn.SumOp) -> None:
    count = _count(op)
    real = real_multiplier(op.input_scale, [1.0], op.output_scale, op.multiplier)
    is_mean = isinstance(op, qnn.MeanOp)
    params = mean_parameters(op.rounding, real, count) if is_mean else requantize_parameters(op.rounding, real)
    how = requantization(op.rounding, params, _LARGEST_CODE * count)
    kernel = Kernel(lowering.program)
    shift = signed_shift(op.output.type)
    rescaling = Rescaling(how, op.output_zero_point, range_of(op.output.type), shift, "i8")
    rescale, parameters = rescaling.declare(kernel), rescaling.scalars(kernel)
    zero_points = kernel.number("zero_points", count * (op.input_zero_point + signed_shift(op.input.type)), "i32")

    def finish(body: Body, acc: Value, values: Sequence[Value]) -> Value:
        return rescale(body, _less(zero_points, body, acc, values), parameters)

    over = OverAxes(op.input, op.output, op.axes, op.keep_dims)
    over.emit(lowering, kernel, reductions.SUM, finish, _lanes_of_sums(op), op.operation.name)


def _lanes_of_sums(op: qnn.MeanOp | qnn.SumOp | qnn.IntegerReduceOp) -> int:
    """Of a row as many bytes as are whole vectors, which are added to one another before their lanes are."""
    shape = shape_of(op.input.type)
    is_row = len(shape) - 1 in op.axes and shape[-1] > _SUM_LANES
    return gcd(shape[-1] // _SUM_LANES * _SUM_LANES, _MANY_BYTES) if is_row else _SUM_LANES


def _count(op: qnn.MeanOp | qnn.SumOp | qnn.IntegerReduceOp) -> int:
    shape = shape_of(op.input.type)
    count = prod(shape[axis] for axis in op.axes)
    if count > _MAX_ELEMENTS:
        raise CompileError(f"must reduce at most {_MAX_ELEMENTS} elements to be compiled, but got {count}")
    return count


# The index of a row's extreme value: the smallest of keys that hold the value above its index.


@dataclass(frozen=True)
class _Keys:
    """Unsigned keys: an 8-bit value above `position_bits` bits, smaller for the index that wins among equals."""

    element: str
    position_bits: int
    lanes: int


_NARROW, _WIDE = _Keys("i16", 8, 32), _Keys("i32", 24, 16)


@lowers(qnn.ArgMaxOp, qnn.ArgMinOp, takes_arrays=True)
def _arg(lowering: GraphLowering, op: qnn.ArgMaxOp | qnn.ArgMinOp) -> None:
    extent = shape_of(op.input.type)[op.axis]
    if extent > 1 << _WIDE.position_bits:
        raise CompileError(f"must have at most 2^{_WIDE.position_bits} elements along axis {op.axis}, but got {extent}")
    keys = _NARROW if extent <= 1 << _NARROW.position_bits else _WIDE
    kernel = Kernel(lowering.program)
    target = element_of(op.output.type)

    def finish(body: Body, acc: Value, _: Sequence[Value]) -> Value:
        mask = body.constant((1 << keys.position_bits) - 1, keys.element)
        position = body.binary("arith.andi", acc, mask)
        if op.last:
            position = body.subtract(mask, position)
        return body.cast("arith.extui", position, target)

    fold, positions = _smallest_key(keys, isinstance(op, qnn.ArgMaxOp)), _positions(extent, keys, op.last)
    # The pixels of a resized image are computed on the way, never stored.
    resized, image = op.input.owner, None
    if isinstance(resized, qnn.ResizeBilinearOp) and is_computed_by_reader(resized):
        image = exact_bilinear(lowering, resized)
    if image is None:
        over = OverAxes(op.input, op.output, (op.axis,), op.keep_dims)
        over.emit(lowering, kernel, fold, finish, keys.lanes, op.operation.name, [MapOperand(positions, (1,))])
        return
    # Whole vectors of channels: the keys of those that there are not become the largest.
    padded = np.pad(positions, (0, -extent % keys.lanes), constant_values=~positions.dtype.type(0))
    _emit_on_image(lowering, kernel, op, image, padded, _OnImage(fold, finish, keys.lanes))
    lowering.program.call(kernel, op.operation.name)


@dataclass(frozen=True)
class _OnImage:
    """The reduction of the channels of each pixel."""

    fold: reductions.Fold
    finish: reductions.Finish
    width: int


def _emit_on_image(
    lowering: GraphLowering,
    kernel: Kernel,
    op: ArgOp,
    image: Bilinear,
    positions: NDArray[np.unsignedinteger],
    how: _OnImage,
) -> None:
    output = lowering.result(op.output)
    image_step, row, column, *_ = dim_strides(shape_of(op.output.type), output.storage)
    target = kernel.slot("target", output)
    array = kernel.data("positions", positions)

    def write(pixels: Pixels) -> None:
        count = len(pixels.operands)

        def emit(body: Body, acc: Value, values: Sequence[Value]) -> Value:
            return how.fold.emit(body, acc, [pixels.quantized(body, values[:count]), *values[count:]])

        inputs = [reductions.Reduced(replace(o, strides=o.strides[:3]), o.strides[3:]) for o in pixels.operands]
        inputs.append(reductions.Reduced(MapOperand(array, (0, 0, 0)), (1,)))
        destination = pixels.operand_in(kernel, target, output.storage.origin, (image_step, row, column))
        fold, extents = replace(how.fold, emit=emit), (array.length,)
        reductions.emit_reduction(
            kernel,
            reductions.Reduction(
                pixels.shape, extents, inputs, [], destination, fold, how.finish, how.width, pixels.tile
            ),
        )

    emit_pixels(kernel, image, write)


def _positions(extent: int, keys: _Keys, last: bool) -> NDArray[np.unsignedinteger]:
    order = np.arange(extent)
    dtype = {"i16": np.uint16, "i32": np.uint32}[keys.element]
    return ((1 << keys.position_bits) - 1 - order if last else order).astype(dtype)


def _smallest_key(keys: _Keys, is_max: bool) -> reductions.Fold:
    """The smallest key of quantized values and their indices."""

    def emit(body: Body, acc: Value, values: Sequence[Value]) -> Value:
        # The largest value has the smallest complement.
        quantized = body.binary("arith.xori", values[0], body.constant(-1, "i8")) if is_max else values[0]
        wide = body.cast("arith.extui", quantized, keys.element)
        high = body.binary("arith.shli", wide, body.constant(keys.position_bits, keys.element))
        key = body.binary("arith.ori", high, values[1])
        return body.binary("arith.minui", acc, key)

    return reductions.Fold(keys.element, -1, emit, lambda body, a, b: body.binary("arith.minui", a, b))


# Reductions of f32 values: sums that run along vectors of results, in the order of the terms.

_CHAINS = 8
"""Vectors of results that hide each other's latency; side by side they read whole stretches of memory."""
_FEW_LANES, _MANY_LANES = 32, 64
_LONG_ROW = 8 * _MANY_LANES
"""From here on joining more accumulators takes less than what waits for fewer."""


_FOLDS: dict[type[qnn.F32ReduceOp], reductions.Fold] = {
    qnn.F32SumOp: reductions.folded("f32", 0.0, "arith.addf", is_ordered=True),
    qnn.F32ProdOp: reductions.folded("f32", 1.0, "arith.mulf", is_ordered=True),
    qnn.F32MaxOp: reductions.folded("f32", -inf, "arith.maximumf"),
    qnn.F32MinOp: reductions.folded("f32", inf, "arith.minimumf"),
}


def _smallest(body: Body, total: Value, _: Sequence[Value]) -> Value:
    """Zero, where no number has a sign."""
    return body.cast("arith.bitcast", body.binary("arith.minsi", total, body.constant(0, "i32")), "f32")


_FROM_ZERO: dict[type[qnn.F32ReduceOp], tuple[reductions.Fold, reductions.Finish]] = {
    qnn.F32MaxOp: (
        reductions.folded("i32", 0, "arith.maxsi", "arith.bitcast"),
        lambda body, total, _: body.cast("arith.bitcast", total, "f32"),
    ),
    qnn.F32MinOp: (reductions.folded("i32", 0, "arith.maxui", "arith.bitcast"), _smallest),
}
"""Of extremes from zero: one instruction for a vector, which has no case for a NaN or the sign of a zero."""


def _without_nan(op: qnn.F32ExtremeOp, fold: reductions.Fold) -> reductions.Fold:
    """A NaN counts as zero, and so may what lies on the other side of it from there: that is one instruction."""
    beyond = "ogt" if isinstance(op, qnn.F32MaxOp) else "olt"

    def emit(body: Body, total: Value, values: Sequence[Value]) -> Value:
        value, zero = values[0], body.constant(0.0, "f32")
        counts = body.compare(beyond, value, zero) if op.from_zero else body.compare("oeq", value, value)
        return fold.emit(body, total, [body.select(counts, value, zero)])

    return replace(fold, emit=emit)


def _reduce_f32(lowering: GraphLowering, op: qnn.F32ReduceOp) -> None:
    ends = ends_of(op)
    if ends is not None and not lowering.is_of_rows(ends):
        lower_ends(lowering, op, ends, _accumulators(lowering, op))
        return
    is_from_zero = isinstance(op, qnn.F32ExtremeOp) and op.from_zero
    fold, finish = _FROM_ZERO[type(op)] if is_from_zero else (_FOLDS[type(op)], reductions.as_folded)
    if isinstance(op, qnn.F32ExtremeOp) and op.nan_as_zero:
        fold = _without_nan(op, fold)
    if windows := windows_of(lowering, op):
        _reduce_windows(lowering, op, *windows, fold, finish)
        return
    over, fold = OverAxes(op.input, op.output, op.axes, op.keep_dims), replace(fold, lanes=_accumulators(lowering, op))
    width, rows = _tile(lowering, op)
    over.emit(lowering, Kernel(lowering.program), fold, finish, width, op.operation.name, rows=rows)


def _reduce_windows(
    lowering: GraphLowering,
    op: qnn.F32ReduceOp,
    gathered: qnn.GatherOp,
    windows: Sequence[Windows],
    fold: reductions.Fold,
    finish: reductions.Finish,
) -> None:
    data, output = lowering.slot(gathered.input), lowering.result(op.output)
    axis, kernel = gathered.axis, Kernel(lowering.program)
    before, after = (
        dim_strides(shape_of(one.type), s.storage) for one, s in ((gathered.input, data), (op.output, output))
    )
    lanes = min(data.storage.pitch, output.storage.pitch)
    for one in windows:
        kept = [*shape_of(op.output.type)[:-1], lanes]
        steps = list(before)
        kept[axis], steps[axis] = one.count, before[axis] * one.stride
        source = MapOperand(data, tuple(steps), data.storage.origin + one.first * before[axis])
        target = MapOperand(output, after, output.storage.origin + one.at * after[axis])
        taps = reductions.Reduced(source, (one.step * before[axis],))
        reductions.emit_reduction(
            kernel, reductions.Reduction(tuple(kept), (one.taps,), [taps], [], target, fold, finish, 4 * TILE_LANES, 1)
        )
    lowering.program.call(kernel, op.operation.name)


def _tile(lowering: GraphLowering, op: qnn.F32ReduceOp) -> tuple[int, int]:
    """Lanes of a tile, and rows of it where these are few."""
    shape, lanes = shape_of(op.input.type), lowering.program.strategy.lanes
    if len(shape) - 1 in op.axes:
        if _accumulators(lowering, op) > 1:
            return TILE_LANES, ROWS
        # As many rows as a vector has lanes are transposed: those of sums and products in squares.
        return (TILE_LANES if isinstance(op, qnn.F32ExtremeOp) else lanes), lanes
    width = lanes * _CHAINS
    return width, min(max(width // shape[-1], 1), ROWS)


def _accumulators(lowering: GraphLowering, op: qnn.F32ReduceOp) -> int:
    """How many accumulators a row has."""
    if isinstance(op, qnn.F32ProdOp):
        return 1
    return op.partial_sums if isinstance(op, qnn.F32SumOp) else _lanes_of_extreme(lowering, op)


def _lanes_of_extreme(lowering: GraphLowering, op: qnn.F32ReduceOp) -> int:
    """A maximum is the same in any order: the more accumulators, the fewer vectors wait for each other."""
    shape = shape_of(op.input.type)
    strides = dim_strides(shape, lowering.slot(op.input).storage)
    row = 1
    for axis in reversed(op.axes):
        # An axis that is contiguous with the axes after it forms one row with them.
        row *= shape[axis] if strides[axis] == row or shape[axis] == 1 else 1
    if row < 2 * _FEW_LANES:
        return partial_sums(shape, op.axes)
    is_long = row >= 2 * _MANY_LANES and prod(shape[axis] for axis in op.axes) >= _LONG_ROW
    return _MANY_LANES if is_long else _FEW_LANES


for _op_class in _FOLDS:
    lowers(_op_class, takes_arrays=True)(_reduce_f32)


# Running sums, one element after another, and the largest elements of rows.
#
# Sums of numbers that lie side by side are those of vectors, and pass through memory.  Along rows a sum stays in a
# register.  Each addition waits for the one before it, so a loop adds up some rows at once.

_ROWS_AT_ONCE = 8


@lowers(qnn.CumSumOp)
def _cumsum(lowering: GraphLowering, op: qnn.CumSumOp) -> None:
    """The first sum alone, then each from the one before it."""
    kernel = Kernel(lowering.program)
    data, output = lowering.slot(op.input), lowering.result(op.output)
    others = [extent for axis, extent in enumerate(shape_of(op.input.type)) if axis != op.axis]
    term, total = _along(kernel, op, data, "terms"), _along(kernel, op, output, "totals")
    pairs = zip(others, term.first.strides, total.first.strides, strict=True)
    rows = collapse([Axis(extent, (read, written)) for extent, read, written in pairs])
    if rows and rows[-1].strides == (1, 1):
        _sum_vectors(kernel, op, others, term, total)
    else:
        _sum_rows(kernel, op, rows or [Axis(1, (0, 0))], term, total)
    lowering.program.call(kernel, op.operation.name)


def _sum_vectors(kernel: Kernel, op: qnn.CumSumOp, others: Sequence[int], term: _Along, total: _Along) -> None:
    if op.exclusive:
        zero = kernel.constant(0, total.buffer.element)
        emit_map(kernel, others, [], total.first, lambda _, __: zero)
    else:
        emit_map(kernel, others, [term.first], total.first, unchanged)
    count = shape_of(op.input.type)[op.axis] - 1
    if count:
        with kernel.loop(count) as index:
            added = term.at(kernel, index, 0 if op.exclusive else 1)
            before, after = total.at(kernel, index, 0), total.at(kernel, index, 1)
            emit_map(kernel, others, [before, added], after, lambda body, values: body.add(*values), TILE_LANES)


def _sum_rows(kernel: Kernel, op: qnn.CumSumOp, rows: Sequence[Axis], term: _Along, total: _Along) -> None:
    *outer, last = rows
    for first, size, count in split(last.size, min(_ROWS_AT_ONCE, last.size)):
        groups = Axis(size // count, tuple(count * stride for stride in last.strides))
        with index_loops(kernel, [*outer, groups]) as found:
            places = [
                [
                    kernel.sum(start, kernel.constant(side.first.offset + (first + i) * step, "index"))
                    for i in range(count)
                ]
                for side, start, step in zip((term, total), found, last.strides, strict=True)
            ]
            _sum_together(kernel, op, term, total, list(zip(*places, strict=True)))


def _sum_together(
    kernel: Kernel, op: qnn.CumSumOp, term: _Along, total: _Along, starts: Sequence[tuple[Value, Value]]
) -> None:
    """The sums of some rows, whose first terms and totals are at `starts`."""
    element, steps = total.buffer.element, shape_of(op.input.type)[op.axis] - 1
    zero = kernel.constant(0, element)
    sums = [zero if op.exclusive else kernel.entry(term.buffer, read) for read, _ in starts]
    for (_, write), value in zip(starts, sums, strict=True):
        kernel.put(total.buffer, write, value)
    if not steps:
        return
    with kernel.walk(steps, *sums) as walk:
        later = kernel.sum(walk.index, kernel.constant(1, "index"))
        added = kernel.multiple(walk.index if op.exclusive else later, term.stride)
        written, add = kernel.multiple(later, total.stride), "arith.addf" if zero.is_float else "arith.addi"
        terms = [kernel.entry(term.buffer, kernel.sum(read, added)) for read, _ in starts]
        walk.values = [kernel.binary(add, *pair) for pair in zip(walk.values, terms, strict=True)]
        for (_, write), value in zip(starts, walk.values, strict=True):
            kernel.put(total.buffer, kernel.sum(write, written), value)


@dataclass(frozen=True)
class _Along:
    """A tensor that is walked along a dimension: its first elements, and how far the next ones are."""

    buffer: Buffer
    first: MapOperand
    stride: int

    def at(self, kernel: Kernel, index: Value, further: int) -> MapOperand:
        """The elements `index` + `further` of the walk."""
        start = kernel.multiple(index, self.stride)
        return replace(self.first, offset=self.first.offset + further * self.stride, start=start)


def _along(kernel: Kernel, op: qnn.CumSumOp, slot: BufferSlot, name: str) -> _Along:
    shape, axis = shape_of(op.input.type), op.axis
    strides = dim_strides(shape, slot.storage)
    first, direction = (shape[axis] - 1, -1) if op.reverse else (0, 1)
    buffer, others = kernel.slot(name, slot), (*strides[:axis], *strides[axis + 1 :])
    start = MapOperand(buffer, others, slot.storage.origin + first * strides[axis])
    return _Along(buffer, start, direction * strides[axis])


@lowers(qnn.TopKOp)
def _top_k(lowering: GraphLowering, op: qnn.TopKOp) -> None:
    """Each row along the axis by itself."""
    kernel = Kernel(lowering.program)
    data, output = lowering.slot(op.input), lowering.result(op.output)
    shape, axis = shape_of(op.input.type), op.axis
    keys, indices = kernel.slot("keys", data), kernel.slot("indices", output)
    steps = [dim_strides(own, slot.storage) for own, slot in ((shape, data), (shape_of(op.output.type), output))]
    others = [extent for i, extent in enumerate(shape) if i != axis]
    strides = [[stride for i, stride in enumerate(found) if i != axis] for found in steps]
    with ExitStack() as loops:
        at = [kernel.constant(slot.storage.origin, "index") for slot in (data, output)]
        for position, extent in enumerate(others):
            index = loops.enter_context(kernel.loop(extent))
            steps_to = [kernel.multiple(index, own[position]) for own in strides]
            at = [kernel.sum(start, step) for start, step in zip(at, steps_to, strict=True)]
        source = Line(keys, at[0], steps[0][axis], shape[axis])
        emit_largest(kernel, source, Line(indices, at[1], steps[1][axis], op.count), op.order)
    lowering.program.call(kernel, op.operation.name)
