"""`vector.contract` that reduces one term -> multiply and add, element by element, each rounded by itself.

A depthwise tap is such a contraction: its reduction loops are tiled to one iteration, so every element of the tile gets
one product.  Upstream's lowering would take it apart into scalars, and numbers in floating point into fused
multiply-adds, whose single rounding is another result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from qdialect._mlir import arith, ir, vector
from qdialect.lowering.indexing_maps import Contraction, contraction_of
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.instruction_pattern import InstructionPattern
from qdialect.passes.pattern import MatchFailure


@dataclass(frozen=True)
class _Factor:
    """How a factor lies in the tile of the result."""

    order: list[int] | None
    """The permutation of its axes that brings them into the order of the result; None where they have it."""
    shape: list[int]
    """Its extents along the loops of the result."""


@dataclass(frozen=True)
class _Product:
    lhs: _Factor
    rhs: _Factor


class UnitContraction(InstructionPattern[_Product]):
    """A contraction of i32 or f32 with one term for each element of the result."""

    name: ClassVar[str] = "unit-contraction"
    root: ClassVar[str] = "vector.contract"
    benefit: ClassVar[int] = 3

    def check(self, op: ir.Operation) -> _Product | MatchFailure | None:
        loops = contraction_of(op)
        types = {_element_of(value) for value in op.operands}
        terms = loops.terms(loops.reduced)
        if terms > 1 or len(types) != 1 or None in types:
            return None
        if loops.kind != "add":
            return MatchFailure(f"combining kind must be add, but got {loops.kind}")
        return _Product(_factor(loops.lhs, loops), _factor(loops.rhs, loops))

    def rewrite(self, op: ir.Operation, match: _Product) -> ir.Value:
        lhs, rhs, acc = op.operands
        tile = b.shape_of(acc)
        left, right = _spread(lhs, match.lhs, tile), _spread(rhs, match.rhs, tile)
        if isinstance(ir.VectorType(acc.type).element_type, ir.F32Type):
            return arith.addf(acc, arith.mulf(left, right))
        return arith.addi(acc, arith.muli(left, right))


def _element_of(value: ir.Value) -> str | None:
    """The element type of a vector of i32 or f32."""
    if b.is_vector_of(value, 32):
        return "i32"
    type_ = value.type
    is_float = isinstance(type_, ir.VectorType) and isinstance(type_.element_type, ir.F32Type) and type_.rank > 0
    return "f32" if is_float else None


def _factor(walked: Sequence[int], loops: Contraction) -> _Factor:
    """What is to be done with a factor whose axes are the loops `walked`."""
    at = [loops.result.index(loop) if loop in loops.result else 0 for loop in walked]
    long = [position for position, loop in zip(at, walked, strict=True) if loops.extents[loop] > 1]
    # Where only axes of one element are elsewhere, the elements have the order already.
    order = None if long == sorted(long) else sorted(range(len(at)), key=at.__getitem__)
    return _Factor(order, [loops.extents[loop] if loop in walked else 1 for loop in loops.result])


def _spread(value: ir.Value, factor: _Factor, tile: list[int]) -> ir.Value:
    """`value` over the whole tile: ordered, reshaped to one extent for each loop of it, then broadcast."""
    element, shape = ir.VectorType(value.type).element_type, factor.shape
    if factor.order is not None:
        extents = b.shape_of(value)
        value = vector.transpose(
            ir.VectorType.get([extents[axis] for axis in factor.order], element), value, factor.order
        )
    while len(shape) > 1 and shape[0] == 1 and shape != tile:
        shape = shape[1:]
    shaped = value if b.shape_of(value) == shape else vector.shape_cast(ir.VectorType.get(shape, element), value)
    return shaped if shape == tile else vector.broadcast(ir.VectorType.get(tile, element), shaped)
