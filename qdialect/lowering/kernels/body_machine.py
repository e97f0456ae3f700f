"""The algorithms of `qdialect.quant_math.transcendental` as scalar bodies, in the same float64 steps as NumPy's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qdialect.lowering.kernel_text import Body
from qdialect.quant_math import transcendental
from qdialect.quant_math.transcendental import EXPONENT_BIAS, FRACTION_MASK, ROOT_HALF_BITS, ROUNDER

_F, _I = "f64", "i64"
_FRACTION_BITS = 52
_ROUNDER_BITS = int(np.float64(ROUNDER).view(np.int64))

SHARED: dict[str, Callable[[BodyMachine, str], str]] = {
    "math.erf": transcendental.erf,
    "math.exp": transcendental.exp,
    "math.exp2": transcendental.exp2,
    "math.expm1": transcendental.expm1,
    "math.log": transcendental.log,
    "math.log10": transcendental.log10,
    "math.log1p": transcendental.log1p,
    "math.log2": transcendental.log2,
    "math.tanh": transcendental.tanh,
}
"""By op name."""


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

    def where_equal(self, a: str, b: str, then: str, other: str) -> str:
        """See `Machine`."""
        holds = self._body.op(f"arith.cmpf oeq, {a}, {b} : {_F}")
        return self._body.op(f"arith.select {holds}, {then}, {other} : {_F}")

    def floor(self, a: str) -> str:
        """See `Machine`."""
        return self._body.op(f"math.floor {a} : {_F}")

    def split(self, a: str) -> tuple[str, str]:
        """See `Machine`."""
        body = self._body
        root = body.constant(ROOT_HALF_BITS, _I)
        above = body.binary("arith.subi", body.cast("arith.bitcast", a, _F, _I), root, _I)
        exponent = body.binary("arith.shrsi", above, body.constant(_FRACTION_BITS, _I), _I)
        # A small integer becomes a float as the low bits of one: not every target converts 64 bits.
        biased = body.binary("arith.addi", exponent, body.constant(_ROUNDER_BITS, _I), _I)
        k = self.subtract(body.cast("arith.bitcast", biased, _I, _F), self.constant(ROUNDER))
        fraction = body.binary("arith.andi", above, body.constant(FRACTION_MASK, _I), _I)
        return k, body.cast("arith.bitcast", body.binary("arith.addi", fraction, root, _I), _I, _F)

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
    return body.cast("arith.truncf", SHARED[name](BodyMachine(body), wide), _F, "f32")


def emit_power(body: Body, x: str, y: str) -> str:
    """x^y of float32 numbers, as a float32 number."""
    wide = (body.cast("arith.extf", value, "f32", _F) for value in (x, y))
    return body.cast("arith.truncf", transcendental.power(BodyMachine(body), *wide), _F, "f32")
