"""Transpositions around a row group that its products do without.

The heads of an attention lie side by side in the rows of what was multiplied before, and of what is multiplied after.
A head is a matrix of some columns of each row, so that a product of heads can read and write it there:

    x[row, head, column]     the row of a head begins `heads * columns` elements behind that of the row before it
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from qdialect._mlir import ir
from qdialect.dialect import F32MatmulOp, TransposeOp
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import shape_of

Views = Mapping[ir.Value, TransposeOp]
"""By value of a group: the transposition that makes it, or that it goes through."""
_PRODUCT = F32MatmulOp.OPERATION_NAME


def views(
    rows: int,
    members: Collection[ir.Operation],
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    is_in_rows: Callable[[ir.Value], bool],
) -> Views:
    """The transpositions that the `members`, which compute `rows` matrices, need not wait for or be followed by."""
    read = {value: _owner(value) for value in inputs}
    found = {value: op for value, op in read.items() if op is not None and _is_read_through(op, members, is_in_rows)}
    written = {value: _only_user(value) for value in outputs if _is_product(value)}
    found |= {value: op for value, op in written.items() if op is not None and is_in_rows(op.output)}
    return {value: op for value, op in found.items() if _keeps_columns(op, value, rows)}


def steps(op: TransposeOp, value: ir.Value, own: Sequence[int]) -> list[int]:
    """Elements between neighbours along each dimension of `value`, where the other side of `op` has strides `own`."""
    if value == op.output:
        return [own[axis] for axis in op.permutation]
    found = dict(zip(op.permutation, own, strict=True))
    return [found[axis] for axis in range(len(own))]


def _owner(value: ir.Value) -> TransposeOp | None:
    owner = None if isinstance(value.owner, ir.Block) else value.owner.opview
    return owner if isinstance(owner, TransposeOp) else None


def _is_product(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name == _PRODUCT


def _only_user(value: ir.Value) -> TransposeOp | None:
    users = [use.owner.opview for use in value.uses]
    return users[0] if len(users) == 1 and isinstance(users[0], TransposeOp) else None


def _is_read_through(
    op: TransposeOp, members: Collection[ir.Operation], is_in_rows: Callable[[ir.Value], bool]
) -> bool:
    """Whether products of the group are all that reads the result, of what is stored row after row."""
    is_stored = constant_value(op.input) is None and is_in_rows(op.input)
    return is_stored and all(use.owner in members and use.owner.name == _PRODUCT for use in op.output.uses)


def _keeps_columns(op: TransposeOp, value: ir.Value, rows: int) -> bool:
    """Whether columns stay side by side, and one dimension counts the matrices."""
    shape = shape_of(value.type)
    return op.permutation[-1] == len(shape) - 1 and [extent for extent in shape[:-2] if extent > 1] == [rows]
