"""Results that take the place of an operand: of a block of rows, and of a whole tensor that nothing reads any more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from qdialect.arithmetic.float32 import ALGORITHMS
from qdialect.dialect import BroadcastOp, DequantizeOp, InterpolatedLutOp, ReshapeOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.qnn_to_linalg.bodies.scalar_ops import SCALAR_OPS
from qdialect.lowering.qnn_to_linalg.graph.fusion_groups import MEMBERS, Islands
from qdialect.lowering.qnn_to_linalg.graph.row_fusion import RowGroup

# Which results of a block take the place of an operand, so that fewer bytes pass through the first-level cache.
#
# An element-wise kernel reads an element of an operand before it writes that of its result, so that both may lie in
# the
# same memory if nobody reads the operand afterwards.  That is so for what a long function computes: a softmax writes
# its exponentials where their shares will be, and the lines of the result are fetched while the exponentials are
# computed, not by a division, which has less to do.  A LayerNormalization, which subtracts first and divides last,
# would
# take 1.03 times as long.

_RESHAPE, _BROADCAST = ReshapeOp.OPERATION_NAME, BroadcastOp.OPERATION_NAME


def heirs(operations: Sequence[ir.Operation], islands: Islands) -> dict[ir.Value, ir.Value]:
    """By a stored element-wise result: the result that can be written in its place, another one each."""
    order = {op: index for index, op in enumerate(operations)}
    found: dict[ir.Value, ir.Value] = {}
    for root in operations:
        if not islands.is_root(root):
            continue
        members = islands.members(root)
        last = next(
            (value for value in _stored(members, islands) if _ends_at(value, root, members, order, islands)), None
        )
        if last is not None and last not in found:
            found[last] = root.results[0]
    return found


def _stored(members: Sequence[ir.Operation], islands: Islands) -> Iterator[ir.Value]:
    """The results of long functions that one of `members`, the last of which is its root, reads at the same index."""
    type_ = members[-1].results[0].type
    for value in (value for op in members if op.name != _BROADCAST for value in op.operands):
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.operation in members:
            continue
        if value.type == type_ and islands.is_root(owner.operation) and _is_long(owner.operation, islands):
            yield value


def _is_long(root: ir.Operation, islands: Islands) -> bool:
    return any(op.name in ALGORITHMS for op in islands.members(root))


def _ends_at(
    value: ir.Value,
    root: ir.Operation,
    members: Sequence[ir.Operation],
    order: dict[ir.Operation, int],
    islands: Islands,
) -> bool:
    """Whether `value` is read before the kernel of `root`, or in it element by element, and never after."""
    users = [use.owner.operation for use in value.uses]
    others = [user for user in users if user not in members]
    if any(user.name == _BROADCAST for user in users if user in members):
        return False
    seen = [result for user in others if user.name == _RESHAPE for result in user.results]
    left = [user for user in others if user.name != _RESHAPE]
    while seen:
        users = [use.owner.operation for use in seen.pop().uses]
        seen += [result for user in users if user.name == _RESHAPE for result in user.results]
        left += [user for user in users if user.name != _RESHAPE]
    return all(_is_before(user, root, order, islands) for user in left)


def _is_before(user: ir.Operation, root: ir.Operation, order: dict[ir.Operation, int], islands: Islands) -> bool:
    roots = islands.computed_at(user)
    return bool(roots) and all(one in order and order[one] < order[root] for one in roots)


# Inputs of a row group whose memory an output can take: nothing reads them once it is written.
#
# A block of rows is computed member by member.  The output of an element-wise op may lie where an input of its shape
# is
# if all that reads the input has read an element by the time that it is written:
#
# - an op with a kernel of its own, a reduction for example, that comes before has read the whole block;
# - so has an element-wise op that comes before where its result is stored, as one of its readers is not element-wise;
# - else it may be computed inside the kernels of its readers, for which the same must hold;
# - the output itself is read and written element by element.

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
