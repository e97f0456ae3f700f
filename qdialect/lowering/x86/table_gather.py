"""`vector.gather` from a table: what every pattern that looks entries up in registers asks of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qdialect._mlir import ir
from qdialect.lowering.ir.loops import constant
from qdialect.lowering.memory.strides import static_strides
from qdialect.lowering.x86 import building as b
from qdialect.passes.pattern import MatchFailure


@dataclass(frozen=True)
class Lookup:
    """A gather from all of a table, and in every lane."""

    table: ir.Value
    indices: ir.Value
    """Integers whose low bits say which entry."""


def table_type(gather: ir.Operation, entries: int) -> ir.MemRefType | None:
    """The type of what `gather` reads; None where it is no buffer of so many entries."""
    type_ = gather.operands[0].type
    return type_ if isinstance(type_, ir.MemRefType) and list(type_.shape) == [entries] else None


def lookup_of(
    gather: ir.Operation, integers: Callable[[ir.Value], ir.Value | None], wanted: str
) -> Lookup | MatchFailure:
    """What `gather` looks up in a buffer, from its first entry on.

    `integers` finds the integers of the lookup in what indices were cast from, or None where they are none of `wanted`.
    """
    table, base, indices, mask, _ = gather.operands
    type_, start = ir.MemRefType(table.type), constant(base)
    if static_strides(type_) != (1,) or type_.memory_space is not None:
        return MatchFailure(f"table must lie side by side in the default memory space, but got {type_}")
    if start != 0:
        return MatchFailure(f"base index must be 0, but got {'a variable' if start is None else start}")
    if not b.is_all_true(mask):
        return MatchFailure("mask must be true in every lane")
    cast = b.defining(indices, "arith.index_cast") or b.defining(indices, "arith.index_castui")
    found = integers(cast.operands[0]) if cast else None
    return Lookup(table, found) if found is not None else MatchFailure(f"indices must be cast from {wanted}")
