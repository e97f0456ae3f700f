"""Reductions of stored tensors over windows and axes, the folds that they compute, and the exact division of a sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from qdialect.arithmetic import Division
from qdialect.lowering.cost.strategy import lane_parts, rows_for, split
from qdialect.lowering.ir.views import Axis, View, collapse
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand, declare_operand
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Loops, Operand, Tag, Tensor
from qdialect.lowering.qnn_to_linalg.program.program import Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value

# Reductions of stored tensors: sums and maxima over windows and axes.
#
# Vectors run along the innermost kept axis, one accumulator for each element, where that axis lies side by side in the
# data (channels of a pool); else along the innermost reduced axis, whose lanes are combined at the end of each
# iteration (the classes of a softmax).  Both accumulate from `Fold.start`, and a root op turns accumulators into
# results.


@dataclass(frozen=True)
class Fold:
    """How elements are folded: ``acc = emit(body, acc, values of the inputs)``, from `start`."""

    element: str
    start: float
    emit: Callable[[Body, Value, Sequence[Value]], Value]
    join: Callable[[Body, Value, Value], Value]
    """Joins two accumulators."""
    is_ordered: bool = False
    """Whether the result depends on the order: one accumulator takes all elements, or `lanes` of them do."""
    lanes: int = 1
    """Adjacent accumulators along the last reduced axis, joined in order, then the remaining elements.

    Element i of that axis goes to accumulator i modulo their number; those after the last whole group of so many are
    folded in order by themselves. Vectors never run along kept axes then, and the axis is not joined with others where
    the order counts.
    """


@dataclass(frozen=True)
class Reduced:
    """An operand and how far it moves along the reduced axes."""

    source: MapOperand
    strides: tuple[int, ...]


Finish = Callable[[Body, Value, Sequence[Value]], Value]
"""(body, accumulator, values of the further operands) -> stored element."""


@dataclass(frozen=True)
class Reduction:
    """``output[kept] = finish(fold over reduced of inputs[kept, reduced], extras[kept])``.

    `kept` and `reduced` are extents, outermost first; operands have a stride along each.  Where the first input and the
    output lie side by side along the last kept axis, vectors of `width` run along it, in tiles of `rows` of the axis
    before it, or of as many more lanes where that has fewer; else vectors run along the last reduced axis.
    """

    kept: tuple[int, ...]
    reduced: tuple[int, ...]
    inputs: Sequence[Reduced]
    extras: Sequence[MapOperand]
    output: MapOperand
    fold: Fold
    finish: Finish
    width: int
    rows: int
    lanes_first: bool = False
    """Whether all rows are computed for one vector of the last kept axis before the next."""


def emit_reduction(kernel: Kernel, op: Reduction) -> None:
    """Emit the loop nests of `op`."""
    _Emitter(kernel, op).emit()


@dataclass(frozen=True)
class _Part:
    """A stretch of the loop axes: where it starts on the last two of them, and its tiles there."""

    axes: Sequence[Axis]
    offsets: tuple[int, ...]
    tiles: tuple[int, ...]


class _Emitter:
    def __init__(self, kernel: Kernel, op: Reduction) -> None:
        self.kernel = kernel
        self.op = op
        operands = [*(r.source for r in op.inputs), *op.extras, op.output]
        self.declared = [declare_operand(kernel, f"operand{i}", operand) for i, operand in enumerate(operands)]
        kept = [Axis(size, tuple(o.strides[i] for o in operands)) for i, size in enumerate(op.kept)]
        kept = collapse(kept)
        is_side_by_side = bool(kept) and kept[-1].strides[0] == 1 and kept[-1].strides[-1] == 1
        self.is_vertical = is_side_by_side and op.fold.lanes == 1
        lanes = [kept.pop()] if self.is_vertical else []
        self.kept = [*(kept or [Axis(1, (0,) * len(operands))]), *lanes]
        taps = [Axis(size, tuple(r.strides[i] for r in op.inputs)) for i, size in enumerate(op.reduced)]
        # The accumulator of an element of an ordered fold depends only on its index along the last axis.
        is_apart = op.fold.is_ordered and op.fold.lanes > 1
        joined = [*collapse(taps[:-1]), taps[-1]] if is_apart else collapse(taps)
        self.taps = joined or [Axis(1, (0,) * len(op.inputs))]

    def emit(self) -> None:
        for part in self._parts():
            self._emit_part(part)

    def _parts(self) -> list[_Part]:
        *outer, last = self.kept
        if not self.is_vertical:
            return [_part(outer, [(last, start, size, tile)]) for start, size, tile in self._row_parts(last)]
        *outer, rows = outer
        parts: list[_Part] = []
        width = self.op.width * max(self.op.rows // rows.size, 1)
        for start, size, tile in lane_parts(last.size, width, self.kernel.program.strategy.lanes):
            tiles = [Axis(size // tile, tuple(tile * s for s in last.strides))] if self.op.lanes_first else []
            lanes = (last, start, tile if tiles else size, tile)
            parts += [_part([*tiles, *outer], [(rows, *row), lanes]) for row in self._row_parts(rows)]
        return parts

    def _row_parts(self, axis: Axis) -> list[tuple[int, int, int]]:
        return split(axis.size, rows_for(axis.size, self.op.rows))

    def _emit_part(self, part: _Part) -> None:
        kernel, op = self.kernel, self.op
        micro_kernel = kernel.next_micro_kernel()
        loops = tuple(f"m{i}" for i in range(len(part.axes)))
        accumulators: list[Tensor] = []
        for i, (taps, start) in enumerate(self._tap_parts()):
            # Where the order of all elements counts, each part goes on from the one before it.
            before = accumulators.pop() if accumulators and op.fold.is_ordered and op.fold.lanes == 1 else None
            accumulators.append(self._accumulate(micro_kernel, f"fold{i}", part, loops, taps, start, before))
        inputs = [Operand(acc, loops) for acc in accumulators]
        last, pairs = len(self.declared) - 1, list(zip(part.axes, loops, strict=True))
        inputs += [self._operand(i, part.offsets[i], pairs) for i in range(len(op.inputs), last)]
        sizes, strides = tuple(a.size for a in part.axes), tuple(a.strides[last] for a in part.axes)
        offset, start = self.declared[last].where(kernel, part.offsets[last])
        target = kernel.write(self.declared[last].buffer, View(sizes, strides, offset), start)

        def finish(body: Body, values: Sequence[Value]) -> Value:
            total = reduce(partial(op.fold.join, body), values[: len(accumulators)])
            return op.finish(body, total, values[len(accumulators) :])

        kernel.map(loops, inputs, target, finish, Tag(micro_kernel, "root", part.tiles))

    def _tap_parts(self) -> list[tuple[Sequence[Axis], int]]:
        """(axes, start) of each accumulation: one, or whole vectors and the rest along the last reduced axis."""
        if self.is_vertical:
            return [(self.taps, 0)]
        *outer, last = self.taps
        tile = min(self.op.width, last.size)
        if self.op.fold.lanes > 1:
            tile = self.op.fold.lanes
        elif self.op.fold.is_ordered and outer:
            # What is left of a row comes before the next one.
            tile = max(n for n in range(1, tile + 1) if last.size % n == 0)
        return [([*outer, *_split_axis(last, size, tile)], start) for start, size, tile in split(last.size, tile)]

    def _accumulate(
        self,
        micro_kernel: int,
        role: str,
        part: _Part,
        loops: tuple[str, ...],
        taps: Sequence[Axis],
        start: int,
        before: Tensor | None,
    ) -> Tensor:
        kernel, fold = self.kernel, self.op.fold
        if fold.lanes > 1 and taps[-1].size == fold.lanes:
            return self._accumulate_lanes(micro_kernel, role, part, loops, taps, start)
        reduction = tuple(f"k{i}" for i in range(len(taps)))
        pairs, steps = list(zip(part.axes, loops, strict=True)), list(zip(taps, reduction, strict=True))
        inputs = [self._reduced_operand(part, pairs, steps, start, index) for index in range(len(self.op.inputs))]
        first = before or kernel.filled(
            tuple(a.size for a in part.axes), fold.element, fold.start, Tag(micro_kernel, f"{role}_fill")
        )
        output = Operand(first, loops)
        body = kernel.body(inputs, output)
        value = fold.emit(body, body.output, body.inputs)
        lanes = loops[-1:] if self.is_vertical else ()
        rows = loops[: len(loops) - len(lanes)]
        tiles = (0,) * len(rows) + (1,) * (len(taps) - 1) + (1 if lanes else 0,)
        tag = Tag(micro_kernel, role, tiles if any(tiles) else ())
        return kernel.generic(Loops(rows, reduction, lanes), inputs, output, body, value, tag)

    def _accumulate_lanes(
        self, micro_kernel: int, role: str, part: _Part, loops: tuple[str, ...], taps: Sequence[Axis], start: int
    ) -> Tensor:
        """A vector of accumulators for each result, joined at the end."""
        kernel, fold = self.kernel, self.op.fold
        *outer, lane = taps
        names, sizes = (*loops, "lane"), tuple(a.size for a in part.axes)
        reduction = tuple(f"k{i}" for i in range(len(outer)))
        steps = list(zip(outer, reduction, strict=True))
        pairs = [*zip(part.axes, loops, strict=True), *steps, (lane, "lane")]
        offsets = [part.offsets[i] + start * lane.strides[i] for i in range(len(self.op.inputs))]
        inputs = [self._operand(i, offset, pairs, fixed=steps if i == 0 else ()) for i, offset in enumerate(offsets)]
        first = kernel.filled((*sizes, fold.lanes), fold.element, fold.start, Tag(micro_kernel, f"{role}_lanes_fill"))
        output = Operand(first, names)
        body = kernel.body(inputs, output)
        value = fold.emit(body, body.output, body.inputs)
        tag = Tag(micro_kernel, f"{role}_lanes", (0,) * len(loops) + (1,) * len(outer))
        lanes = kernel.generic(Loops(loops, reduction, names[-1:]), inputs, output, body, value, tag)
        total = Operand(kernel.filled(sizes, fold.element, fold.start, Tag(micro_kernel, f"{role}_fill")), loops)
        body = kernel.body([Operand(lanes, names)], total)
        value = fold.join(body, body.output, body.inputs[0])
        return kernel.generic(
            Loops(loops, ("lane",)), [Operand(lanes, names)], total, body, value, Tag(micro_kernel, role)
        )

    def _reduced_operand(
        self, part: _Part, pairs: Sequence[tuple[Axis, str]], taps: Sequence[tuple[Axis, str]], start: int, index: int
    ) -> Operand:
        offset = part.offsets[index] + start * self.taps[-1].strides[index]
        # Lanes come last in a view: a vector reads contiguous elements.
        ordered = [*pairs[:-1], *taps, pairs[-1]] if self.is_vertical else [*pairs, *taps]
        # The first operand sets the extents of the reduction loops, even if it does not move along them.
        return self._operand(index, offset, ordered, fixed=taps if index == 0 else ())

    def _operand(
        self, index: int, offset: int, pairs: Sequence[tuple[Axis, str]], fixed: Sequence[tuple[Axis, str]] = ()
    ) -> Operand:
        """The operand seen along the loops that move it; the others broadcast it."""
        moving = [pair for pair in pairs if pair[0].strides[index] or pair in fixed]
        declared = self.declared[index]
        strides = tuple(axis.strides[index] for axis, _ in moving)
        offset, start = declared.where(self.kernel, offset)
        view = View(tuple(axis.size for axis, _ in moving), strides, offset)
        return Operand(self.kernel.read(declared.buffer, view, start), tuple(loop for _, loop in moving))


def _part(outer: Sequence[Axis], inner: Sequence[tuple[Axis, int, int, int]]) -> _Part:
    """The part with all of `outer` and a stretch (start, size, tile) of each axis of `inner`."""
    axes = [*outer, *(Axis(size, axis.strides) for axis, _, size, _ in inner)]
    count = len(axes[-1].strides)
    offsets = tuple(sum(start * axis.strides[i] for axis, start, _, _ in inner) for i in range(count))
    return _Part(axes, offsets, (1,) * len(outer) + tuple(tile for _, _, _, tile in inner))


def _split_axis(axis: Axis, size: int, tile: int) -> list[Axis]:
    """`size` steps of `axis` as steps of whole tiles and the steps of a tile."""
    if size == tile:
        return [Axis(size, axis.strides)]
    return [Axis(size // tile, tuple(s * tile for s in axis.strides)), Axis(tile, axis.strides)]


# The arithmetic of reductions: the folds, and the exact division of a sum.

_MAX_IN_FLOAT32 = 2**24


def folded(element: str, start: float, op: str, cast: str = "", *, is_ordered: bool = False) -> Fold:
    """Numbers folded by one operation on two, `cast` to `element` before."""

    def join(body: Body, acc: Value, value: Value) -> Value:
        return body.binary(op, acc, value)

    def emit(body: Body, acc: Value, values: Sequence[Value]) -> Value:
        return join(body, acc, body.cast(cast, values[0], element) if cast else values[0])

    return Fold(element, start, emit, join, is_ordered)


def as_folded(_: Body, acc: Value, __: Sequence[Value]) -> Value:
    """The accumulator as it is."""
    return acc


# Of stored quantized values.
SUM = folded("i32", 0, "arith.addi", "arith.extui")
MAX = folded("i8", 0, "arith.maxui")
# From 255 as a signless byte.
MIN = folded("i8", -1, "arith.minui")
# Of 16-bit values.
I16_SUM = folded("i32", 0, "arith.addi", "arith.extsi")
I16_MAX = folded("i16", -(2**15), "arith.maxsi")
# Of f32 values and 0.
F32_MAXIMUM = folded("f32", 0.0, "arith.maximumf")
F32_MINIMUM = folded("f32", 0.0, "arith.minimumf")

F32_PRODUCTS = Fold(
    "f32", 0.0, lambda body, total, v: body.multiply_add(v[0], v[1], total), lambda body, a, b: body.add(a, b), True
)
"""The sum of products of two f32 operands: fused multiply-adds in order."""
F32_ROUNDED_PRODUCTS = Fold(
    "f32",
    0.0,
    lambda body, total, v: body.add(total, body.multiply(v[0], v[1])),
    lambda body, a, b: body.add(a, b),
    True,
)
"""The same, each product rounded before it is added."""


def quotient_float(largest: int, maximum: int) -> str:
    """The float in which a total of up to `maximum` values of magnitude `largest` is divided exactly by their count.

    With a = q * b + r and r < b, the true quotient lies 1/b or more below q + 1, and a float rounds up to q + 1 only
    from within (q + 1) * 2^-24 of it (2^-53 for doubles).  As b * (q + 1) <= a + b, where a has half a count more for
    rounding, float32 serves while (largest + 2) * count is at most 2^24.
    """
    return "f32" if (largest + 2) * maximum <= _MAX_IN_FLOAT32 else "f64"


def emit_quotient(body: Body, total: Value, count: Value, division: Division, float_: str) -> Value:
    """``total / count`` (i32) rounded by the mode of `division`, with a division of floats (see `quotient_float`).

    The quotient of the magnitudes is that of two floats, rounded, then truncated.
    """
    zero = body.constant(0, "i32")
    is_negative = body.compare("slt", total, zero)
    negated = body.subtract(zero, total)
    magnitude = body.select(is_negative, negated, total)
    if division is not Division.TRUNCATE:
        nudge = body.binary("arith.shrui", count, body.constant(1, "i32"))
        magnitude = body.add(magnitude, nudge)
    dividend, divisor = (body.cast("arith.sitofp", value, float_) for value in (magnitude, count))
    whole = body.cast("arith.fptosi", body.divide(dividend, divisor), "i32")
    return body.select(is_negative, body.subtract(zero, whole), whole)
