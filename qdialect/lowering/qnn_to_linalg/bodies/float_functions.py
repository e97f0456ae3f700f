"""The algorithms of `qdialect.arithmetic.float32` and `transcendental`, and expressions, as scalar bodies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from qdialect.arithmetic import transcendental
from qdialect.arithmetic.expressions import Alpha, Expression, Input, Node, Number, fold
from qdialect.arithmetic.float32 import ALGORITHMS, BELOW_ZERO, machine
from qdialect.arithmetic.transcendental import IN_FLOAT64, OF_LIBRARY, PAIRS
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value

_F = "f64"


def emit_float32(body: Body, name: str, x: Value, *, is_below_zero: bool = False) -> Value:
    """The function of the op `name`, one of `ALGORITHMS`, of the float32 number `x`.

    Where `is_below_zero`, the results of positive numbers do not count.
    """
    algorithm = BELOW_ZERO.get(name, ALGORITHMS[name]) if is_below_zero else ALGORITHMS[name]
    return algorithm(machine.Machine(body), x)


def emit_shared(body: Body, name: str, x: Value, *, in_float64: bool = False, is_below_zero: bool = False) -> Value:
    """The function of the op `name`, one of `IN_FLOAT64`, of the float32 number `x`, as a float32 number.

    Functions that have a sequence of float32 operations are evaluated by it, unless `in_float64`.  Where
    `is_below_zero`, the results of positive numbers do not count.
    """
    if name in ALGORITHMS and not in_float64:
        return emit_float32(body, name, x, is_below_zero=is_below_zero)
    wide = body.cast("arith.extf", x, _F)
    return body.cast("arith.truncf", OF_LIBRARY[name](transcendental.Machine(body), wide), "f32")


def emit_pair(body: Body, name: str, x: Value, y: Value) -> Value:
    """The function of the op `name`, one of `PAIRS`, of float32 numbers, as a float32 number."""
    wide = (body.cast("arith.extf", value, _F) for value in (x, y))
    return body.cast("arith.truncf", PAIRS[name](transcendental.Machine(body), *wide), "f32")


# Expressions of `qdialect.arithmetic.expressions` in kernels.

_INPUTS = tuple(map(Input, range(8)))
_BELOW = "below zero: "
"""Before the name of an op whose results of positive numbers do not count."""


def emit_expression(body: Body, expression: Expression, *values: Value, alpha: Value | float | None = None) -> Value:
    """The function of f32 values, with the bits that it has of arrays; `alpha` is its parameter."""

    def number(value: float) -> Value:
        return body.constant(float(np.float32(value)), "f32")

    parameter = number(alpha) if isinstance(alpha, int | float) else alpha
    return fold(guarded(expression), values, parameter, number, partial(_emit_node, body))


def guarded(expression: Expression) -> Expression:
    """`expression` with what is chosen where x is not positive named so; `emit_function` knows these names."""

    def node(op: str, operands: Sequence[Expression]) -> Expression:
        if op == "arith.select" and isinstance(test := operands[0], Node) and test.operands[1:] == (Number(0.0),):
            return Node(op, (test, operands[1], _below_zero(operands[2], test.operands[0])))
        return Node(op, tuple(operands))

    return fold(expression, _INPUTS, Alpha(), Number, node)


def _below_zero(expression: Expression, x: Expression) -> Expression:
    if not isinstance(expression, Node):
        return expression
    name = _BELOW + expression.op if expression.op in BELOW_ZERO and expression.operands == (x,) else expression.op
    return Node(name, tuple(_below_zero(operand, x) for operand in expression.operands))


def emit_function(body: Body, name: str, x: Value) -> Value:
    """The transcendental function of an op of a tree, `guarded` or not."""
    return emit_shared(body, name.removeprefix(_BELOW), x, is_below_zero=name.startswith(_BELOW))


def _emit_node(body: Body, op: str, operands: Sequence[Value]) -> Value:
    if op.removeprefix(_BELOW) in IN_FLOAT64:
        return emit_function(body, op, operands[0])
    if op == "arith.cmpf":
        return body.compare("ogt", *operands)
    if op == "arith.select":
        return body.select(*operands)
    if op == "math.fma":
        return body.multiply_add(*operands)
    return body.unary(op, *operands) if len(operands) == 1 else body.binary(op, *operands)
