"""Copies of the elements at constant indices along one dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from qdialect.lowering.kernels.elementwise import VECTOR, MapOperand, declare_operand, emit_map
from qdialect.lowering.memory.views import Axis, View, collapse
from qdialect.lowering.program import Kernel, Program
from qdialect.lowering.text.kernel_text import Loops, Operand, Tag
from qdialect.lowering.tiling.strategy import split

_MAX_PROGRESSIONS = 4


@dataclass(frozen=True)
class _Progression:
    """Indices first, first + step, ... at the positions from `at` on."""

    at: int
    first: int
    step: int
    count: int


def emit_gather(
    program: Program,
    shape: Sequence[int],
    source: MapOperand,
    target: MapOperand,
    axis: int,
    indices: Sequence[int],
    label: str,
) -> None:
    """Append calls that copy to position i along `axis` of the target the source's elements at ``indices[i]``.

    `shape` is the extents of the target.
    """
    progressions = _progressions(indices)
    if len(progressions) > _MAX_PROGRESSIONS:
        kernel = Kernel(program)
        _emit_loop(kernel, shape, source, target, axis, indices)
        program.call(kernel, label)
        return
    for progression in progressions:
        steps = list(source.strides)
        steps[axis] *= progression.step
        part = MapOperand(source.source, tuple(steps), source.offset + progression.first * source.strides[axis])
        target_at = replace(target, offset=target.offset + progression.at * target.strides[axis])
        extents = [*shape[:axis], progression.count, *shape[axis + 1 :]]
        kernel = Kernel(program)
        emit_map(kernel, extents, [part], target_at, lambda _, values: values[0])
        program.call(kernel, label)


def _progressions(indices: Sequence[int]) -> list[_Progression]:
    """Maximal arithmetic progressions; steps are not negative, as views go forwards."""
    progressions: list[_Progression] = []
    for at, index in enumerate(indices):
        last = progressions[-1] if progressions else None
        if last and last.count == 1 and index >= last.first:
            progressions[-1] = replace(last, step=index - last.first, count=2)
        elif last and last.count > 1 and index == last.first + last.step * last.count:
            progressions[-1] = replace(last, count=last.count + 1)
        else:
            progressions.append(_Progression(at, index, 0, 1))
    return progressions


def _emit_loop(
    kernel: Kernel, shape: Sequence[int], source: MapOperand, target: MapOperand, axis: int, indices: Sequence[int]
) -> None:
    """One iteration for each index: a copy of everything at that index."""
    data = declare_operand(kernel, "source", source).buffer
    output = declare_operand(kernel, "target", target).buffer
    offsets = np.array(indices, dtype=np.int64) * source.strides[axis] + source.offset
    table = kernel.data("offsets", offsets)
    others = [i for i in range(len(shape)) if i != axis]
    axes = collapse([Axis(shape[i], (source.strides[i], target.strides[i])) for i in others])
    if not axes or axes[-1].strides != (1, 1):
        axes.append(Axis(1, (1, 1)))
    *outer, inner = axes
    loops = tuple(f"d{i}" for i in range(len(axes)))
    with kernel.loop(len(indices)) as index:
        start = kernel.position(table, index)
        target_at = kernel.sum(kernel.multiple(index, target.strides[axis]), kernel.constant(target.offset, "index"))
        for first, extent, tile in split(inner.size, min(VECTOR, inner.size)):
            sizes = (*(axis.size for axis in outer), extent)
            froms, tos = (tuple(axis.strides[i] for axis in axes) for i in range(2))
            shift = kernel.constant(first, "index")
            operand = Operand(kernel.read(data, View(sizes, froms), kernel.sum(start, shift)), loops)
            destination, where = kernel.write(output, View(sizes, tos), kernel.sum(target_at, shift))
            tag = Tag(kernel.next_micro_kernel(), "root", (1,) * len(outer) + (tile,))
            done = kernel.copy(Loops(loops), operand, Operand(destination, loops), tag)
            kernel.store(done, where)
