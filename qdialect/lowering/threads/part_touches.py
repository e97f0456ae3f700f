"""Which bytes of the network's blocks one part of a call reads and writes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from qdialect._mlir import ir
from qdialect.lowering.memory.storage import element_bytes
from qdialect.lowering.threads.accesses import Access, Run
from qdialect.lowering.threads.chunks import Division
from qdialect.lowering.threads.schedule import NetworkCall, Touch, origin

_Box = tuple[tuple[int, int], ...]
"""From which iteration to which each of nested loops runs."""


def part_touches(call: NetworkCall, division: Division, part: int) -> list[Touch]:
    """What part number `part` of `call`, whose kernel is cut as `division` says, touches of memory that threads share.

    A part has the chunks of it that are in `division`.
    """
    return [
        _touch(call, access, run) for access in division.kernel.shared for run in _part_runs(division, access, part)
    ]


def _touch(call: NetworkCall, access: Access, run: Run) -> Touch:
    value = call.op.operands[access.argument]
    block, offset = origin(value)
    size = element_bytes(ir.MemRefType(value.type)) or 0
    return Touch(block, access.argument, access.is_write, run.scaled(size, offset))


def _part_runs(division: Division, access: Access, part: int) -> Iterator[Run]:
    """Elements that `access` touches in a part: none where its loop nest has no iteration there."""
    whole = access.run or Run(0, ((1, access.extent),))
    number = division.kernel.loop_nest_of(access)
    if number is None:
        yield whole
        return
    partition = division.partitions[number]
    begin, end = (partition.bounds[at * division.chunks] for at in (part, part + 1))
    if begin == end:
        return
    nest, depth = division.kernel.loop_nests[number], partition.depth
    if access.run is None:
        yield whole
        return
    strides = [dict(access.loops).get(loop, 0) for loop in nest.loops[:depth]]
    for box in _boxes(nest.work.trips[:depth], begin, end):
        yield _inside(access.run, strides, nest.work.trips, box)


def _boxes(trips: Sequence[int], begin: int, end: int) -> Iterator[_Box]:
    """Iterations [begin, end) of nested loops, counted in a row."""
    if not trips:
        yield ()
        return
    inside = math.prod(trips[1:])
    first, last = -(-begin // inside), end // inside
    if first < last:
        yield ((first, last), *((0, count) for count in trips[1:]))
    for step in sorted({begin // inside, (end - 1) // inside} - set(range(first, last))):
        low, high = max(begin - step * inside, 0), min(end - step * inside, inside)
        yield from (((step, step + 1), *rest) for rest in _boxes(trips[1:], low, high))


def _inside(run: Run, strides: Sequence[int], trips: Sequence[int], box: _Box) -> Run:
    """The elements of `run` in the iterations of `box`; `strides` are how far each of the loops moves it."""
    dims, start = list(run.dims), run.start
    for stride, count, (low, high) in zip(strides, trips, box, strict=False):
        # A run has no dimension for a loop of one iteration.
        if stride and count > 1:
            dims[dims.index((stride, count))] = (stride, high - low)
            start += stride * low
    return Run(start, tuple(dims))
