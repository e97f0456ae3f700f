"""ADD_N: the sum of any number of tensors, one after another."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.frontends.arithmetic import Arithmetic
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import operands
from qdialect.frontends.tflite.operators.plain import check_type
from qdialect.frontends.tflite.operators.registry import Emission, imports


@imports("ADD_N")
def _add_n(operator: Operator) -> Emission:
    """In the order of the inputs."""
    terms, output = operands(operator, 1, max(1, len(operator.inputs))), operator.outputs[0]
    check_type((*terms, output), ("f32", "i32"))
    for term in terms:
        require(term.shape == output.shape, f"inputs must be {list(output.shape)}, but got {list(term.shape)}")
    name = "arith.addf" if output.element == "f32" else "arith.addi"

    def emit(emitter: Emitter) -> ir.Value:
        s, (total, *others) = Arithmetic(emitter), [emitter.value(term) for term in terms]
        for other in others:
            total = s.op(name, total, other)
        return total

    return emit
