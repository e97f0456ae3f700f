"""Element-wise ops on the result of a product that are computed in its epilogue, so that it is stored once.

They are an island (see `qdialect.lowering.islands`) that reads the product's result and constants alone, each of them
one number or one for each channel: a bias, a PReLU with its slopes, clamps.  A reshape that keeps the channels may be
in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.dialect import BroadcastOp, DynamicConv2DOp, DynamicDenseOp, F32Conv2DOp, F32MatmulOp, ReshapeOp
from qdialect.dialect.constants import constant_value, is_repeated
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.lowering.islands import Islands
from qdialect.lowering.kernels.body_machine import PAIRS, SHARED
from qdialect.lowering.kernels.scalar_ops import SCALAR_OPS
from qdialect.lowering.memory.storage import lanes_for
from qdialect.lowering.text.scalar_body import Body, Value

_PRODUCTS = tuple(op.OPERATION_NAME for op in (DynamicConv2DOp, DynamicDenseOp, F32Conv2DOp, F32MatmulOp))
_SLOW = (*SHARED, "arith.divf", *PAIRS, "math.rsqrt", "math.sqrt")
"""What takes longer in an epilogue: there is nothing beside it to compute meanwhile."""
_CHEAP = tuple(name for name in SCALAR_OPS if name not in _SLOW)
_BROADCAST = BroadcastOp.OPERATION_NAME


@dataclass(frozen=True)
class ResultEpilogue:
    """The ops of an island, in order, on the value that a product computes."""

    members: tuple[ir.Operation, ...]
    value: ir.Value
    """The product's result as they read it."""
    numbers: Mapping[ir.Value, float]
    channels: Mapping[ir.Value, NDArray[np.float32]]
    """Constants that are one number, or one for each channel."""
    reshape: ir.Operation | None
    """Between the product and `value`."""

    @property
    def result(self) -> ir.Value:
        """What is stored."""
        return self.members[-1].results[0]

    @property
    def computed(self) -> list[ir.Operation]:
        """The ops that no kernel of their own computes: the island's root, and the reshape before it."""
        return [self.members[-1], *([self.reshape] if self.reshape else [])]

    def arrays(self) -> list[NDArray[np.float32]]:
        """Those of the channels."""
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
    operations: Sequence[ir.Operation], islands: Islands, is_free: Callable[[ir.Value], bool]
) -> Iterator[tuple[ir.Operation, ResultEpilogue]]:
    """The products of a function that have one; `is_free` says that a value is stored for its readers alone."""
    for op in operations:
        if op.name in _PRODUCTS and is_free(op.results[0]):
            found = _epilogue(op, islands, is_free)
            if found is not None:
                yield op, found


def _epilogue(op: ir.Operation, islands: Islands, is_free: Callable[[ir.Value], bool]) -> ResultEpilogue | None:
    reshape = _reshape(op.results[0])
    value = op.results[0] if reshape is None else reshape.results[0]
    users = {use.owner.operation for use in value.uses}
    roots = {root for user in users for root in islands.computed_at(user)}
    if not is_free(value) or len(roots) != 1 or not islands.is_root(root := roots.pop()):
        return None
    members = islands.members(root)
    result = root.results[0]
    is_alike = shape_of(result.type) == shape_of(value.type) and element_of(result.type) == "f32"
    # Kernels of products write whole vectors of channels, which an array of the user may lack.
    channels = shape_of(value.type)[-1]
    if not is_alike or not users <= set(members) or not (is_free(result) or lanes_for(channels) == channels):
        return None
    return _with_constants(members, value, channels, reshape)


def _reshape(value: ir.Value) -> ir.Operation | None:
    """What gives `value` another shape, where nothing else reads it and its channels stay."""
    uses = list(value.uses)
    reader = uses[0].owner.opview if len(uses) == 1 else None
    if not isinstance(reader, ReshapeOp) or len(shape_of(reader.output.type)) == 4:
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
        if is_repeated(array) or _is_splat(array):
            numbers[operand] = float(array.flat[0])
        elif array.size == channels == array.shape[-1]:
            by_channel[operand] = array.reshape(-1)
        else:
            return None
    return ResultEpilogue(tuple(members), value, numbers, by_channel, reshape)


def _is_splat(array: NDArray[np.float32]) -> bool:
    bits = np.ascontiguousarray(array).view(np.int32)
    return bool((bits == bits.flat[0]).all())


def _constant(value: ir.Value) -> NDArray[Any] | None:
    owner = value.owner
    if isinstance(owner, ir.Operation | ir.OpView) and owner.name == _BROADCAST:
        value = owner.operands[0]
    return constant_value(value)
