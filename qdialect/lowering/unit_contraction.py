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
    sides = [_spreadable(b.shape_of(value), tile) for value in (lhs, rhs)]
    if not all(sides) or str(ir.VectorType(acc.type).element_type) != "i32" or _reduces(op):
        return True
    with rewriter.ip, op.location:
        left, right = _spread(lhs, tile), _spread(rhs, tile)
        result = arith.addi(acc, arith.muli(left, right))
    rewriter.replace_op(op, [result])
    return None


def _reduces(op: ir.Operation) -> bool:
    """Whether some reduction loop has more than one step."""
    maps = [ir.AffineMapAttr(attr).value for attr in ir.ArrayAttr(op.attributes["indexing_maps"])]
    kinds = [str(attr) for attr in ir.ArrayAttr(op.attributes["iterator_types"])]
    extents: dict[int, int] = {}
    for map_, value in zip(maps, op.operands, strict=True):
        for result, extent in zip(map_.results, b.shape_of(value), strict=True):
            extents[ir.AffineDimExpr(result).position] = extent
    return any("reduction" in kind and extents[i] > 1 for i, kind in enumerate(kinds))


def _spreadable(shape: list[int], tile: list[int]) -> bool:
    """Whether a vector, unit dimensions aside, is the tile or its innermost dimensions."""
    own, whole = [n for n in shape if n != 1], [n for n in tile if n != 1]
    return not own or whole[-len(own) :] == own


def _spread(value: ir.Value, tile: list[int]) -> ir.Value:
    """`value` over the whole tile: reshaped to the tile's innermost dimensions, then broadcast."""
    element = ir.VectorType(value.type).element_type
    count, inner = math.prod(b.shape_of(value)), 0
    while math.prod(tile[len(tile) - inner :]) < count:
        inner += 1
    own = tile[len(tile) - inner :] if inner else [1]
    shaped = value if b.shape_of(value) == own else vector.shape_cast(ir.VectorType.get(own, element), value)
    return shaped if own == tile else vector.broadcast(ir.VectorType.get(tile, element), shaped)
