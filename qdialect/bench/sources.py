"""Everything that can be measured."""

from __future__ import annotations

from qdialect.bench.cases import Source
from qdialect.bench.drawn import layer_sources


def all_sources() -> list[Source]:
    """Every workload, in the order of the report."""
    return layer_sources()
