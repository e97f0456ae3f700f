"""Rows at positions that a tensor of integers gives at run time: copied from there, or to there."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from qdialect.lowering.kernels.elementwise import MapOperand, declare_operand, emit_map
from qdialect.lowering.memory.views import Axis, collapse
from qdialect.lowering.program import Kernel
from qdialect.lowering.text.scalar_body import Body, Value

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


def emit_gather(
    kernel: Kernel, row: Sequence[int], indices: MapOperand, extents: Sequence[int], rows: Rows, listed: Listed
) -> None:
    """Copy from `rows` to `listed`: `row` is the shape of a row, `extents` that of the indices."""
    _emit(kernel, row, indices, extents, rows, listed, is_gather=True)


def emit_scatter(
    kernel: Kernel,
    row: Sequence[int],
    indices: MapOperand,
    extents: Sequence[int],
    rows: Rows,
    listed: Listed,
    reduce: Reduce | None,
) -> None:
    """Copy from `listed` to `rows`, in the order of the indices, or `reduce` what is there and the copy to one."""
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
    with _nest(kernel, axes) as (read_at, list_at):
        found = kernel.row(table, kernel.sum(read_at, kernel.constant(indices.offset, "index")), rows.extent)
        named = replace(at_row, start=kernel.multiple(found, rows.stride))
        entry = replace(in_list, start=list_at)
        source, target = (named, entry) if is_gather else (entry, named)
        if reduce is None:
            emit_map(kernel, row, [source], target, lambda _, values: values[0])
        else:
            emit_map(kernel, row, [target, source], target, lambda body, values: reduce(body, values[0], values[1]))


@contextmanager
def _nest(kernel: Kernel, axes: Sequence[Axis]) -> Generator[list[Value]]:
    """Loops around what is written inside the `with`; gives how far each operand of the axes has moved."""
    if not axes:
        yield [kernel.constant(0, "index")] * 2
        return
    first, *others = axes
    with kernel.loop(first.size) as index:
        moved = [kernel.multiple(index, stride) for stride in first.strides]
        if not others:
            yield moved
            return
        with _nest(kernel, others) as inner:
            yield [kernel.sum(*pair) for pair in zip(moved, inner, strict=True)]
