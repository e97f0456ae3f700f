"""Where an op comes from: the names of a model's nodes, kept as ops are fused."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from qdialect.ir._mlir import ir


def names_of(location: ir.Location) -> tuple[str, ...]:
    """The names in a location, each once: one for an op as a front end built it, more for a fused one."""
    if isinstance(location, ir.NameLoc):
        return (location.name_str,)
    if isinstance(location, ir.FusedLoc):
        return tuple(dict.fromkeys(name for part in location.locations for name in names_of(part)))
    return ()


def parts_of(location: ir.Location) -> list[ir.Location]:
    """The locations that `location` is made of, in order."""
    if isinstance(location, ir.NameLoc):
        return [location.child_loc]
    if isinstance(location, ir.CallSiteLoc):
        return [location.callee, location.caller]
    return list(location.locations) if isinstance(location, ir.FusedLoc) else []


def key_of(location: ir.Location) -> Hashable:
    """A key that is equal for equal locations, also of different contexts."""
    if isinstance(location, ir.FileLineColLoc):
        return location.filename, location.start_line, location.start_col
    name = location.name_str if isinstance(location, ir.NameLoc) else ""
    return type(location), name, tuple(map(key_of, parts_of(location)))


def joined(locations: Sequence[ir.Location]) -> ir.Location:
    """All of `locations`, each once; MLIR flattens those that are fused already.

    The first stays first: it is the one that messages show.
    """
    return ir.Location.fused(list(locations), context=locations[0].context)
