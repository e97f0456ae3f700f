"""The operations of recurrent cells as scalar bodies."""

from __future__ import annotations

from qdialect.lowering.kernels.activation_chain import emit_chain
from qdialect.lowering.scalar_body import Body, Value
from qdialect.quant_math import Activation
from qdialect.quant_math.chains import CHAINS


class BodyCell:
    """Computes on the f32 values of a body."""

    def __init__(self, body: Body) -> None:
        self._body = body

    def constant(self, value: float) -> Value:
        """See `CellArithmetic`."""
        return self._body.constant(value, "f32")

    def add(self, a: Value, b: Value) -> Value:
        """See `CellArithmetic`."""
        return self._body.add(a, b)

    def subtract(self, a: Value, b: Value) -> Value:
        """See `CellArithmetic`."""
        return self._body.subtract(a, b)

    def multiply(self, a: Value, b: Value) -> Value:
        """See `CellArithmetic`."""
        return self._body.multiply(a, b)

    def at_least(self, a: Value, b: Value) -> Value:
        """See `CellArithmetic`."""
        return self._body.binary("arith.maximumf", a, b)

    def at_most(self, a: Value, b: Value) -> Value:
        """See `CellArithmetic`."""
        return self._body.binary("arith.minimumf", a, b)

    def chain(self, activation: Activation, x: Value) -> Value:
        """See `CellArithmetic`."""
        return emit_chain(self._body, CHAINS[activation], x, None)
