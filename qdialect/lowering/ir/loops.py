"""Loops: those of `scf.for`, and those that walk the operands of an op by affine maps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from qdialect.ir._mlir import ir

# Loops, and constant indices.

LOOP = "scf.for"


def constant(value: ir.Value) -> int | None:
    """The value of a constant index."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return ir.IntegerAttr(owner.attributes["value"]).value


def loop_of(variable: ir.Value) -> ir.Operation | None:
    """The `scf.for` whose index is `variable`."""
    block = variable.owner
    holder = block.owner if isinstance(block, ir.Block) else None
    return holder.operation if holder and holder.name == LOOP else None


def bounds(loop: ir.Operation) -> tuple[int, int, int] | None:
    """(first index, step, trip count) of an `scf.for` where they are known."""
    lower, upper, step = (constant(value) for value in list(loop.operands)[:3])
    if lower is None or upper is None or step is None:
        return None
    return lower, step, max(-(-(upper - lower) // step), 0)


def inside(op: ir.Operation) -> Iterator[ir.Operation]:
    """The ops in the regions of `op`, and in theirs."""
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                yield child.operation
                yield from inside(child.operation)


# The loops of ops with affine maps: which loop indexes each dimension of an operand, and its extent.

Point = Mapping[int, int]
"""An index for each of some loops."""


@dataclass(frozen=True)
class Contraction:
    """The loops of a `vector.contract`, by their positions in its iteration space."""

    lhs: tuple[int, ...]
    """The loop that walks each dimension of the first operand."""
    rhs: tuple[int, ...]
    result: tuple[int, ...]
    extents: tuple[int, ...]
    """Steps of each loop."""
    kind: str
    """The combining kind: ``add``, ``minsi``, ..."""

    @property
    def reduced(self) -> tuple[int, ...]:
        """The loops over terms of one element of the result, outermost first."""
        return tuple(loop for loop in range(len(self.extents)) if loop not in self.result)

    def terms(self, loops: Sequence[int]) -> int:
        """Steps of `loops` together."""
        count = 1
        for loop in loops:
            count *= self.extents[loop]
        return count

    def points(self, loops: Sequence[int]) -> Iterator[dict[int, int]]:
        """Every step of `loops`, the last of them fastest."""
        for indices in product(*(range(self.extents[loop]) for loop in loops)):
            yield dict(zip(loops, indices, strict=True))


def loops_of(attribute: ir.Attribute) -> tuple[int | None, ...]:
    """By result of an affine map: the loop that it is; None for other expressions."""
    return tuple(
        ir.AffineDimExpr(result).position if isinstance(result, ir.AffineDimExpr) else None
        for result in ir.AffineMapAttr(attribute).value.results
    )


def contraction_of(op: ir.Operation) -> Contraction:
    """The loops of the `vector.contract` `op`, whose verifier wants projected permutations."""
    maps = [
        tuple(loop for loop in loops_of(one) if loop is not None)
        for one in ir.ArrayAttr(op.attributes["indexing_maps"])
    ]
    extents = [1] * len(ir.ArrayAttr(op.attributes["iterator_types"]))
    for loops, value in zip(maps, list(op.operands), strict=False):
        shape = ir.VectorType(value.type).shape if isinstance(value.type, ir.VectorType) else ()
        for loop, extent in zip(loops, shape, strict=True):
            extents[loop] = extent
    kind = str(op.attributes["kind"]).removeprefix("#vector.kind<").removesuffix(">")
    return Contraction(maps[0], maps[1], maps[2], tuple(extents), kind)


def at(point: Point, loops: Sequence[int]) -> tuple[int, ...]:
    """The indices of an operand that `loops` walk at a point; a loop that has no index there is at its start."""
    return tuple(point.get(loop, 0) for loop in loops)
