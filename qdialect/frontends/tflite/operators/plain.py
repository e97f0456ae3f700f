"""Element-wise operators on integers, booleans and floats that stand for themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import BroadcastOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.frontends.arithmetic import Arithmetic
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Shape, Tensor
from qdialect.frontends.tflite.operators.registry import Emission

Build = Callable[[Arithmetic, Sequence[ir.Value]], ir.Value]
"""``build(arithmetic, operands)``: what operands of one shape become."""
OfOne = Callable[[Arithmetic, ir.Value], ir.Value]
OfTwo = Callable[[Arithmetic, ir.Value, ir.Value], ir.Value]


def elementwise(operator: Operator, tensors: Sequence[Tensor], build: Build) -> Emission:
    """`build` of tensors that broadcast to the shape of the operator's output."""
    shape = operator.outputs[0].shape
    check_broadcast(tensors, shape)

    def emit(emitter: Emitter) -> ir.Value:
        return build(Arithmetic(emitter), [spread(emitter, emitter.value(tensor), shape) for tensor in tensors])

    return emit


def unary(operator: Operator, data: Tensor, build: OfOne) -> Emission:
    """`elementwise` of one tensor."""
    return elementwise(operator, [data], lambda s, operands: build(s, operands[0]))


def binary(operator: Operator, sides: Sequence[Tensor], build: OfTwo) -> Emission:
    """`elementwise` of two tensors."""
    return elementwise(operator, sides, lambda s, operands: build(s, operands[0], operands[1]))


def check_broadcast(tensors: Sequence[Tensor], shape: Shape) -> None:
    """All tensors together broadcast to `shape`; raises `UnsupportedError`."""
    try:
        fits = np.broadcast_shapes(*(tensor.shape for tensor in tensors)) == shape
    except ValueError:
        fits = False
    require(fits, f"inputs must broadcast to {list(shape)}, but got {[list(tensor.shape) for tensor in tensors]}")


def spread(emitter: Emitter, value: ir.Value, shape: Shape) -> ir.Value:
    """`value` repeated up to `shape`."""
    if shape_of(value.type) == shape:
        return value
    return emitter.build(BroadcastOp, value, element=element_of(value.type), shape=shape)


def check_type(tensors: Sequence[Tensor], elements: Sequence[str]) -> None:
    """All tensors have one element type, which is one of `elements`."""
    found = {tensor.element for tensor in tensors}
    require(len(found) == 1, f"inputs must be of one type, but got {' and '.join(sorted(found))}")
    (element,) = found
    require(element in elements, f"inputs must be {', '.join(elements)}, but got {element}")
