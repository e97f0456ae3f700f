"""Transposed operands of products: read where they were before, by strides of another order."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect import FusedMatMulOp, MatMulOp, TransposeOp
from qdialect.dialect.constants import CONSTANT_OPS
from qdialect.dialect.type_constraints import shape_of

_K_GROUP = 4


def source_of(value: ir.Value) -> TransposeOp | None:
    """The op whose input is read in place of `value`; None where `value` is stored."""
    if isinstance(value.owner, ir.Block):
        return None
    view = value.owner.opview
    return view if isinstance(view, TransposeOp) and is_read_through(view) else None


def is_read_through(op: TransposeOp) -> bool:
    """Whether the result of `op` is stored nowhere: all its readers are products that can do without."""
    uses, source = list(op.output.uses), op.input.owner
    is_constant = not isinstance(source, ir.Block) and source.name in CONSTANT_OPS
    return bool(uses) and not is_constant and all(_reads_through(op, use.owner) for use in uses)


def _reads_through(op: TransposeOp, reader: ir.Operation | ir.OpView) -> bool:
    product = reader.opview
    if not isinstance(product, MatMulOp | FusedMatMulOp):
        return False
    if isinstance(product, FusedMatMulOp) and product.residual is not None and product.residual == op.output:
        return False
    shape, last = shape_of(op.input.type), len(op.permutation) - 1
    if op.permutation[-1] == last:
        return True
    # The columns of the right operand are contiguous, and each K group is a 32-bit number.
    return product.data != op.output and op.permutation[-2] == last and shape[last] % (2 * _K_GROUP) == 0
