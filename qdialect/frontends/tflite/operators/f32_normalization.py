"""L2_NORMALIZATION and LOCAL_RESPONSE_NORMALIZATION of float32 numbers along the last dimension."""

from __future__ import annotations

import math

import tflite

from qdialect._mlir import ir
from qdialect.dialect import F32SumOp, PadOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import require
from qdialect.frontends.slices import Slice, take_slices
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.activation_range import f32_bounds
from qdialect.frontends.tflite.operators.checks import operands
from qdialect.frontends.tflite.operators.f32 import F32Builder
from qdialect.frontends.tflite.operators.registry import Emission, imports_f32
from qdialect.frontends.tflite.reader import read_options

# What a row is divided by at least.
_SHORTEST = 1e-6
_MAX_RADIUS = 64


@imports_f32("L2_NORMALIZATION")
def _l2_normalization(operator: Operator) -> Emission:
    """``x / max(sqrt(sum(x^2)), 1e-6)``, the squares added in their order."""
    activation = read_options(operator, tflite.L2NormOptions, lambda options: options.FusedActivationFunction())
    (data,) = operands(operator, 1)
    require(len(data.shape) >= 1, "input must have at least 1 dimension")
    f32_bounds(activation)

    def emit(emitter: Emitter) -> ir.Value:
        s, x = F32Builder(emitter, data.shape), emitter.value(data)
        over = {"axes": (len(data.shape) - 1,), "keep_dims": True, "in_order": True}
        total = emitter.build(F32SumOp, s("mulf", x, x), element="f32", **over)
        small = F32Builder(emitter, shape_of(total.type))
        return s.clamp(s("divf", x, small("maximumf", small("sqrt", total), _SHORTEST)), activation)

    return emit


@imports_f32("LOCAL_RESPONSE_NORMALIZATION")
def _local_response_normalization(operator: Operator) -> Emission:
    """``x * (bias + alpha * sum)^-beta`` with the sum of the squares of `radius` elements before and behind.

    So TensorFlow defines it and LiteRT's default kernel computes it; the reference kernel omits the last element.
    """

    def read(options: tflite.LocalResponseNormalizationOptions) -> tuple[int, float, float, float]:
        return options.Radius(), options.Bias(), options.Alpha(), options.Beta()

    radius, *numbers = read_options(operator, tflite.LocalResponseNormalizationOptions, read)
    bias, alpha, beta = numbers
    (data,) = operands(operator, 1)
    require(len(data.shape) >= 1, "input must have at least 1 dimension")
    require(0 <= radius <= _MAX_RADIUS, f"radius must be in [0, {_MAX_RADIUS}], but got {radius}")
    require(all(map(math.isfinite, numbers)), f"bias, alpha and beta must be finite, but got {numbers}")

    def emit(emitter: Emitter) -> ir.Value:
        s, x = F32Builder(emitter, data.shape), emitter.value(data)
        total = _sum_around(emitter, s("mulf", x, x), radius)
        return s("mulf", x, s("powf", s("addf", s("mulf", total, alpha), bias), -beta))

    return emit


def _sum_around(emitter: Emitter, value: ir.Value, radius: int) -> ir.Value:
    """The sum of the elements around each along the last dimension, in their order."""
    *outer, depth = shape_of(value.type)
    ends = (*(0 for _ in outer), radius)
    padded = emitter.build(PadOp, value, element="f32", low=ends, high=ends, value=0) if radius else value
    whole = [Slice(0, 1, extent) for extent in outer]
    first, *others = (take_slices(emitter, padded, [*whole, Slice(k, 1, depth)]) for k in range(2 * radius + 1))
    s = F32Builder(emitter, (*outer, depth))
    for other in others:
        first = s("addf", first, other)
    return first
