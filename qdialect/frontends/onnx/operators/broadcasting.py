"""Operands of element-wise ops, brought to one shape."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import BroadcastOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.frontends.common import Shape, UnsupportedError
from qdialect.frontends.planning.emitter import Emitter, Value, channels_last


def broadcast_shape(lhs: Shape, rhs: Shape) -> Shape:
    """The shape of a function of two tensors; raises `UnsupportedError` where they do not broadcast."""
    try:
        return np.broadcast_shapes(lhs, rhs)
    except ValueError as error:
        raise UnsupportedError(f"operand shapes must broadcast, but got {list(lhs)} and {list(rhs)}") from error


def operands_of_shape(emitter: Emitter, values: Sequence[Value], shape: Shape) -> tuple[list[ir.Value], bool]:
    """Values in the shape of the result, and whether their channels come last."""
    operands, is_channels_last = emitter.alike([_grown(value, shape) for value in values])
    order = channels_last(len(shape)) if is_channels_last else range(len(shape))
    stored = tuple(shape[axis] for axis in order)
    return [_spread(emitter, value, stored) for value in operands], is_channels_last


def _grown(value: Value, shape: Shape) -> Value:
    """A constant in the shape of the result; other values are broadcast by an op."""
    if value.data is None:
        return value
    return Value(value.name, shape, value.element, data=np.broadcast_to(value.data, shape))


def _spread(emitter: Emitter, value: ir.Value, shape: Shape) -> ir.Value:
    if shape_of(value.type) == shape:
        return value
    return emitter.build(BroadcastOp, value, element=element_of(value.type), shape=shape)
