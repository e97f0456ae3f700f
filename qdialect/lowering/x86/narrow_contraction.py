"""Contractions of integers narrower than their accumulators, which the dot-product instructions compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qdialect._mlir import ir
from qdialect.lowering.indexing_maps import Contraction, contraction_of
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instruction_set import InstructionSet
from qdialect.lowering.x86.instructions.dot_products import EmitDot
from qdialect.lowering.x86.memory import Read, integer_read
from qdialect.passes.pattern import MatchFailure

_UNSIGNED, _SIGNED = "arith.extui", "arith.extsi"


@dataclass(frozen=True)
class Factors:
    """Factors of `bits`, of which as many as fill 32 bits are summed in each lane."""

    bits: int
    """Of the first factor."""
    data: str
    """The op that makes 32 bits of the first factor; that of the second is signed."""
    weight_bits: int

    @property
    def taps(self) -> int:
        """Products that a lane sums."""
        return 32 // self.bits

    def dots(self, instructions: InstructionSet) -> Mapping[int, EmitDot]:
        """What adds such products to accumulators, by 32-bit lanes."""
        if self.bits != BYTES.bits:
            return instructions.word_dots
        return instructions.byte_dots if self.data == BYTES.data else instructions.signed_dots


BYTES = Factors(8, _UNSIGNED, 8)
"""An unsigned and a signed byte."""
SIGNED_BYTES = Factors(8, _SIGNED, 8)
"""Two signed bytes."""
WORDS = Factors(16, _SIGNED, 16)
"""Two signed words."""
WIDENED = Factors(8, _UNSIGNED, 16)
"""An unsigned byte and a signed word."""


@dataclass(frozen=True)
class Side:
    """A factor: where its integers are read, and the loop that walks each dimension."""

    read: Read
    loops: tuple[int, ...]


@dataclass(frozen=True)
class NarrowContraction:
    """A sum of products of narrow integers, added to 32-bit accumulators."""

    factors: Factors
    loops: Contraction
    data: Side
    """The unsigned factor of bytes; of words the first."""
    weights: Side
    """The other one, which is signed."""
    start: ir.Value
    """The accumulators."""


def factors_of(op: ir.Operation) -> Factors | None:
    """The narrow factors, in either order, whose products `op` adds to accumulators of 32 bits."""
    if op.name != "vector.contract" or not b.is_vector_of(op.operands[2], 32):
        return None
    found = [_extension(value) for value in list(op.operands)[:2]]
    return next((kind for kind in (BYTES, SIGNED_BYTES, WORDS, WIDENED) if _fits(found, kind)), None)


def narrow_contraction(op: ir.Operation) -> NarrowContraction | MatchFailure | None:
    """What `op` contracts; None where its operands are not narrow, a reason where they cannot be loaded so."""
    kind = factors_of(op)
    if kind is None:
        return None
    loops = contraction_of(op)
    if loops.kind != "add":
        return MatchFailure(f"combining kind must be add, but got {loops.kind}")
    factors = list(zip(list(op.operands)[:2], (loops.lhs, loops.rhs), strict=True))
    if _extension(factors[0][0]) != (kind.data, kind.bits):
        factors.reverse()
    (first, data_loops), (second, weight_loops) = factors
    data = integer_read(b.looked_through(first, kind.data), "data", kind.bits)
    weights = integer_read(b.looked_through(second, _SIGNED), "weights", kind.weight_bits)
    if isinstance(data, MatchFailure):
        return data
    if isinstance(weights, MatchFailure):
        return weights
    return NarrowContraction(kind, loops, Side(data, data_loops), Side(weights, weight_loops), op.operands[2])


def _fits(found: Sequence[tuple[str, int] | None], kind: Factors) -> bool:
    wanted = [(kind.data, kind.bits), (_SIGNED, kind.weight_bits)]
    return list(found) == wanted or list(reversed(found)) == wanted


def _extension(value: ir.Value) -> tuple[str, int] | None:
    """The op that makes `value` a vector of 32 bits from narrower integers, and the bits of these."""
    for name in (_UNSIGNED, _SIGNED):
        extended = b.defining(value, name)
        if extended and b.is_vector_of(value, 32):
            return name, b.integer_bits(extended.operands[0].type)
    return None
