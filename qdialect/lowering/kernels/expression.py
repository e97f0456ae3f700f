"""Expressions of `qdialect.quant_math.expressions` in kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.lowering.kernels.body_machine import SHARED, emit_shared
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.quant_math.expressions import Expression, Node, Number, fold
from qdialect.quant_math.float32 import BELOW_ZERO

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
