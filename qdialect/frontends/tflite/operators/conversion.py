"""Plans QUANTIZE and DEQUANTIZE, of 8 and of 16 bits, and CAST."""

from __future__ import annotations

from qdialect.arithmetic import Multiplier
from qdialect.arithmetic.profiles import TFLITE
from qdialect.dialect import DequantizeOp, QuantizeOp
from qdialect.frontends.building.checks import require
from qdialect.frontends.tflite.flatbuffer.model import Operator
from qdialect.frontends.tflite.operators.checks import (
    check_rescale,
    eight_bit,
    operands,
    per_tensor,
    sixteen_bit,
)
from qdialect.frontends.tflite.operators.registry import Emission, Emitter, built, imports, imports_i16
from qdialect.ir._mlir import ir

# QUANTIZE and DEQUANTIZE, of 8 and 16 bits.


_RESCALED = {"i16": ("i8", "i16", "i32"), "i32": ("i16",), "i8": ("i16",), "ui8": ("i16",)}
"""By the element type of an input of or to 16 bits: what it is rescaled to."""


@imports("QUANTIZE")
@imports_i16("QUANTIZE")
def _quantize(operator: Operator) -> Emission:
    """From f32 by a float32 division, ties away from zero; between quantized values by a fixed-point rescale."""
    (data,), output = operands(operator, 1), operator.outputs[0]
    is_i16 = "i16" in (data.element, output.element)
    (per_tensor if is_i16 else eight_bit)(output, "output")
    if data.element == "f32":
        parameters = {"scales": [output.scale], "zero_points": [output.zero_point]}
        parameters |= {"rounding": TFLITE.float_rounding, "scaling": TFLITE.scaling}
        return built(QuantizeOp, data, element=output.element, **parameters)
    found = f"{data.element} to {output.element}"
    is_known = not is_i16 or output.element in _RESCALED.get(data.element, ())
    require(is_known, f"must go from i8, ui8, i32 or f32 to i16, or back to i8, but got {found}")
    (per_tensor if is_i16 else eight_bit)(data, "input")
    check_rescale(data.scale, [1.0], output.scale, Multiplier.F64)

    def emit(emitter: Emitter) -> ir.Value:
        value, zero_points = emitter.value(data), [data.zero_point]
        return emitter.requantize(value, output, data.scale, Multiplier.F64, input_zero_points=zero_points)

    return emit


@imports("DEQUANTIZE")
@imports_i16("DEQUANTIZE")
def _dequantize(operator: Operator) -> Emission:
    (data,), found = operands(operator, 1), operator.outputs[0].element
    (sixteen_bit if data.element == "i16" else eight_bit)(data, "input")
    require(found == "f32", f"output must be f32, but got {found}")
    parameters = {"scales": [data.scale], "zero_points": [data.zero_point]}
    return built(DequantizeOp, data, element="f32", **parameters)


# CAST: the same number in another type, whatever it stands for; quantization plays no part.

_QUANTIZED_TYPES = ("i8", "ui8", "i16", "i32")
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
    is_quantized = source in _QUANTIZED_TYPES and target == "f32"
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
