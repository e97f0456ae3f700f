"""Which ops compute the rows of their results apart, and from which part of their operands.

The leading dimensions of a tensor whose extents multiply up to a number of rows divide it into so many rows, one after
the other in memory.  A block of rows is a tensor of the same rank: of its leading dimensions the last is the number of
its rows, the others are 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from qdialect._mlir import ir
from qdialect.dialect import (
    BroadcastOp,
    DequantizeOp,
    F32MatmulOp,
    F32ReduceOp,
    FusedMatMulOp,
    MatMulOp,
    QuantizeOp,
    ReshapeOp,
    SoftmaxOp,
)
from qdialect.dialect.op_base import QnnOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.kernels.scalar_ops import SCALAR_OPS
from qdialect.lowering.operands.transposed_operands import source_of

Shape = tuple[int, ...]
Roles = tuple[bool, ...]
"""Of each operand: whether a block of rows takes its own rows of it; else it takes all of it."""


def leading(shape: Shape, rows: int) -> int | None:
    """How many leading dimensions divide a tensor into `rows` rows; None where none do."""
    return next((count for count in range(1, len(shape) + 1) if prod(shape[:count]) == rows), None)


def block_shape(shape: Shape, rows: int, block: int) -> Shape:
    """The shape of `block` of the `rows` rows of a tensor of `shape`."""
    count = leading(shape, rows)
    assert count is not None, "the tensor has rows"
    return (*(1,) * (count - 1), block, *shape[count:])


def roles(op: ir.Operation, rows: int) -> Roles | None:
    """The roles of the operands of `op` where it computes `rows` rows apart; None where it does not."""
    if len(op.results) != 1 or leading(shape_of(op.results[0].type), rows) is None:
        return None
    if op.name in SCALAR_OPS:
        return (True,) * len(op.operands)
    view = op.opview
    found = next((_ROLES[one] for one in type(view).__mro__ if one in _ROLES), None)
    return found(view, rows) if found else None


def _broadcast(op: BroadcastOp, rows: int) -> Roles | None:
    before, after = shape_of(op.input.type), shape_of(op.output.type)
    count = leading(after, rows)
    assert count is not None, "the result has rows"
    aligned = (1,) * (len(after) - len(before)) + before
    if aligned[:count] == (1,) * count:
        return (False,)
    return (True,) if aligned[:count] == after[:count] else None


def _reduce(op: F32ReduceOp, rows: int) -> Roles | None:
    count = leading(shape_of(op.input.type), rows)
    return (True,) if count is not None and op.axes[0] >= count else None


def _reshape(op: ReshapeOp, rows: int) -> Roles | None:
    return None if leading(shape_of(op.input.type), rows) is None else (True,)


def _quantization(op: QuantizeOp | DequantizeOp, rows: int) -> Roles | None:
    count = leading(shape_of(op.input.type), rows)
    is_one = len(op.scales) == len(op.zero_points) == 1
    return (True,) if count is not None and (is_one or op.axis >= count) else None


def _softmax(op: SoftmaxOp, rows: int) -> Roles | None:
    count = leading(shape_of(op.input.type), rows)
    return (True,) if count is not None and op.axis >= count else None


def _product(op: F32MatmulOp | MatMulOp | FusedMatMulOp, rows: int) -> Roles | None:
    """Products of as many pairs of matrices; what is known by column has no rows."""
    if any(source_of(value) for value in op.operation.operands):
        # They walk through a whole tensor in another order.
        return None
    operands = [shape_of(value.type) for value in op.operation.operands]
    counts = [leading(shape[:-2], rows) for shape in operands]
    if counts[0] is None or counts[1] is None or operands[0][: counts[0]] != operands[1][: counts[1]]:
        return None
    return tuple(count is not None for count in counts)


def _f32_product(op: F32MatmulOp, rows: int) -> Roles | None:
    """Also rows of one matrix, each by the whole of the other."""
    data, matrix = shape_of(op.data.type), shape_of(op.matrix.type)
    if leading(data, rows) == len(data) - 1 and prod(matrix[:-2]) == 1:
        return True, False
    return _product(op, rows)


_ROLES: Mapping[type[QnnOp], Callable[[Any, int], Roles | None]] = {
    BroadcastOp: _broadcast,
    DequantizeOp: _quantization,
    F32MatmulOp: _f32_product,
    F32ReduceOp: _reduce,
    FusedMatMulOp: _product,
    MatMulOp: _product,
    QuantizeOp: _quantization,
    ReshapeOp: _reshape,
    SoftmaxOp: _softmax,
}
