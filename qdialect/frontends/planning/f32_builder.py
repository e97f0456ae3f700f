"""Float32 arithmetic on tensors of one shape and numbers, as ops of a function."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect import F32ReduceOp
from qdialect.frontends.common import Shape
from qdialect.frontends.op_builder import OpBuilder

_ARITHMETIC = ("addf", "subf", "mulf", "divf", "maximumf", "minimumf", "negf")


class F32Builder:
    """Float32 arithmetic of an emitter on tensors of one shape and numbers."""

    def __init__(self, emitter: OpBuilder, shape: Shape) -> None:
        self.emitter = emitter
        self.shape = shape

    def __call__(self, name: str, *operands: ir.Value | float) -> ir.Value:
        """``arith.<name>f`` or ``math.<name>`` of tensors that broadcast to the shape, and numbers."""
        values = [
            self.emitter.broadcast(one, self.shape)
            if isinstance(one, ir.Value)
            else self.emitter.number(one, self.shape)
            for one in operands
        ]
        return self.emitter.float_op(f"arith.{name}" if name in _ARITHMETIC else f"math.{name}", *values)


def reduced(
    emitter: OpBuilder, op_class: type[F32ReduceOp], value: ir.Value, axes: Shape, keep_dims: bool = True
) -> ir.Value:
    """A reduction of an f32 value over `axes`."""
    return emitter.build(op_class, value, element="f32", axes=axes, keep_dims=keep_dims)
