"""Fusion groups: the element-wise ops that one kernel computes, alone or in the epilogue of a product."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect import dialect as qnn
from qdialect.arithmetic.transcendental import IN_FLOAT64, PAIRS
from qdialect.dialect.constants import constant_value, is_repeated
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.functions import owner_of
from qdialect.lowering.qnn_to_linalg.bodies.scalar_ops import SCALAR_OPS
from qdialect.lowering.qnn_to_linalg.program.program import lanes_for
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value

# One kernel computes the element-wise ops of a fusion group, so that their intermediate values are never stored.
#
# An op is fused into the kernel of its users if they share one kernel; else it is the root of its own kernel, whose
# result is stored.  Dequantizations and broadcasts cost next to nothing: every kernel that reads one recomputes it, and
# comparisons too, whose bits stay in mask registers.

_MAX_OPS = 64
"""Ops of one kernel: more keep more values alive than there are registers."""
_OPS = dict.fromkeys(IN_FLOAT64, 40)
"""Ops that count as several.  Two chained transcendental functions are so long that a core does not overlap them with
the next vector: in two kernels, with the value between them stored, they take half the time."""

_QUANTIZE = qnn.QuantizeOp.OPERATION_NAME
_BROADCAST = qnn.BroadcastOp.OPERATION_NAME
_READS = (qnn.DequantizeOp.OPERATION_NAME, _BROADCAST)
_COMPUTED = (*SCALAR_OPS, qnn.InterpolatedLutOp.OPERATION_NAME)
_READERS = (*_COMPUTED, _QUANTIZE, _BROADCAST)
MEMBERS = (*_COMPUTED, *_READS, _QUANTIZE)
"""Names of the ops that a fusion group may have."""


class FusionGroups:
    """The partition of the element-wise ops of a function into fusion groups, each named by its root."""

    def __init__(
        self,
        operations: Sequence[ir.Operation],
        apart: Set[ir.Operation] = frozenset(),
        stored: Set[ir.Value] = frozenset(),
    ) -> None:
        """The ops in `apart` belong to kernels of other kinds, which read the values in `stored`."""
        self._apart = apart
        self._order = {op: index for index, op in enumerate(operations)}
        self.inside: dict[ir.Operation, frozenset[ir.Operation]] = {}
        """By op that has no kernel of its own, as it is fused into others: the roots of these."""
        self._sizes: dict[ir.Operation, int] = {}
        for op in reversed(operations):
            if op.name in MEMBERS and op not in apart and op.results[0] not in stored:
                self._assign(op)

    def is_root(self, op: ir.Operation) -> bool:
        """Whether `op` is the root of a fusion group: its result is stored."""
        return op.name in MEMBERS and op not in self._apart and op not in self.inside

    def computed_at(self, op: ir.Operation) -> frozenset[ir.Operation]:
        """The roots of the kernels that compute `op`; none if a kernel of another kind computes it."""
        return frozenset() if op in self._apart else self.inside.get(op, frozenset((op,)))

    def members(self, root: ir.Operation) -> list[ir.Operation]:
        """The ops that the kernel of `root` computes, in order; `root` is the last."""
        found, left = {root}, [root]
        while left:
            owners = [owner_of(value) for value in left.pop().operands]
            fresh = {owner for owner in owners if owner is not None and owner in self.inside} - found
            found |= fresh
            left += fresh
        return sorted(found, key=self._order.__getitem__)

    def _assign(self, op: ir.Operation) -> None:
        every = [use.owner.operation for use in op.results[0].uses]
        users = [user for user in every if user not in self._apart]
        if every and not users:
            self.inside[op] = frozenset()
            return
        roots = frozenset[ir.Operation]().union(*(self.inside.get(user, frozenset((user,))) for user in users))
        if not self._belongs_inside(op, users, roots):
            return
        self.inside[op] = roots
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


# Element-wise ops on the result of a product are computed in its epilogue, so that the result is stored once.
#
# They are a fusion group that reads only the product's result and constants, each of them a scalar or one value per
# channel: a bias, a PReLU with its slopes, clamps.  A reshape that keeps the channels may be in between.

_PRODUCT_OPS = (
    qnn.BlockDenseOp,
    qnn.BlockDynamicDenseOp,
    qnn.DynamicConv2DOp,
    qnn.DynamicDenseOp,
    qnn.F32Conv2DOp,
    qnn.F32MatmulOp,
)
_PRODUCTS = tuple(op.OPERATION_NAME for op in _PRODUCT_OPS)
_SLOW = (*IN_FLOAT64, "arith.divf", *PAIRS, "math.rsqrt", "math.sqrt")
"""Ops that are slower in an epilogue, which has no other work to overlap with them."""
_CHEAP = tuple(name for name in SCALAR_OPS if name not in _SLOW)


@dataclass(frozen=True)
class ResultEpilogue:
    """A fusion group on the value that a product computes; its ops in order."""

    members: tuple[ir.Operation, ...]
    value: ir.Value
    """The product's result as they read it."""
    numbers: Mapping[ir.Value, float]
    channels: Mapping[ir.Value, NDArray[np.float32]]
    """Constants with one value per channel; those of one value are in `numbers`."""
    reshape: ir.Operation | None
    """Between the product and `value`."""

    @property
    def result(self) -> ir.Value:
        """The value that the kernel stores."""
        return self.members[-1].results[0]

    @property
    def computed(self) -> list[ir.Operation]:
        """The ops that need no kernel of their own: the group's root, and the reshape before it."""
        return [self.members[-1], *([self.reshape] if self.reshape else [])]

    def arrays(self) -> list[NDArray[np.float32]]:
        """The constants with one value per channel."""
        return list(self.channels.values())

    def emit(self, body: Body, value: Value, channels: Sequence[Value]) -> Value:
        """The result for a product's value, and the elements of `arrays`."""
        held = dict(zip(self.channels, channels, strict=True)) | {self.value: value}
        held |= {one: body.constant(number, "f32") for one, number in self.numbers.items()}
        for op in self.members:
            if op.name != _BROADCAST:
                held[op.results[0]] = SCALAR_OPS[op.name](body, op, [held[operand] for operand in op.operands])
        return held[self.result]


def result_epilogues(
    operations: Sequence[ir.Operation], fusion_groups: FusionGroups, is_free: Callable[[ir.Value], bool]
) -> Iterator[tuple[ir.Operation, ResultEpilogue]]:
    """The products of a function that have an epilogue; `is_free` tells whether only its readers need a value."""
    for op in operations:
        if op.name in _PRODUCTS and is_free(op.results[0]):
            found = _epilogue(op, fusion_groups, is_free)
            if found is not None:
                yield op, found


def _epilogue(
    op: ir.Operation, fusion_groups: FusionGroups, is_free: Callable[[ir.Value], bool]
) -> ResultEpilogue | None:
    reshape = _reshape(op.results[0])
    value = op.results[0] if reshape is None else reshape.results[0]
    users = {use.owner.operation for use in value.uses}
    roots = {root for user in users for root in fusion_groups.computed_at(user)}
    if not is_free(value) or len(roots) != 1 or not fusion_groups.is_root(root := roots.pop()):
        return None
    members = fusion_groups.members(root)
    result = root.results[0]
    is_alike = shape_of(result.type) == shape_of(value.type) and element_of(result.type) == "f32"
    # Kernels of products write whole vectors of channels, which an array of the user may lack.
    channels = shape_of(value.type)[-1]
    if not is_alike or not users <= set(members) or not (is_free(result) or lanes_for(channels) == channels):
        return None
    return _with_constants(members, value, channels, reshape)


def _reshape(value: ir.Value) -> ir.Operation | None:
    """The reshape of `value`, if it is the only reader and keeps the channels."""
    uses = list(value.uses)
    reader = uses[0].owner.opview if len(uses) == 1 else None
    if not isinstance(reader, qnn.ReshapeOp) or len(shape_of(reader.output.type)) == 4:
        return None
    return reader.operation if shape_of(value.type)[-1:] == shape_of(reader.output.type)[-1:] else None


def _with_constants(
    members: Sequence[ir.Operation], value: ir.Value, channels: int, reshape: ir.Operation | None
) -> ResultEpilogue | None:
    numbers: dict[ir.Value, float] = {}
    by_channel: dict[ir.Value, NDArray[np.float32]] = {}
    computed = {value, *(member.results[0] for member in members if member.name != _BROADCAST)}
    ops = [member for member in members if member.name != _BROADCAST]
    if not all(op.name in _CHEAP and element_of(op.results[0].type) in ("f32", "i1") for op in ops):
        return None
    for operand in dict.fromkeys(operand for op in ops for operand in op.operands if operand not in computed):
        array = _constant(operand)
        if array is None or array.dtype != np.float32:
            return None
        if is_splat(array):
            numbers[operand] = float(array.flat[0])
        elif array.size == channels == array.shape[-1]:
            by_channel[operand] = array.reshape(-1)
        else:
            return None
    return ResultEpilogue(tuple(members), value, numbers, by_channel, reshape)


def is_splat(array: NDArray[Any]) -> bool:
    """Whether all elements have the same bits."""
    if is_repeated(array):
        return True
    raw = np.ascontiguousarray(array).view(f"i{array.itemsize}")
    return bool((raw == raw.flat[0]).all())


def _constant(value: ir.Value) -> NDArray[Any] | None:
    owner = value.owner
    if isinstance(owner, ir.Operation | ir.OpView) and owner.name == _BROADCAST:
        value = owner.operands[0]
    return constant_value(value)
