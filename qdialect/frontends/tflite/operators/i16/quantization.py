"""QUANTIZE and DEQUANTIZE with 16-bit values on one side at least."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect import DequantizeOp, QuantizeOp
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import check_rescale, check_scales, operands, quantized_range
from qdialect.frontends.tflite.operators.i16.checks import sixteen_bit
from qdialect.frontends.tflite.operators.registry import Emission, imports_i16
from qdialect.profiles import TFLITE
from qdialect.quant_math import Multiplier

_RESCALED = {"i16": ("i8", "i16", "i32"), "i32": ("i16",), "i8": ("i16",), "ui8": ("i16",)}
"""By the element type of the input: what it is rescaled to."""


@imports_i16("QUANTIZE")
def _quantize(operator: Operator) -> Emission:
    """From f32 by a float32 division, ties away from zero; between integers by a fixed-point rescale."""
    (data,) = operands(operator, 1)
    output = _quantized(operator.outputs[0], "output")
    if data.element == "f32":
        parameters = {"scales": [output.scale], "zero_points": [output.zero_point]}
        parameters |= {"rounding": TFLITE.float_rounding, "scaling": TFLITE.scaling}
        return lambda emitter: emitter.build(QuantizeOp, emitter.value(data), element=output.element, **parameters)
    known = _RESCALED.get(data.element, ())
    found = f"{data.element} to {output.element}"
    require(output.element in known, f"must go from i8, ui8, i32 or f32 to i16, or back to i8, but got {found}")
    _quantized(data, "input")
    check_rescale(data.scale, [1.0], output.scale, Multiplier.F64)

    def emit(emitter: Emitter) -> ir.Value:
        value, zero_points = emitter.value(data), [data.zero_point]
        return emitter.requantize(value, output, data.scale, Multiplier.F64, input_zero_points=zero_points)

    return emit


@imports_i16("DEQUANTIZE")
def _dequantize(operator: Operator) -> Emission:
    (data,) = operands(operator, 1)
    sixteen_bit(data, "input")
    found = operator.outputs[0].element
    require(found == "f32", f"output must be f32, but got {found}")
    parameters = {"scales": [data.scale], "zero_points": [0]}
    return lambda emitter: emitter.build(DequantizeOp, emitter.value(data), element="f32", **parameters)


def _quantized(tensor: Tensor, what: str) -> Tensor:
    """`tensor` with one scale, and a zero point of its type."""
    require(len(tensor.scales) == 1, f"{what} must have one scale, but got {len(tensor.scales)}")
    check_scales(tensor, what)
    low, high = quantized_range(tensor)
    holds = low <= tensor.zero_point <= high
    require(holds, f"{what} zero point must be in [{low}, {high}], but got {tensor.zero_point}")
    return tensor
