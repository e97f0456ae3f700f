"""Where an op comes from: the names of a model's nodes, kept as ops are fused."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect._mlir import ir


def names_of(location: ir.Location) -> tuple[str, ...]:
    """The names in a location, each once: one for an op as a front end built it, more for a fused one."""
    if isinstance(location, ir.NameLoc):
        return (location.name_str,)
    if isinstance(location, ir.FusedLoc):
        return tuple(dict.fromkeys(name for part in location.locations for name in names_of(part)))
    return ()


def joined(locations: Sequence[ir.Location]) -> ir.Location:
    """All of `locations`, each once; MLIR flattens those that are fused already.

    The first stays first: it is the one that messages show.
    """
    return ir.Location.fused(list(locations), context=locations[0].context)
