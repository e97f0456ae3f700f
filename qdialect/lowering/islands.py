"""Islands: which element-wise ops one kernel computes together, so that what lies between them is never stored.

An op is computed inside the kernel of its users where these are one kernel; else it is the root of a kernel of its own,
whose result is stored.  What costs next to nothing, dequantizing values and repeating them along a dimension,
is done again in every kernel that asks for it, and so are comparisons, whose bits stay in mask registers.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from qdialect._mlir import ir
from qdialect.dialect import BroadcastOp, DequantizeOp, InterpolatedLutOp, QuantizeOp
from qdialect.dialect.type_constraints import element_of
from qdialect.lowering.functions import owner_of
from qdialect.lowering.kernels.body_machine import SHARED
from qdialect.lowering.kernels.scalar_ops import SCALAR_OPS

_MAX_OPS = 64
"""Of one kernel: more keep more numbers alive than there are registers."""
_OPS = dict.fromkeys(SHARED, 40)
"""What counts as several ops.  Two transcendental functions, one of the other, are a chain so long that a processor
does not look ahead to the next vector: apart, with what lies between them stored, they take half the time."""

_QUANTIZE = QuantizeOp.OPERATION_NAME
_BROADCAST = BroadcastOp.OPERATION_NAME
_READS = (DequantizeOp.OPERATION_NAME, _BROADCAST)
_COMPUTED = (*SCALAR_OPS, InterpolatedLutOp.OPERATION_NAME)
_READERS = (*_COMPUTED, _QUANTIZE, _BROADCAST)
MEMBERS = (*_COMPUTED, *_READS, _QUANTIZE)
"""Names of the ops that an island may have."""


class Islands:
    """The partition of the element-wise ops of a function into kernels."""

    def __init__(
        self,
        operations: Sequence[ir.Operation],
        apart: Set[ir.Operation] = frozenset(),
        stored: Set[ir.Value] = frozenset(),
    ) -> None:
        """Ops that are `apart` belong to kernels of other kinds, which read what is `stored`."""
        self._apart = apart
        self._order = {op: index for index, op in enumerate(operations)}
        self._roots: dict[ir.Operation, frozenset[ir.Operation]] = {}
        """Of each op that is computed inside the kernels of others: the roots of these."""
        self._sizes: dict[ir.Operation, int] = {}
        for op in reversed(operations):
            if op.name in MEMBERS and op not in apart and op.results[0] not in stored:
                self._assign(op)

    def is_inside(self, op: ir.Operation) -> bool:
        """Whether `op` is computed inside other kernels alone."""
        return op in self._roots

    def is_root(self, op: ir.Operation) -> bool:
        """Whether `op` is element-wise and its result that of a kernel of this kind."""
        return op.name in MEMBERS and op not in self._apart and op not in self._roots

    def computed_at(self, op: ir.Operation) -> frozenset[ir.Operation]:
        """The ops in whose places `op` is computed; none where that is a kernel of another kind for several ops."""
        return frozenset() if op in self._apart else self._roots.get(op, frozenset((op,)))

    def members(self, root: ir.Operation) -> list[ir.Operation]:
        """The ops that the kernel of `root` computes, in order; `root` is the last."""
        found, left = {root}, [root]
        while left:
            owners = [owner_of(value) for value in left.pop().operands]
            fresh = {owner for owner in owners if owner is not None and owner in self._roots} - found
            found |= fresh
            left += fresh
        return sorted(found, key=self._order.__getitem__)

    def _assign(self, op: ir.Operation) -> None:
        every = [use.owner.operation for use in op.results[0].uses]
        users = [user for user in every if user not in self._apart]
        if every and not users:
            self._roots[op] = frozenset()
            return
        roots = frozenset[ir.Operation]().union(*(self._roots.get(user, frozenset((user,))) for user in users))
        if not self._belongs_inside(op, users, roots):
            return
        self._roots[op] = roots
        for root in roots:
            self._sizes[root] = self._size(root) + _OPS.get(op.name, 1)

    def _size(self, root: ir.Operation) -> int:
        return self._sizes.get(root, _OPS.get(root.name, 1))

    def _belongs_inside(self, op: ir.Operation, users: Sequence[ir.Operation], roots: frozenset[ir.Operation]) -> bool:
        if op.name == _QUANTIZE or not users or any(user.name not in _READERS for user in users):
            return False
        if op.name in _READS:
            return True
        is_full = any(self._size(root) + _OPS.get(op.name, 1) > _MAX_OPS for root in roots)
        if is_full or any(user.name == _BROADCAST for user in users):
            return False
        return len(roots) == 1 or element_of(op.results[0].type) == "i1"
