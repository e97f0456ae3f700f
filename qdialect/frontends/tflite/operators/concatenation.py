"""CONCATENATION; `ui8` inputs may have parameters of their own, integers and booleans have none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tflite

from qdialect._mlir import ir
from qdialect.dialect import ConcatOp, LutOp
from qdialect.dialect.op_base import MAX_VARIADIC
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import eight_bit, operands, same_quantization, same_type
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.reader import read_options
from qdialect.quant_math import FloatRounding, Scaling, Table, encode_table, round_f32, scale_factors, table_values

_PLAIN = ("i1", "i32", "i64")


@imports("CONCATENATION")
def _concatenation(operator: Operator) -> Emission:
    axis, activation = read_options(
        operator, tflite.ConcatenationOptions, lambda options: (options.Axis(), options.FusedActivationFunction())
    )
    require(activation == tflite.ActivationFunctionType.NONE, f"fused activation {activation} is not supported")
    parts = operands(operator, 1, max(1, len(operator.inputs)))
    output = operator.outputs[0]
    rank = len(output.shape)
    require(-rank <= axis < rank, f"axis must be in [-{rank}, {rank}), but got {axis}")
    if output.element in _PLAIN:
        same_type(operator, *parts)
        return lambda emitter: emitter.concatenate([emitter.value(part) for part in parts], axis % rank)
    eight_bit(output, "output")
    for part in parts:
        require(eight_bit(part, "input").element == output.element, "inputs and output must have one type")
        if output.element == "i8":
            same_quantization(operator, part)

    return lambda emitter: joined(emitter, [_rescaled(emitter, part, output) for part in parts], axis % rank, output)


def joined(emitter: Emitter, values: Sequence[ir.Value], axis: int, output: Tensor) -> ir.Value:
    """Quantized values with the parameters of `output` side by side along `axis`, any number of them."""
    if len(values) > MAX_VARIADIC:
        return emitter.concatenate(values, axis)
    return emitter.build(
        ConcatOp,
        *values,
        element=output.element,
        axis=axis,
        input_scales=[output.scale] * len(values),
        input_zero_points=[output.zero_point] * len(values),
        output_scale=output.scale,
        output_zero_point=output.zero_point,
    )


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
