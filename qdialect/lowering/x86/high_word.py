"""The middle 32 bits of a 32 x 32 product -> `vpmuldq` on even and odd lanes.

A fixed-point requantization computes ``(a * b + c) >> 31`` in 64 bits and keeps 32.  Widening whole vectors would cost
four shuffles; instead the even lanes are multiplied where they are, the odd lanes after a shift by 32, and the two
halves of the result are blended: the even products' bits shifted down, the odd products' bits shifted up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qdialect._mlir import arith, ir, rewrite, vector
from qdialect.lowering.x86 import building as b

_SHIFT = 31


@dataclass(frozen=True)
class _Product:
    """``(left * right + addend) >> 31`` of 32-bit vectors."""

    left: ir.Value
    right: ir.Value
    addend: int


def high_word_to_blend(op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool | None:
    """Rewrite one truncation of a shifted product; truthy where it is another one."""
    shape = list(ir.VectorType(op.results[0].type).shape) if isinstance(op.results[0].type, ir.VectorType) else []
    product = _product_behind(op) if shape and shape[-1] % 2 == 0 else None
    if product is None:
        return True
    with rewriter.ip, op.location:
        left, right = _narrow(product.left), _narrow(product.right)
        result = b.splat(ir.VectorType(op.results[0].type), 0)
        for position in np.ndindex(*shape[:-1]):
            rows = [b.extract(value, position) if position else value for value in (left, right)]
            high = _high_word(rows[0], rows[1], product.addend, shape[-1])
            result = b.insert(high, result, position) if position else high
    rewriter.replace_op(op, [result])
    return None


def _product_behind(op: ir.Operation) -> _Product | None:
    shifted = b.defining(op.operands[0], "arith.shrsi")
    if shifted is None or b.splat_value(shifted.operands[1]) != _SHIFT:
        return None
    total, addend = shifted.operands[0], 0
    sum_ = b.defining(total, "arith.addi")
    if sum_ is not None:
        known = b.splat_value(sum_.operands[1])
        if known is None:
            return None
        total, addend = sum_.operands[0], known
    product = b.defining(total, "arith.muli")
    if product is None or not all(_is_widened(value) for value in product.operands):
        return None
    return _Product(product.operands[0], product.operands[1], addend)


def _is_widened(value: ir.Value) -> bool:
    widened = b.defining(b.looked_through(value, "vector.broadcast"), "arith.extsi")
    if widened is None:
        return False
    source = widened.operands[0].type
    return isinstance(source, ir.VectorType) and str(source.element_type) == "i32"


def _narrow(value: ir.Value) -> ir.Value:
    """The 32-bit vector that was widened, spread as the wide one was."""
    widened = b.defining(b.looked_through(value, "vector.broadcast"), "arith.extsi")
    assert widened is not None, "checked by _is_widened"
    source = widened.operands[0]
    shape = b.shape_of(value)
    if b.shape_of(source) == shape:
        return source
    return vector.broadcast(ir.VectorType.get(shape, ir.IntegerType.get_signless(32)), source)


def _high_word(left: ir.Value, right: ir.Value, addend: int, lanes: int) -> ir.Value:
    pairs = b.vector_type(lanes // 2, 64)
    a, c = vector.bitcast(pairs, left), vector.bitcast(pairs, right)
    word, nudge = b.splat(pairs, 32), b.splat(pairs, addend)

    def low(value: ir.Value) -> ir.Value:
        return arith.shrsi(arith.shli(value, word), word)

    even = arith.addi(arith.muli(low(a), low(c)), nudge)
    odd = arith.addi(arith.muli(arith.shrsi(a, word), arith.shrsi(c, word)), nudge)
    down = vector.bitcast(left.type, arith.shrui(even, b.splat(pairs, _SHIFT)))
    up = vector.bitcast(left.type, arith.shli(odd, b.splat(pairs, 32 - _SHIFT)))
    is_even = b.mask([lane % 2 == 0 for lane in range(lanes)])
    return arith.select(is_even, down, up)
