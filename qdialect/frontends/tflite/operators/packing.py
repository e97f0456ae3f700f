"""PACK: tensors side by side along a new dimension."""

from __future__ import annotations

import tflite

from qdialect._mlir import ir
from qdialect.dialect import ConcatOp
from qdialect.dialect.op_base import MAX_VARIADIC
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import eight_bit, operands, same_quantization
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.operators.slicing import axis_of
from qdialect.frontends.tflite.reader import read_options


@imports("PACK")
def _pack(operator: Operator) -> Emission:
    count, axis = read_options(operator, tflite.PackOptions, lambda options: (options.ValuesCount(), options.Axis()))
    parts = operands(operator, 1, MAX_VARIADIC)
    require(len(parts) == count, f"must have {count} inputs, but got {len(parts)}")
    output = eight_bit(operator.outputs[0], "output")
    shape = parts[0].shape
    dimension = axis_of([axis], len(shape) + 1)
    for part in parts:
        same_quantization(operator, part)
        require(part.shape == shape, f"inputs must have the shape {list(shape)}, but got {list(part.shape)}")

    def emit(emitter: Emitter) -> ir.Value:
        layer = (*shape[:dimension], 1, *shape[dimension:])
        return emitter.build(
            ConcatOp,
            *[emitter.reshape(emitter.value(part), layer) for part in parts],
            element=output.element,
            axis=dimension,
            input_scales=[output.scale] * count,
            input_zero_points=[output.zero_point] * count,
            output_scale=output.scale,
            output_zero_point=output.zero_point,
        )

    return emit
