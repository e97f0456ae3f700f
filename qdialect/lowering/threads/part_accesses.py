"""What the parts that a kernel is cut into touch, and whether one needs another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from qdialect.lowering.threads.accesses import Access
from qdialect.lowering.threads.division import Partition
from qdialect.lowering.threads.loop_nests import KernelFunction


def parts_are_order_free(kernel: KernelFunction, partitions: Sequence[Partition]) -> bool:
    """Whether the order of the parts is free; of an access all between its first element and its last one counts."""
    touched: dict[int, list[_Touched]] = {}
    for access in kernel.shared:
        touched.setdefault(access.argument, []).extend(_touched(kernel, access, partitions))
    return not any(_meet(found) for found in touched.values())


@dataclass(frozen=True)
class _Touched:
    """Elements [first, last) that a part reads or writes."""

    part: int
    is_write: bool
    first: int
    last: int


def _touched(kernel: KernelFunction, access: Access, partitions: Sequence[Partition]) -> list[_Touched]:
    """What each part touches by `access`."""
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
        _Touched(
            part,
            access.is_write,
            first + stride * (begin // inside),
            last - stride * ((units - end) // inside),
        )
        for part, (begin, end) in parts
        if begin < end
    ]


def _meet(found: Sequence[_Touched]) -> bool:
    """Whether a part touches what another one writes."""
    part, first, last = (np.array([getattr(one, name) for one in found]) for name in ("part", "first", "last"))
    is_write = np.array([one.is_write for one in found])
    overlap = (first[:, None] < last) & (first < last[:, None])
    return bool((overlap & (part[:, None] != part) & (is_write[:, None] | is_write)).any())
