"""Activations with parameters between float32 tensors: ELU, GELU, LEAKY_RELU and PRELU."""

from __future__ import annotations

import tflite

from qdialect._mlir import ir
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import operands
from qdialect.frontends.tflite.operators.f32 import F32Builder, pairwise
from qdialect.frontends.tflite.operators.registry import Emission, imports_f32
from qdialect.frontends.tflite.reader import read_options
from qdialect.quant_math import activations
from qdialect.quant_math.expressions import Expression


def _of_one(operator: Operator, expression: Expression) -> Emission:
    (data,) = operands(operator, 1)
    return lambda emitter: emitter.expression(expression, emitter.value(data))


@imports_f32("ELU")
def _elu(operator: Operator) -> Emission:
    """``e^x - 1`` of negative numbers is one function, as in LiteRT's kernels, whose last place is a library's own."""
    return _of_one(operator, activations.elu(1.0))


@imports_f32("GELU")
def _gelu(operator: Operator) -> Emission:
    """The exact form is ``1 + erf(x / sqrt 2)`` where the kernel has ``erfc(-x / sqrt 2)``."""
    is_approximate = read_options(operator, tflite.GeluOptions, lambda options: options.Approximate())
    return _of_one(operator, activations.tflite_gelu_tanh if is_approximate else activations.gelu)


@imports_f32("LEAKY_RELU")
def _leaky_relu(operator: Operator) -> Emission:
    alpha = read_options(operator, tflite.LeakyReluOptions, lambda options: options.Alpha())
    return _of_one(operator, activations.leaky_relu(alpha))


@imports_f32("PRELU")
def _prelu(operator: Operator) -> Emission:
    """x where x is not negative, x times the slope elsewhere."""

    def combine(s: F32Builder, x: ir.Value, slope: ir.Value) -> ir.Value:
        return s.where_at_least_zero(x, x, s("mulf", x, slope))

    return pairwise(operator, combine)
