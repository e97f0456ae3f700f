"""Depthwise `vector.contract` along taps, each lane by its own weights -> `vpunpck*` and `vpdpbusd`.

Unpacking the bytes of four taps, then the resulting words, gives four vectors each of whose 32-bit lanes holds four
taps of a channel, in the order of `unpacked_lanes`; missing taps are zeros.  An input row that several output rows read
is unpacked once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from qdialect.ir._mlir import ir, vector
from qdialect.lowering.instructions.dot_products import EmitDot
from qdialect.lowering.instructions.instruction_set import InstructionSet
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.flat_address import elements_after
from qdialect.lowering.ir.functions import Contraction, at
from qdialect.lowering.ir.views import row_major
from qdialect.lowering.vector_to_x86 import integer_products
from qdialect.lowering.vector_to_x86.dot_product import byte_dots
from qdialect.lowering.vector_to_x86.instruction_pattern import InstructionPattern
from qdialect.lowering.vector_to_x86.unpacked_lanes import PART, Tile, flat_value
from qdialect.passes.pattern import MatchFailure, require

_TAPS = 4


@dataclass(frozen=True)
class _Interleaved:
    """A contraction of tiles along `taps`."""

    found: integer_products.NarrowContraction
    taps: tuple[int, ...]


class InterleavedDot(InstructionPattern[_Interleaved]):
    """A contraction along taps of tiles of a vector's bytes, whose data lies lane by lane, whose weights tap by tap."""

    roots = ("vector.contract",)
    benefit: ClassVar[int] = 2

    def __init__(self, instructions: InstructionSet) -> None:
        self._instructions = instructions
        self._tile = Tile(instructions.vector_bytes)

    def check(self, op: ir.Operation) -> _Interleaved | None:
        if integer_products.factors_of(op) is integer_products.WIDENED:
            return None
        found = integer_products.narrow_contraction(op)
        if found is None:
            return None
        are_bytes = found.factors is integer_products.BYTES
        require(are_bytes, f"factors must be bytes, but got {found.factors.bits} bits")
        tile = self._tile
        if not tile.matches(found.start.type):
            raise MatchFailure(f"result must be tiles of {tile.shape} lanes, but got {found.start.type}")
        # The loops of the weights inside the lanes.
        loops, last = found.weights.loops, found.loops.result[-1]
        taps = loops[loops.index(last) + 1 :] if last in loops else ()
        _check_data(found, tile)
        _check_weights(found, taps, tile)
        return _Interleaved(found, taps)

    def emit(self, op: ir.Operation, match: _Interleaved) -> ir.Value:
        dots = byte_dots(self._instructions, match.found)
        return _Dots(op, match, self._tile, dots[self._instructions.lanes]).emit()


def _check_data(found: integer_products.NarrowContraction, tile: Tile) -> None:
    """The data is tiles in the order of memory, one for each step of the other loops."""
    data, loops = found.data, found.loops
    are_lanes = data.loops[-tile.rank :] == loops.result[-tile.rank :]
    require(are_lanes, "innermost loops of the data must be the lanes of the result")
    is_tiled = tile.is_in(data.read.buffer)
    require(is_tiled, f"data must lie in tiles of {tile.shape} bytes, but got {data.read.buffer.type}")
    moves = all(extent == 1 or loop in data.loops for loop, extent in enumerate(loops.extents))
    require(moves, "data must move along every loop")


def _check_weights(found: integer_products.NarrowContraction, taps: tuple[int, ...], tile: Tile) -> None:
    """The weights are four taps of each lane, one lane after the other."""
    read, loops = found.weights.read, found.weights.loops
    first = len(loops) - len(taps) - tile.rank
    are_lanes = taps and loops[first : first + tile.rank] == found.loops.result[-tile.rank :]
    require(bool(are_lanes), "innermost loops of the weights must be the lanes of the result, and taps")
    are_reduced = not set(taps) & set(found.loops.result) and set(taps) < set(found.data.loops)
    require(are_reduced, "taps must be reductions of the data")
    extents = [found.loops.extents[tap] for tap in taps]
    count = math.prod(extents)
    require(count <= _TAPS, f"weights must have at most 4 taps, but got {count}")
    are_grouped = read.moving[first:] == (*tile.weight_steps, *row_major(extents))
    require(are_grouped, f"weights must lie in K groups of taps, lane by lane, but got {read.buffer.type}")
    # The last K group is loaded whole.
    is_held = count == _TAPS or (elements_after(read.buffer) or 0) >= _TAPS - count
    require(is_held, "weights of fewer than 4 taps must be a view of a buffer that holds four")


class _Dots:
    """The dot products of one tile."""

    def __init__(self, op: ir.Operation, match: _Interleaved, tile: Tile, dot: EmitDot) -> None:
        found = match.found
        self.tile = tile
        self.dot = dot
        self.type = ir.VectorType(found.start.type)
        self.loops: Contraction = found.loops
        self.data: integer_products.Side = found.data
        self.weights: integer_products.Side = found.weights
        self.pixels = found.loops.result[: -tile.rank]
        self.taps = match.taps
        self.acc = flat_value(found.start, op, tile)
        # Once for all loads: each checks the ops between the read and the contraction.
        self.data_loads, self.weight_loads = found.data.read.before(op), found.weights.read.before(op)
        with self.data_loads:
            self.data_place = found.data.read.flat()
        with self.weight_loads:
            self.weight_place = found.weights.read.flat()

    def emit(self) -> ir.Value:
        """The accumulators with all products added."""
        rows: dict[int, list[dict[int, int]]] = {}
        outer = [loop for loop in self.data.loops[: -self.tile.rank] if loop not in self.taps]
        for point in self.loops.points(outer):
            rows.setdefault(_offset(self.data, point), []).append(point)
        sums = {position: b.extract(self.acc, position) for position in np.ndindex(*b.shape_of(self.acc)[:-1])}
        columns: dict[int, list[ir.Value]] = {}
        for _, points in sorted(rows.items()):
            k_groups = self._interleaved(points[0])
            for point in points:
                for k_group, (position, column) in zip(k_groups, self._targets(point, columns), strict=True):
                    sums[position] = self.dot(sums[position], k_group, column)
        result = self.acc
        for position, value in sums.items():
            result = b.insert(value, result, position)
        return vector.shape_cast(self.type, result)

    def _targets(
        self, point: Mapping[int, int], columns: dict[int, list[ir.Value]]
    ) -> Iterator[tuple[tuple[int, ...], ir.Value]]:
        """For each of the four vectors the accumulator's position and its weights, which are loaded once."""
        pixel = at(point, self.pixels)
        offset = _offset(self.weights, point)
        if offset not in columns:
            high, low = self.data.loops[-self.tile.rank : 2 - self.tile.rank]
            quarters = [{**point, high: quarter // 2, low: quarter % 2} for quarter in range(4)]
            with self.weight_loads:
                columns[offset] = [
                    self.weight_place.further(_offset(self.weights, quarter)).load(self.tile.size)
                    for quarter in quarters
                ]
        return (((*pixel, quarter), column) for quarter, column in enumerate(columns[offset]))

    def _interleaved(self, point: Mapping[int, int]) -> list[ir.Value]:
        """The four vectors of a row."""
        buffer, size = self.data.read.buffer, self.tile.size
        with self.data_loads:
            bytes_ = [
                self.tile.load(buffer, self.data_place.further(_offset(self.data, {**point, **tap})))
                for tap in self.loops.points(self.taps)
            ]
        bytes_type, words = b.vector_type(size, 8), b.vector_type(size // 2, 16)
        zero = b.splat(bytes_type, 0)
        a, c, d, e = [*bytes_, *[zero] * (_TAPS - len(bytes_))]
        pairs = [
            [b.emit("llvm.bitcast", words, pair) for pair in _unpack(bytes_type, *two, PART)]
            for two in ((a, c), (d, e))
        ]
        fours = [four for low, high in zip(*pairs, strict=True) for four in _unpack(words, low, high, PART // 2)]
        return [b.emit("llvm.bitcast", bytes_type, four) for four in fours]


def _offset(side: integer_products.Side, point: Mapping[int, int]) -> int:
    """Bytes from the first read of a factor to the one at `point`."""
    # A plain loop: there are tens of thousands of points.
    total = 0
    for loop, stride in zip(side.loops, side.read.moving, strict=True):
        total += point.get(loop, 0) * stride
    return total


def _unpack(type_: ir.VectorType, left: ir.Value, right: ir.Value, lane: int) -> list[ir.Value]:
    """The elements of two vectors in turn, within lanes of `lane`: of the lanes' low halves, and of their high ones."""
    masks = [ir.DenseI32ArrayAttr.get(order) for order in _orders(type_.shape[0], lane)]
    return [b.emit("llvm.shufflevector", type_, left, right, attributes={"mask": mask}) for mask in masks]


@cache
def _orders(count: int, lane: int) -> list[list[int]]:
    return [
        [
            start + half * lane // 2 + i + side * count
            for start in range(0, count, lane)
            for i in range(lane // 2)
            for side in (0, 1)
        ]
        for half in (0, 1)
    ]
