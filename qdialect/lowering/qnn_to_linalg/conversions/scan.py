"""Running sums, one element after another, and the largest elements of rows, by a heap."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace

from qdialect.dialect import CumSumOp, TopKOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.cost.strategy import TILE_LANES
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand, emit_map
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Value
from qdialect.lowering.qnn_to_linalg.program.storage import ELEMENT_BYTES, Storage

# The largest elements of a row, by a heap of the largest that were met: n elements take n log k comparisons.

_LOW = 2**32 - 1
"""The lower half of an i64."""


@dataclass(frozen=True)
class Line:
    """`count` elements of a buffer, `stride` apart."""

    buffer: Buffer
    start: Value
    stride: int
    count: int

    def at(self, kernel: Kernel, index: Value) -> Value:
        """Where an element is."""
        return kernel.sum(self.start, kernel.multiple(index, self.stride))


Entry = tuple[Value, ...]
"""Words of an element and its place, which are compared one after the other: the last one has the place, inverted.

A smaller entry is worse: its element is smaller, or equal and further behind.  A narrow element and its place are one
word.
"""


@dataclass(frozen=True)
class Heap:
    """`size` entries, each worse than the two below it."""

    kernel: Kernel
    size: int
    words: tuple[Buffer, ...]

    @classmethod
    def of(cls, kernel: Kernel, size: int, element: str) -> Heap:
        """A heap in memory of its own, of numbers of type `element`."""
        types = ("i64",) if element == "i32" else ("i64", "i32")
        storages = [Storage((1, 1, 1, size), type_, size) for type_ in types]
        return cls(kernel, size, tuple(kernel.scratch("heap", storage) for storage in storages))

    def emit(self, source: Line, result: Line) -> None:
        """Write the indices of the largest elements of `source`, the largest first."""
        kernel, first = self.kernel, self.kernel.constant(0, "index")
        bits = [8 * ELEMENT_BYTES[words.element] for words in self.words]
        lowest = tuple(
            kernel.constant(-(2 ** (width - 1)), words.element) for width, words in zip(bits, self.words, strict=True)
        )
        with kernel.loop(self.size) as position:
            self._put(position, lowest)
        with kernel.loop(source.count) as position:
            found = self._of(kernel.entry(source.buffer, source.at(kernel, position)), position)
            with kernel.when(self._is_worse(self._entry(first), found)):
                self._sink(found, kernel.constant(self.size, "index"))
        with kernel.loop(self.size) as step:
            # The worst entry now comes last among the remaining ones.
            left = kernel.binary("arith.subi", kernel.constant(self.size - 1, "index"), step)
            worst, last = self._entry(first), self._entry(left)
            kernel.put(result.buffer, result.at(kernel, left), self._place(worst, result.buffer.element))
            self._sink(last, left)

    def _of(self, key: Value, position: Value) -> Entry:
        kernel = self.kernel
        if len(self.words) > 1:
            place = kernel.cast(position, "i32")
            return key, kernel.binary("arith.xori", place, kernel.constant(-1, "i32"))
        place = kernel.binary("arith.xori", kernel.cast(position, "i64"), kernel.constant(_LOW, "i64"))
        high = kernel.binary("arith.shli", kernel.cast(key, "i64"), kernel.constant(32, "i64"))
        return (kernel.binary("arith.ori", high, place),)

    def _place(self, entry: Entry, type_: str) -> Value:
        kernel, word = self.kernel, entry[-1]
        place = kernel.binary("arith.xori", word, kernel.constant(-1, word.type))
        if word.type == "i64":
            place = kernel.binary("arith.andi", place, kernel.constant(_LOW, "i64"))
        return kernel.cast(place, type_)

    def _sink(self, entry: Entry, size: Value) -> None:
        """Put `entry` in the place of the first of `size` entries, and further down until none below is worse."""
        kernel = self.kernel
        one, last = kernel.constant(1, "index"), kernel.constant(self.size - 1, "index")
        with kernel.walk(self.size.bit_length() - 1, kernel.constant(0, "index")) as walk:
            below = kernel.sum(kernel.multiple(walk.values[0], 2), one)
            beside = kernel.sum(below, one)
            left = kernel.binary("arith.minui", below, last)
            right = kernel.select(kernel.compare("ult", beside, size), beside, left)
            entries = [self._entry(position) for position in (left, right)]
            is_right = self._is_worse(entries[1], entries[0])
            other = self._select(is_right, entries[1], entries[0])
            has_below = kernel.compare("ult", below, size)
            sinks = kernel.binary("arith.andi", has_below, self._is_worse(other, entry))
            # Where it stays, it stays in all further rounds.
            self._put(walk.values[0], self._select(sinks, other, entry))
            walk.values[0] = kernel.select(sinks, kernel.select(is_right, right, left), walk.values[0])
        self._put(walk.values[0], entry)

    def _is_worse(self, one: Entry, other: Entry) -> Value:
        kernel = self.kernel
        found = kernel.compare("slt", one[-1], other[-1])
        for left, right in zip(one[-2::-1], other[-2::-1], strict=True):
            is_tie = kernel.binary("arith.andi", kernel.compare("eq", left, right), found)
            found = kernel.binary("arith.ori", kernel.compare("slt", left, right), is_tie)
        return found

    def _select(self, condition: Value, one: Entry, other: Entry) -> Entry:
        return tuple(self.kernel.select(condition, *words) for words in zip(one, other, strict=True))

    def _entry(self, position: Value) -> Entry:
        return tuple(self.kernel.entry(words, position) for words in self.words)

    def _put(self, position: Value, entry: Entry) -> None:
        for words, word in zip(self.words, entry, strict=True):
            self.kernel.put(words, position, word)


# Running sums, one element after another, and the largest elements of rows.


@lowers(CumSumOp)
def _cumsum(lowering: GraphLowering, op: CumSumOp) -> None:
    """The first sum alone, then each from the one before it."""
    kernel = Kernel(lowering.program)
    data, output = lowering.slot(op.input), lowering.result(op.output)
    others = [extent for axis, extent in enumerate(shape_of(op.input.type)) if axis != op.axis]
    term, total = _along(kernel, op, data, "terms"), _along(kernel, op, output, "totals")
    if op.exclusive:
        zero = kernel.constant(0, output.storage.element)
        emit_map(kernel, others, [], total.first, lambda _, __: zero)
    else:
        emit_map(kernel, others, [term.first], total.first, lambda _, values: values[0])
    count = shape_of(op.input.type)[op.axis] - 1
    if count:
        with kernel.loop(count) as index:
            added = term.at(kernel, index, 0 if op.exclusive else 1)
            before, after = total.at(kernel, index, 0), total.at(kernel, index, 1)
            emit_map(kernel, others, [before, added], after, lambda body, values: body.add(*values), TILE_LANES)
    lowering.program.call(kernel, op.operation.name)


@dataclass(frozen=True)
class _Along:
    """A tensor that is walked along a dimension: its first elements, and how far the next ones are."""

    first: MapOperand
    stride: int

    def at(self, kernel: Kernel, index: Value, further: int) -> MapOperand:
        """The elements `index` + `further` of the walk."""
        start = kernel.multiple(index, self.stride)
        return replace(self.first, offset=self.first.offset + further * self.stride, start=start)


def _along(kernel: Kernel, op: CumSumOp, slot: BufferSlot, name: str) -> _Along:
    shape, axis = shape_of(op.input.type), op.axis
    strides = dim_strides(shape, slot.storage)
    first, direction = (shape[axis] - 1, -1) if op.reverse else (0, 1)
    buffer, others = kernel.slot(name, slot), (*strides[:axis], *strides[axis + 1 :])
    start = MapOperand(buffer, others, slot.storage.origin + first * strides[axis])
    return _Along(start, direction * strides[axis])


@lowers(TopKOp)
def _top_k(lowering: GraphLowering, op: TopKOp) -> None:
    """A heap of the largest elements for each row along the axis."""
    kernel = Kernel(lowering.program)
    data, output = lowering.slot(op.input), lowering.result(op.output)
    shape, axis = shape_of(op.input.type), op.axis
    keys, indices = kernel.slot("keys", data), kernel.slot("indices", output)
    steps = [dim_strides(own, slot.storage) for own, slot in ((shape, data), (shape_of(op.output.type), output))]
    others = [extent for i, extent in enumerate(shape) if i != axis]
    strides = [[stride for i, stride in enumerate(found) if i != axis] for found in steps]
    heap = Heap.of(kernel, op.count, data.storage.element)
    with ExitStack() as loops:
        at = [kernel.constant(slot.storage.origin, "index") for slot in (data, output)]
        for position, extent in enumerate(others):
            index = loops.enter_context(kernel.loop(extent))
            steps_to = [kernel.multiple(index, own[position]) for own in strides]
            at = [kernel.sum(start, step) for start, step in zip(at, steps_to, strict=True)]
        heap.emit(Line(keys, at[0], steps[0][axis], shape[axis]), Line(indices, at[1], steps[1][axis], op.count))
    lowering.program.call(kernel, op.operation.name)
