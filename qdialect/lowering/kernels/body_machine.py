"""The algorithms of `qdialect.quant_math.transcendental` as scalar bodies, in the same float64 steps as NumPy's."""

from __future__ import annotations

from collections.abc import Callable

from qdialect.lowering.kernel_text import Body
from qdialect.quant_math import transcendental
from qdialect.quant_math.transcendental import EXPONENT_BIAS, ROUNDER

_F, _I = "f64", "i64"
_FRACTION_BITS = 52

_ALGORITHMS: dict[str, Callable[[BodyMachine, str], str]] = {
    "math.erf": transcendental.erf,
    "math.exp": transcendental.exp,
    "math.expm1": transcendental.expm1,
    "math.tanh": transcendental.tanh,
}


class BodyMachine:
    """SSA names of f64 values in a body."""

    def __init__(self, body: Body) -> None:
        self._body = body

    def constant(self, value: float) -> str:
        """See `Machine`."""
        return self._body.constant(value, _F)

    def add(self, a: str, b: str) -> str:
        """See `Machine`."""
        return self._body.binary("arith.addf", a, b, _F)

    def subtract(self, a: str, b: str) -> str:
        """See `Machine`."""
        return self._body.binary("arith.subf", a, b, _F)

    def multiply(self, a: str, b: str) -> str:
        """See `Machine`."""
        return self._body.binary("arith.mulf", a, b, _F)

    def divide(self, a: str, b: str) -> str:
        """See `Machine`."""
        return self._body.binary("arith.divf", a, b, _F)

    def where_less(self, a: str, b: str, then: str, other: str) -> str:
        """See `Machine`."""
        holds = self._body.op(f"arith.cmpf olt, {a}, {b} : {_F}")
        return self._body.op(f"arith.select {holds}, {then}, {other} : {_F}")

    def power_of_two(self, exponent: str) -> str:
        """See `Machine`."""
        body = self._body
        shifted = self.add(exponent, self.constant(ROUNDER + EXPONENT_BIAS))
        bits = body.cast("arith.bitcast", shifted, _F, _I)
        return body.cast(
            "arith.bitcast", body.binary("arith.shli", bits, body.constant(_FRACTION_BITS, _I), _I), _I, _F
        )


def emit_shared(body: Body, name: str, x: str) -> str:
    """The function of the op `name` of the float32 number `x`, as a float32 number."""
    wide = body.cast("arith.extf", x, "f32", _F)
    return body.cast("arith.truncf", _ALGORITHMS[name](BodyMachine(body), wide), _F, "f32")
