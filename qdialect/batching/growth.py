"""Values without batch, repeated for each entry of one: constants, and what is computed from them alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.batching.rules import elementwise
from qdialect.batching.site import RULES, resized
from qdialect.dialect import BroadcastOp, build
from qdialect.dialect.attribute_kinds import INTEGERS
from qdialect.dialect.constants import CONSTANT_OPS, constant, constant_value
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.errors import op_error

Array = NDArray[Any]

_RULES = (elementwise.broadcasting, elementwise.of_one_shape)


def grown(value: ir.Value, axis: int, batch: int, wanted: int, user: ir.Operation) -> ir.Value:
    """`value` for `wanted` entries in place of `batch` ones in dimension `axis`, which are all alike, before `user`.

    Raises `CompileError` where nothing shows that they are.
    """
    owner = value.owner
    shape = resized(shape_of(value.type), axis, batch, wanted)
    if not isinstance(owner, ir.Block) and owner.name in CONSTANT_OPS:
        return _constant(value, axis, batch, wanted, user)
    if shape_of(value.type)[axis] == 1:
        with ir.InsertionPoint(user):
            element = ir.RankedTensorType(value.type).element_type
            return build(BroadcastOp, value, element=element, loc=user.location, shape=shape).output
    if isinstance(owner, ir.Block):
        raise _error(user, "an input of the network that lacks the batch has its extent")
    operands = list(owner.operands)
    if owner.name != BroadcastOp.OPERATION_NAME and RULES.get(owner.name) not in _RULES:
        raise _error(user, f"'{owner.name}' op gives it a tensor that lacks the batch and has its extent")
    for index, operand in enumerate(operands):
        at = axis - len(shape) + len(shape_of(operand.type))
        if at >= 0 and shape_of(operand.type)[at] > 1:
            operands[index] = grown(operand, at, batch, wanted, user)
    attributes = dict(owner.attributes.items())
    if owner.name == BroadcastOp.OPERATION_NAME:
        attributes["shape"] = INTEGERS.to_attribute(shape)
    type_ = ir.RankedTensorType.get(shape, ir.RankedTensorType(value.type).element_type)
    with ir.InsertionPoint(user):
        created = ir.Operation.create(owner.name, [type_], operands, attributes, loc=owner.location)
    return created.results[0]


def _constant(value: ir.Value, axis: int, batch: int, wanted: int, user: ir.Operation) -> ir.Value:
    array = constant_value(value)
    if array is None:
        raise _error(user, "a constant that lacks the batch and has its extent cannot be read")
    shape = resized(array.shape, axis, batch, wanted)
    entry = array[(slice(None),) * axis + (slice(array.shape[axis] // batch),)]
    if not np.array_equal(_bits(_repeated(entry, axis, batch)), _bits(array)):
        raise _error(user, "a constant differs between the entries of the batch")
    is_splat = not any(array.strides)
    elements = np.broadcast_to(array[(0,) * array.ndim], shape) if is_splat else _repeated(entry, axis, wanted)
    with ir.InsertionPoint(user):
        return constant(elements, user.location)


def _repeated(entry: Array, axis: int, count: int) -> Array:
    return np.concatenate([entry] * count, axis=axis)


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).view(np.uint8)


def _error(user: ir.Operation, reason: str) -> Exception:
    return op_error(user, f"must compute each entry of a dynamic batch alone, but {reason}")
