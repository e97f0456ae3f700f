"""Plans functions of two quantized tensors that broadcast, with fused activations where the operator has one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from qdialect.arithmetic import BinaryQuantization, Multiplier, PairArithmetic, SubArithmetic
from qdialect.arithmetic.profiles import TFLITE
from qdialect.dialect import AddOp, DivOp, MaximumOp, MinimumOp, MulOp, PreluOp, SquaredDifferenceOp, SubOp
from qdialect.dialect.elementwise_ops import BinaryOp, binary_attributes
from qdialect.dialect.fields import LARGEST_SCALE
from qdialect.frontends.building.checks import require
from qdialect.frontends.building.op_builder import Arithmetic
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators import checks
from qdialect.frontends.tflite.operators.fixed_point import FixedPoint, clamped, f32_quotient, narrowed
from qdialect.frontends.tflite.operators.plain import binary
from qdialect.frontends.tflite.operators.registry import Building, Emission, built, imports, imports_i16
from qdialect.ir._mlir import ir

Bounds = tuple[int, int]
# Of a rescale, in the kernel's fixed-point arithmetic.
_SMALLEST_FACTOR = 2.0**-32


@imports("ADD", "SUB")
def _sum(operator: Operator) -> Emission:
    """Both operands meet at twice the larger scale with 20 more bits; the factors are evaluated in double."""
    activation = checks.activation_of(operator)
    lhs, rhs = _checked(operator)
    _check_shifted(operator, lhs, rhs, 20)
    bounds = checks.activation_range(activation, operator.outputs[0])
    if operator.kind == "ADD":
        return _binary(operator, AddOp, bounds, **TFLITE.sum)
    return _binary(operator, SubOp, bounds, arithmetic=SubArithmetic.SHIFTED_FIXED, **TFLITE.rescale)


@imports("MUL")
def _mul(operator: Operator) -> Emission:
    """The factor of the product is evaluated in float32; below 2^-32 it is 0."""
    operator = _with_bounded_output(operator)
    activation = checks.activation_of(operator)
    lhs, rhs = _checked(operator)
    checks.check_rescale(lhs.scale, [rhs.scale], operator.outputs[0].scale, Multiplier.F32)
    bounds = checks.activation_range(activation, operator.outputs[0])
    return _binary(operator, MulOp, bounds, rounding=TFLITE.rounding, multiplier=Multiplier.F32)


def _with_bounded_output(operator: Operator) -> Operator:
    """The same node where the output's scale is within the dialect's, or so large that all products vanish."""
    lhs, rhs = checks.operands(operator, 2)
    limited = checks.bounded(operator.outputs[0])
    vanishes = len(lhs.scales) == len(rhs.scales) == 1 and lhs.scale * rhs.scale < _SMALLEST_FACTOR * LARGEST_SCALE
    return replace(operator, outputs=(limited,)) if vanishes else operator


@imports("DIV")
def _div(operator: Operator) -> Emission:
    """The kernel fails where a divisor is zero; the op gives the end of the range there."""
    activation = checks.activation_of(operator)
    lhs, rhs = _checked(operator)
    checks.check_rescale(lhs.scale / rhs.scale, [1.0], operator.outputs[0].scale, Multiplier.F64)
    bounds = checks.activation_range(activation, operator.outputs[0])
    return _binary(operator, DivOp, bounds, arithmetic=PairArithmetic.TFLITE_FIXED)


@imports("MAXIMUM", "MINIMUM")
def _extreme(operator: Operator) -> Emission:
    """Quantized values are compared as they are, which means something where all parameters are equal."""
    for tensor in _checked(operator):
        checks.same_quantization(operator, tensor)
    op_class = MaximumOp if operator.kind == "MAXIMUM" else MinimumOp
    return _binary(operator, op_class, checks.quantized_range(operator.outputs[0]))


@imports("SQUARED_DIFFERENCE")
def _squared_difference(operator: Operator) -> Emission:
    lhs, rhs = _checked(operator)
    require(lhs.element == "i8", f"input must be i8, but got {lhs.element}")
    _check_shifted(operator, lhs, rhs, 0)
    twice_max, output = 2 * max(lhs.scale, rhs.scale), operator.outputs[0]
    checks.check_rescale(twice_max * twice_max, [2.0**-14], output.scale, Multiplier.F64)
    return _binary(operator, SquaredDifferenceOp, checks.quantized_range(output))


@imports("PRELU")
def _prelu(operator: Operator) -> Emission:
    """One factor for positive numbers, one with the slope's scale for the others; both evaluated in float32."""
    data, slope = _checked(operator)
    output = operator.outputs[0]
    checks.check_rescale(data.scale, [1.0, slope.scale], output.scale, Multiplier.F32)
    return _binary(operator, PreluOp, checks.quantized_range(output), arithmetic=PairArithmetic.TFLITE_FIXED)


def _checked(operator: Operator) -> tuple[Tensor, Tensor]:
    """Both operands, of the output's 8-bit type."""
    lhs, rhs = checks.operands(operator, 2)
    checks.eight_bit_ends(operator, lhs, rhs)
    return lhs, rhs


def _check_shifted(operator: Operator, lhs: Tensor, rhs: Tensor, shift: int) -> None:
    """The rescale of operands that meet at twice the larger scale with `shift` more bits."""
    checks.check_rescale(2 * max(lhs.scale, rhs.scale), [2.0**-shift], operator.outputs[0].scale, Multiplier.F64)


def _binary(operator: Operator, op_class: type[BinaryOp], bounds: Bounds, **arithmetic: object) -> Emission:
    lhs, rhs = checks.operands(operator, 2)
    output = operator.outputs[0]
    return built(
        op_class,
        lhs,
        rhs,
        element=output.element,
        **binary_attributes(BinaryQuantization(lhs.params, rhs.params, output.params, bounds)),
        **arithmetic,
    )


# Functions of two 16-bit tensors that broadcast, with fused activations where the operator has one.

# Bits that operands are shifted up by where they meet.
_SHIFT = 15


@imports_i16("ADD", "SUB")
def _sum_i16(operator: Operator) -> Building:
    op = "arith.addi" if operator.kind == "ADD" else "arith.subi"
    # LiteRT takes options that are left out as all zero, unlike the schema.
    is_pot = operator.option("PotScaleInt16") and operator.options_table is not None
    lhs, rhs, output = checks.two_inputs(operator)
    bounds = checks.activation_range(checks.activation_of(operator), output)
    powers = [checks.log2_of(tensor.scale) for tensor in (lhs, rhs, output)]
    known = [power for power in powers if power is not None]
    if is_pot and len(known) == len(powers):
        return _shifted_sum(operator, [known[2] - known[0], known[2] - known[1]], bounds, op)
    return _rescaled_sum(operator, bounds, op)


def _shifted_sum(operator: Operator, shifts: Sequence[int], bounds: tuple[int, int], op: str) -> Building:
    """Scales that are powers of two: one operand has the output's, the other a smaller one and is shifted to it."""
    lhs, rhs, output = checks.two_inputs(operator)
    holds = min(shifts) == 0 and max(shifts) < _SHIFT
    wanted = "operands must have the output's scale or 2^-14 of it at least, one of them the output's own"
    require(holds, f"{wanted}, but got {lhs.scale} and {rhs.scale} for {output.scale}")

    def build(s: Arithmetic, *values: ir.Value) -> ir.Value:
        sides = [_halved(s, s.resize(value, "i32"), shift) for value, shift in zip(values, shifts, strict=True)]
        return narrowed(s, s.op(op, *sides), bounds)

    return binary(operator, (lhs, rhs), build)


def _halved(s: Arithmetic, value: ir.Value, times: int) -> ir.Value:
    """``value / 2^times``, ties away from zero."""
    if times == 0:
        return value
    sign = s.op("arith.shrsi", value, 31)
    return s.op("arith.shrsi", s.op("arith.addi", s.op("arith.addi", value, 1 << (times - 1)), sign), times)


def _rescaled_sum(operator: Operator, bounds: tuple[int, int], op: str) -> Building:
    """Both operands meet at twice the larger scale with 15 more bits; the factors are evaluated in double."""
    lhs, rhs, output = checks.two_inputs(operator)
    twice_max = 2 * max(lhs.scale, rhs.scale)
    factor = twice_max / (2.0**_SHIFT * output.scale)
    require(factor < 1, f"twice the larger scale over the output's must be below 2^15, but got {factor * 2**_SHIFT}")
    left, right, out = (FixedPoint.of(f) for f in (lhs.scale / twice_max, rhs.scale / twice_max, factor))

    def build(s: Arithmetic, x: ir.Value, y: ir.Value) -> ir.Value:
        sides = [
            multiplier.scaled(s, s.op("arith.muli", s.resize(value, "i32"), 1 << _SHIFT))
            for value, multiplier in ((x, left), (y, right))
        ]
        return narrowed(s, out.scaled(s, s.op(op, *sides)), bounds)

    return binary(operator, (lhs, rhs), build)


@imports_i16("MUL")
def _mul_i16(operator: Operator) -> Building:
    """The factor of the product is evaluated in float32."""
    activation = checks.activation_of(operator)
    lhs, rhs, output = checks.two_inputs(operator)
    bounds = checks.activation_range(activation, output)
    factor = FixedPoint.of(f32_quotient(float(np.float32(lhs.scale) * np.float32(rhs.scale)), output.scale))

    def build(s: Arithmetic, x: ir.Value, y: ir.Value) -> ir.Value:
        product = s.op("arith.muli", s.resize(x, "i32"), s.resize(y, "i32"))
        return narrowed(s, factor.scaled(s, product), bounds)

    return binary(operator, (lhs, rhs), build)


@imports_i16("MAXIMUM", "MINIMUM")
def _extreme_i16(operator: Operator) -> Building:
    """Quantized values are compared as they are, which means something where all scales are equal."""
    lhs, rhs, output = checks.two_inputs(operator)
    for tensor in (lhs, rhs):
        checks.same_scale(tensor, output)
    name = "arith.maxsi" if operator.kind == "MAXIMUM" else "arith.minsi"
    return binary(operator, (lhs, rhs), lambda s, x, y: s.op(name, x, y))


@imports_i16("SQUARED_DIFFERENCE")
def _squared_difference_i16(operator: Operator) -> Building:
    """As of bytes, but without bits to spare where the operands meet: LiteRT itself has no kernel for words."""
    lhs, rhs, output = checks.two_inputs(operator)
    twice_max = 2 * max(lhs.scale, rhs.scale)
    left, right = (FixedPoint.of(side.scale / twice_max) for side in (lhs, rhs))
    out, bounds = FixedPoint.of(twice_max * twice_max / output.scale), checks.quantized_range(output)

    def build(s: Arithmetic, x: ir.Value, y: ir.Value) -> ir.Value:
        sides = (factor.scaled(s, s.resize(value, "i32")) for value, factor in ((x, left), (y, right)))
        difference = s.op("arith.subi", *sides)
        return narrowed(s, out.scaled(s, s.op("arith.muli", difference, difference)), bounds)

    return binary(operator, (lhs, rhs), build)


@imports_i16("PRELU")
def _prelu_i16(operator: Operator) -> Building:
    """One factor for positive numbers, one with the slope's scale for the others; both evaluated in float32."""
    data, slope = checks.operands(operator, 2)
    checks.sixteen_bit(data, "input")
    output = checks.output_of(operator)
    holds = slope.element == "i8" and len(slope.scales) == 1
    require(holds, f"slope must be i8 with one scale, but got {slope.element} with {len(slope.scales)}")
    positive = FixedPoint.of(f32_quotient(data.scale, output.scale))
    product = float(np.float32(data.scale) * np.float32(slope.scale))
    negative = FixedPoint.of(f32_quotient(product, output.scale))
    low, high = checks.quantized_range(output)

    def build(s: Arithmetic, x: ir.Value, alpha: ir.Value) -> ir.Value:
        value = s.resize(x, "i32")
        factors = s.op("arith.subi", s.resize(alpha, "i32"), slope.zero_point)
        below = negative.scaled(s, s.op("arith.muli", value, factors))
        chosen = s.select(s.compare("ge", value, 0), positive.scaled(s, value), below)
        return s.resize(clamped(s, chosen, (low, high)), "i16")

    return binary(operator, (data, slope), build)
