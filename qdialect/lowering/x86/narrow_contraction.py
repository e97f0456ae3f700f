"""Contractions of integers narrower than their accumulators, which the dot-product instructions compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qdialect._mlir import ir
from qdialect.lowering.indexing_maps import Contraction, contraction_of
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.memory import Read, integer_read
from qdialect.passes.pattern import MatchFailure

_UNSIGNED, _SIGNED = "arith.extui", "arith.extsi"


@dataclass(frozen=True)
class DotInstruction:
    """An instruction that adds, in each 32-bit lane, as many products as fill it with factors of `bits`."""

    bits: int
    data: str
    """The op that makes 32 bits of the first factor; that of the second is signed."""
    intrinsics: dict[int, str]
    """By 32-bit lanes; each takes the accumulators, the data and the weights."""

    @property
    def taps(self) -> int:
        """Products that a lane sums."""
        return 32 // self.bits


BYTES = DotInstruction(
    8,
    _UNSIGNED,
    {
        16: "llvm.x86.avx512.vpdpbusd.512",
        8: "llvm.x86.avx512.vpdpbusd.256",
        4: "llvm.x86.avx512.vpdpbusd.128",
    },
)
"""Four products of an unsigned by a signed byte."""
WORDS = DotInstruction(
    16,
    _SIGNED,
    {
        16: "llvm.x86.avx512.vpdpwssd.512",
        8: "llvm.x86.avx512.vpdpwssd.256",
        4: "llvm.x86.avx512.vpdpwssd.128",
    },
)
"""Two products of signed words."""


@dataclass(frozen=True)
class Side:
    """A factor: where its integers are read, and the loop that walks each dimension."""

    read: Read
    loops: tuple[int, ...]


@dataclass(frozen=True)
class NarrowContraction:
    """A sum of products of narrow integers, added to 32-bit accumulators."""

    dot: DotInstruction
    loops: Contraction
    data: Side
    """The unsigned factor of bytes; of words the first."""
    weights: Side
    """The other one, which is signed."""
    start: ir.Value
    """The accumulators."""


def dot_of(op: ir.Operation) -> DotInstruction | None:
    """The instruction that adds products of such factors, in either order, to accumulators of 32 bits."""
    if op.name != "vector.contract" or not b.is_vector_of(op.operands[2], 32):
        return None
    found = [_extension(value) for value in list(op.operands)[:2]]
    return next((dot for dot in (BYTES, WORDS) if _fits(found, dot)), None)


def narrow_contraction(op: ir.Operation) -> NarrowContraction | MatchFailure | None:
    """What `op` contracts; None where its operands are not narrow, a reason where they cannot be loaded so."""
    dot = dot_of(op)
    if dot is None:
        return None
    loops = contraction_of(op)
    if loops.kind != "add":
        return MatchFailure(f"combining kind must be add, but got {loops.kind}")
    factors = list(zip(list(op.operands)[:2], (loops.lhs, loops.rhs), strict=True))
    if _extension(factors[0][0]) != (dot.data, dot.bits):
        factors.reverse()
    (first, data_loops), (second, weight_loops) = factors
    data = integer_read(b.looked_through(first, dot.data), "data", dot.bits)
    weights = integer_read(b.looked_through(second, _SIGNED), "weights", dot.bits)
    if isinstance(data, MatchFailure):
        return data
    if isinstance(weights, MatchFailure):
        return weights
    return NarrowContraction(dot, loops, Side(data, data_loops), Side(weights, weight_loops), op.operands[2])


def _fits(found: Sequence[tuple[str, int] | None], dot: DotInstruction) -> bool:
    wanted = [(dot.data, dot.bits), (_SIGNED, dot.bits)]
    return list(found) == wanted or list(reversed(found)) == wanted


def _extension(value: ir.Value) -> tuple[str, int] | None:
    """The op that makes `value` a vector of 32 bits from narrower integers, and the bits of these."""
    for name in (_UNSIGNED, _SIGNED):
        extended = b.defining(value, name)
        if extended and b.is_vector_of(value, 32):
            return name, b.integer_bits(extended.operands[0].type)
    return None
