"""Copies that change the order of dimensions, and reductions of rows that are transposed first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from qdialect.lowering.cost.strategy import split
from qdialect.lowering.ir.views import Axis, View, collapse
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import (
    MapOperand,
    as_stored,
    declare_operand,
    emit_map,
    together,
)
from qdialect.lowering.qnn_to_linalg.kernels.reduction import Fold, Reduced, Reduction, emit_reduction
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer, Operand, Tag
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, Storage
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Emit, Value

# Copies that change the order of dimensions: squares, read along one dimension and written along another.
#
# Either side may be a user's array: bytes of `i8` are made signed or unsigned on the way, as the other side has them.
#
# Planes of bytes that become pixels of up to four are put together as 32-bit numbers, a vector of pixels at a time.

SQUARE = 16
"""Elements along either side."""
_WIDE = 64
"""Elements of a plane of bytes that one permute makes pixels of, and bytes of a row that are transposed together."""
_PAGE = 4096 // 4
"""Numbers of 32 bits that are as far apart as the lines of a set of L1."""
_PIXEL = 4
"""Bytes of a pixel."""


def emit_transposition(kernel: Kernel, shape: Sequence[int], source: MapOperand, target: MapOperand) -> None:
    """Copy every element of `shape`, the target's order of dimensions; each side has a dimension of stride 1."""
    stored = as_stored(source, target)
    axes = collapse([Axis(n, (source.strides[i], target.strides[i])) for i, n in enumerate(shape)])
    contiguous = [axis for axis in axes if axis.strides[0] == 1]
    if len(axes) < 2 or not contiguous or axes[-1].strides[1] != 1 or contiguous[0] is axes[-1]:
        emit_map(kernel, shape, [source], target, stored)
        return
    pixels = _pixels(target, axes)
    if pixels is not None:
        _emit_packing(kernel, axes, source, pixels, stored)
        return
    declared = [declare_operand(kernel, "source", source), declare_operand(kernel, "target", target)]
    buffers = (declared[0].buffer, declared[1].buffer)
    along = axes.index(contiguous[0])
    rows, columns = axes[along].size, axes[-1].size
    # A line of bytes along the side whose rows are further apart: of the other side what is left of lines stays in L1.
    is_of_lines = _is_of_bytes(source) and min(rows, columns) >= SQUARE
    is_read_in_lines = columns < _WIDE or axes[-1].strides[0] >= axes[along].strides[1]
    # Rows a page apart are lines of one set of L1, which has 8 ways or more; each is written twice unless aligned.
    fits_half = not axes[along].strides[1] % _PAGE and axes[-1].strides[0] % _PAGE != 0
    if _is_of_bytes(source) and axes[-1].size <= _PIXEL and kernel.program.strategy.gathers_bytes:
        parts = split(rows, min(_WIDE, rows)), split(columns, columns)
    else:
        parts = (
            _tiles(rows, is_of_lines and is_read_in_lines, SQUARE // 2 if fits_half else SQUARE),
            _tiles(columns, is_of_lines and not is_read_in_lines),
        )
    for row in parts[0]:
        for column in parts[1]:
            _emit_part(kernel, buffers, axes, along, row, column, (source.offset, target.offset), stored)


def _tiles(size: int, are_lines: bool, square: int = SQUARE) -> list[tuple[int, int, int]]:
    """The parts of an axis: of whole lines, and of squares."""
    whole = size // _WIDE * _WIDE if are_lines else 0
    rest = split(size - whole, min(square, size - whole)) if whole < size else []
    return [*(split(whole, _WIDE) if whole else []), *((whole + start, extent, tile) for start, extent, tile in rest)]


def _is_of_bytes(source: MapOperand) -> bool:
    return isinstance(source.source, BufferSlot) and source.source.storage.element == "i8"


def _pixels(target: MapOperand, axes: Sequence[Axis]) -> MapOperand | None:
    """The target as 32-bit numbers, one for each pixel; None where its pixels are not four bytes."""
    slot, (*outer, last) = target.source, axes
    if not isinstance(slot, BufferSlot) or slot.kind != "arena" or slot.storage.element != "i8" or last.size > _PIXEL:
        return None
    steps = [axis.strides[1] for axis in outer]
    if any(number % _PIXEL for number in (*steps, target.offset, slot.offset)):
        return None
    pixels = slot.storage.length // _PIXEL
    seen = replace(slot, storage=Storage((1, 1, 1, pixels), "i32", pixels), offset=slot.offset // _PIXEL)
    return MapOperand(seen, tuple(step // _PIXEL for step in steps), target.offset // _PIXEL)


def _emit_packing(kernel: Kernel, axes: Sequence[Axis], source: MapOperand, pixels: MapOperand, stored: Emit) -> None:
    """The last axis is the planes; a pixel's first byte is its lowest, those beyond the planes are zero."""
    *outer, planes = axes
    buffer, steps = declare_operand(kernel, "source", source).buffer, tuple(axis.strides[0] for axis in outer)
    bytes_ = [MapOperand(buffer, steps, source.offset + i * planes.strides[0]) for i in range(planes.size)]

    def emit(body: Body, values: Sequence[Value]) -> Value:
        return together(body, [stored(body, [value]) for value in values])

    emit_map(kernel, [axis.size for axis in outer], bytes_, pixels, emit, SQUARE)


def _emit_part(
    kernel: Kernel,
    buffers: tuple[Buffer, Buffer],
    axes: Sequence[Axis],
    along: int,
    row: tuple[int, int, int],
    column: tuple[int, int, int],
    origins: tuple[int, int],
    stored: Emit,
) -> None:
    """One micro-kernel: `row` is a part (start, size, tile) of the source's contiguous axis, `column` the target's."""
    sizes, tiles = [axis.size for axis in axes], [1] * len(axes)
    offsets = list(origins)
    for axis, (start, size, tile) in ((along, row), (len(axes) - 1, column)):
        sizes[axis], tiles[axis] = size, tile
        offsets = [offset + start * stride for offset, stride in zip(offsets, axes[axis].strides, strict=True)]
    loops = tuple(f"d{i}" for i in range(len(axes)))
    # The source in its own order, so that vectors read contiguous elements.
    order = [i for i in range(len(axes)) if i != along] + [along]
    view = View(tuple(sizes[i] for i in order), tuple(axes[i].strides[0] for i in order), offsets[0])
    operand = Operand(kernel.read(buffers[0], view), tuple(loops[i] for i in order))
    view = View(tuple(sizes), tuple(axis.strides[1] for axis in axes), offsets[1])
    tag = Tag(kernel.next_micro_kernel(), "root", tuple(tiles))
    kernel.map(loops, [operand], kernel.write(buffers[1], view), stored, tag)


# Reductions of rows that are transposed first, so that each lane of a vector belongs to a row of its own.
#
# A sum in the order of a row's elements takes one addition after the other.  With the rows side by side, every addition
# is one of 64 rows, and nothing is combined across the lanes of a vector.
#
# Rows are transposed in blocks of 64, each of which lies together: element i of row r of block b is at
#
#     b 64 pitch + i 64 + r
#
# with the `pitch` of the rows in the memory where they are, `length` or more.  The rows that are left make one smaller
# block.  A block begins where its first row would, so that threads may take blocks of it and rows of others' alike.

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
        """Fold the elements of each row, together with the row's numbers in `more`, into the row's `result`.

        Vectors have `width` lanes.  `more` and `result` have one number for each row, side by side.
        """
        for block in self.blocks:
            strides = (block.lanes, 1)
            numbers = [replace(one, strides=strides, offset=one.offset + block.start) for one in (*more, result)]
            data = replace(block.data, strides=(block.lanes * self.pitch, 1))
            inputs = [Reduced(data, (block.lanes,)), *(Reduced(number, (0,)) for number in numbers[:-1])]
            kept = (block.count, block.lanes)
            emit_reduction(
                kernel, Reduction(kept, (self.length,), inputs, [], numbers[-1], fold, lambda _, acc, __: acc, width, 1)
            )


def rows_of(source: MapOperand, shape: Sequence[int]) -> Rows | None:
    """The rows along the last dimension of `shape`; None where they are too few, or not equally far apart."""
    *outer, length = shape
    axes = collapse([Axis(size, (stride,)) for size, stride in zip(outer, source.strides[:-1], strict=True)])
    if source.strides[-1] != 1 or len(axes) != 1 or prod(outer) < _BLOCK:
        return None
    return Rows(source, prod(outer), length, axes[0].strides[0])


def emit_transposed_rows(kernel: Kernel, rows: Rows, memory: MapOperand | None) -> TransposedRows:
    """Transpose `rows` into private `memory` of the same number of rows, or into a buffer."""
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
