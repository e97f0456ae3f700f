"""Expressions of `qdialect.quant_math.expressions` in kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.lowering.kernels.body_machine import SHARED, emit_shared
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.quant_math.expressions import Expression, fold


def emit_expression(body: Body, expression: Expression, *values: Value, alpha: float | None = None) -> Value:
    """The function of f32 values, with the bits that it has of arrays, NaN included; `alpha` is its parameter."""
    return fold(
        expression,
        values,
        None if alpha is None else body.constant(float(np.float32(alpha)), "f32"),
        lambda number: body.constant(float(np.float32(number)), "f32"),
        lambda op, operands: _emit_node(body, op, operands),
    )


def _emit_node(body: Body, op: str, operands: Sequence[Value]) -> Value:
    if op in SHARED:
        return emit_shared(body, op, operands[0])
    if op == "arith.cmpf":
        return body.compare("ogt", *operands)
    if op == "arith.select":
        return body.select(*operands)
    return body.unary(op, *operands) if len(operands) == 1 else body.binary(op, *operands)
