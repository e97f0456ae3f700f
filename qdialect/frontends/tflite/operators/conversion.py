"""Plans QUANTIZE and DEQUANTIZE, of 8 and of 16 bits, and CAST."""

from __future__ import annotations

from qdialect.arithmetic import Multiplier
from qdialect.arithmetic.profiles import TFLITE
from qdialect.dialect import DequantizeOp, QuantizeOp
from qdialect.frontends.building.checks import require
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import (
    check_rescale,
    check_scales,
    eight_bit,
    operands,
    quantized_range,
    sixteen_bit,
)
from qdialect.frontends.tflite.operators.registry import Emission, Emitter, imports, imports_i16
from qdialect.ir._mlir import ir

# QUANTIZE and DEQUANTIZE.


@imports("QUANTIZE")
def _quantize(operator: Operator) -> Emission:
    """From f32 by a float32 division, ties away from zero; from 8-bit quantized values by a fixed-point rescale."""
    (data,) = operands(operator, 1)
    output = eight_bit(operator.outputs[0], "output")
    if data.element == "f32":
        parameters = {"scales": [output.scale], "zero_points": [output.zero_point]}
        parameters |= {"rounding": TFLITE.float_rounding, "scaling": TFLITE.scaling}
        return lambda emitter: emitter.build(QuantizeOp, emitter.value(data), element=output.element, **parameters)
    check_rescale(eight_bit(data, "input").scale, [1.0], output.scale, Multiplier.F64)

    def emit(emitter: Emitter) -> ir.Value:
        zero_points = [data.zero_point]
        return emitter.requantize(
            emitter.value(data), output, data.scale, Multiplier.F64, input_zero_points=zero_points
        )

    return emit


@imports("DEQUANTIZE")
def _dequantize(operator: Operator) -> Emission:
    (data,) = operands(operator, 1)
    eight_bit(data, "input")
    require(operator.outputs[0].element == "f32", f"output must be f32, but got {operator.outputs[0].element}")

    def emit(emitter: Emitter) -> ir.Value:
        parameters = {"scales": [data.scale], "zero_points": [data.zero_point]}
        return emitter.build(DequantizeOp, emitter.value(data), element="f32", **parameters)

    return emit


# QUANTIZE and DEQUANTIZE with 16-bit values on one side at least.

_RESCALED = {"i16": ("i8", "i16", "i32"), "i32": ("i16",), "i8": ("i16",), "ui8": ("i16",)}
"""By the element type of the input: what it is rescaled to."""


@imports_i16("QUANTIZE")
def _quantize_i16(operator: Operator) -> Emission:
    """From f32 by a float32 division, ties away from zero; between integers by a fixed-point rescale."""
    (data,) = operands(operator, 1)
    output = _quantized_i16(operator.outputs[0], "output")
    if data.element == "f32":
        parameters = {"scales": [output.scale], "zero_points": [output.zero_point]}
        parameters |= {"rounding": TFLITE.float_rounding, "scaling": TFLITE.scaling}
        return lambda emitter: emitter.build(QuantizeOp, emitter.value(data), element=output.element, **parameters)
    known = _RESCALED.get(data.element, ())
    found = f"{data.element} to {output.element}"
    require(output.element in known, f"must go from i8, ui8, i32 or f32 to i16, or back to i8, but got {found}")
    _quantized_i16(data, "input")
    check_rescale(data.scale, [1.0], output.scale, Multiplier.F64)

    def emit(emitter: Emitter) -> ir.Value:
        value, zero_points = emitter.value(data), [data.zero_point]
        return emitter.requantize(value, output, data.scale, Multiplier.F64, input_zero_points=zero_points)

    return emit


@imports_i16("DEQUANTIZE")
def _dequantize_i16(operator: Operator) -> Emission:
    (data,) = operands(operator, 1)
    sixteen_bit(data, "input")
    found = operator.outputs[0].element
    require(found == "f32", f"output must be f32, but got {found}")
    parameters = {"scales": [data.scale], "zero_points": [0]}
    return lambda emitter: emitter.build(DequantizeOp, emitter.value(data), element="f32", **parameters)


def _quantized_i16(tensor: Tensor, what: str) -> Tensor:
    """`tensor` with one scale, and a zero point of its type."""
    require(len(tensor.scales) == 1, f"{what} must have one scale, but got {len(tensor.scales)}")
    check_scales(tensor, what)
    low, high = quantized_range(tensor)
    holds = low <= tensor.zero_point <= high
    require(holds, f"{what} zero point must be in [{low}, {high}], but got {tensor.zero_point}")
    return tensor


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
