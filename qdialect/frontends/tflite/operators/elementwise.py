"""ADD and MUL, with broadcasting and fused activations."""

from __future__ import annotations

import tflite

from qdialect._mlir import ir
from qdialect.dialect import AddOp, MulOp
from qdialect.dialect.elementwise_ops import BinaryOp
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.activation_range import activation_range
from qdialect.frontends.tflite.operators.checks import check_rescale, eight_bit, operands, same_type
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.reader import read_options
from qdialect.quant_math import AddArithmetic, Multiplier, Rounding


@imports("ADD")
def _add(operator: Operator) -> Emission:
    """Both operands meet at twice the larger scale with 20 more bits; the factors are evaluated in double."""
    activation = read_options(operator, tflite.AddOptions, lambda options: options.FusedActivationFunction())
    return _binary(
        operator,
        AddOp,
        activation,
        arithmetic=AddArithmetic.SHIFTED_FIXED,
        rounding=Rounding.FIXED32_DOUBLE,
        multiplier=Multiplier.F64,
    )


@imports("MUL")
def _mul(operator: Operator) -> Emission:
    """The factor of the product is evaluated in float32."""
    activation = read_options(operator, tflite.MulOptions, lambda options: options.FusedActivationFunction())
    lhs, rhs = operands(operator, 2)
    output = eight_bit(operator.outputs[0], "output")
    scales = (eight_bit(lhs, "input").scale, [eight_bit(rhs, "input").scale])
    check_rescale(*scales, output.scale, Multiplier.F32)
    return _binary(operator, MulOp, activation, rounding=Rounding.FIXED32_DOUBLE, multiplier=Multiplier.F32)


def _binary(operator: Operator, op_class: type[BinaryOp], activation: int, **arithmetic: object) -> Emission:
    lhs, rhs = operands(operator, 2)
    output = eight_bit(operator.outputs[0], "output")
    same_type(operator, eight_bit(lhs, "input"), eight_bit(rhs, "input"))
    check_rescale(2 * max(lhs.scale, rhs.scale), [2.0**-20], output.scale, Multiplier.F64)
    low, high = activation_range(activation, output)

    def emit(emitter: Emitter) -> ir.Value:
        return emitter.build(
            op_class,
            emitter.value(lhs),
            emitter.value(rhs),
            element=output.element,
            lhs_scale=lhs.scale,
            lhs_zero_point=lhs.zero_point,
            rhs_scale=rhs.scale,
            rhs_zero_point=rhs.zero_point,
            output_scale=output.scale,
            output_zero_point=output.zero_point,
            output_min=low,
            output_max=high,
            **arithmetic,
        )

    return emit
