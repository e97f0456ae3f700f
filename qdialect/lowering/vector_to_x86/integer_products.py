"""Products of integers: contractions of narrow ones, and those with one term."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from qdialect.ir._mlir import arith, ir
from qdialect.lowering.instructions.dot_products import EmitDot
from qdialect.lowering.instructions.instruction_set import InstructionSet
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.building import spread
from qdialect.lowering.ir.flat_address import Read, integer_read
from qdialect.lowering.ir.functions import Contraction, contraction_of
from qdialect.lowering.vector_to_x86.instruction_pattern import InstructionPattern
from qdialect.passes.pattern import require

# Contractions of integers narrower than their accumulators, which the dot-product instructions compute.

_UNSIGNED, _SIGNED = "arith.extui", "arith.extsi"
_SHIFT, _SHIFT_LEFT, _MASK = "arith.shrui", "arith.shli", "arith.andi"


@dataclass(frozen=True)
class Factors:
    """Factors of `bits` bits; the products of those that fill 32 bits are summed in each lane."""

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
        """The instructions that add such products to accumulators, by number of 32-bit lanes."""
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
    fields: tuple[tuple[str, int], ...] = ()
    """Ops with a constant between the read and the extension, first one first: fields of bits are taken out so."""

    def taken(self, loaded: ir.Value) -> ir.Value:
        """The fields of what was loaded."""
        for name, constant in self.fields:
            loaded = b.binary(name, loaded, b.splat(ir.VectorType(loaded.type), constant))
        return loaded

    @property
    def largest(self) -> int:
        """A bound of unsigned bytes."""
        bound = 255
        for name, constant in self.fields:
            held = bound << constant if name == _SHIFT_LEFT else bound >> constant
            bound = min(bound, constant % 256) if name == _MASK else min(held, 255)
        return bound


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

    @property
    def lanes(self) -> int:
        """The innermost extent of the result."""
        return self.loops.extents[self.loops.result[-1]]


def factors_of(op: ir.Operation) -> Factors | None:
    """The narrow factors, in either order, whose products `op` adds to accumulators of 32 bits."""
    if op.name != "vector.contract" or not b.is_vector_of(op.operands[2], 32):
        return None
    found = [_extension(value) for value in list(op.operands)[:2]]
    return next((kind for kind in (BYTES, SIGNED_BYTES, WORDS, WIDENED) if _fits(found, kind)), None)


def narrow_contraction(op: ir.Operation, *, has_fields: bool = False) -> NarrowContraction | None:
    """The contraction of `op`; None if its operands are not narrow, `MatchFailure` if they cannot be loaded so.

    With `has_fields` factors of bytes may be fields of the bits that are read.
    """
    kind = factors_of(op)
    if kind is None:
        return None
    loops = contraction_of(op)
    _require_sums(loops)
    factors = list(zip(list(op.operands)[:2], (loops.lhs, loops.rhs), strict=True))
    if _extension(factors[0][0]) != (kind.data, kind.bits):
        factors.reverse()
    (first, data_loops), (second, weight_loops) = factors
    sources = b.looked_through(first, kind.data), b.looked_through(second, _SIGNED)
    has_fields = has_fields and kind is BYTES
    (source, fields), (stored, own) = (_behind_fields(one) if has_fields else (one, ()) for one in sources)
    data = Side(integer_read(source, "data", kind.bits), data_loops, fields)
    weights = Side(integer_read(stored, "weights", kind.weight_bits), weight_loops, own)
    return NarrowContraction(kind, loops, data, weights, op.operands[2])


def _require_sums(loops: Contraction) -> None:
    require(loops.kind == "add", f"combining kind must be add, but got {loops.kind}")


def _behind_fields(value: ir.Value) -> tuple[ir.Value, tuple[tuple[str, int], ...]]:
    """The source of `value` before shifts and masks by constants, and these."""
    op = b.defining(value, _SHIFT) or b.defining(value, _SHIFT_LEFT) or b.defining(value, _MASK)
    constant = b.splat_value(op.operands[1]) if op else None
    if op is None or constant is None:
        return value, ()
    source, fields = _behind_fields(op.operands[0])
    return source, (*fields, (op.name, constant))


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


# `vector.contract` of i32 that reduces one term -> multiply and add, element by element.
#
# A depthwise tap is such a contraction: its reduction loops are tiled to one iteration, so every element of the tile
# gets one product.  Upstream's lowering would take it apart into scalars.


class UnitContraction(InstructionPattern[Contraction]):
    """A contraction of i32 with one term for each element of the result."""

    roots = ("vector.contract",)
    benefit: ClassVar[int] = 3

    def check(self, op: ir.Operation) -> Contraction | None:
        loops = contraction_of(op)
        if loops.terms(loops.reduced) > 1 or not all(b.is_vector_of(value, 32) for value in op.operands):
            return None
        _require_sums(loops)
        return loops

    def emit(self, op: ir.Operation, match: Contraction) -> ir.Value:
        lhs, rhs, acc = op.operands
        tile = b.shape_of(acc)
        left, right = spread(lhs, match.lhs, match, tile), spread(rhs, match.rhs, match, tile)
        return arith.addi(acc, arith.muli(left, right))
