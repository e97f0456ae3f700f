"""The algorithms of `qdialect.arithmetic.transcendental` as scalar bodies, in the float64 operations of NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from qdialect.arithmetic import transcendental
from qdialect.arithmetic.expressions import Expression, Node, Number, fold
from qdialect.arithmetic.float32 import ALGORITHMS, BELOW_ZERO
from qdialect.arithmetic.transcendental import EXPONENT_BIAS, FRACTION_MASK, ROOT_HALF_BITS, ROUNDER
from qdialect.lowering.qnn_to_linalg.bodies.float32_machine import BodyArithmetic, emit_float32
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value

_F, _I = "f64", "i64"
_FRACTION_BITS = 52
_ROUNDER_BITS = int(np.float64(ROUNDER).view(np.int64))

_IN_FLOAT64: dict[str, Callable[[BodyMachine, Value], Value]] = {
    "math.cos": transcendental.cos,
    "math.erf": transcendental.erf,
    "math.erfc": transcendental.erfc,
    "math.exp": transcendental.exp,
    "math.exp2": transcendental.exp2,
    "math.expm1": transcendental.expm1,
    "math.log": transcendental.log,
    "math.log10": transcendental.log10,
    "math.log1p": transcendental.log1p,
    "math.log2": transcendental.log2,
    "math.sin": transcendental.sin,
    "math.tanh": transcendental.tanh,
}
SHARED = tuple(_IN_FLOAT64)
"""Names of the ops that kernels and the reference compute by the same algorithms."""

PAIRS: Mapping[str, Callable[[BodyMachine, Value, Value], Value]] = {
    "arith.remf": transcendental.remainder,
    "math.powf": transcendental.power,
}
"""The same of two numbers."""


class BodyMachine(BodyArithmetic):
    """Computes on the f64 values of a body."""

    def constant(self, value: float) -> Value:
        """See `Machine`."""
        return self._body.constant(value, _F)

    def where_equal(self, a: Value, b: Value, then: Value, other: Value) -> Value:
        """See `Machine`."""
        holds = self._body.compare("oeq", a, b)
        return self._body.select(holds, then, other)

    def floor(self, a: Value) -> Value:
        """See `Machine`."""
        return self._body.unary("math.floor", a)

    def split(self, a: Value) -> tuple[Value, Value]:
        """See `Machine`."""
        body = self._body
        root = body.constant(ROOT_HALF_BITS, _I)
        above = body.subtract(body.cast("arith.bitcast", a, _I), root)
        exponent = body.binary("arith.shrsi", above, body.constant(_FRACTION_BITS, _I))
        # A small integer becomes a float as the low bits of one: not every target converts 64 bits.
        biased = body.add(exponent, body.constant(_ROUNDER_BITS, _I))
        k = self.subtract(body.cast("arith.bitcast", biased, _F), self.constant(ROUNDER))
        fraction = body.binary("arith.andi", above, body.constant(FRACTION_MASK, _I))
        return k, body.cast("arith.bitcast", body.add(fraction, root), _F)

    def power_of_two(self, exponent: Value) -> Value:
        """See `Machine`."""
        body = self._body
        shifted = self.add(exponent, self.constant(ROUNDER + EXPONENT_BIAS))
        bits = body.cast("arith.bitcast", shifted, _I)
        return body.cast("arith.bitcast", body.binary("arith.shli", bits, body.constant(_FRACTION_BITS, _I)), _F)


def emit_shared(body: Body, name: str, x: Value, *, in_float64: bool = False, is_below_zero: bool = False) -> Value:
    """The function of the op `name`, one of `SHARED`, of the float32 number `x`, as a float32 number.

    Functions that have a sequence of float32 operations are evaluated by it, unless `in_float64`.  Where
    `is_below_zero`, the results of positive numbers do not count.
    """
    if name in ALGORITHMS and not in_float64:
        return emit_float32(body, name, x, is_below_zero=is_below_zero)
    wide = body.cast("arith.extf", x, _F)
    return body.cast("arith.truncf", _IN_FLOAT64[name](BodyMachine(body), wide), "f32")


def emit_pair(body: Body, name: str, x: Value, y: Value) -> Value:
    """The function of the op `name`, one of `PAIRS`, of float32 numbers, as a float32 number."""
    wide = (body.cast("arith.extf", value, _F) for value in (x, y))
    return body.cast("arith.truncf", PAIRS[name](BodyMachine(body), *wide), "f32")


# Expressions of `qdialect.arithmetic.expressions` in kernels.

_BELOW = "below zero: "
"""Before the name of an op whose results of positive numbers do not count."""


def emit_expression(body: Body, expression: Expression, *values: Value, alpha: float | None = None) -> Value:
    """The function of f32 values, with the bits that it has of arrays, NaN included; `alpha` is its parameter."""
    return fold(
        guarded(expression),
        values,
        None if alpha is None else body.constant(float(np.float32(alpha)), "f32"),
        lambda number: body.constant(float(np.float32(number)), "f32"),
        lambda op, operands: _emit_node(body, op, operands),
    )


def guarded(expression: Expression) -> Expression:
    """`expression` with what is chosen where x is not positive named so; `emit_function` knows these names."""
    if not isinstance(expression, Node):
        return expression
    operands = tuple(guarded(operand) for operand in expression.operands)
    if (
        expression.op == "arith.select"
        and isinstance(test := operands[0], Node)
        and test.operands[1:] == (Number(0.0),)
    ):
        return Node(expression.op, (test, operands[1], _below_zero(operands[2], test.operands[0])))
    return Node(expression.op, operands)


def _below_zero(expression: Expression, x: Expression) -> Expression:
    if not isinstance(expression, Node):
        return expression
    name = _BELOW + expression.op if expression.op in BELOW_ZERO and expression.operands == (x,) else expression.op
    return Node(name, tuple(_below_zero(operand, x) for operand in expression.operands))


def emit_function(body: Body, name: str, x: Value) -> Value:
    """The transcendental function of an op of a tree, `guarded` or not."""
    return emit_shared(body, name.removeprefix(_BELOW), x, is_below_zero=name.startswith(_BELOW))


def _emit_node(body: Body, op: str, operands: Sequence[Value]) -> Value:
    if op.removeprefix(_BELOW) in SHARED:
        return emit_function(body, op, operands[0])
    if op == "arith.cmpf":
        return body.compare("ogt", *operands)
    if op == "arith.select":
        return body.select(*operands)
    if op == "math.fma":
        return body.multiply_add(*operands)
    return body.unary(op, *operands) if len(operands) == 1 else body.binary(op, *operands)
