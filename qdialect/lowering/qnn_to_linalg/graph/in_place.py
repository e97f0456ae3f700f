"""In-place results: those written over an operand, in a block of rows or in a whole tensor that is dead by then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from qdialect.arithmetic.float32 import ALGORITHMS
from qdialect.dialect import BroadcastOp, DequantizeOp, InterpolatedLutOp, ReshapeOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.qnn_to_linalg.bodies.scalar_ops import SCALAR_OPS
from qdialect.lowering.qnn_to_linalg.graph.fusion_groups import MEMBERS, FusionGroups
from qdialect.lowering.qnn_to_linalg.graph.row_fusion import FusedRows

# Results of a block that are written over an operand, so that fewer bytes pass through the L1 cache.
#
# An element-wise kernel reads an element of an operand before it writes that of its result, so both may share memory if
# nothing reads the operand afterwards.  Only results of long functions do: a softmax writes its exponentials into the
# memory of its result, whose lines are fetched while the exponentials are computed rather than during the division,
# which hides less latency.  A LayerNormalization, which subtracts first and divides last, would take 1.03 times as
# long.

_RESHAPE, _BROADCAST = ReshapeOp.OPERATION_NAME, BroadcastOp.OPERATION_NAME


def in_place_results(operations: Sequence[ir.Operation], fusion_groups: FusionGroups) -> dict[ir.Value, ir.Value]:
    """By stored element-wise result: the later result that can overwrite it, a different one each."""
    order = {op: index for index, op in enumerate(operations)}
    found: dict[ir.Value, ir.Value] = {}
    for root in operations:
        if not fusion_groups.is_root(root):
            continue
        members = fusion_groups.members(root)
        last = next(
            (
                value
                for value in _stored(members, fusion_groups)
                if _ends_at(value, root, members, order, fusion_groups)
            ),
            None,
        )
        if last is not None and last not in found:
            found[last] = root.results[0]
    return found


def _stored(members: Sequence[ir.Operation], fusion_groups: FusionGroups) -> Iterator[ir.Value]:
    """The results of long functions that one of `members`, the last of which is its root, reads at the same index."""
    type_ = members[-1].results[0].type
    for value in (value for op in members if op.name != _BROADCAST for value in op.operands):
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.operation in members:
            continue
        if value.type == type_ and fusion_groups.is_root(owner.operation) and _is_long(owner.operation, fusion_groups):
            yield value


def _is_long(root: ir.Operation, fusion_groups: FusionGroups) -> bool:
    return any(op.name in ALGORITHMS for op in fusion_groups.members(root))


def _ends_at(
    value: ir.Value,
    root: ir.Operation,
    members: Sequence[ir.Operation],
    order: dict[ir.Operation, int],
    fusion_groups: FusionGroups,
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
    return all(_is_before(user, root, order, fusion_groups) for user in left)


def _is_before(
    user: ir.Operation, root: ir.Operation, order: dict[ir.Operation, int], fusion_groups: FusionGroups
) -> bool:
    roots = fusion_groups.computed_at(user)
    return bool(roots) and all(one in order and order[one] < order[root] for one in roots)


# Inputs of fused rows that an output can overwrite: nothing reads them once it is written.
#
# A block of rows is computed member by member.  The output of an element-wise op may overwrite an input of its shape if
# every reader of the input has read an element by the time that it is written:
#
# - an op with a kernel of its own, a reduction for example, that comes before has read the whole block;
# - so has an element-wise op that comes before where its result is stored, as one of its readers is not element-wise;
# - else it may be computed inside the kernels of its readers, for which the same must hold;
# - the output itself is read and written element by element.

_ELSEWHERE = tuple(one.OPERATION_NAME for one in (BroadcastOp, DequantizeOp, InterpolatedLutOp, ReshapeOp))
"""Ops that alias their operand, or that may be fused into their readers but read other elements of it."""


def overwritable(group: FusedRows, output: ir.Value) -> Iterator[ir.Value]:
    """The inputs of `group` that `output` can overwrite, as far as the group itself reads them."""
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
