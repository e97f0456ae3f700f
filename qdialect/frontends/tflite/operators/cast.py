"""CAST: the same number in another type, whatever it stands for; quantization plays no part."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect import DequantizeOp
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import operands
from qdialect.frontends.tflite.operators.registry import Emission, imports

_QUANTIZED = ("i8", "ui8", "i16", "i32")
# Upstream's conversions between signless types.
_CONVERSIONS = {
    ("i64", "f32"): "arith.sitofp",
    ("f32", "i32"): "arith.fptosi",
    ("f32", "i64"): "arith.fptosi",
    ("i32", "i64"): "arith.extsi",
    ("i64", "i32"): "arith.trunci",
    ("i1", "f32"): "arith.uitofp",
    ("i1", "i32"): "arith.extui",
    ("i1", "i64"): "arith.extui",
}


@imports("CAST")
def _cast(operator: Operator) -> Emission:
    """Integers are f32 values as they are; an f32 value loses its fraction."""
    (data,) = operands(operator, 1)
    source, target = data.element, operator.outputs[0].element
    is_quantized = source in _QUANTIZED and target == "f32"
    known = source == target or is_quantized or (source, target) in _CONVERSIONS
    require(
        known, f"must go from integers to f32, from f32 to i32 or i64, or between these, but got {source}, {target}"
    )

    def emit(emitter: Emitter) -> ir.Value:
        value = emitter.value(data)
        if is_quantized:
            return emitter.build(DequantizeOp, value, element=target, scales=[1.0], zero_points=[0])
        return value if source == target else emitter.convert(_CONVERSIONS[source, target], value, target)

    return emit
