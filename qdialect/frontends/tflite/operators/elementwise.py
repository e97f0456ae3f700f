"""Functions of two tensors that broadcast, with fused activations where the operator has one."""

from __future__ import annotations

from dataclasses import replace

import tflite

from qdialect._mlir import ir
from qdialect.dialect import (
    AddOp,
    DivOp,
    MaximumOp,
    MinimumOp,
    MulOp,
    PreluOp,
    SquaredDifferenceOp,
    SubOp,
)
from qdialect.dialect.attribute_kinds import LARGEST_SCALE
from qdialect.dialect.binary_quantization import attributes_of
from qdialect.dialect.elementwise_ops import BinaryOp
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Tensor
from qdialect.frontends.tflite.operators.activation_range import activation_range
from qdialect.frontends.tflite.operators.checks import (
    bounded,
    check_rescale,
    eight_bit,
    operands,
    quantized_range,
    same_quantization,
    same_type,
)
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.reader import read_options
from qdialect.profiles import TFLITE
from qdialect.quant_math import BinaryQuantization, Multiplier, PairArithmetic, SubArithmetic

Bounds = tuple[int, int]
# Of a rescale, in the kernel's fixed-point arithmetic.
_SMALLEST_FACTOR = 2.0**-32


@imports("ADD")
def _add(operator: Operator) -> Emission:
    """Both operands meet at twice the larger scale with 20 more bits; the factors are evaluated in double."""
    activation = read_options(operator, tflite.AddOptions, lambda options: options.FusedActivationFunction())
    lhs, rhs = _checked(operator)
    _check_shifted(operator, lhs, rhs, 20)
    bounds = activation_range(activation, operator.outputs[0])
    return _binary(operator, AddOp, bounds, **TFLITE.sum)


@imports("SUB")
def _sub(operator: Operator) -> Emission:
    """As ADD."""
    activation = read_options(operator, tflite.SubOptions, lambda options: options.FusedActivationFunction())
    lhs, rhs = _checked(operator)
    _check_shifted(operator, lhs, rhs, 20)
    bounds = activation_range(activation, operator.outputs[0])
    return _binary(operator, SubOp, bounds, arithmetic=SubArithmetic.SHIFTED_FIXED, **TFLITE.rescale)


@imports("MUL")
def _mul(operator: Operator) -> Emission:
    """The factor of the product is evaluated in float32; below 2^-32 it is 0."""
    operator = _with_bounded_output(operator)
    activation = read_options(operator, tflite.MulOptions, lambda options: options.FusedActivationFunction())
    lhs, rhs = _checked(operator)
    check_rescale(lhs.scale, [rhs.scale], operator.outputs[0].scale, Multiplier.F32)
    bounds = activation_range(activation, operator.outputs[0])
    return _binary(operator, MulOp, bounds, rounding=TFLITE.rounding, multiplier=Multiplier.F32)


def _with_bounded_output(operator: Operator) -> Operator:
    """The same node where the output's scale is within the dialect's, or so large that all products vanish."""
    lhs, rhs = operands(operator, 2)
    limited = bounded(operator.outputs[0])
    vanishes = len(lhs.scales) == len(rhs.scales) == 1 and lhs.scale * rhs.scale < _SMALLEST_FACTOR * LARGEST_SCALE
    return replace(operator, outputs=(limited,)) if vanishes else operator


@imports("DIV")
def _div(operator: Operator) -> Emission:
    """The kernel fails where a divisor is zero; the op gives the end of the range there."""
    activation = read_options(operator, tflite.DivOptions, lambda options: options.FusedActivationFunction())
    lhs, rhs = _checked(operator)
    check_rescale(lhs.scale / rhs.scale, [1.0], operator.outputs[0].scale, Multiplier.F64)
    bounds = activation_range(activation, operator.outputs[0])
    return _binary(operator, DivOp, bounds, arithmetic=PairArithmetic.TFLITE_FIXED)


@imports("MAXIMUM", "MINIMUM")
def _extreme(operator: Operator) -> Emission:
    """Quantized values are compared as they are, which means something where all parameters are equal."""
    for tensor in _checked(operator):
        same_quantization(operator, tensor)
    op_class = MaximumOp if operator.kind == "MAXIMUM" else MinimumOp
    return _binary(operator, op_class, quantized_range(operator.outputs[0]))


@imports("SQUARED_DIFFERENCE")
def _squared_difference(operator: Operator) -> Emission:
    lhs, rhs = _checked(operator)
    require(lhs.element == "i8", f"input must be i8, but got {lhs.element}")
    _check_shifted(operator, lhs, rhs, 0)
    twice_max, output = 2 * max(lhs.scale, rhs.scale), operator.outputs[0]
    check_rescale(twice_max * twice_max, [2.0**-14], output.scale, Multiplier.F64)
    return _binary(operator, SquaredDifferenceOp, quantized_range(output))


@imports("PRELU")
def _prelu(operator: Operator) -> Emission:
    """One factor for positive numbers, one with the slope's scale for the others; both evaluated in float32."""
    data, slope = _checked(operator)
    output = operator.outputs[0]
    check_rescale(data.scale, [1.0, slope.scale], output.scale, Multiplier.F32)
    return _binary(operator, PreluOp, quantized_range(output), arithmetic=PairArithmetic.TFLITE_FIXED)


def _checked(operator: Operator) -> tuple[Tensor, Tensor]:
    """Both operands, of the output's 8-bit type."""
    lhs, rhs = operands(operator, 2)
    eight_bit(operator.outputs[0], "output")
    same_type(operator, eight_bit(lhs, "input"), eight_bit(rhs, "input"))
    return lhs, rhs


def _check_shifted(operator: Operator, lhs: Tensor, rhs: Tensor, shift: int) -> None:
    """The rescale of operands that meet at twice the larger scale with `shift` more bits."""
    check_rescale(2 * max(lhs.scale, rhs.scale), [2.0**-shift], operator.outputs[0].scale, Multiplier.F64)


def _binary(operator: Operator, op_class: type[BinaryOp], bounds: Bounds, **arithmetic: object) -> Emission:
    lhs, rhs = operands(operator, 2)
    output = operator.outputs[0]

    def emit(emitter: Emitter) -> ir.Value:
        return emitter.build(
            op_class,
            emitter.value(lhs),
            emitter.value(rhs),
            element=output.element,
            **attributes_of(BinaryQuantization(lhs.params, rhs.params, output.params, bounds)),
            **arithmetic,
        )

    return emit
