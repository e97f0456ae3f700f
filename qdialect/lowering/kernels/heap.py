"""The largest elements of a row, by a heap of the largest that were met: n elements take n log k comparisons."""

from __future__ import annotations

from qdialect.late_dataclass import dataclass
from qdialect.lowering.memory.storage import ELEMENT_BYTES, Storage
from qdialect.lowering.program import Kernel
from qdialect.lowering.text.kernel_text import Buffer
from qdialect.lowering.text.scalar_body import Value

_INDEX = "i32"
_LARGEST = 2**31 - 1


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


@dataclass(frozen=True)
class Entry:
    """An element, and where it stands in its row."""

    key: Value
    index: Value


@dataclass(frozen=True)
class Heap:
    """`size` entries, each worse than the two below it: smaller, or equal and further behind in its row."""

    kernel: Kernel
    size: int
    keys: Buffer
    indices: Buffer

    @classmethod
    def of(cls, kernel: Kernel, size: int, element: str) -> Heap:
        """A heap in memory of its own."""
        keys, indices = (
            kernel.scratch(name, Storage((1, 1, 1, size), own, size))
            for name, own in (("heap_keys", element), ("heap_indices", _INDEX))
        )
        return cls(kernel, size, keys, indices)

    def emit(self, source: Line, result: Line) -> None:
        """Write the indices of the largest elements of `source`, the largest first."""
        kernel, first = self.kernel, self.kernel.constant(0, "index")
        lowest = -(2 ** (8 * ELEMENT_BYTES[self.keys.element] - 1))
        nothing = Entry(kernel.constant(lowest, self.keys.element), kernel.constant(_LARGEST, _INDEX))
        with kernel.loop(self.size) as position:
            self._put(position, nothing)
        with kernel.loop(source.count) as position:
            found = Entry(kernel.entry(source.buffer, source.at(kernel, position)), kernel.cast(position, _INDEX))
            with kernel.when(self._is_worse(self._entry(first), found)):
                self._sink(found, kernel.constant(self.size, "index"))
        with kernel.loop(self.size) as step:
            # What is worst now comes last of what is left.
            left = kernel.binary("arith.subi", kernel.constant(self.size - 1, "index"), step)
            worst, last = self._entry(first), self._entry(left)
            kernel.put(result.buffer, result.at(kernel, left), kernel.cast(worst.index, result.buffer.element))
            self._sink(last, left)

    def _sink(self, entry: Entry, size: Value) -> None:
        """Put `entry` in the place of the first of `size` entries, and further down until none below is worse."""
        kernel = self.kernel
        one, last = kernel.constant(1, "index"), kernel.constant(self.size - 1, "index")
        with kernel.walk(self.size.bit_length() - 1, kernel.constant(0, "index")) as walk:
            below = kernel.sum(kernel.multiple(walk.value, 2), one)
            beside = kernel.sum(below, one)
            left = kernel.binary("arith.minui", below, last)
            right = kernel.select(kernel.compare("ult", beside, size), beside, left)
            entries = [self._entry(position) for position in (left, right)]
            is_right = self._is_worse(entries[1], entries[0])
            other = self._select(is_right, entries[1], entries[0])
            has_below = kernel.compare("ult", below, size)
            sinks = kernel.binary("arith.andi", has_below, self._is_worse(other, entry))
            # Where it stays, it stays in all further rounds.
            self._put(walk.value, self._select(sinks, other, entry))
            walk.value = kernel.select(sinks, kernel.select(is_right, right, left), walk.value)
        self._put(walk.value, entry)

    def _is_worse(self, one: Entry, other: Entry) -> Value:
        kernel = self.kernel
        is_behind = kernel.compare("sgt", one.index, other.index)
        is_tie = kernel.binary("arith.andi", kernel.compare("eq", one.key, other.key), is_behind)
        return kernel.binary("arith.ori", kernel.compare("slt", one.key, other.key), is_tie)

    def _select(self, condition: Value, one: Entry, other: Entry) -> Entry:
        keys, indices = (one.key, other.key), (one.index, other.index)
        return Entry(self.kernel.select(condition, *keys), self.kernel.select(condition, *indices))

    def _entry(self, position: Value) -> Entry:
        return Entry(self.kernel.entry(self.keys, position), self.kernel.entry(self.indices, position))

    def _put(self, position: Value, entry: Entry) -> None:
        self.kernel.put(self.keys, position, entry.key)
        self.kernel.put(self.indices, position, entry.index)
