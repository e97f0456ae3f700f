"""Reductions of rows that are transposed first, so that each lane of a vector belongs to a row of its own.

A sum in the order of a row's elements takes one addition after the other.  With the rows side by side, every addition
is one of 64 rows, and nothing is combined across the lanes of a vector.

Rows are transposed in blocks of 64, each of which lies together: element i of row r of block b is at

    b 64 pitch + i 64 + r

with the `pitch` of the rows in the memory where they are, `length` or more.  The rows that are left make one smaller
block.  A block begins where its first row would, so that threads may take blocks of it and rows of others' alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from qdialect.lowering.kernels.elementwise import MapOperand
from qdialect.lowering.kernels.reduction import Fold, Reduced, Reduction, emit_reduction
from qdialect.lowering.kernels.transposition import emit_transposition
from qdialect.lowering.memory.storage import Storage
from qdialect.lowering.memory.views import Axis, collapse
from qdialect.lowering.program import Kernel
from qdialect.lowering.tiling.strategy import split

_BLOCK = 64


@dataclass(frozen=True)
class Rows:
    """`count` rows of `length` quantized values that lie side by side, `pitch` from a row to the next."""

    source: MapOperand
    count: int
    length: int
    pitch: int


@dataclass(frozen=True)
class _Block:
    """`count` blocks of `lanes` transposed rows each, from row `start` on."""

    start: int
    count: int
    lanes: int
    data: MapOperand
    """The first element of the first row."""


@dataclass(frozen=True)
class TransposedRows:
    """The blocks of rows of `length` elements, in memory with `pitch` bytes for each row."""

    length: int
    pitch: int
    blocks: Sequence[_Block]

    def reduce(self, kernel: Kernel, more: Sequence[MapOperand], fold: Fold, result: MapOperand, width: int) -> None:
        """Fold the elements of each row, and beside them the row's numbers in `more`, into the row's `result`.

        Vectors have `width` lanes.  `more` and `result` have one number for each row, side by side.
        """
        for block in self.blocks:
            strides = (block.lanes, 1)
            numbers = [replace(one, strides=strides, offset=one.offset + block.start) for one in (*more, result)]
            data = replace(block.data, strides=(block.lanes * self.pitch, 1))
            inputs = [Reduced(data, (block.lanes,)), *(Reduced(number, (0,)) for number in numbers[:-1])]
            kept = (block.count, block.lanes)
            emit_reduction(
                kernel,
                Reduction(kept, (self.length,), inputs, [], numbers[-1], fold, lambda _, acc, __: acc, width, 1),
            )


def rows_of(source: MapOperand, shape: Sequence[int]) -> Rows | None:
    """The rows along the last dimension of `shape`; None where they are too few, or not equally far apart."""
    *outer, length = shape
    axes = collapse([Axis(size, (stride,)) for size, stride in zip(outer, source.strides[:-1], strict=True)])
    if source.strides[-1] != 1 or len(axes) != 1 or prod(outer) < _BLOCK:
        return None
    return Rows(source, prod(outer), length, axes[0].strides[0])


def emit_transposed_rows(kernel: Kernel, rows: Rows, memory: MapOperand | None) -> TransposedRows:
    """Transpose `rows` into `memory` that has as many rows of its own, or into a buffer."""
    if memory is None:
        size = rows.count * rows.length
        slot = kernel.program.buffer(Storage((1, 1, 1, size), "i8", size))
        memory = MapOperand(kernel.slot("blocks", slot), (rows.length, 1))
    pitch = memory.strides[-2]
    blocks: list[_Block] = []
    for start, count, lanes in split(rows.count, _BLOCK):
        data = replace(memory, strides=(), offset=memory.offset + start * pitch)
        block = _Block(start, count // lanes, lanes, data)
        source_offset = rows.source.offset + start * rows.pitch
        source = replace(rows.source, strides=(lanes * rows.pitch, 1, rows.pitch), offset=source_offset)
        target = replace(data, strides=(lanes * pitch, lanes, 1))
        emit_transposition(kernel, (block.count, rows.length, lanes), source, target)
        blocks.append(block)
    return TransposedRows(rows.length, pitch, blocks)
