"""Which loops of a kernel are cut so that its threads read little of what other cores wrote.

A product that is cut at its rows reads rows that the same thread wrote. Where heads of attention are its columns, those
that read its result are cut at heads: then it is cut at its columns, as they are, and each thread reads all rows.
"""

from __future__ import annotations

from dataclasses import replace

from qdialect._mlir import ir
from qdialect.lowering.memory.storage import element_bytes
from qdialect.lowering.threads.accesses import Access
from qdialect.lowering.threads.cost import cycles
from qdialect.lowering.threads.loop_nests import KernelFunction, LoopNest

_INNER_SHARE = 0.97
"""Of the cost of a loop that the loop inside it must have: each thread does all that stands beside that one."""


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
    """Whether nearly all that its outermost loop computes is in the loop inside it."""
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
    """About how many bytes every iteration of the loops at `depth` reads again."""
    found: dict[int, int] = {}
    for access in kernel.shared:
        number = None if access.is_write else kernel.loop_nest_of(access)
        loops = () if number is None else kernel.loop_nests[number].loops[depth : depth + 1]
        if loops and loops[0] not in dict(access.loops):
            found[access.argument] = max(found.get(access.argument, 0), _bytes(kernel, access))
    return sum(found.values())


def _bytes(kernel: KernelFunction, access: Access) -> int:
    """About how many bytes `access` reads."""
    type_ = ir.MemRefType(kernel.function.regions[0].blocks[0].arguments[access.argument].type)
    elements = access.run.end - access.run.start if access.run else access.extent
    return elements * (element_bytes(type_) or 0)
