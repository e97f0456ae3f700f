"""Functions of one 16-bit tensor that are computed in integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tflite

from qdialect._mlir import ir
from qdialect.frontends.arithmetic import Arithmetic
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.activation_range import activation_range
from qdialect.frontends.tflite.operators.checks import quantized_range
from qdialect.frontends.tflite.operators.i16.checks import one_input, same_scale
from qdialect.frontends.tflite.operators.i16.fixed_point import FixedPoint, f32_quotient, narrowed
from qdialect.frontends.tflite.operators.plain import unary
from qdialect.frontends.tflite.operators.registry import Emission, imports_i16
from qdialect.frontends.tflite.reader import read_options

# More than any quantized value.
_BEYOND = 2.0**16
_CLAMPS = {"RELU": tflite.ActivationFunctionType.RELU, "RELU6": tflite.ActivationFunctionType.RELU6}


def _of_i32(operator: Operator, bounds: tuple[int, int], build: Callable[[Arithmetic, ir.Value], ir.Value]) -> Emission:
    data, _ = one_input(operator)
    return unary(operator, data, lambda s, x: narrowed(s, build(s, s.resize(x, "i32")), bounds))


@imports_i16(*_CLAMPS)
def _clamp(operator: Operator) -> Emission:
    data, output = one_input(operator)
    factor = FixedPoint.of(f32_quotient(data.scale, output.scale))
    return _of_i32(operator, activation_range(_CLAMPS[operator.kind], output), factor.scaled)


@imports_i16("ABS")
def _abs(operator: Operator) -> Emission:
    """Rescaled only where the scales differ."""
    data, output = one_input(operator)
    bounds = quantized_range(output)
    if data.scale == output.scale:
        return _of_i32(operator, bounds, lambda s, x: s.op("math.absi", x))
    factor = FixedPoint.of(f32_quotient(data.scale, output.scale))
    return _of_i32(operator, bounds, lambda s, x: factor.scaled(s, s.op("math.absi", x)))


@imports_i16("LEAKY_RELU")
def _leaky_relu(operator: Operator) -> Emission:
    """Two factors, both evaluated in float32; that of a negative slope is taken without its sign."""
    alpha = read_options(operator, tflite.LeakyReluOptions, lambda options: options.Alpha())
    data, output = one_input(operator)
    positive = FixedPoint.of(f32_quotient(data.scale, output.scale))
    product = float(np.float32(data.scale) * np.float32(abs(alpha)))
    negative = FixedPoint.of(f32_quotient(product, output.scale))

    def build(s: Arithmetic, x: ir.Value) -> ir.Value:
        below = negative.scaled(s, x)
        below = s.op("arith.addi", s.op("arith.xori", below, -1), 1) if alpha < 0 else below
        return s.select(s.compare("ge", x, 0), positive.scaled(s, x), below)

    return _of_i32(operator, quantized_range(output), build)


@imports_i16("NEG")
def _negate(operator: Operator) -> Emission:
    """The kernel negates quantized values; the smallest one stays what it is."""
    data, output = one_input(operator)
    same_scale(data, output)
    return unary(operator, data, lambda s, x: s.op("arith.addi", s.op("arith.xori", x, -1), 1))


@imports_i16("SQRT")
def _sqrt(operator: Operator) -> Emission:
    """In float32, truncated; the kernel fails for a negative number, which counts as zero here."""
    data, output = one_input(operator)

    def build(s: Arithmetic, x: ir.Value) -> ir.Value:
        number = s.convert("arith.sitofp", s.op("arith.maxsi", x, 0), "f32")
        root = s.op("math.sqrt", s.op("arith.mulf", number, data.scale))
        quotient = s.op("arith.minimumf", s.op("arith.divf", root, output.scale), _BEYOND)
        return s.convert("arith.fptosi", quotient, "i32")

    return _of_i32(operator, quantized_range(output), build)
