"""linalg: tiles of sums of f32 products -> vector ops, with the roundings of the body.

Upstream's vectorizer would make a `vector.contract` of a multiplication and an addition, which no longer tells how
often they are rounded, and it does not know fused multiply-adds.  The loops over terms are tiled to one iteration:
every element of a tile gets one product, which element-wise ops compute.
"""

from __future__ import annotations

from collections.abc import Sequence

from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import arith, ir, math, vector
from qdialect.lowering.ir.building import spread
from qdialect.lowering.ir.functions import Contraction, loops_of, ops_named


def vectorize_f32_products(module: ir.Module) -> None:
    """Replace each tiled reduction that adds f32 products, in place; needs a current context and location."""
    for generic in ops_named(module, "linalg.generic"):
        body = _operations(generic)
        # Ops that were fused into a loop are also left before it, dead.
        is_used = len(list(generic.results[0].uses)) > 0
        if is_used and body in (_FUSED, _ROUNDED) and "reduction" in str(generic.attributes["iterator_types"]):
            with ir.InsertionPoint(generic), generic.location:
                generic.results[0].replace_all_uses_with(_sum(generic, is_fused=body == _FUSED))
            generic.erase()


_FUSED = ["math.fma", "linalg.yield"]
_ROUNDED = ["arith.mulf", "arith.addf", "linalg.yield"]


def _operations(generic: ir.Operation) -> list[str]:
    """The names of the ops in its body."""
    return [op.operation.name for op in generic.regions[0].blocks[0].operations]


def _sum(generic: ir.Operation, *, is_fused: bool) -> ir.Value:
    """The tensor of the sums, with the products added."""
    loops = _loops(generic)
    lhs, rhs, total = (_read(value) for value in generic.operands)
    tile = shape_of(generic.operands[2].type)
    left, right = spread(lhs, loops.lhs, loops, tile), spread(rhs, loops.rhs, loops, tile)
    added = math.fma(left, right, total) if is_fused else arith.addf(total, arith.mulf(left, right))
    return _written(added, generic.operands[2])


def _loops(generic: ir.Operation) -> Contraction:
    """The loops of a reduction of products, and their extents."""
    maps = [
        tuple(loop for loop in loops_of(one) if loop is not None)
        for one in ir.ArrayAttr(generic.attributes["indexing_maps"])
    ]
    walked = {
        loop: extent
        for loops, value in zip(maps, generic.operands, strict=True)
        for loop, extent in zip(loops, shape_of(value.type), strict=True)
    }
    return Contraction(maps[0], maps[1], maps[2], tuple(walked[loop] for loop in sorted(walked)), "add")


def _read(value: ir.Value) -> ir.Value:
    """All of a tensor."""
    type_ = ir.RankedTensorType(value.type)
    padding = ir.Operation.create("ub.poison", results=[type_.element_type]).result
    tile = ir.VectorType.get(type_.shape, type_.element_type)
    return vector.transfer_read(tile, value, _start(type_.shape), _identity(type_.shape), padding, _inside(type_.shape))


def _written(numbers: ir.Value, target: ir.Value) -> ir.Value:
    """`target` with other elements, all of them."""
    shape = shape_of(target.type)
    into = _start(shape), _identity(shape)
    written: ir.Value = vector.transfer_write(target.type, numbers, target, *into, in_bounds=_inside(shape))
    return written


def _start(shape: Sequence[int]) -> list[ir.Value]:
    return [arith.constant(ir.IndexType.get(), 0)] * len(shape)


def _identity(shape: Sequence[int]) -> ir.AffineMap:
    return ir.AffineMap.get_identity(len(shape))


def _inside(shape: Sequence[int]) -> list[bool]:
    return [True] * len(shape)
