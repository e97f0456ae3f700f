"""Inputs of a row group whose memory an output can take: nothing reads them once it is written.

A block of rows is computed member by member.  The output of an element-wise op may lie where an input of its shape is
if all that reads the input has read an element by the time that it is written:

- an op with a kernel of its own, a reduction for example, that comes before has read the whole block;
- so has an element-wise op that comes before where its result is stored, as one of its readers is not element-wise;
- else it may be computed inside the kernels of its readers, for which the same must hold;
- the output itself is read and written element by element.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from qdialect._mlir import ir
from qdialect.dialect import BroadcastOp, DequantizeOp, InterpolatedLutOp, ReshapeOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.islands import MEMBERS
from qdialect.lowering.kernels.scalar_ops import SCALAR_OPS
from qdialect.lowering.rows.row_groups import RowGroup

_ELSEWHERE = tuple(one.OPERATION_NAME for one in (BroadcastOp, DequantizeOp, InterpolatedLutOp, ReshapeOp))
"""What is another name of its operand, or may be computed where it is read, but not of the same elements."""


def overwritable(group: RowGroup, output: ir.Value) -> Iterator[ir.Value]:
    """The inputs of `group` whose memory `output` can take, as far as the group itself reads them."""
    owner = output.owner
    if group.products or isinstance(owner, ir.Block) or owner.operation.name not in SCALAR_OPS:
        return
    readers = _Readers({op: index for index, op in enumerate(group.members)}, owner.operation)
    for value, has_rows in zip(group.inputs, group.has_rows, strict=True):
        if has_rows and shape_of(value.type) == shape_of(output.type) and readers.are_done(value):
            yield value


class _Readers:
    """Which ops have read their operands when the last one writes an element."""

    def __init__(self, order: Mapping[ir.Operation, int], last: ir.Operation) -> None:
        self._order = order
        self._last = last
        self._done: dict[ir.Operation, bool] = {last: True}

    def are_done(self, value: ir.Value) -> bool:
        """Whether all readers of an input of the group are."""
        return all(self._is_done(use.owner.operation) for use in value.uses)

    def _is_done(self, op: ir.Operation) -> bool:
        if op not in self._done:
            self._done[op] = self._order.get(op, len(self._order)) < self._order[self._last] and self._reads_now(op)
        return self._done[op]

    def _reads_now(self, op: ir.Operation) -> bool:
        if op.name not in SCALAR_OPS:
            return op.name not in _ELSEWHERE
        users = [use.owner.operation for use in op.results[0].uses]
        return any(user.name not in MEMBERS for user in users) or all(map(self._is_done, users))
