"""`vector.contract` of real numbers that reduces one term -> multiply and add, each rounded by itself.

Upstream's lowering would take fused multiply-adds, whose single rounding is another result.
"""

from __future__ import annotations

from qdialect._mlir import arith, ir, rewrite, vector
from qdialect.lowering.x86 import building as b


def contract_to_rounded_products(op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool | None:
    """Rewrite one contraction of f32; truthy where it reduces more than one term, or turns an operand."""
    lhs, rhs, acc = op.operands
    maps = [_positions(attr) for attr in ir.ArrayAttr(op.attributes["indexing_maps"])]
    tile, kept = b.shape_of(acc), maps[2]
    if str(ir.VectorType(acc.type).element_type) != "f32":
        return True
    spreads = [_spread_shape(b.shape_of(value), found, kept) for value, found in ((lhs, maps[0]), (rhs, maps[1]))]
    if None in spreads:
        return True
    with rewriter.ip, op.location:
        sides = [
            _spread(value, shape, tile) for value, shape in zip((lhs, rhs), spreads, strict=True) if shape is not None
        ]
        result = arith.addf(acc, arith.mulf(*sides))
    rewriter.replace_op(op, [result])
    return None


def _positions(attr: ir.Attribute) -> list[int]:
    return [ir.AffineDimExpr(result).position for result in ir.AffineMapAttr(attr).value.results]


def _spread_shape(shape: list[int], loops: list[int], kept: list[int]) -> list[int] | None:
    """The shape of an operand along the result's loops; None where it has another order, or terms to add up."""
    extents = dict(zip(loops, shape, strict=True))
    reduced = [extent for loop, extent in extents.items() if loop not in kept]
    order = [kept.index(loop) for loop in loops if loop in kept]
    if any(extent > 1 for extent in reduced) or order != sorted(order):
        return None
    return [extents.get(loop, 1) for loop in kept]


def _spread(value: ir.Value, shape: list[int], tile: list[int]) -> ir.Value:
    element = ir.VectorType(value.type).element_type
    shaped = value if b.shape_of(value) == shape else vector.shape_cast(ir.VectorType.get(shape, element), value)
    return shaped if shape == tile else vector.broadcast(ir.VectorType.get(tile, element), shaped)
