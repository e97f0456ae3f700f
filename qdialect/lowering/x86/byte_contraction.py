"""Contractions of unsigned with signed bytes, which `vpdpbusd` computes."""

from __future__ import annotations

from dataclasses import dataclass

from qdialect._mlir import ir
from qdialect.lowering.indexing_maps import Contraction, contraction_of
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.memory import Read, byte_read
from qdialect.passes.pattern import MatchFailure

_UNSIGNED, _SIGNED = "arith.extui", "arith.extsi"


@dataclass(frozen=True)
class Side:
    """A factor: where its bytes are read, and the loop that walks each dimension."""

    read: Read
    loops: tuple[int, ...]


@dataclass(frozen=True)
class ByteContraction:
    """A sum of products of unsigned with signed bytes, added to 32-bit accumulators."""

    loops: Contraction
    data: Side
    """The unsigned factor."""
    weights: Side
    """The signed one."""
    start: ir.Value
    """The accumulators."""


def is_byte_contraction(op: ir.Operation) -> bool:
    """Whether `op` adds products of an unsigned with a signed byte, in either order, to accumulators of 32 bits."""
    if op.name != "vector.contract" or not b.is_vector_of(op.operands[2], 32):
        return False
    return {_UNSIGNED, _SIGNED} == {_extension(value) for value in list(op.operands)[:2]}


def byte_contraction(op: ir.Operation) -> ByteContraction | MatchFailure | None:
    """What `op` contracts; None where its operands are not bytes, a reason where its bytes cannot be loaded so."""
    if not is_byte_contraction(op):
        return None
    loops = contraction_of(op)
    if loops.kind != "add":
        return MatchFailure(f"combining kind must be add, but got {loops.kind}")
    factors = list(zip(list(op.operands)[:2], (loops.lhs, loops.rhs), strict=True))
    if _extension(factors[0][0]) == _SIGNED:
        factors.reverse()
    (unsigned, data_loops), (signed, weight_loops) = factors
    data = byte_read(b.looked_through(unsigned, _UNSIGNED), "data")
    weights = byte_read(b.looked_through(signed, _SIGNED), "weights")
    if isinstance(data, MatchFailure):
        return data
    if isinstance(weights, MatchFailure):
        return weights
    return ByteContraction(loops, Side(data, data_loops), Side(weights, weight_loops), op.operands[2])


def _extension(value: ir.Value) -> str | None:
    """The op that makes `value` a vector of 32 bits from one of bytes."""
    for name in (_UNSIGNED, _SIGNED):
        extended = b.defining(value, name)
        if extended and b.is_vector_of(value, 32) and b.is_vector_of(extended.operands[0], 8):
            return name
    return None
