"""The function of a block: the ops of a row group on tensors of some of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from qdialect._mlir import func, ir
from qdialect.dialect import BroadcastOp, ReshapeOp
from qdialect.dialect.constants import constant, constant_value, is_repeated
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.rows.row_groups import RowGroup
from qdialect.lowering.rows.row_roles import block_shape

_RESHAPED = (BroadcastOp.OPERATION_NAME, ReshapeOp.OPERATION_NAME)


@dataclass(frozen=True)
class BlockFunction:
    """A function in a module of its own; `inputs` are those of the group that its arguments stand for."""

    module: ir.Module
    inputs: tuple[ir.Value, ...]

    @property
    def operation(self) -> ir.Operation:
        """The function."""
        return self.module.body.operations[0].operation


def block_function(group: RowGroup, block: int) -> BlockFunction:
    """The function of `block` rows of `group`: its results are the group's outputs.

    What is the same for every block and known is a constant of the function, all other inputs are arguments.
    """
    roles = dict(zip(group.inputs, group.has_rows, strict=True))
    arguments = tuple(value for value in group.inputs if not _is_constant(value, has_rows=roles[value]))
    types = [_block_type(value, group.rows, block) if roles[value] else value.type for value in arguments]
    results = [_block_type(value, group.rows, block) for value in group.outputs]
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        function = func.FuncOp("block", (types, results))
    with ir.InsertionPoint(function.add_entry_block()):
        values = dict(zip(arguments, function.entry_block.arguments, strict=True))
        for value in group.inputs:
            if value not in values:
                values[value] = _constant(value, group.rows, block, has_rows=roles[value])
        for op in group.members:
            values[op.results[0]] = _member(op, values, group.rows, block)
        func.return_([values[value] for value in group.outputs])
    return BlockFunction(module, arguments)


def _block_type(value: ir.Value, rows: int, block: int) -> ir.Type:
    element = ir.RankedTensorType(value.type).element_type
    return ir.RankedTensorType.get(block_shape(shape_of(value.type), rows, block), element)


def _is_constant(value: ir.Value, *, has_rows: bool) -> bool:
    array = constant_value(value)
    return array is not None and (not has_rows or is_repeated(array))


def _constant(value: ir.Value, rows: int, block: int, *, has_rows: bool) -> ir.Value:
    array, owner = constant_value(value), value.owner
    assert isinstance(owner, ir.Operation | ir.OpView)
    assert array is not None, "only constants are written again"
    if not has_rows:
        return owner.operation.clone().results[0]
    return constant(np.broadcast_to(array[(0,) * array.ndim], block_shape(array.shape, rows, block)))


def _member(op: ir.Operation, values: Mapping[ir.Value, ir.Value], rows: int, block: int) -> ir.Value:
    """`op` on a block's operands."""
    type_ = _block_type(op.results[0], rows, block)
    attributes = dict(op.attributes.items())
    if op.name in _RESHAPED:
        attributes["shape"] = ir.DenseI64ArrayAttr.get(shape_of(type_))
    operands = [values[value] for value in op.operands]
    created = ir.Operation.create(op.name, [type_], operands, attributes, loc=op.location)
    return created.results[0]
