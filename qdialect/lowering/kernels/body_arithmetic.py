"""The arithmetic that machines on the scalars of a body share, of either precision."""

from __future__ import annotations

from qdialect.lowering.text.scalar_body import Body, Value


class BodyArithmetic:
    """Operations that are rounded to the precision of their operands."""

    def __init__(self, body: Body) -> None:
        self._body = body

    def add(self, a: Value, b: Value) -> Value:
        """See `Machine`."""
        return self._body.add(a, b)

    def subtract(self, a: Value, b: Value) -> Value:
        """See `Machine`."""
        return self._body.subtract(a, b)

    def multiply(self, a: Value, b: Value) -> Value:
        """See `Machine`."""
        return self._body.multiply(a, b)

    def divide(self, a: Value, b: Value) -> Value:
        """See `Machine`."""
        return self._body.divide(a, b)

    def where_less(self, a: Value, b: Value, then: Value, other: Value) -> Value:
        """See `Machine`."""
        return self._body.select(self._body.compare("olt", a, b), then, other)
