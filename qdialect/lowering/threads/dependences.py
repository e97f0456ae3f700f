"""Whether accesses of a kernel depend on each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from qdialect.lowering.threads.accesses import Access


def is_order_free(found: Sequence[Access]) -> bool:
    """Whether the order of all accesses is free: no two write the same element, none reads what another writes."""
    writes = [access for access in found if access.is_write]
    reads = [access for access in found if not access.is_write]
    pairs = [*combinations(writes, 2), *((write, read) for write in writes for read in reads)]
    return not any(_conflict(*pair) for pair in pairs)


def _conflict(one: Access, other: Access) -> bool:
    if one.argument != other.argument:
        return False
    return one.run is None or other.run is None or one.run.meets(other.run)
