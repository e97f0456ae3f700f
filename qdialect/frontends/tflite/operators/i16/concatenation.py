"""CONCATENATION of 16-bit tensors, all of one scale."""

from __future__ import annotations

import tflite

from qdialect.frontends.common import require
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import operands
from qdialect.frontends.tflite.operators.i16.checks import output_of, same_scale, sixteen_bit
from qdialect.frontends.tflite.operators.registry import Emission, imports_i16
from qdialect.frontends.tflite.reader import read_options


@imports_i16("CONCATENATION")
def _concatenation(operator: Operator) -> Emission:
    axis, activation = read_options(
        operator, tflite.ConcatenationOptions, lambda options: (options.Axis(), options.FusedActivationFunction())
    )
    require(activation == tflite.ActivationFunctionType.NONE, f"fused activation {activation} is not supported")
    parts, output = operands(operator, 1, max(1, len(operator.inputs))), output_of(operator)
    for part in parts:
        same_scale(sixteen_bit(part, "input"), output)
    rank = len(output.shape)
    require(-rank <= axis < rank, f"axis must be in [-{rank}, {rank}), but got {axis}")
    return lambda emitter: emitter.concatenate([emitter.value(part) for part in parts], axis % rank)
