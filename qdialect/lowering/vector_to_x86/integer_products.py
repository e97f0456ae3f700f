"""Products of integers: contractions of narrow ones, with one term, and words out of 32 x 32 products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qdialect.ir._mlir import arith, ir, vector
from qdialect.lowering.instructions.dot_products import EmitDot
from qdialect.lowering.instructions.instruction_set import InstructionSet
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.building import spread
from qdialect.lowering.ir.flat_address import Read, integer_read
from qdialect.lowering.ir.functions import Contraction, contraction_of
from qdialect.lowering.vector_to_x86.instruction_pattern import InstructionPattern
from qdialect.passes.pattern import MatchFailure

# Contractions of integers narrower than their accumulators, which the dot-product instructions compute.

_UNSIGNED, _SIGNED = "arith.extui", "arith.extsi"
_SHIFT, _MASK = "arith.shrui", "arith.andi"


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
            bound = bound >> constant if name == _SHIFT else min(bound, constant % 256)
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


def factors_of(op: ir.Operation) -> Factors | None:
    """The narrow factors, in either order, whose products `op` adds to accumulators of 32 bits."""
    if op.name != "vector.contract" or not b.is_vector_of(op.operands[2], 32):
        return None
    found = [_extension(value) for value in list(op.operands)[:2]]
    return next((kind for kind in (BYTES, SIGNED_BYTES, WORDS, WIDENED) if _fits(found, kind)), None)


def narrow_contraction(op: ir.Operation, *, has_fields: bool = False) -> NarrowContraction | MatchFailure | None:
    """The contraction of `op`; None if its operands are not narrow, a reason if they cannot be loaded so.

    With `has_fields` the unsigned factor may be fields of the bits that are read.
    """
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
    source = b.looked_through(first, kind.data)
    source, fields = _behind_fields(source) if has_fields and kind is BYTES else (source, ())
    data = integer_read(source, "data", kind.bits)
    weights = integer_read(b.looked_through(second, _SIGNED), "weights", kind.weight_bits)
    if isinstance(data, MatchFailure):
        return data
    if isinstance(weights, MatchFailure):
        return weights
    return NarrowContraction(kind, loops, Side(data, data_loops, fields), Side(weights, weight_loops), op.operands[2])


def _behind_fields(value: ir.Value) -> tuple[ir.Value, tuple[tuple[str, int], ...]]:
    """The source of `value` before shifts and masks by constants, and these."""
    op = b.defining(value, _SHIFT) or b.defining(value, _MASK)
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

    name: ClassVar[str] = "unit-contraction"
    roots = ("vector.contract",)
    benefit: ClassVar[int] = 3

    def check(self, op: ir.Operation) -> Contraction | MatchFailure | None:
        loops = contraction_of(op)
        if loops.terms(loops.reduced) > 1 or not all(b.is_vector_of(value, 32) for value in op.operands):
            return None
        if loops.kind != "add":
            return MatchFailure(f"combining kind must be add, but got {loops.kind}")
        return loops

    def emit(self, op: ir.Operation, match: Contraction) -> ir.Value:
        lhs, rhs, acc = op.operands
        tile = b.shape_of(acc)
        left, right = spread(lhs, match.lhs, match, tile), spread(rhs, match.rhs, match, tile)
        return arith.addi(acc, arith.muli(left, right))


# 32 bits out of a 32 x 32 product -> `vpmuldq` or `vpmuludq` on even and odd lanes.
#
# A requantization computes ``(a * b + c) >> 31``, or ``a * b >> 32``, in 64 bits and keeps 32.  Widening whole vectors
# would cost four shuffles; instead the even lanes are multiplied where they are, the odd lanes after a shift by 32, and
# the two halves of the result are blended: the even products' bits shifted down, the odd products' bits shifted up, or,
# where it is the upper word that is kept, left where they are.

_WORD = 32


@dataclass(frozen=True)
class _Product:
    """``(left * right + addend) >> shift`` of 32-bit vectors, extended by `extension`."""

    left: ir.Value
    right: ir.Value
    addend: int
    shift: int
    extension: str


class HighWord(InstructionPattern[_Product]):
    """The truncation of a product of extended 32-bit vectors, shifted right."""

    name: ClassVar[str] = "high-word"
    roots = ("arith.trunci",)

    def check(self, op: ir.Operation) -> _Product | MatchFailure | None:
        if not b.is_vector_of(op.results[0], _WORD) or not b.is_vector_of(op.operands[0], 2 * _WORD):
            return None
        lanes = b.lanes_of(op.results[0])
        product = _product_behind(op)
        if isinstance(product, _Product) and lanes % 2:
            return MatchFailure(f"vectors must have an even number of lanes, but got {lanes}")
        return product

    def emit(self, op: ir.Operation, match: _Product) -> ir.Value:
        left, right = _narrow(match.left, match.extension), _narrow(match.right, match.extension)
        type_ = ir.VectorType(op.results[0].type)
        result = b.splat(type_, 0)
        for position in np.ndindex(*list(type_.shape)[:-1]):
            high = _one_word(match, *(b.extract(value, position) if position else value for value in (left, right)))
            result = b.insert(high, result, position) if position else high
        return result


def _product_behind(op: ir.Operation) -> _Product | MatchFailure | None:
    shifted = b.defining(op.operands[0], "arith.shrui")
    if shifted is not None and b.splat_value(shifted.operands[1]) == _WORD:
        # The upper word of a signed product, too: its sign does not matter behind a truncation.
        found = _product(shifted.operands[0], 0, _WORD, "arith.extui")
        signed = _product(shifted.operands[0], 0, _WORD, "arith.extsi")
        return signed if isinstance(signed, _Product) else found
    shifted = b.defining(op.operands[0], "arith.shrsi")
    places = b.splat_value(shifted.operands[1]) if shifted is not None else None
    if shifted is not None and places == _WORD:
        return _product(shifted.operands[0], 0, _WORD, "arith.extsi")
    if shifted is None or places != _WORD - 1:
        return None
    total, addend = shifted.operands[0], 0
    sum_ = b.defining(total, "arith.addi")
    if sum_ is not None:
        known = b.splat_value(sum_.operands[1])
        if known is None:
            return MatchFailure("what is added to the product must be one constant")
        total, addend = sum_.operands[0], known
    return _product(total, addend, _WORD - 1, "arith.extsi")


def _product(value: ir.Value, addend: int, shift: int, extension: str) -> _Product | MatchFailure | None:
    product = b.defining(value, "arith.muli")
    if product is None:
        return None
    if not all(_is_widened(operand, extension) for operand in product.operands):
        return MatchFailure(f"factors must be vectors of i32, widened by {extension}")
    return _Product(product.operands[0], product.operands[1], addend, shift, extension)


def _is_widened(value: ir.Value, extension: str) -> bool:
    widened = b.defining(b.looked_through(value, "vector.broadcast"), extension)
    return widened is not None and b.is_vector_of(widened.operands[0], _WORD)


def _narrow(value: ir.Value, extension: str) -> ir.Value:
    """The 32-bit vector that was widened, spread as the wide one was."""
    widened = b.defining(b.looked_through(value, "vector.broadcast"), extension)
    assert widened is not None, "checked by _is_widened"
    source = widened.operands[0]
    shape = b.shape_of(value)
    if b.shape_of(source) == shape:
        return source
    return vector.broadcast(ir.VectorType.get(shape, ir.IntegerType.get_signless(32)), source)


def _one_word(product: _Product, left: ir.Value, right: ir.Value) -> ir.Value:
    if product.shift == _WORD:
        return _upper_word(left, right, is_signed=product.extension == "arith.extsi")
    return _high_word(left, right, product.addend, product.shift)


def _upper_word(left: ir.Value, right: ir.Value, *, is_signed: bool) -> ir.Value:
    """``left * right >> 32``: the odd words of the products, the odd lanes' where they are."""
    lanes = b.shape_of(left)[0]
    pairs = b.vector_type(lanes // 2, 64)
    a, c = b.bitcast(pairs, left), b.bitcast(pairs, right)
    word = b.splat(pairs, _WORD)
    down = "arith.shrsi" if is_signed else "arith.shrui"

    def low(value: ir.Value) -> ir.Value:
        if is_signed:
            return b.binary(down, b.binary("arith.shli", value, word), word)
        return b.binary("arith.andi", value, b.splat(pairs, 2**_WORD - 1))

    even = b.binary("arith.muli", low(a), low(c))
    odd = b.binary("arith.muli", b.binary(down, a, word), b.binary(down, c, word))
    order = [lane + 1 if lane % 2 == 0 else lanes + lane for lane in range(lanes)]
    return b.shuffle(b.bitcast(left.type, even), b.bitcast(left.type, odd), order)


def _high_word(left: ir.Value, right: ir.Value, addend: int, shift: int) -> ir.Value:
    lanes = b.shape_of(left)[0]
    pairs = b.vector_type(lanes // 2, 64)
    a, c = b.bitcast(pairs, left), b.bitcast(pairs, right)
    word, nudge = b.splat(pairs, _WORD), b.splat(pairs, addend)

    def low(value: ir.Value) -> ir.Value:
        return arith.shrsi(arith.shli(value, word), word)

    even = arith.addi(arith.muli(low(a), low(c)), nudge)
    odd = arith.addi(arith.muli(arith.shrsi(a, word), arith.shrsi(c, word)), nudge)
    down = b.bitcast(left.type, arith.shrui(even, b.splat(pairs, shift)))
    up = b.bitcast(left.type, arith.shli(odd, b.splat(pairs, _WORD - shift)))
    is_even = b.mask([lane % 2 == 0 for lane in range(lanes)])
    return arith.select(is_even, down, up)
