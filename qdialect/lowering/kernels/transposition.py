"""Copies that change the order of dimensions: squares, read along one dimension and written along another."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect.lowering.kernel_text import Buffer, Loops, Operand, Tag
from qdialect.lowering.kernels.elementwise import MapOperand, declare_operand, emit_map
from qdialect.lowering.program import Kernel
from qdialect.lowering.strategy import split
from qdialect.lowering.views import Axis, View, collapse

SQUARE = 16
"""Elements along either side."""


def emit_transposition(kernel: Kernel, shape: Sequence[int], source: MapOperand, target: MapOperand) -> None:
    """Copy every element of `shape`, the target's order of dimensions; each side has a dimension of stride 1."""
    axes = collapse([Axis(n, (source.strides[i], target.strides[i])) for i, n in enumerate(shape)])
    contiguous = [axis for axis in axes if axis.strides[0] == 1]
    if len(axes) < 2 or not contiguous or axes[-1].strides[1] != 1 or contiguous[0] is axes[-1]:
        emit_map(kernel, shape, [source], target, lambda _, values: values[0])
        return
    declared = [declare_operand(kernel, "source", source), declare_operand(kernel, "target", target)]
    buffers = (declared[0].buffer, declared[1].buffer)
    along = axes.index(contiguous[0])
    for row in split(axes[along].size, min(SQUARE, axes[along].size)):
        for column in split(axes[-1].size, min(SQUARE, axes[-1].size)):
            _emit_part(kernel, buffers, axes, along, row, column, (source.offset, target.offset))


def _emit_part(
    kernel: Kernel,
    buffers: tuple[Buffer, Buffer],
    axes: Sequence[Axis],
    along: int,
    row: tuple[int, int, int],
    column: tuple[int, int, int],
    origins: tuple[int, int],
) -> None:
    """One nest: `row` is a stretch (start, size, tile) of the axis the source runs along, `column` of the target's."""
    sizes, tiles = [axis.size for axis in axes], [1] * len(axes)
    offsets = list(origins)
    for axis, (start, size, tile) in ((along, row), (len(axes) - 1, column)):
        sizes[axis], tiles[axis] = size, tile
        offsets = [offset + start * stride for offset, stride in zip(offsets, axes[axis].strides, strict=True)]
    loops = tuple(f"d{i}" for i in range(len(axes)))
    # The source in its own order, so that what a vector reads lies side by side.
    order = [i for i in range(len(axes)) if i != along] + [along]
    view = View(tuple(sizes[i] for i in order), tuple(axes[i].strides[0] for i in order), offsets[0])
    operand = Operand(kernel.read(buffers[0], view), tuple(loops[i] for i in order))
    view = View(tuple(sizes), tuple(axis.strides[1] for axis in axes), offsets[1])
    destination, where = kernel.write(buffers[1], view)
    tag = Tag(kernel.next_nest(), "root", tuple(tiles))
    done = kernel.generic(Loops(loops), [operand], Operand(destination, loops), kernel.body(), "%x0", tag)
    kernel.store(done, where)
