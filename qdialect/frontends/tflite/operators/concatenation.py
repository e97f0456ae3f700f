"""CONCATENATION; `ui8` inputs may have parameters of their own."""

from __future__ import annotations

import numpy as np
import tflite

from qdialect._mlir import ir
from qdialect.dialect import ConcatOp, LutOp
from qdialect.dialect.op_base import MAX_VARIADIC
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import eight_bit, operands, same_quantization
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.reader import read_options
from qdialect.quant_math import FloatRounding, Scaling, Table, encode_table, round_f32, scale_factors, table_values


@imports("CONCATENATION")
def _concatenation(operator: Operator) -> Emission:
    axis, activation = read_options(
        operator, tflite.ConcatenationOptions, lambda options: (options.Axis(), options.FusedActivationFunction())
    )
    require(activation == tflite.ActivationFunctionType.NONE, f"fused activation {activation} is not supported")
    parts = operands(operator, 1, MAX_VARIADIC)
    output = eight_bit(operator.outputs[0], "output")
    rank = len(output.shape)
    require(-rank <= axis < rank, f"axis must be in [-{rank}, {rank}), but got {axis}")
    for part in parts:
        require(eight_bit(part, "input").element == output.element, "inputs and output must have one type")
        if output.element == "i8":
            same_quantization(operator, part)

    def emit(emitter: Emitter) -> ir.Value:
        return emitter.build(
            ConcatOp,
            *[_rescaled(emitter, part, output) for part in parts],
            element=output.element,
            axis=axis % rank,
            input_scales=[output.scale] * len(parts),
            input_zero_points=[output.zero_point] * len(parts),
            output_scale=output.scale,
            output_zero_point=output.zero_point,
        )

    return emit


def _rescaled(emitter: Emitter, part: Tensor, output: Tensor) -> ir.Value:
    value = emitter.value(part)
    if (part.scale, part.zero_point) == (output.scale, output.zero_point):
        return value
    return emitter.build(
        LutOp,
        value,
        element=output.element,
        table=_rescale_table(part, output),
        input_scale=part.scale,
        input_zero_point=part.zero_point,
        output_scale=output.scale,
        output_zero_point=output.zero_point,
    )


def _rescale_table(part: Tensor, output: Tensor) -> Table:
    """``half_away(x * r - z_x * r) + z_y`` with r = s_x * (1 / s_y), in float32 (TFLite ConcatenationWithScaling)."""
    ratio = np.float32(part.scale) * np.float32(scale_factors(output.scale, Scaling.RECIPROCAL_F32))
    shift = np.float32(-part.zero_point) * ratio
    scaled = table_values(np.uint8).astype(np.float32) * ratio + shift
    values = round_f32(scaled, FloatRounding.HALF_AWAY).astype(np.int64) + output.zero_point
    return encode_table(np.clip(values, 0, 255), np.uint8)
