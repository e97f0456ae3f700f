"""Operands of kernels: parameter arrays, constants, and transposed operands that are read in place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from qdialect.dialect import DynamicGatherOp, F32MatmulOp, FusedMatMulOp, MatMulOp, TransposeOp
from qdialect.dialect.constants import CONSTANT_OPS, constant_value, missing_elements
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.functions import only_user, op_error
from qdialect.passes.pattern import producer

# Parameter arrays of kernels.


@dataclass(frozen=True)
class Parameter:
    """One array a requantization reads: per channel, or of one entry."""

    name: str
    element: str
    values: NDArray[Any]


# Operands that kernels need to know when they are compiled.


def check_elements(module: ir.Module) -> None:
    """Raise `CompileError` at the first constant of a function whose elements were elided."""
    functions = [op.operation for op in module.body.operations]
    blocks = [block for function in functions for region in function.regions for block in region.blocks]
    for operation in (op.operation for block in blocks for op in block.operations):
        problem = missing_elements(operation)
        if problem:
            raise op_error(operation, problem)


def known_number(value: ir.Value) -> float | None:
    """The one number of a constant; None where there are several, or where it is known at run time."""
    array = constant_value(value)
    if array is None or (array != array.flat[0]).any():
        return None
    return array.flat[0].item()


# Transposed operands of products: read where they were before, by strides of another order.

_K_GROUP = 4


def source_of(value: ir.Value) -> TransposeOp | None:
    """The op whose input is read in place of `value`; None where `value` is stored."""
    view = producer(value)
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


# Matrices that are picked at run time, as those of experts: products of one row with each read them where they lie.


def picked_matrices(value: ir.Value) -> DynamicGatherOp | None:
    """The gather of constant matrices whose result `value` a product reads in its place; None for other values."""
    gather, reader = producer(value), only_user(value)
    if not isinstance(gather, DynamicGatherOp) or not isinstance(reader, F32MatmulOp):
        return None
    shape, is_of_rows = shape_of(gather.data.type), shape_of(reader.data.type)[-2] == 1
    is_list = len(shape) == 3 and gather.axis == 0 and len(shape_of(gather.indices.type)) == 1
    is_matrix = is_list and is_of_rows and reader.matrix == value and reader.data != value
    # Those sums start from zero.
    is_matrix = is_matrix and reader.bias is None
    return gather if is_matrix and constant_value(gather.data) is not None else None
