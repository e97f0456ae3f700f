"""Copies of elements at constant indices, and of rows at indices that are known only at run time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from qdialect.lowering.cost.strategy import split
from qdialect.lowering.ir.views import Axis, View, collapse
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import VECTOR, MapOperand, declare_operand, emit_map
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Loops, Operand, Tag
from qdialect.lowering.qnn_to_linalg.program.program import Kernel, Program
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value

# Copies of the elements at constant indices along one dimension.

_MAX_PROGRESSIONS, _LONG = 4, 8


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
    progressions = sorted(_progressions(indices), key=lambda one: one.count, reverse=True)
    apart = progressions[_MAX_PROGRESSIONS:]
    if apart:
        # What is long is copied by itself; the loop takes what is left.
        apart += [one for one in progressions[:_MAX_PROGRESSIONS] if one.count < _LONG]
        kernel = Kernel(program)
        _emit_loop(kernel, shape, source, target, axis, sorted(apart, key=lambda one: one.at))
        program.call(kernel, label)
    for progression in sorted(set(progressions) - set(apart), key=lambda one: one.at):
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
    kernel: Kernel,
    shape: Sequence[int],
    source: MapOperand,
    target: MapOperand,
    axis: int,
    progressions: Sequence[_Progression],
) -> None:
    """One iteration for each index: a copy of everything at that index."""
    pairs = [(one.first + one.step * i, one.at + i) for one in progressions for i in range(one.count)]
    indices, places = zip(*pairs, strict=True)
    data = declare_operand(kernel, "source", source).buffer
    output = declare_operand(kernel, "target", target).buffer
    offsets = np.array(indices, dtype=np.int64) * source.strides[axis] + source.offset
    table = kernel.data("offsets", offsets)
    is_whole = places == tuple(range(len(places)))
    positions = None if is_whole else kernel.data("positions", np.array(places, dtype=np.int64))
    others = [i for i in range(len(shape)) if i != axis]
    axes = collapse([Axis(shape[i], (source.strides[i], target.strides[i])) for i in others])
    if not axes or axes[-1].strides != (1, 1):
        axes.append(Axis(1, (1, 1)))
    *outer, inner = axes
    loops = tuple(f"d{i}" for i in range(len(axes)))
    with kernel.loop(len(indices)) as index:
        start = kernel.position(table, index)
        place = kernel.position(positions, index) if positions else index
        target_at = kernel.sum(kernel.multiple(place, target.strides[axis]), kernel.constant(target.offset, "index"))
        for first, extent, tile in split(inner.size, min(VECTOR, inner.size)):
            sizes = (*(axis.size for axis in outer), extent)
            froms, tos = (tuple(axis.strides[i] for axis in axes) for i in range(2))
            shift = kernel.constant(first, "index")
            operand = Operand(kernel.read(data, View(sizes, froms), kernel.sum(start, shift)), loops)
            destination, where = kernel.write(output, View(sizes, tos), kernel.sum(target_at, shift))
            tag = Tag(kernel.next_micro_kernel(), "root", (1,) * len(outer) + (tile,))
            done = kernel.copy(Loops(loops), operand, Operand(destination, loops), tag)
            kernel.store(done, where)


# Rows at positions that a tensor of integers gives at run time: copied from there, or to there.

Reduce = Callable[[Body, Value, Value], Value]


@dataclass(frozen=True)
class Rows:
    """The tensor whose rows are named by indices: it moves by `stride` from one of its `extent` rows to the next."""

    operand: MapOperand
    stride: int
    extent: int


@dataclass(frozen=True)
class Listed:
    """The tensor that holds a row for each index; `strides` are along the dimensions of the indices."""

    operand: MapOperand
    strides: tuple[int, ...]


def emit_row_gather(
    kernel: Kernel, row: Sequence[int], indices: MapOperand, extents: Sequence[int], rows: Rows, listed: Listed
) -> None:
    """Copy from `rows` to `listed`: `row` is the shape of a row, `extents` that of the indices."""
    _emit(kernel, row, indices, extents, rows, listed, is_gather=True)


def emit_row_scatter(
    kernel: Kernel,
    row: Sequence[int],
    indices: MapOperand,
    extents: Sequence[int],
    rows: Rows,
    listed: Listed,
    reduce: Reduce | None,
) -> None:
    """Copy from `listed` to `rows`, in the order of the indices, or `reduce` the copy into the existing values."""
    _emit(kernel, row, indices, extents, rows, listed, is_gather=False, reduce=reduce)


def _emit(
    kernel: Kernel,
    row: Sequence[int],
    indices: MapOperand,
    extents: Sequence[int],
    rows: Rows,
    listed: Listed,
    *,
    is_gather: bool,
    reduce: Reduce | None = None,
) -> None:
    table = declare_operand(kernel, "indices", indices).buffer
    at_row = replace(rows.operand, source=declare_operand(kernel, "rows", rows.operand).buffer)
    in_list = replace(listed.operand, source=declare_operand(kernel, "listed", listed.operand).buffer)
    moves = zip(indices.strides, listed.strides, strict=True)
    axes = collapse([Axis(size, strides) for size, strides in zip(extents, moves, strict=True)])
    with index_loops(kernel, axes) as (read_at, list_at):
        found = kernel.row(table, kernel.sum(read_at, kernel.constant(indices.offset, "index")), rows.extent)
        named = replace(at_row, start=kernel.multiple(found, rows.stride))
        entry = replace(in_list, start=list_at)
        source, target = (named, entry) if is_gather else (entry, named)
        if reduce is None:
            emit_map(kernel, row, [source], target, lambda _, values: values[0])
        else:
            emit_map(kernel, row, [target, source], target, lambda body, values: reduce(body, values[0], values[1]))


@contextmanager
def index_loops(kernel: Kernel, axes: Sequence[Axis]) -> Generator[list[Value]]:
    """Loops around the code written inside the `with`; gives the offset of each operand of the axes."""
    if not axes:
        yield [kernel.constant(0, "index")] * 2
        return
    first, *others = axes
    with kernel.loop(first.size) as index:
        moved = [kernel.multiple(index, stride) for stride in first.strides]
        if not others:
            yield moved
            return
        with index_loops(kernel, others) as inner:
            yield [kernel.sum(*pair) for pair in zip(moved, inner, strict=True)]
