"""Which results of a block take the place of an operand, so that fewer bytes pass through the first-level cache.

An element-wise kernel reads an element of an operand before it writes that of its result, so that both may lie in the
same memory if nobody reads the operand afterwards.  That is so for what a long function computes: a softmax writes
its exponentials where their shares will be, and the lines of the result are fetched while the exponentials are
computed, not by a division, which has less to do.  A LayerNormalization, which subtracts first and divides last, would
take 1.03 times as long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qdialect._mlir import ir
from qdialect.dialect import BroadcastOp, ReshapeOp
from qdialect.lowering.islands import Islands
from qdialect.quant_math.float32 import ALGORITHMS

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
