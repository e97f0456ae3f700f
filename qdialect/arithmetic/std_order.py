"""In which order algorithms of libstdc++ leave elements: ``bits/stl_algo.h`` and ``bits/stl_heap.h``.

They are written once, for numbers and for the values of a kernel: a `Machine` has the elements and the loops.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from qdialect.arithmetic.choices import Order

Index = Any
"""A number or a value of a kernel, with the operators of numbers."""
_PARTIAL_SHARE = 64
"""PyTorch's `topk` takes ``std::partial_sort`` for at most one of so many elements."""
_SORTED_AT_ONCE, _SELECTED_AT_ONCE = 16, 3
"""Ranges of at most so many elements are sorted by insertion."""


class Machine(ABC):
    """The places of elements in the order so far, ranges that are still to be sorted, and control flow."""

    @abstractmethod
    def at(self, index: Index) -> Index:
        """The place that stands at an index."""

    @abstractmethod
    def put(self, index: Index, place: Index) -> None: ...

    @abstractmethod
    def is_before(self, place: Index, other: Index) -> Index:
        """Whether the element of a place is larger than that of the other."""

    @abstractmethod
    def range(self, number: Index) -> Sequence[Index]: ...

    @abstractmethod
    def put_range(self, number: Index, *words: Index) -> None: ...

    @abstractmethod
    def repeat(self, holds: Callable[[Any], Index], body: Callable[[Any], Any], state: Any) -> Any:
        """Rounds as long as ``holds(state)``, an index or a tuple; each leaves the next state; the last one."""

    @abstractmethod
    def when(self, condition: Index, body: Callable[[], None]) -> None: ...

    @abstractmethod
    def select(self, condition: Index, one: Index, other: Index) -> Index: ...


@dataclass
class Numbers(Machine):
    """Of the elements `keys`."""

    keys: Sequence[int]
    places: list[int]
    ranges: dict[int, Sequence[int]] = field(default_factory=dict[int, Sequence[int]])

    def at(self, index: int) -> int:
        return self.places[index]

    def put(self, index: int, place: int) -> None:
        self.places[index] = place

    def is_before(self, place: int, other: int) -> bool:
        return self.keys[place] > self.keys[other]

    def range(self, number: int) -> Sequence[int]:
        return self.ranges[number]

    def put_range(self, number: int, *words: int) -> None:
        self.ranges[number] = words

    def repeat(self, holds: Callable[[Any], bool], body: Callable[[Any], Any], state: Any) -> Any:
        while holds(state):
            state = body(state)
        return state

    def when(self, condition: bool, body: Callable[[], None]) -> None:
        if condition:
            body()

    def select(self, condition: bool, one: int, other: int) -> int:
        return one if condition else other


def std_order(machine: Machine, extent: int, count: int, order: Order) -> None:
    """Bring the places of the `count` largest of `extent` elements to the front, in an order of libstdc++."""
    one = _Algorithms(machine)
    if order is Order.SORT:
        one.sort(extent)
    elif count * _PARTIAL_SHARE <= extent:
        one.partial_sort(0, count, extent)
    else:
        one.nth_element(count - 1, extent)
        one.sort(count - 1 if order is Order.TOP_K else 0)


def most_cuts(count: int) -> int:
    """How often `count` elements are cut before a heap takes over: at most one more range is left at a time."""
    return 2 * max(0, count.bit_length() - 1)


@dataclass(frozen=True)
class _Algorithms:
    """Those of libstdc++ with these names; what only takes less time there is left out."""

    m: Machine

    def swap(self, one: Index, other: Index) -> None:
        first, second = self.m.at(one), self.m.at(other)
        self.m.put(one, second)
        self.m.put(other, first)

    def compare(self, one: Index, other: Index) -> Index:
        return self.m.is_before(self.m.at(one), self.m.at(other))

    def insertion_sort(self, first: Index, last: Index) -> None:
        m = self.m

        def insert(index: Index) -> Index:
            place = m.at(index)

            def is_behind(at: Index) -> Index:
                return (at > first) & m.is_before(place, m.at(m.select(at > first, at - 1, first)))

            def move(at: Index) -> Index:
                m.put(at, m.at(at - 1))
                return at - 1

            m.put(m.repeat(is_behind, move, index), place)
            return index + 1

        m.repeat(lambda index: index < last, insert, first)

    def cut(self, first: Index, last: Index) -> Index:
        """Move what is before the median of three elements to the front; where the rest begins."""
        m, one, two, three = self.m, first + 1, first + ((last - first) >> 1), last - 1
        is_two, is_three, is_last = self.compare(one, two), self.compare(two, three), self.compare(one, three)
        falling = m.select(is_three, two, m.select(is_last, three, one))
        rising = m.select(is_last, one, m.select(is_three, three, two))
        self.swap(first, m.select(is_two, falling, rising))
        pivot = m.at(first)

        def apart(low: Index, high: Index) -> tuple[Index, Index]:
            low = m.repeat(lambda at: m.is_before(m.at(at), pivot), lambda at: at + 1, low)
            return low, m.repeat(lambda at: m.is_before(pivot, m.at(at)), lambda at: at - 1, high - 1)

        def exchange(ends: tuple[Index, Index]) -> tuple[Index, Index]:
            self.swap(*ends)
            return apart(ends[0] + 1, ends[1])

        return m.repeat(lambda ends: ends[0] < ends[1], exchange, apart(first + 1, last))[0]

    def adjust_heap(self, first: Index, hole: Index, count: Index, place: Index) -> None:
        m = self.m

        def moved(hole: Index, source: Index) -> Index:
            m.put(first + hole, m.at(first + source))
            return source

        def sink(hole: Index) -> Index:
            right = first + hole * 2 + 2
            return moved(hole, m.select(self.compare(right, right - 1), right - 1, right) - first)

        def parent(at: Index) -> Index:
            return m.select(at > hole, at - 1, hole) >> 1

        def rises(at: Index) -> Index:
            return (at > hole) & m.is_before(m.at(first + parent(at)), place)

        end = m.repeat(lambda at: at < ((count - 1) >> 1), sink, hole)
        is_single = end * 2 + 2 == count
        m.when(is_single, lambda: m.put(first + end, m.at(first + end * 2 + 1)))
        end = m.repeat(rises, lambda at: moved(at, parent(at)), m.select(is_single, end * 2 + 1, end))
        m.put(first + end, place)

    def heap_select(self, first: Index, middle: Index, last: Index) -> None:
        m, count = self.m, middle - first

        def sift(hole: Index) -> Index:
            self.adjust_heap(first, hole, count, m.at(first + hole))
            return hole - 1

        def take(index: Index) -> Index:
            m.when(self.compare(index, first), lambda: self.pop_heap(first, count, index))
            return index + 1

        m.repeat(lambda hole: hole > -1, sift, (count >> 1) - 1)
        m.repeat(lambda index: index < last, take, middle)

    def pop_heap(self, first: Index, count: Index, index: Index) -> None:
        place = self.m.at(index)
        self.m.put(index, self.m.at(first))
        self.adjust_heap(first, 0, count, place)

    def partial_sort(self, first: Index, middle: Index, last: Index) -> None:
        def pop(count: Index) -> Index:
            self.pop_heap(first, count, first + count)
            return count - 1

        self.heap_select(first, middle, last)
        self.m.repeat(lambda count: count > 0, pop, middle - first - 1)

    def nth_element(self, nth: Index, count: int) -> None:
        m = self.m

        def select(state: tuple[Index, Index, Index]) -> tuple[Index, Index, Index]:
            first, last, cuts = state
            cut = self.cut(first, last)
            return m.select(cut > nth, first, cut), m.select(cut > nth, cut, last), cuts - 1

        def goes_on(state: tuple[Index, Index, Index]) -> Index:
            return (state[1] - state[0] > _SELECTED_AT_ONCE) & (state[2] > 0)

        def take() -> None:
            self.heap_select(first, nth + 1, last)
            self.swap(first, nth)

        first, last, _ = m.repeat(goes_on, select, (0, count, most_cuts(count)))
        is_long = last - first > _SELECTED_AT_ONCE
        m.when(is_long, take)
        self.insertion_sort(first, m.select(is_long, first, last))

    def sort(self, count: int) -> None:
        """The last range that was found is cut first: their order changes nothing."""
        m = self.m

        def take(number: Index) -> Index:
            first, last, cuts = m.range(number - 1)
            is_long = last - first > _SORTED_AT_ONCE

            def divide() -> None:
                cut = self.cut(first, last)
                m.put_range(number - 1, first, cut, cuts - 1)
                m.put_range(number, cut, last, cuts - 1)

            m.when(is_long & (cuts < 1), lambda: self.partial_sort(first, last, last))
            m.when(is_long & (cuts > 0), divide)
            return m.select(is_long & (cuts > 0), number + 1, number - 1)

        m.put_range(0, 0, count, most_cuts(count))
        m.repeat(lambda number: number > 0, take, 1)
        self.insertion_sort(0, count)
