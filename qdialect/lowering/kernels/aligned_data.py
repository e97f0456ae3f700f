"""The data of a block of pixels, copied to where its rows fill whole cache lines.

A tile is 16 loads of 64 bytes.  Rows that lie in two cache lines each take it four times as long as others, 31 cycles
in place of 8, so that four loads outlast the four products that they feed.  A user's array begins anywhere.  Copying
takes some two cycles a line, once for all columns of channels that the block meets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from qdialect.lowering.kernels.reduction_axes import ReductionAxes
from qdialect.lowering.memory.storage import Storage
from qdialect.lowering.memory.views import View
from qdialect.lowering.program import BufferSlot, Kernel
from qdialect.lowering.text.kernel_text import Buffer, Loops, Operand, Tag
from qdialect.lowering.text.scalar_body import Value
from qdialect.lowering.tiling.matrix_tiles import TileBlock

_LINE = 64
# Cycles to copy a line, and those that a load of a line costs more where it lies in two.
_COPY_CYCLES, _SPLIT_CYCLES = 2, 1.5
# A small part of the second-level cache.
_MOST_BYTES = 128 << 10
_LOOPS = ("line", "byte")


@dataclass(frozen=True)
class AlignedData:
    """Memory for the lines of one block of pixels, from the first byte that its windows read to the last."""

    buffer: Buffer
    lines: int

    def copy(self, kernel: Kernel, data: Buffer, start: Value) -> None:
        """Emit the copy of the lines from `start` on."""
        view = View((self.lines, _LINE), (_LINE, 1))
        source = Operand(kernel.read(data, view, start), _LOOPS)
        destination, where = kernel.write(self.buffer, view)
        tag = Tag(kernel.next_micro_kernel(), "root", (1, 0))
        kernel.store(kernel.copy(Loops(_LOOPS), source, Operand(destination, _LOOPS), tag), where)


def aligned_data(
    kernel: Kernel, data: BufferSlot, axes: ReductionAxes, block: TileBlock, columns: int
) -> AlignedData | None:
    """Memory of each thread for the data of `block`, which meets `columns` of channels; None where it is read in place.

    That is where rows begin in a line anyway or would not after a copy either, and where copying costs more.
    """
    steps = (block.tiles.strides[0], block.rows.strides[0], *axes.strides)
    if data.kind != "input" or any(step % _LINE for step in steps):
        return None
    extents = (block.tiles.size, block.rows.size, *axes.sizes)
    span = sum(step * (size - 1) for step, size in zip(steps, extents, strict=True)) + axes.k_groups * axes.k_group
    loaded = math.prod(extents) * axes.k_groups * axes.k_group / _LINE * columns
    lines = span // _LINE
    if span % _LINE or span > _MOST_BYTES or lines * _COPY_CYCLES > loaded * _SPLIT_CYCLES:
        return None
    scratch = kernel.scratch(f"lines_{block.offsets[0]}", Storage((1, 1, 1, span), "i8", span))
    return AlignedData(scratch, lines)
