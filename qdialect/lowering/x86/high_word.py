"""32 bits out of a 32 x 32 product -> `vpmuldq` or `vpmuludq` on even and odd lanes.

A requantization computes ``(a * b + c) >> 31``, or ``a * b >> 32`` of unsigned numbers, in 64 bits and keeps 32.
Widening whole vectors would cost four shuffles; instead the even lanes are multiplied where they are, the odd lanes
after a shift by 32, and the two halves of the result are blended: the even products' bits shifted down, the odd
products' bits shifted up, or, where it is the upper word that is kept, left where they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qdialect._mlir import arith, ir, rewrite, vector
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.byte_table import shuffle

_WORD = 32


@dataclass(frozen=True)
class _Product:
    """``(left * right + addend) >> shift`` of 32-bit vectors, extended by `extension`."""

    left: ir.Value
    right: ir.Value
    addend: int
    shift: int
    extension: str


def high_word_to_blend(op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool | None:
    """Rewrite one truncation of a shifted product; truthy where it is another one."""
    shape = list(ir.VectorType(op.results[0].type).shape) if isinstance(op.results[0].type, ir.VectorType) else []
    product = _product_behind(op) if shape and shape[-1] % 2 == 0 else None
    if product is None:
        return True
    with rewriter.ip, op.location:
        left, right = _narrow(product.left, product.extension), _narrow(product.right, product.extension)
        result = b.splat(ir.VectorType(op.results[0].type), 0)
        for position in np.ndindex(*shape[:-1]):
            high = _one_word(product, *(b.extract(value, position) if position else value for value in (left, right)))
            result = b.insert(high, result, position) if position else high
    rewriter.replace_op(op, [result])
    return None


def _product_behind(op: ir.Operation) -> _Product | None:
    shifted = b.defining(op.operands[0], "arith.shrui")
    if shifted is not None and b.splat_value(shifted.operands[1]) == _WORD:
        return _product(shifted.operands[0], 0, _WORD, "arith.extui")
    shifted = b.defining(op.operands[0], "arith.shrsi")
    if shifted is None or b.splat_value(shifted.operands[1]) != _WORD - 1:
        return None
    total, addend = shifted.operands[0], 0
    sum_ = b.defining(total, "arith.addi")
    if sum_ is not None:
        known = b.splat_value(sum_.operands[1])
        if known is None:
            return None
        total, addend = sum_.operands[0], known
    return _product(total, addend, _WORD - 1, "arith.extsi")


def _product(value: ir.Value, addend: int, shift: int, extension: str) -> _Product | None:
    product = b.defining(value, "arith.muli")
    if product is None or not all(_is_widened(operand, extension) for operand in product.operands):
        return None
    return _Product(product.operands[0], product.operands[1], addend, shift, extension)


def _is_widened(value: ir.Value, extension: str) -> bool:
    widened = b.defining(b.looked_through(value, "vector.broadcast"), extension)
    if widened is None:
        return False
    source = widened.operands[0].type
    return isinstance(source, ir.VectorType) and str(source.element_type) == "i32"


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
        return _upper_word(left, right)
    return _high_word(left, right, product.addend, product.shift)


def _upper_word(left: ir.Value, right: ir.Value) -> ir.Value:
    """``left * right >> 32``, unsigned: the odd words of the products, the odd lanes' where they are."""
    lanes = b.shape_of(left)[0]
    pairs = b.vector_type(lanes // 2, 64)
    a, c = vector.bitcast(pairs, left), vector.bitcast(pairs, right)
    word, low = b.splat(pairs, _WORD), b.splat(pairs, 2**_WORD - 1)
    even = arith.muli(arith.andi(a, low), arith.andi(c, low))
    odd = arith.muli(arith.shrui(a, word), arith.shrui(c, word))
    order = [lane + 1 if lane % 2 == 0 else lanes + lane for lane in range(lanes)]
    return shuffle(vector.bitcast(left.type, even), vector.bitcast(left.type, odd), order)


def _high_word(left: ir.Value, right: ir.Value, addend: int, shift: int) -> ir.Value:
    lanes = b.shape_of(left)[0]
    pairs = b.vector_type(lanes // 2, 64)
    a, c = vector.bitcast(pairs, left), vector.bitcast(pairs, right)
    word, nudge = b.splat(pairs, _WORD), b.splat(pairs, addend)

    def low(value: ir.Value) -> ir.Value:
        return arith.shrsi(arith.shli(value, word), word)

    even = arith.addi(arith.muli(low(a), low(c)), nudge)
    odd = arith.addi(arith.muli(arith.shrsi(a, word), arith.shrsi(c, word)), nudge)
    down = vector.bitcast(left.type, arith.shrui(even, b.splat(pairs, shift)))
    up = vector.bitcast(left.type, arith.shli(odd, b.splat(pairs, _WORD - shift)))
    is_even = b.mask([lane % 2 == 0 for lane in range(lanes)])
    return arith.select(is_even, down, up)
