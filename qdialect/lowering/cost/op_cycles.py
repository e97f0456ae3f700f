"""About how many cycles ops of the vector phase take on a CPU with vectors of 64 bytes.

Only the shares of micro-kernels count: threads get parts of equal cost. A vector op takes a cycle for every 64 bytes it
computes, a contraction one for every 64 products of bytes or 16 of wider numbers. Several K groups at once are matrix
tiles: 16 cycles for each tile of sums, as with whole tiles.
"""

from __future__ import annotations

import math

from qdialect.ir._mlir import ir
from qdialect.lowering.ir.functions import bounds, contraction_of

_VECTOR_BITS = 512
_WIDEST = 64
_BYTE_PRODUCTS, _WIDE_PRODUCTS = 64, 16
_K_GROUP, _TILE_CYCLES = 4, 16
# The cycles that a sum waits for the one before it.
_LATENCY = 4
_UNKNOWN_STEPS = 16
# Vectors of the lanes' own addresses, constants and casts between forms of a vector are no instructions.
_FREE = ("arith.constant", "arith.index_cast", "vector.broadcast", "vector.shape_cast", "vector.create_mask")
_WIDENING = ("arith.extui", "arith.extsi")
_SLOW = {"arith.divf": 16, "arith.divsi": 30, "arith.divui": 30, "arith.remsi": 30, "math.sqrt": 16}


def cycles(op: ir.Operation) -> float:
    """Cycles of `op` with all that is in it."""
    if op.name == "scf.for":
        found = bounds(op)
        return (found[2] if found else _UNKNOWN_STEPS) * (1 + _inside(op))
    if op.name == "vector.contract":
        found = contraction_of(op)
        if _is_in_tiles(op):
            # The innermost two are the rows and columns of a tile, one of which is missing where it has one alone.
            return _TILE_CYCLES * found.terms(found.result[:-2])
        return max(math.prod(found.extents) / (_BYTE_PRODUCTS if _is_of_bytes(op) else _WIDE_PRODUCTS), _LATENCY)
    return _inside(op) + (0 if _is_free(op) else _own(op))


def _is_free(op: ir.Operation) -> bool:
    if op.name in _FREE or op.name.startswith("memref.reinter"):
        return True
    # Tiles are bytes.
    return op.name in _WIDENING and any(_is_in_tiles(use.owner.operation) for use in op.results[0].uses)


def _inside(op: ir.Operation) -> float:
    return sum(
        cycles(child.operation) for region in op.regions for block in region.blocks for child in block.operations
    )


def _own(op: ir.Operation) -> float:
    types = [value.type for value in (*op.results, *op.operands)]
    vectors = [type_ for type_ in types if isinstance(type_, ir.VectorType)]
    bits = max((math.prod(type_.shape) * _bits(type_.element_type) for type_ in vectors), default=1)
    return math.ceil(bits / _VECTOR_BITS) * _SLOW.get(op.name, 1)


def _bits(element: ir.Type) -> int:
    # Indices of table entries are as wide as what they come from.
    if isinstance(element, ir.IndexType):
        return 8
    return element.width if isinstance(element, ir.IntegerType | ir.FloatType) else _WIDEST


def _is_in_tiles(op: ir.Operation) -> bool:
    """Whether `op` multiplies several K groups of bytes at once."""
    if op.name != "vector.contract" or not _is_of_bytes(op):
        return False
    found = contraction_of(op)
    return found.terms(found.reduced) > _K_GROUP


def _is_of_bytes(op: ir.Operation) -> bool:
    return all(
        not isinstance(value.owner, ir.Block)
        and value.owner.name in _WIDENING
        and _bits(ir.VectorType(value.owner.operands[0].type).element_type) == 8
        for value in list(op.operands)[:2]
    )
