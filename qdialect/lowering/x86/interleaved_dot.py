"""`vector.contract` along taps, every lane by itself -> `vpunpck*` and `vpdpbusd`.

Unpacking the bytes of four taps, then the words of that, gives four vectors whose 32-bit lanes hold the four bytes of a
lane each, in the order of `unpacked_lanes`; zeros stand for taps that there are not.  A row of the input that several
output rows look at is unpacked once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from qdialect._mlir import ir, rewrite, vector
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.dot_product import INTRINSICS
from qdialect.lowering.x86.unpacked_lanes import RANK, holds_tiles, is_tile, load_tile

_TAPS = 4
_WEIGHT_STEPS = [128, 64, 32, 16, 4]
"""Bytes between neighbours along a tile's loops, each lane with four taps."""
_DOT = INTRINSICS[16]


@dataclass(frozen=True)
class _Operand:
    """A read of bytes: what it reads, where, and the loop and extent of each of its dimensions."""

    buffer: ir.Value
    indices: list[ir.Value]
    loops: list[int]
    extents: list[int]
    strides: list[int]

    def at(self, place: Mapping[int, int]) -> list[ir.Value]:
        """Its indices at a place of the tile; loops that have none are at their start."""
        return b.shifted(self.indices, [place.get(loop, 0) for loop in self.loops])

    def offset(self, place: Mapping[int, int]) -> int:
        """Bytes from its first one."""
        return sum(place.get(loop, 0) * stride for loop, stride in zip(self.loops, self.strides, strict=True))


def contract_to_interleaved_dot(op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool | None:
    """Rewrite one contraction; truthy where it is none along taps of tiles of 64 lanes."""
    loops = [_loops(op, index) for index in range(3)]
    data, weights = _read(op, 0, "arith.extui", loops[0]), _read(op, 1, "arith.extsi", loops[1])
    if data is None or weights is None or not is_tile(op.operands[2].type) or not holds_tiles(data.buffer):
        return True
    lanes = loops[2][-RANK:]
    taps = weights.loops[weights.loops.index(lanes[-1]) + 1 :] if lanes[-1] in weights.loops else []
    edge = len(weights.loops) - len(taps)
    holds = data.loops[-RANK:] == lanes and weights.loops[edge - RANK : edge] == lanes and set(taps) < set(data.loops)
    if not holds or weights.strides[edge - RANK :] != [*_WEIGHT_STEPS, *_contiguous(weights.extents[edge:])]:
        return True
    if not taps or math.prod(weights.extents[edge:]) > _TAPS:
        return True
    with rewriter.ip, op.location:
        result = _Dots(op.operands[2], loops[2][:-RANK], data, weights, taps).emit()
    rewriter.replace_op(op, [result])
    return None


class _Dots:
    """The dot products of one tile."""

    def __init__(self, acc: ir.Value, pixels: list[int], data: _Operand, weights: _Operand, taps: list[int]) -> None:
        self.type = ir.VectorType(acc.type)
        self.data = data
        self.weights = weights
        self.pixels = pixels
        self.taps = taps
        flat = ir.VectorType.get([*self.type.shape[:-RANK], 4, 16], self.type.element_type)
        self.acc = vector.shape_cast(flat, acc)

    def emit(self) -> ir.Value:
        """The accumulators with all products added."""
        extents = dict(zip(self.data.loops, self.data.extents, strict=True))
        inner = (*self.taps, *self.data.loops[-RANK:])
        rows: dict[int, list[dict[int, int]]] = {}
        for place in _places({loop: extent for loop, extent in extents.items() if loop not in inner}):
            rows.setdefault(self.data.offset(place), []).append(place)
        sums = {position: b.extract(self.acc, position) for position in np.ndindex(*b.shape_of(self.acc)[:-1])}
        columns: dict[int, list[ir.Value]] = {}
        for _, places in sorted(rows.items()):
            quads = self._interleaved(places[0], {tap: extents[tap] for tap in self.taps})
            for place in places:
                for quad, (position, column) in zip(quads, self._targets(place, columns), strict=True):
                    sums[position] = b.intrinsic(_DOT, sums[position].type, sums[position], quad, column)
        result = self.acc
        for position, value in sums.items():
            result = b.insert(value, result, position)
        return vector.shape_cast(self.type, result)

    def _targets(
        self, place: Mapping[int, int], columns: dict[int, list[ir.Value]]
    ) -> Iterator[tuple[tuple[int, ...], ir.Value]]:
        """For each of the four vectors the accumulator's position and its weights, which are loaded once."""
        pixel = tuple(place.get(loop, 0) for loop in self.pixels)
        offset = self.weights.offset(place)
        if offset not in columns:
            first = self.weights.loops.index(self.data.loops[-RANK])
            high, low = self.weights.loops[first : first + 2]
            quarters = [{**place, high: quarter // 2, low: quarter % 2} for quarter in range(4)]
            columns[offset] = [b.load(64, self.weights.buffer, self.weights.at(quarter)) for quarter in quarters]
        return (((*pixel, quarter), column) for quarter, column in enumerate(columns[offset]))

    def _interleaved(self, place: Mapping[int, int], taps: Mapping[int, int]) -> list[ir.Value]:
        """The four vectors of a row."""
        bytes_ = [load_tile(self.data.buffer, self.data.at({**place, **tap})) for tap in _places(taps)]
        zero = b.splat(b.vector_type(64, 8), 0)
        a, c, d, e = [*bytes_, *[zero] * (_TAPS - len(bytes_))]
        pairs = [[vector.bitcast(b.vector_type(32, 16), pair) for pair in _unpack(*two)] for two in ((a, c), (d, e))]
        words = [word for low, high in zip(*pairs, strict=True) for word in _unpack(low, high)]
        return [vector.bitcast(b.vector_type(64, 8), word) for word in words]


def _unpack(left: ir.Value, right: ir.Value) -> list[ir.Value]:
    """The elements of two vectors in turn, within 128-bit lanes: of the lanes' low halves, and of their high ones."""
    count = b.shape_of(left)[0]
    lane = count // 4
    halves = [
        [
            start + half * lane // 2 + i + side * count
            for start in range(0, count, lane)
            for i in range(lane // 2)
            for side in (0, 1)
        ]
        for half in (0, 1)
    ]
    return [vector.shuffle(left, right, half) for half in halves]


def _contiguous(extents: list[int]) -> list[int]:
    return [math.prod(extents[i + 1 :]) for i in range(len(extents))]


def _places(extents: Mapping[int, int]) -> Iterator[dict[int, int]]:
    for indices in product(*(range(extent) for extent in extents.values())):
        yield dict(zip(extents, indices, strict=True))


def _loops(op: ir.Operation, index: int) -> list[int]:
    """The loop that walks each dimension of an operand."""
    map_ = ir.AffineMapAttr(ir.ArrayAttr(op.attributes["indexing_maps"])[index]).value
    return [ir.AffineDimExpr(result).position for result in map_.results]


def _read(op: ir.Operation, index: int, extension: str, loops: list[int]) -> _Operand | None:
    extended = b.defining(op.operands[index], extension)
    read = b.defining(extended.operands[0], "vector.transfer_read") if extended else None
    if read is None:
        return None
    buffer, extents = read.operands[0], b.shape_of(read.results[0])
    strides, _ = ir.MemRefType(buffer.type).get_strides_and_offset()
    if len(strides) != len(extents):
        return None
    return _Operand(buffer, list(read.operands)[1 : 1 + len(strides)], loops, extents, list(strides))
