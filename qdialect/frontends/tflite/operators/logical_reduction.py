"""REDUCE_ANY and REDUCE_ALL of booleans over axes."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect import IntMaxOp, IntMinOp
from qdialect.frontends.arithmetic import Arithmetic
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import operands
from qdialect.frontends.tflite.operators.plain import check_type
from qdialect.frontends.tflite.operators.reduction import reduced_axes
from qdialect.frontends.tflite.operators.registry import Emission, imports

_OPS = {"REDUCE_ALL": IntMinOp, "REDUCE_ANY": IntMaxOp}


@imports(*_OPS)
def _reduction(operator: Operator) -> Emission:
    """The smallest, or the largest, of 0 for false and 1 for true."""
    axes, keep_dims = reduced_axes(operator)
    data, _ = operands(operator, 2)
    check_type((data, operator.outputs[0]), ("i1",))
    op_class = _OPS[operator.kind]

    def emit(emitter: Emitter) -> ir.Value:
        s = Arithmetic(emitter)
        number = s.resize(emitter.value(data), "i16")
        return s.compare("ne", emitter.build(op_class, number, element="i16", axes=axes, keep_dims=keep_dims), 0)

    return emit
