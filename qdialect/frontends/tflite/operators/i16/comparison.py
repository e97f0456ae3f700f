"""Comparisons of 16-bit values, and SELECT between them."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.frontends.arithmetic import Arithmetic
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import operands
from qdialect.frontends.tflite.operators.i16.checks import output_of, sixteen_bit
from qdialect.frontends.tflite.operators.logic import COMPARISONS, aligned
from qdialect.frontends.tflite.operators.plain import binary, check_broadcast, spread
from qdialect.frontends.tflite.operators.registry import Emission, imports_i16


@imports_i16(*COMPARISONS)
def _comparison(operator: Operator) -> Emission:
    """Quantized values are compared as they are, which means something where both scales are equal."""
    lhs, rhs = operands(operator, 2)
    found = [sixteen_bit(side, "input").scale for side in (lhs, rhs)]
    require(found[0] == found[1], f"inputs must have one scale, but got {found[0]} and {found[1]}")
    predicate = COMPARISONS[operator.kind]
    return binary(operator, (lhs, rhs), lambda s, x, y: s.compare(predicate, x, y))


@imports_i16("SELECT", "SELECT_V2")
def _select(operator: Operator) -> Emission:
    """Elements of the first tensor where the condition holds, of the second elsewhere.

    The kernel copies them whatever they stand for: converters give each of the three tensors a scale of its own.
    """
    condition, first, second = operands(operator, 3)
    require(condition.element == "i1", f"condition must be i1, but got {condition.element}")
    for tensor in (first, second, output_of(operator)):
        sixteen_bit(tensor, "operand")
    tensors = aligned(operator.kind, condition, (first, second))
    check_broadcast(tensors, operator.outputs[0].shape)

    def emit(emitter: Emitter) -> ir.Value:
        s, shape = Arithmetic(emitter), operator.outputs[0].shape
        return s.select(*(spread(emitter, emitter.reshape(emitter.value(t), t.shape), shape) for t in tensors))

    return emit
