"""`vector.contract` that reduces nothing -> multiply and add, element by element.

A depthwise tap is such a contraction: its reduction loops are tiled to one step, so every element of the tile gets one
product.  Upstream's lowering would take it apart into scalars.
"""

from __future__ import annotations

import math

from qdialect._mlir import arith, ir, rewrite, vector
from qdialect.lowering.x86 import building as b


def contract_to_multiply_add(op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool | None:
    """Rewrite one contraction of integers; truthy where it reduces more than one element, or operands interleave."""
    lhs, rhs, acc = op.operands
    tile = b.shape_of(acc)
    own_lhs, own_rhs, whole = (_moving(op, index) for index in range(3))
    spreadable = all(own == whole[len(whole) - len(own) :] for own in (own_lhs, own_rhs))
    if not spreadable or str(ir.VectorType(acc.type).element_type) != "i32" or _reduces(op):
        return True
    with rewriter.ip, op.location:
        left, right = _spread(lhs, tile), _spread(rhs, tile)
        result = arith.addi(acc, arith.muli(left, right))
    rewriter.replace_op(op, [result])
    return None


def _loops(op: ir.Operation, index: int) -> list[tuple[int, int]]:
    """The loop that walks each dimension of an operand, and how far."""
    map_ = ir.AffineMapAttr(ir.ArrayAttr(op.attributes["indexing_maps"])[index]).value
    positions = [ir.AffineDimExpr(result).position for result in map_.results]
    return list(zip(positions, b.shape_of(op.operands[index]), strict=True))


def _moving(op: ir.Operation, index: int) -> list[int]:
    """The loops along which an operand has more than one element, outermost first."""
    return [position for position, extent in _loops(op, index) if extent > 1]


def _reduces(op: ir.Operation) -> bool:
    """Whether some reduction loop has more than one step."""
    kinds = [str(attr) for attr in ir.ArrayAttr(op.attributes["iterator_types"])]
    return any("reduction" in kinds[loop] for index in range(3) for loop in _moving(op, index))


def _spread(value: ir.Value, tile: list[int]) -> ir.Value:
    """`value` over the whole tile: reshaped to the tile's innermost dimensions, then broadcast."""
    element = ir.VectorType(value.type).element_type
    count, inner = math.prod(b.shape_of(value)), 0
    while math.prod(tile[len(tile) - inner :]) < count:
        inner += 1
    own = tile[len(tile) - inner :] if inner else [1]
    shaped = value if b.shape_of(value) == own else vector.shape_cast(ir.VectorType.get(own, element), value)
    return shaped if own == tile else vector.broadcast(ir.VectorType.get(tile, element), shaped)
