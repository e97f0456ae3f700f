"""Elements at positions that are known when the network runs: where they lie in a whole tensor, and scatters.

Negative indices count from the end.  Frameworks stop with an error at an index outside; here it names the nearest
element, so that nothing outside of the tensor is ever read or written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from qdialect.arithmetic.choices import ScatterReduction
from qdialect.dialect import DynamicScatterOp
from qdialect.frontends.building.checks import Shape
from qdialect.frontends.building.op_builder import Arithmetic
from qdialect.frontends.planning.elementwise import Site, binary, unary, value_of_tensor
from qdialect.frontends.planning.emitter import Emitter, Value
from qdialect.frontends.planning.tensors import Constant, Tensor
from qdialect.ir._mlir import ir

INDICES = ("i32", "i64")
"""The types of indices."""


def strides_of(shape: Shape) -> Shape:
    """How far elements that follow each other along each dimension lie apart, in row-major order."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def offset_of(site: Site, index: Tensor, extent: int, stride: int) -> Tensor:
    """How far indices of a dimension of `extent` elements, `stride` apart, lie from the first."""
    if isinstance(index, Constant):
        array = index.array.astype(np.int64)
        return Constant(np.clip(np.where(array < 0, array + extent, array), 0, extent - 1) * stride)

    def build(s: Arithmetic, x: ir.Value) -> ir.Value:
        wide = s.resize(x, "i64")
        from_end = s.select(s.compare("lt", wide, 0), s.op("arith.addi", wide, extent), wide)
        inside = s.op("arith.minsi", s.op("arith.maxsi", from_end, 0), extent - 1)
        return s.op("arith.muli", inside, stride)

    return unary(site, value_of_tensor(site, index), "i64", build)


def sum_of(site: Site, offsets: Sequence[Tensor]) -> Tensor:
    """The sum of integers."""
    constants = [offset.array for offset in offsets if isinstance(offset, Constant)]
    if len(constants) == len(offsets):
        return Constant(np.asarray(sum(constants[1:], constants[0])))
    total, *others = (value_of_tensor(site, offset) for offset in offsets)
    for other in others:
        total = binary(site, [total, other], "i64", lambda s, lhs, rhs: s.op("arith.addi", lhs, rhs))
    return total


def elements_at(site: Site, shape: Shape, index: Tensor, axis: int) -> Tensor:
    """Where the elements lie, in row-major order, that have `index` along `axis` of a tensor of `shape`."""
    strides = strides_of(shape)
    extents = [1 if i == axis else extent for i, extent in enumerate(index.shape)]
    site.plan.budget.spend_constant(extents, 8)
    grid = np.indices(extents, dtype=np.int64)
    others = sum((grid[i] * stride for i, stride in enumerate(strides)), np.zeros(extents, np.int64))
    return sum_of(site, [offset_of(site, index, shape[axis], strides[axis]), Constant(others)])


def scattered(
    site: Site,
    data: Tensor,
    rows: Tensor,
    updates: Tensor,
    shape: Shape,
    reduction: ScatterReduction = ScatterReduction.NONE,
) -> Value:
    """`data`, seen as rows of the shape `shape`, with `updates` at `rows`, or reduced with what is there."""
    values = [value_of_tensor(site, one) for one in (data, rows, updates)]
    into, number = values[0], math.prod(rows.shape)

    def build(emitter: Emitter, held: list[ir.Value]) -> ir.Value:
        shapes = shape, (number,), (number, *shape[1:])
        operands = (emitter.reshape(one, own) for one, own in zip(held, shapes, strict=True))
        written = emitter.build(DynamicScatterOp, *operands, element=into.element, reduction=reduction)
        return emitter.reshape(written, into.shape)

    return site.plan.ordered(site.name, into.shape, into.element, values, build)
