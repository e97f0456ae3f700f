"""Parts of a kernel cut into chunks, so that a thread that is done with its own part goes on with another's.

Cores differ: a neighbour on the same core, a slower kind of core, another program. Each thread begins with the chunks
of its own part, which read what it has just written, and then takes the next of a part that has some left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from qdialect.lowering.threads.affinity import crossing_bytes
from qdialect.lowering.threads.division import Partition, Work, chained_partition, largest_share, partition
from qdialect.lowering.threads.loop_nests import KernelFunction
from qdialect.lowering.threads.part_accesses import parts_are_order_free
from qdialect.lowering.threads.schedule import NetworkCall
from qdialect.lowering.threads.shared_reads import common_bytes, inside_outermost

MAX_CHUNKS = 8
"""Of a part: an eighth of it is about what a thread waits for another one."""

_MAX_CHUNKS_OF_KERNEL = 64

_CHUNK = 25
"""How many times the cost from which on a kernel is divided a chunk has at least: taking it costs a hundredth."""

# A kernel whose largest part has more of it than this stays whole.
_MAX_SHARE = 0.8

_MAX_UNEVEN = 1.02
"""The largest part beside an even share, where another loop than the outermost one is cut."""


@dataclass(frozen=True)
class Division:
    """How a kernel is divided: where each of its loop nests is cut into chunks, and how many of them are a part."""

    kernel: KernelFunction
    """With the loops that are cut."""
    partitions: list[Partition]
    chunks: int


def divided(kernel: KernelFunction, calls: Sequence[NetworkCall], parts: int, min_cycles: int) -> Division | None:
    """How `kernel` is cut in a network that makes `calls`.

    None where one part would have nearly all of it, or parts would need one another's rows.
    """
    works = [loop_nest.work for loop_nest in kernel.loop_nests]
    chunks = _chunks(kernel, parts, min_cycles)
    if not kernel.is_chained:
        chosen = _cut_inside(kernel, calls, parts) or kernel
        works = [loop_nest.work for loop_nest in chosen.loop_nests]
        found = partition(works, parts)
        return Division(chosen, _cut(found, chunks), chunks) if _is_worth_it(works, found, 1) else None
    while chunks:
        chained = chained_partition(works, parts * chunks)
        if chained and _is_worth_it(works, chained, chunks) and parts_are_order_free(kernel, chained):
            return Division(kernel, chained, chunks)
        chunks //= 2
    return None


def _cut_inside(kernel: KernelFunction, calls: Sequence[NetworkCall], parts: int) -> KernelFunction | None:
    """`kernel` cut where its parts and those after it read less of what others wrote, if parts are even there."""
    inside = inside_outermost(kernel)
    works = [loop_nest.work for loop_nest in inside.loop_nests] if inside else []
    if not inside or largest_share(works, partition(works, parts)) * parts > _MAX_UNEVEN:
        return None
    count = sum(call.kernel.name == kernel.name for call in calls)
    # Half of the rows that all parts read was written by the other half.
    taken = count * common_bytes(inside, 0) // 2
    return inside if taken + crossing_bytes(inside, calls) < crossing_bytes(kernel, calls) else None


def _is_worth_it(works: Sequence[Work], found: Sequence[Partition], chunks: int) -> bool:
    parts = [Partition(one.depth, one.bounds[::chunks]) for one in found]
    return largest_share(works, parts) <= _MAX_SHARE


def _chunks(kernel: KernelFunction, parts: int, min_cycles: int) -> int:
    """How many chunks a part is worth."""
    wanted = kernel.cost / parts / (min_cycles * _CHUNK) if min_cycles else MAX_CHUNKS
    return max(1, min(MAX_CHUNKS, _MAX_CHUNKS_OF_KERNEL // parts, int(wanted)))


def _cut(partitions: Sequence[Partition], chunks: int) -> list[Partition]:
    """Each part cut into `chunks` of about as many iterations."""
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
