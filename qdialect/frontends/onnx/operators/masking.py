"""Trilu and OneHot: elements that stand where the numbers of their rows and columns say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import MAX_ELEMENTS
from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.data_movement import normalized_axes
from qdialect.frontends.onnx.operators.indexing import indices_of
from qdialect.frontends.onnx.operators.registry import Call, imports, value_of
from qdialect.frontends.planning.movement import Reshaping, move_value
from qdialect.frontends.planning.plain import Arithmetic, binary, constant_of, elementwise, tensor_of
from qdialect.frontends.planning.tensors import Tensor, known


@imports("Trilu")
def _trilu(call: Call) -> Tensor:
    """The upper or lower triangle of each matrix, from the k-th diagonal on; zeros elsewhere."""
    call.count(1, 2)
    value, is_upper = value_of(call, 0), call.flag("upper", 1)
    require(len(value.shape) >= 2, f"input must have at least 2 dimensions, but got {len(value.shape)}")
    diagonals = call.integers(1) if call.optional(1) is not None else (0,)
    require(len(diagonals) == 1, f"k must have 1 entry, but got {len(diagonals)}")
    rows, columns = value.shape[-2:]
    diagonal = min(max(diagonals[0], -rows), columns)
    triangle = np.tri(rows, columns, k=diagonal - 1 if is_upper else diagonal, dtype=np.bool_)
    mask = constant_of(call, ~triangle if is_upper else triangle)
    return tensor_of(binary(call, [mask, value], value.element, lambda s, holds, x: s.select(holds, x, 0)))


@imports("OneHot")
def _one_hot(call: Call) -> Tensor:
    """An index outside has no element of its own."""
    call.count(3)
    indices, number, pair = indices_of(call, 0), call.number(1), call.constant(2)
    require(1 <= number <= MAX_ELEMENTS, f"depth must be in [1, {MAX_ELEMENTS}], but got {number}")
    depth = int(number)
    require(pair.shape == (2,), f"values must have the shape [2], but got {list(pair.shape)}")
    rank = len(indices.shape) + 1
    (axis,) = normalized_axes([call.attribute("axis", -1)], rank)
    shape = (*indices.shape[:axis], 1, *indices.shape[axis:])
    grown = move_value(call.plan, call.name, indices, Reshaping(shape), None)
    call.plan.budget.spend_indices(depth)
    along = np.arange(depth, dtype=np.int64).reshape(-1, *[1] * (rank - axis - 1))
    off, on = (known(call.name, entry.reshape(())) for entry in pair)

    def build(s: Arithmetic, operands: Sequence[ir.Value]) -> ir.Value:
        index, position, other, own = operands
        wide = s.resize(index, "i64")
        from_end = s.select(s.compare("lt", wide, 0), s.op("arith.addi", wide, depth), wide)
        return s.select(s.compare("eq", from_end, position), own, other)

    return tensor_of(elementwise(call, [grown, constant_of(call, along), off, on], on.element, build))
