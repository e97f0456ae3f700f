"""QUANTIZE and DEQUANTIZE."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect import DequantizeOp, QuantizeOp
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import check_rescale, eight_bit, operands
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.profiles import TFLITE
from qdialect.quant_math import Multiplier


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
