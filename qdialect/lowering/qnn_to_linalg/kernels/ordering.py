"""The largest elements of rows, in order: by a heap if they are few, else those above a bound, by their digits."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from qdialect.arithmetic.choices import Order
from qdialect.arithmetic.std_order import Machine, most_cuts, std_order
from qdialect.lowering.cost.strategy import groups_of
from qdialect.lowering.qnn_to_linalg.kernels import reduction as reductions
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand, emit_map
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer
from qdialect.lowering.qnn_to_linalg.program.program import ELEMENT_BYTES, Kernel, Storage
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value

_FEW = 32
"""From so many elements on a heap takes longer than a sort by digits, whose passes walk 256 counts each."""
_BLOCKS, _LONG = (64, 16), 4096
"""Elements of a block, which is passed over by its largest one; rows of at least `_LONG` elements have long blocks."""
_LANES = 16
_DIGITS = 256
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


def emit_largest(kernel: Kernel, source: Line, result: Line, order: Order) -> None:
    """Write the indices of the largest elements of `source`, the largest first, as many as `result` has.

    Memory of its own is declared, so there is one call for each kernel.
    """
    if source.stride != 1:
        copied = _memory(kernel, "row", source.buffer.element, source.count)
        with kernel.loop(source.count) as position:
            kernel.put(copied, position, kernel.entry(source.buffer, source.at(kernel, position)))
        source = Line(copied, kernel.constant(0, "index"), 1, source.count)
    if order is not Order.STABLE:
        _Places.of(kernel, source).emit(result, order)
    elif result.count < _FEW:
        _Heap.of(kernel, source, result.count).emit(result)
    else:
        _Sort.of(kernel, source, result.count).emit(result)


def _memory(kernel: Kernel, name: str, element: str, length: int) -> Buffer:
    return kernel.scratch(name, Storage((1, 1, 1, length), element, length))


def _lowest(element: str) -> int:
    return -(2 ** (8 * ELEMENT_BYTES[element] - 1))


# A row in blocks.


@dataclass(frozen=True)
class _Row:
    """A row of elements side by side, and the largest one of each block; a row of one block has it not."""

    kernel: Kernel
    line: Line
    size: int
    maxima: Buffer | None

    @classmethod
    def of(cls, kernel: Kernel, line: Line, blocks: int) -> _Row:
        """The row in at least so many blocks where it has them."""
        sizes = _BLOCKS if line.count >= _LONG else _BLOCKS[1:]
        size = next((size for size in sizes if line.count // size >= blocks), 0)
        if not size:
            return cls(kernel, line, line.count, None)
        element = line.buffer.element
        maxima = _memory(kernel, "maxima", element, -(-line.count // size))
        fold = reductions.folded(element, _lowest(element), "arith.maxsi")
        for first, count, extent in groups_of(size, line.count):
            source = MapOperand(line.buffer, (size,), first * size, line.start)
            target, inputs = MapOperand(maxima, (1,), first), [reductions.Reduced(source, (1,))]
            reductions.emit_reduction(
                kernel,
                reductions.Reduction((count,), (extent,), inputs, (), target, fold, reductions.as_folded, extent, 1),
            )
        return cls(kernel, line, size, maxima)

    @property
    def largest(self) -> Line:
        """The largest elements of its blocks; all elements of a row of one block."""
        if self.maxima is None:
            return self.line
        return Line(self.maxima, self.kernel.constant(0, "index"), 1, self.maxima.length)

    def key(self, position: Value) -> Value:
        """The element at a position."""
        return self.kernel.entry(self.line.buffer, self.line.at(self.kernel, position))

    @contextmanager
    def blocks(self, is_needed: Callable[[Value, Value], Value]) -> Generator[tuple[Value, int | Value]]:
        """A loop over the blocks of which ``is_needed(largest element, first position)``: the start and size of one."""
        kernel = self.kernel
        if self.maxima is None:
            yield kernel.constant(0, "index"), self.size
            return
        with kernel.loop(self.maxima.length) as block:
            first = kernel.multiple(block, self.size)
            with kernel.when(is_needed(kernel.entry(self.maxima, block), first)):
                left = kernel.binary("arith.subi", kernel.constant(self.line.count, "index"), first)
                yield first, kernel.binary("arith.minui", left, kernel.constant(self.size, "index"))


# A heap of the largest elements that were met: n elements take n log k comparisons at most.

_Entry = tuple[Value, ...]
"""Words of an element and its place, which are compared one after the other: the last one has the place, inverted.

A smaller entry is worse: its element is smaller, or equal and further behind.  A narrow element and its place are one
word.
"""


@dataclass(frozen=True)
class _Heap:
    """`size` entries, each worse than the two below it."""

    kernel: Kernel
    row: _Row
    size: int
    words: tuple[Buffer, ...]

    @classmethod
    def of(cls, kernel: Kernel, source: Line, size: int) -> _Heap:
        types = ("i64",) if source.buffer.element == "i32" else ("i64", "i32")
        words = tuple(_memory(kernel, "heap", type_, size) for type_ in types)
        return cls(kernel, _Row.of(kernel, source, 2 * size), size, words)

    def emit(self, result: Line) -> None:
        kernel, first = self.kernel, self.kernel.constant(0, "index")
        lowest = tuple(kernel.constant(_lowest(words.element), words.element) for words in self.words)
        with kernel.loop(self.size) as position:
            self._put(position, lowest)

        def is_better(key: Value, position: Value) -> Value:
            return self._is_worse(self._entry(first), self._of(key, position))

        with self.row.blocks(is_better) as (start, count), kernel.loop(count) as index:
            position = kernel.sum(start, index)
            key = self.row.key(position)
            with kernel.when(is_better(key, position)):
                self._sink(self._of(key, position), kernel.constant(self.size, "index"))
        with kernel.loop(self.size) as step:
            # The worst entry now comes last among the remaining ones.
            left = kernel.binary("arith.subi", kernel.constant(self.size - 1, "index"), step)
            worst, last = self._entry(first), self._entry(left)
            kernel.put(result.buffer, result.at(kernel, left), self._place(worst, result.buffer.element))
            self._sink(last, left)

    def _of(self, key: Value, position: Value) -> _Entry:
        kernel = self.kernel
        if len(self.words) > 1:
            place = kernel.cast(position, "i32")
            return key, kernel.binary("arith.xori", place, kernel.constant(-1, "i32"))
        place = kernel.binary("arith.xori", kernel.cast(position, "i64"), kernel.constant(_LOW, "i64"))
        high = kernel.binary("arith.shli", kernel.cast(key, "i64"), kernel.constant(32, "i64"))
        return (kernel.binary("arith.ori", high, place),)

    def _place(self, entry: _Entry, type_: str) -> Value:
        kernel, word = self.kernel, entry[-1]
        place = kernel.binary("arith.xori", word, kernel.constant(-1, word.type))
        if word.type == "i64":
            place = kernel.binary("arith.andi", place, kernel.constant(_LOW, "i64"))
        return kernel.cast(place, type_)

    def _sink(self, entry: _Entry, size: Value) -> None:
        """Put `entry` in the place of the first of `size` entries, and further down until none below is worse."""
        kernel = self.kernel
        one, last = kernel.constant(1, "index"), kernel.constant(self.size - 1, "index")
        with kernel.walk(self.size.bit_length() - 1, kernel.constant(0, "index")) as walk:
            below = kernel.sum(kernel.multiple(walk.values[0], 2), one)
            after = kernel.sum(below, one)
            left = kernel.binary("arith.minui", below, last)
            right = kernel.select(kernel.compare("ult", after, size), after, left)
            entries = [self._entry(position) for position in (left, right)]
            is_right = self._is_worse(entries[1], entries[0])
            other = self._select(is_right, entries[1], entries[0])
            has_below = kernel.compare("ult", below, size)
            sinks = kernel.binary("arith.andi", has_below, self._is_worse(other, entry))
            # Where it stays, it stays in all further rounds.
            self._put(walk.values[0], self._select(sinks, other, entry))
            walk.values[0] = kernel.select(sinks, kernel.select(is_right, right, left), walk.values[0])
        self._put(walk.values[0], entry)

    def _is_worse(self, one: _Entry, other: _Entry) -> Value:
        kernel = self.kernel
        found = kernel.compare("slt", one[-1], other[-1])
        for left, right in zip(one[-2::-1], other[-2::-1], strict=True):
            is_tie = kernel.binary("arith.andi", kernel.compare("eq", left, right), found)
            found = kernel.binary("arith.ori", kernel.compare("slt", left, right), is_tie)
        return found

    def _select(self, condition: Value, one: _Entry, other: _Entry) -> _Entry:
        return tuple(self.kernel.select(condition, *words) for words in zip(one, other, strict=True))

    def _entry(self, position: Value) -> _Entry:
        return tuple(self.kernel.entry(words, position) for words in self.words)

    def _put(self, position: Value, entry: _Entry) -> None:
        for words, word in zip(self.words, entry, strict=True):
            self.kernel.put(words, position, word)


# Many elements: those above a bound that enough of them reach, sorted by their digits.


@dataclass(frozen=True)
class _Found:
    """Elements, the largest as the smallest unsigned number, and their places."""

    keys: Buffer
    places: Buffer

    @classmethod
    def of(cls, kernel: Kernel, element: str, count: int) -> _Found:
        return cls(_memory(kernel, "keys", element, count), _memory(kernel, "places", "i32", count))


@dataclass(frozen=True)
class _Sort:
    """The `count` largest elements of a row: 1 and a little more for each bit and 16th element, then 8 for each one."""

    kernel: Kernel
    source: Line
    count: int
    row: _Row | None
    """None where all elements are sorted."""
    found: _Found
    sorted: _Found
    state: Buffer
    digits: Buffer

    @classmethod
    def of(cls, kernel: Kernel, source: Line, count: int) -> _Sort:
        element = source.buffer.element
        row = _Row.of(kernel, source, 3 * count // 2) if 2 * count <= source.count else None
        # Fewer than `count` blocks of those that set the bound have elements above it.
        most = min(source.count, (count + _LANES) * row.size) if row else source.count
        found, others = (_Found.of(kernel, element, most + 1) for _ in range(2))
        state, digits = _memory(kernel, "state", element, 1), _memory(kernel, "digits", "i32", _DIGITS)
        return cls(kernel, source, count, row, found, others, state, digits)

    def emit(self, result: Line) -> None:
        kernel = self.kernel
        found = self._collected(self.row) if self.row else self._all()
        with kernel.loop(ELEMENT_BYTES[self.state.element] // 2) as pair:
            self._pass(self.found, self.sorted, kernel.multiple(pair, 16), found)
            shift = kernel.sum(kernel.multiple(pair, 16), kernel.constant(8, "index"))
            self._pass(self.sorted, self.found, shift, found)
        with kernel.loop(self.count) as index:
            place = kernel.cast(kernel.entry(self.found.places, index), result.buffer.element)
            kernel.put(result.buffer, result.at(kernel, index), place)

    def _all(self) -> Value:
        with self.kernel.loop(self.source.count) as index:
            key = self.kernel.entry(self.source.buffer, self.source.at(self.kernel, index))
            self._put(self.found, index, self._inverted(key), index)
        return self.kernel.constant(self.source.count, "index")

    def _collected(self, row: _Row) -> Value:
        """All elements above the bound, then as many of those that equal it as are still needed."""
        kernel, zero = self.kernel, self.kernel.constant(0, "index")
        bound, wanted = self._bound(row.largest), kernel.constant(self.count, "index")
        kernel.put(self.state, 0, kernel.constant(0, self.state.element))
        with row.blocks(lambda largest, _: kernel.compare("sgt", largest, bound)) as (start, count):
            self._collect(row, start, count, lambda key, _: kernel.compare("sgt", key, bound))

        def is_needed(key: Value, found: Value) -> Value:
            is_equal = kernel.compare("eq", key, bound)
            return kernel.binary("arith.andi", is_equal, kernel.compare("slt", found, wanted))

        def has_equal(largest: Value, _: Value) -> Value:
            is_left = kernel.compare("slt", kernel.position(self.state, zero), wanted)
            return kernel.binary("arith.andi", kernel.compare("sge", largest, bound), is_left)

        with row.blocks(has_equal) as (start, count):
            self._collect(row, start, count, is_needed)
        return kernel.position(self.state, zero)

    def _bound(self, values: Line) -> Value:
        """The largest number that `count` of the whole vectors of `values` reach, bit by bit."""
        kernel, element = self.kernel, values.buffer.element
        lowest, wanted = (kernel.constant(value, element) for value in (_lowest(element), self.count))
        one, none = (kernel.constant(value, element) for value in (1, 0))
        source, target = MapOperand(values.buffer, (), 0, values.start), MapOperand(self.state, ())
        with kernel.walk(8 * ELEMENT_BYTES[element], lowest) as walk:
            # From the lowest number on the highest bit wraps around to zero.
            bit = kernel.binary("arith.shrui", lowest, kernel.cast(walk.index, element))
            higher = kernel.binary("arith.addi", walk.values[0], bit)

            def counted(body: Body, total: Value, values: Sequence[Value]) -> Value:
                return body.add(total, body.select(body.compare("sge", values[0], higher), one, none))

            fold = reductions.Fold(element, 0, counted, Body.add, lanes=_LANES)
            inputs = [reductions.Reduced(source, (1,))]
            reductions.emit_reduction(
                kernel,
                reductions.Reduction(
                    (), (values.count // _LANES * _LANES,), inputs, (), target, fold, reductions.as_folded, _LANES, 1
                ),
            )
            total = kernel.entry(self.state, kernel.constant(0, "index"))
            walk.values[0] = kernel.select(kernel.compare("sge", total, wanted), higher, walk.values[0])
        return walk.values[0]

    def _collect(self, row: _Row, start: Value, count: int | Value, is_taken: Callable[[Value, Value], Value]) -> None:
        """Append elements to those found: each is written behind them, and counts if it is taken."""
        kernel, zero, one = self.kernel, *(self.kernel.constant(value, "index") for value in (0, 1))
        with kernel.walk(count, kernel.position(self.state, zero)) as walk:
            position = kernel.sum(start, walk.index)
            key = row.key(position)
            self._put(self.found, walk.values[0], self._inverted(key), position)
            walk.values[0] = kernel.sum(walk.values[0], kernel.select(is_taken(key, walk.values[0]), one, zero))
        kernel.put(self.state, 0, kernel.cast(walk.values[0], self.state.element))

    def _inverted(self, key: Value) -> Value:
        return self.kernel.binary("arith.xori", key, self.kernel.constant(-1 - _lowest(key.type), key.type))

    def _put(self, target: _Found, at: Value, key: Value, place: Value) -> None:
        self.kernel.put(target.keys, at, key)
        self.kernel.put(target.places, at, self.kernel.cast(place, "i32"))

    def _pass(self, source: _Found, target: _Found, shift: Value, count: Value) -> None:
        """Write elements in the order of the byte from bit `shift` on, equal ones in their own."""
        kernel = self.kernel
        none, one = (kernel.constant(value, "i32") for value in (0, 1))
        emit_map(kernel, (_DIGITS,), [], MapOperand(self.digits, (1,)), lambda _, __: none)
        with kernel.loop(count) as index:
            digit = self._digit(kernel.entry(source.keys, index), shift)
            kernel.put(self.digits, digit, kernel.binary("arith.addi", kernel.entry(self.digits, digit), one))
        with kernel.walk(_DIGITS, none) as walk:
            found = kernel.entry(self.digits, walk.index)
            kernel.put(self.digits, walk.index, walk.values[0])
            walk.values[0] = kernel.binary("arith.addi", walk.values[0], found)
        with kernel.loop(count) as index:
            key, place = kernel.entry(source.keys, index), kernel.entry(source.places, index)
            digit = self._digit(key, shift)
            behind = kernel.entry(self.digits, digit)
            kernel.put(self.digits, digit, kernel.binary("arith.addi", behind, one))
            self._put(target, kernel.cast(behind, "index"), key, place)

    def _digit(self, key: Value, shift: Value) -> Value:
        kernel = self.kernel
        moved = kernel.binary("arith.shrui", key, kernel.cast(shift, key.type))
        low = kernel.binary("arith.andi", moved, kernel.constant(_DIGITS - 1, key.type))
        return kernel.cast(low, "index")


# Orders of libstdc++, in scalar code.


@dataclass(frozen=True, eq=False)
class _Index:
    """A value with the operators of numbers."""

    kernel: Kernel
    value: Value

    def of(self, other: Any) -> Value:
        return other.value if isinstance(other, _Index) else self.kernel.constant(other, self.value.type)

    def _with(self, name: str, other: Any) -> _Index:
        return _Index(self.kernel, self.kernel.binary(name, self.value, self.of(other)))

    def _compared(self, predicate: str, other: Any) -> _Index:
        return _Index(self.kernel, self.kernel.compare(predicate, self.value, self.of(other)))

    def __add__(self, other: Any) -> _Index:
        return self._with("arith.addi", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> _Index:
        return self._with("arith.subi", other)

    def __rsub__(self, other: Any) -> _Index:
        return _Index(self.kernel, self.of(other)) - self

    def __mul__(self, other: Any) -> _Index:
        return self._with("arith.muli", other)

    def __rshift__(self, other: Any) -> _Index:
        return self._with("arith.shrsi", other)

    def __and__(self, other: Any) -> _Index:
        return self._with("arith.andi", other)

    def __lt__(self, other: Any) -> _Index:
        return self._compared("slt", other)

    def __gt__(self, other: Any) -> _Index:
        return self._compared("sgt", other)

    def __eq__(self, other: Any) -> Any:
        return self._compared("eq", other)


_WORDS = 3
"""Of a range that is still to be sorted."""


@dataclass(frozen=True)
class _Places(Machine):
    """The elements of a row by their places."""

    kernel: Kernel
    source: Line
    places: Buffer
    ranges: Buffer

    @classmethod
    def of(cls, kernel: Kernel, source: Line) -> _Places:
        places, words = _memory(kernel, "places", "i32", source.count), _WORDS * (most_cuts(source.count) + 2)
        return cls(kernel, source, places, _memory(kernel, "ranges", "i32", words))

    def emit(self, result: Line, order: Order) -> None:
        kernel = self.kernel
        with kernel.loop(self.source.count) as index:
            kernel.put(self.places, index, kernel.cast(index, "i32"))
        std_order(self, self.source.count, result.count, order)
        with kernel.loop(result.count) as index:
            place = kernel.cast(kernel.entry(self.places, index), result.buffer.element)
            kernel.put(result.buffer, result.at(kernel, index), place)

    def _value(self, index: Any) -> Value:
        return index.value if isinstance(index, _Index) else self.kernel.constant(index, "index")

    def _word(self, words: Buffer, index: Value) -> _Index:
        return _Index(self.kernel, self.kernel.position(words, index))

    def _put_word(self, words: Buffer, index: Value, word: Any) -> None:
        self.kernel.put(words, index, self.kernel.cast(self._value(word), "i32"))

    def at(self, index: Any) -> Any:
        return self._word(self.places, self._value(index))

    def put(self, index: Any, place: Any) -> None:
        self._put_word(self.places, self._value(index), place)

    def is_before(self, place: Any, other: Any) -> Any:
        keys = (self.kernel.entry(self.source.buffer, self.source.at(self.kernel, one.value)) for one in (place, other))
        return _Index(self.kernel, self.kernel.compare("sgt", *keys))

    def range(self, number: Any) -> Sequence[Any]:
        start = self.kernel.multiple(self._value(number), _WORDS)
        words = (self.kernel.sum(start, self._value(word)) for word in range(_WORDS))
        return [self._word(self.ranges, word) for word in words]

    def put_range(self, number: Any, *words: Any) -> None:
        start = self.kernel.multiple(self._value(number), _WORDS)
        for index, word in enumerate(words):
            self._put_word(self.ranges, self.kernel.sum(start, self._value(index)), word)

    def repeat(self, holds: Callable[[Any], Any], body: Callable[[Any], Any], state: Any) -> Any:
        def of(values: Sequence[Value]) -> Any:
            indices = tuple(_Index(self.kernel, value) for value in values)
            return indices if isinstance(state, tuple) else indices[0]

        def values(state: Any) -> list[Value]:
            return [
                self._value(one) for one in (cast("tuple[Any, ...]", state) if isinstance(state, tuple) else [state])
            ]

        with self.kernel.repeat(lambda given: holds(of(given)).value, *values(state)) as walk:
            walk.values = values(body(of(walk.values)))
        return of(walk.values)

    def when(self, condition: Any, body: Callable[[], None]) -> None:
        with self.kernel.when(condition.value):
            body()

    def select(self, condition: Any, one: Any, other: Any) -> Any:
        return _Index(self.kernel, self.kernel.select(condition.value, self._value(one), self._value(other)))
