"""Activations in kernels: the float32 operations of `qdialect.quant_math.chains`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.lowering.kernels.body_machine import emit_shared
from qdialect.lowering.scalar_body import Body, Value
from qdialect.quant_math.chains import Expression, Leaf, Step

_COMPARISONS = {"arith.maximumf": "ogt", "arith.minimumf": "olt"}


def emit_chain(body: Body, expression: Expression, x: Value, alpha: Value | None) -> Value:
    """The f32 value of a tree of operations on `x` and its parameter `alpha`; a comparison is "greater than"."""
    if expression is Leaf.INPUT:
        return x
    if isinstance(expression, Leaf):
        assert alpha is not None, "the function has a parameter"
        return alpha
    if not isinstance(expression, Step):
        return body.constant(float(np.float32(expression)), "f32")
    operands = [emit_chain(body, operand, x, alpha) for operand in expression.operands]
    return _emit_step(body, expression.op, operands)


def _emit_step(body: Body, op: str, operands: Sequence[Value]) -> Value:
    if op in _COMPARISONS:
        # No operand is NaN, so that a comparison and a choice are enough.
        chosen = body.compare(_COMPARISONS[op], operands[0], operands[1])
        return body.select(chosen, operands[0], operands[1])
    if op == "arith.cmpf":
        return body.compare("ogt", operands[0], operands[1])
    if op.startswith("math."):
        return emit_shared(body, op, operands[0])
    if op == "arith.select":
        return body.select(*operands)
    return body.unary(op, *operands) if len(operands) == 1 else body.binary(op, *operands)
