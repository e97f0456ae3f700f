"""Dynamic scheduling: the parts of a kernel are cut into chunks, which threads that are done early steal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from qdialect.ir._mlir import ir
from qdialect.lowering.ir.accesses import Access, Run
from qdialect.lowering.qnn_to_linalg.program.program import element_bytes
from qdialect.lowering.threads import loop_nests
from qdialect.lowering.threads.loop_nests import KernelFunction, LoopNest, Partition, Work, cycles
from qdialect.lowering.threads.schedule import NetworkCall, Touch, origin

# Cores differ in speed: by hyperthreading, kinds of cores, or other programs. Each thread begins with the chunks of its
# own part, which read data that it has just written, and then steals the next chunk of a part that has some left.

MAX_CHUNKS = 8
"""Chunks of a part: a thread waits for another one for about an eighth of a part."""

_MAX_CHUNKS_OF_KERNEL = 64

_CHUNK = 25
"""Least cost of a chunk, as a multiple of the least cost of a divided kernel: stealing it costs a hundredth of it."""

# A kernel whose largest part has more than this share of it is not divided.
_MAX_SHARE = 0.8

_MAX_UNEVEN = 1.02
"""The largest part, as a multiple of an even share, if another loop than the outermost one is cut."""


@dataclass(frozen=True)
class Division:
    """How a kernel is divided: where each of its loop nests is cut into chunks, and the number of chunks of a part."""

    kernel: KernelFunction
    """With the loops that are cut."""
    partitions: list[Partition]
    chunks: int


def divided(kernel: KernelFunction, calls: Sequence[NetworkCall], parts: int, min_cycles: int) -> Division | None:
    """How `kernel` is divided in a network that makes `calls`.

    None if one part would have nearly all of it, or if parts would need one another's rows.
    """
    works = [loop_nest.work for loop_nest in kernel.loop_nests]
    wanted = kernel.cost / parts / (min_cycles * _CHUNK) if min_cycles else MAX_CHUNKS
    chunks = max(1, min(MAX_CHUNKS, _MAX_CHUNKS_OF_KERNEL // parts, int(wanted)))
    if not kernel.is_chained:
        chosen = _cut_inside(kernel, calls, parts) or kernel
        works = [loop_nest.work for loop_nest in chosen.loop_nests]
        found = loop_nests.partition(works, parts)
        return Division(chosen, _cut(found, chunks), chunks) if _is_worth_it(works, found, 1) else None
    while chunks:
        chained = loop_nests.chained_partition(works, parts * chunks)
        if chained and _is_worth_it(works, chained, chunks) and parts_are_order_free(kernel, chained):
            return Division(kernel, chained, chunks)
        chunks //= 2
    return None


def _cut_inside(kernel: KernelFunction, calls: Sequence[NetworkCall], parts: int) -> KernelFunction | None:
    """`kernel` cut at inner loops, if its parts are even and less data then crosses between cores."""
    inside = inside_outermost(kernel)
    works = [loop_nest.work for loop_nest in inside.loop_nests] if inside else []
    if not inside or loop_nests.largest_share(works, loop_nests.partition(works, parts)) * parts > _MAX_UNEVEN:
        return None
    count = sum(call.kernel.name == kernel.name for call in calls)
    # Half of the rows that all parts read were written by the other half.
    taken = count * common_bytes(inside, 0) // 2
    return inside if taken + crossing_bytes(inside, calls) < crossing_bytes(kernel, calls) else None


def _is_worth_it(works: Sequence[Work], found: Sequence[Partition], chunks: int) -> bool:
    parts = [Partition(one.depth, one.bounds[::chunks]) for one in found]
    return loop_nests.largest_share(works, parts) <= _MAX_SHARE


def _cut(partitions: Sequence[Partition], chunks: int) -> list[Partition]:
    """Each part cut into `chunks` of about equal numbers of iterations."""
    return [
        Partition(
            found.depth,
            (
                0,
                *(
                    first + round((last - first) * chunk / chunks)
                    for first, last in pairwise(found.bounds)
                    for chunk in range(1, chunks + 1)
                ),
            ),
        )
        for found in partitions
    ]


# The memory that the parts of a kernel access, and whether one part depends on another.


def parts_are_order_free(kernel: KernelFunction, partitions: Sequence[Partition]) -> bool:
    """Whether the parts are independent; an access is taken to cover all from its first element to its last."""
    touched: dict[int, list[_Touched]] = {}
    for access in kernel.shared:
        touched.setdefault(access.argument, []).extend(_touched(kernel, access, partitions))
    return not any(_overlap(found) for found in touched.values())


@dataclass(frozen=True)
class _Touched:
    """Elements [first, last) that a part reads or writes."""

    part: int
    is_write: bool
    first: int
    last: int


def _touched(kernel: KernelFunction, access: Access, partitions: Sequence[Partition]) -> list[_Touched]:
    """The elements that each part accesses by `access`."""
    index, run = kernel.loop_nest_of(access), access.run
    first, last = (run.start, run.end) if run else (0, access.extent)
    parts = list(enumerate(pairwise(partitions[index or 0].bounds)))
    if index is None:
        return [_Touched(part, access.is_write, first, last) for part, _ in parts]
    found, work = partitions[index], kernel.loop_nests[index].work
    outermost, units = kernel.loop_nests[index].loops[:1], work.units(found.depth)
    stride = dict(access.loops).get(outermost[0], 0) if outermost and found.depth and run else 0
    inside = units // work.trips[0] if found.depth else 1
    return [
        _Touched(part, access.is_write, first + stride * (begin // inside), last - stride * ((units - end) // inside))
        for part, (begin, end) in parts
        if begin < end
    ]


def _overlap(found: Sequence[_Touched]) -> bool:
    """Whether a part accesses elements that another one writes."""
    part, first, last = (np.array([getattr(one, name) for one in found]) for name in ("part", "first", "last"))
    is_write = np.array([one.is_write for one in found])
    overlap = (first[:, None] < last) & (first < last[:, None])
    return bool((overlap & (part[:, None] != part) & (is_write[:, None] | is_write)).any())


# Chooses the loops at which a kernel is cut, so that its threads read little data that other cores wrote.
#
# A product that is cut at its rows reads rows that the same thread wrote. But if its columns are heads of an attention,
# the readers of its result are cut at heads: then it is cut at its columns too, and each thread reads all rows.

_INNER_SHARE = 0.97
"""Least share of a loop's cost that the loop inside it must have: each thread repeats the rest."""


def inside_outermost(kernel: KernelFunction) -> KernelFunction | None:
    """`kernel` with its loop nests cut inside their outermost loops, where its threads then share fewer bytes."""
    nests = [loop_nest for loop_nest in kernel.loop_nests if _is_deep(loop_nest)]
    if not nests or kernel.is_chained or any(not loop_nest.loops for loop_nest in kernel.loop_nests):
        return None
    if common_bytes(kernel, 0) <= common_bytes(kernel, 1):
        return None
    chosen = tuple(_inside(nest) if nest in nests else nest for nest in kernel.loop_nests)
    columns = {(nest.work.trips[:1], nest.work.strides[:1]) for nest in chosen}
    return replace(kernel, loop_nests=chosen) if len(columns) == 1 else None


def _is_deep(loop_nest: LoopNest) -> bool:
    """Whether the loop inside the outermost one has nearly all of its cost."""
    if len(loop_nest.loops) < 2:
        return False
    inner = cycles(loop_nest.loops[1]) * loop_nest.work.trips[0]
    return inner >= _INNER_SHARE * loop_nest.work.cost


def _inside(loop_nest: LoopNest) -> LoopNest:
    """`loop_nest` with all loops but its outermost one to be cut."""
    work = loop_nest.work
    return replace(
        loop_nest, loops=loop_nest.loops[1:], work=replace(work, trips=work.trips[1:], strides=work.strides[1:])
    )


def common_bytes(kernel: KernelFunction, depth: int) -> int:
    """About how many bytes each iteration of the loops at `depth` reads again."""
    found: dict[int, int] = {}
    for access in kernel.shared:
        number = None if access.is_write else kernel.loop_nest_of(access)
        loops = () if number is None else kernel.loop_nests[number].loops[depth : depth + 1]
        if loops and loops[0] not in dict(access.loops):
            type_ = ir.MemRefType(kernel.function.regions[0].blocks[0].arguments[access.argument].type)
            elements = access.run.end - access.run.start if access.run else access.extent
            found[access.argument] = max(found.get(access.argument, 0), elements * (element_bytes(type_) or 0))
    return sum(found.values())


# Estimates how many bytes that the calls of a kernel write are read on another core.
#
# Writers and readers are assumed to be cut into two halves of their outermost loops. More threads share as much or
# more.

_HALVES = (0, 1)


def crossing_bytes(kernel: KernelFunction, calls: Sequence[NetworkCall]) -> int:
    """Bytes that calls of `kernel`, cut at its loops, write on one core and those after them read on another."""
    return sum(
        _crossing(kernel, call, reader, read)
        for i, call in enumerate(calls)
        if call.kernel.name == kernel.name
        for reader, read in _readers(call, calls[i + 1 :])
    )


def _readers(call: NetworkCall, after: Sequence[NetworkCall]) -> Iterator[tuple[NetworkCall, Access]]:
    """The reads of the memory that `call` writes, up to the call that overwrites it."""
    written = [touch for touch in call.touches if touch.is_write]
    for other in after:
        arguments = {touch.argument for touch in other.touches if not touch.is_write and _overlaps(touch, written)}
        reads = (access for access in other.kernel.shared if not access.is_write)
        yield from ((other, access) for access in reads if access.argument in arguments)
        if any(touch.is_write and _overlaps(touch, written) for touch in other.touches):
            return


def _overlaps(touch: Touch, others: Sequence[Touch]) -> bool:
    return any(
        touch.block == other.block and touch.bytes.start < other.bytes.end and other.bytes.start < touch.bytes.end
        for other in others
    )


def _crossing(kernel: KernelFunction, call: NetworkCall, reader: NetworkCall, read: Access) -> int:
    writes = [access for access in kernel.shared if access.is_write]
    return sum(
        _half(kernel, call, write, half).count_in_common(_half(reader.kernel, reader, read, 1 - half))
        for write in writes
        for half in _HALVES
        if _block(call, write) == _block(reader, read)
    )


def _block(call: NetworkCall, access: Access) -> int:
    return origin(call.op.operands[access.argument])[0]


def _half(kernel: KernelFunction, call: NetworkCall, access: Access, half: int) -> Run:
    """The bytes that `access` touches in one half of the iterations."""
    value = call.op.operands[access.argument]
    run = access.run or Run(0, ((1, access.extent),))
    number = kernel.loop_nest_of(access)
    loops = kernel.loop_nests[number].loops[:1] if number is not None else ()
    stride = dict(access.loops).get(loops[0]) if loops else None
    if number is not None and stride is not None:
        run = _cut_run(run, stride, kernel.loop_nests[number].work.trips[0], half)
    return run.scaled(element_bytes(ir.MemRefType(value.type)) or 0, origin(value)[1])


def _cut_run(run: Run, stride: int, trips: int, half: int) -> Run:
    """The elements of `run` in one half of the `trips` iterations of a loop that moves it by `stride`."""
    if trips < 2:
        return run
    dims, middle = list(run.dims), trips // 2
    at = dims.index((stride, trips))
    dims[at] = (stride, trips - middle if half else middle)
    return replace(run, start=run.start + half * middle * stride, dims=tuple(dims))
