"""ARG_MAX and ARG_MIN of quantized values."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect import ArgMaxOp, ArgMinOp
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import EIGHT_BIT, integers, operands
from qdialect.frontends.tflite.operators.registry import Emission, imports

_OPS = {"ARG_MAX": ArgMaxOp, "ARG_MIN": ArgMinOp}


@imports("ARG_MAX", "ARG_MIN")
def _arg(operator: Operator) -> Emission:
    """The first of equal quantized values wins; the output's type says how wide an index is."""
    data, axes = operands(operator, 2)
    output = operator.outputs[0]
    require(data.element in EIGHT_BIT, f"input must be i8 or ui8, but got {data.element}")
    require(output.element in ("i32", "i64"), f"output must be i32 or i64, but got {output.element}")
    listed, rank = integers(axes, "axis"), len(data.shape)
    require(len(listed) == 1, f"axis must have 1 entry, but got {len(listed)}")
    require(-rank <= listed[0] < rank, f"axis must be in [-{rank}, {rank}), but got {listed[0]}")

    def emit(emitter: Emitter) -> ir.Value:
        op_class = _OPS[operator.kind]
        return emitter.build(op_class, emitter.value(data), element=output.element, axis=listed[0] % rank)

    return emit
