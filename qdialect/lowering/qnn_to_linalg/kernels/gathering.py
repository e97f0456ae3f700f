"""Copies of elements at constant indices, and of rows at indices that are known only at run time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.cost.strategy import groups_of
from qdialect.lowering.ir.views import Axis, View, collapse
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand, as_stored, declare_operand, emit_map
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer, Operand, Tag, Tensor
from qdialect.lowering.qnn_to_linalg.program.program import ELEMENT_BYTES, BufferSlot, Kernel, Program
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Emit, Value, unchanged

# Copies of the elements at constant indices along some dimensions.

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
    indices: Mapping[int, Sequence[int]],
    label: str,
) -> None:
    """Append calls that copy to position i along an axis of the target the source's elements at ``indices[axis][i]``.

    `shape` is the extents of the target.
    """
    last = indices.get(len(shape) - 1, ())
    windows = _windows_of(program, source, last) if source.strides[-1] == target.strides[-1] == 1 else None
    picked: list[list[_Progression]] = [[]]
    for parts in product(*(picked if windows and own is last else _parts(own) for own in indices.values())):
        kernel = Kernel(program)
        _emit_part(kernel, shape, source, target, dict(zip(indices, parts, strict=True)), windows)
        program.call(kernel, label)


def _parts(indices: Sequence[int]) -> list[list[_Progression]]:
    """Long runs are copied one by one; a loop copies the others."""
    progressions = sorted(_progressions(indices), key=lambda one: one.count, reverse=True)
    long = [[one] for one in progressions[:_MAX_PROGRESSIONS] if one.count >= _LONG or len(progressions) == 1]
    apart = sorted(progressions[len(long) :], key=lambda one: one.at)
    return [apart, *long] if apart else long


def _progressions(indices: Sequence[int]) -> list[_Progression]:
    """Maximal arithmetic progressions; steps are not negative, as views go forwards."""
    progressions: list[_Progression] = []
    for at, index in enumerate(indices):
        last = progressions[-1] if progressions else None
        if last and last.count == 1 and index >= last.first:
            progressions[-1] = replace(last, step=index - last.first, count=2)
        elif last and last.count > 1 and index == last.first + last.step * last.count:
            progressions[-1] = replace(last, count=last.count + 1)
        elif last and last.count == 2 and index == last.first + last.step + 1:
            # The second goes with what comes after it, as where an edge is repeated.
            progressions[-1:] = [replace(last, step=0, count=1), _Progression(at - 1, index - 1, 1, 2)]
        else:
            progressions.append(_Progression(at, index, 0, 1))
    return progressions


def _emit_part(
    kernel: Kernel,
    shape: Sequence[int],
    source: MapOperand,
    target: MapOperand,
    parts: Mapping[int, Sequence[_Progression]],
    windows: _Windows | None,
) -> None:
    """A copy of one progression along each axis, in loops over the indices of several: inside of rows, if last."""
    sizes, steps, offsets = list(shape), list(source.strides), [source.offset, target.offset]
    sides = [declare_operand(kernel, name, side).buffer for name, side in (("source", source), ("target", target))]
    listed: dict[int, list[tuple[int, int]]] = {}
    for axis, progressions in parts.items():
        if len(progressions) != 1:
            sizes[axis] = 1
            listed[axis] = [(one.first + one.step * i, one.at + i) for one in progressions for i in range(one.count)]
            continue
        (first,) = progressions
        sizes[axis], steps[axis] = first.count, source.strides[axis] * first.step
        offsets[0] += first.first * source.strides[axis]
        offsets[1] += first.at * target.strides[axis]
    with ExitStack() as loops:
        starts: list[Value | None] = [None, None]
        if len(shape) - 1 in listed:
            rows = collapse([Axis(*row) for row in zip(sizes, zip(steps, target.strides, strict=True), strict=True)])
            starts[:], sizes = loops.enter_context(index_loops(kernel, rows)), [1] * len(shape)
        for axis, pairs in listed.items():
            if not pairs:
                continue
            index = loops.enter_context(kernel.loop(len(pairs)))
            for side, places in enumerate(zip(*pairs, strict=True)):
                stride = (source, target)[side].strides[axis]
                is_whole = places == tuple(range(len(places)))
                table = None if is_whole else kernel.data("places", np.array(places, np.int64) * stride)
                found = kernel.position(table, index) if table else kernel.multiple(index, stride)
                before = starts[side]
                starts[side] = found if before is None else kernel.sum(before, found)
        operand, output = (
            MapOperand(*side) for side in zip(sides, (tuple(steps), target.strides), offsets, starts, strict=True)
        )
        if windows:
            _emit_row(kernel, windows, operand, output, as_stored(source, target))
        else:
            emit_map(kernel, sizes, [operand], output, as_stored(source, target))


# Elements of a row whose sources lie near each other: permutes of one or two registers pick them.


@dataclass(frozen=True)
class _Windows:
    """Of each `vector` elements of a row: where in the source the window of `size` elements begins that has them."""

    indices: NDArray[np.int64]
    vector: int
    size: int
    starts: NDArray[np.int64]


def _windows_of(program: Program, source: MapOperand, indices: Sequence[int]) -> _Windows | None:
    """Windows that begin and end in the row; None where the target has no such permute, or they are too long."""
    slot = source.source
    if not isinstance(slot, BufferSlot) or slot.storage.element not in program.strategy.permuted or not indices:
        return None
    if len(_progressions(indices)) == 1:
        return None
    vector = 4 * program.strategy.lanes // ELEMENT_BYTES[slot.storage.element]
    parts = [indices[at : at + vector] for at in range(0, len(indices), vector)]
    end, longest = max(indices) + 1, max(max(part) - min(part) + 1 for part in parts)
    if longest > 2 * vector:
        return None
    size = min(vector if longest <= vector else 2 * vector, end)
    return _Windows(np.array(indices), vector, size, np.array([min(*part, end - size) for part in parts]))


def _emit_row(kernel: Kernel, windows: _Windows, source: MapOperand, target: MapOperand, stored: Emit) -> None:
    vector, count = windows.vector, len(windows.indices)
    near = (windows.indices - np.repeat(windows.starts, vector)[:count]).astype(np.uint8)
    indices, starts = kernel.data("indices", near), kernel.data("starts", windows.starts)
    row, place = (declare_operand(kernel, "", side).where(kernel, 0) for side in (source, target))
    for first, blocks, size in groups_of(vector, count):
        with kernel.loop(blocks) as block:
            own = kernel.sum(block, kernel.constant(first, "index"))
            at = kernel.multiple(own, vector)
            begin = kernel.position(starts, own)
            table = kernel.read(_buffer(source), View((windows.size,), (1,)), _from(kernel, row, begin))
            picked = Operand(kernel.read(indices, View((size,), (1,)), at), ("d0",))
            destination = kernel.write(_buffer(target), View((size,), (1,)), _from(kernel, place, at))
            emit = partial(_looked_up, table, stored)
            kernel.map(("d0",), [picked], destination, emit, Tag(kernel.next_micro_kernel(), "root", (size,)))


def _looked_up(table: Tensor, stored: Emit, body: Body, indices: Sequence[Value]) -> Value:
    return stored(body, [body.extract(table, body.cast("arith.index_castui", indices[0], "index"))])


def _buffer(operand: MapOperand) -> Buffer:
    assert isinstance(operand.source, Buffer), "operands of a kernel are declared"
    return operand.source


def _from(kernel: Kernel, where: tuple[int, Value | None], further: Value) -> Value:
    """The index of an element `further` on."""
    offset, start = where
    begin = kernel.constant(offset, "index") if start is None else start
    return kernel.sum(begin, further)


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


def emit_rows(
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
    """Copy from `rows` to `listed`, or with `is_gather` false back, in the order of the indices.

    `row` is the shape of a row, `extents` that of the indices. What is copied back may be a `reduce` of the existing
    values and the new ones.
    """
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
            emit_map(kernel, row, [source], target, unchanged)
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
