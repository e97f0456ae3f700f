"""PACK: tensors side by side along a new dimension."""

from __future__ import annotations

import tflite

from qdialect._mlir import ir
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import EIGHT_BIT, operands, same_content
from qdialect.frontends.tflite.operators.concatenation import joined
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.operators.slicing import axis_of
from qdialect.frontends.tflite.reader import read_options


@imports("PACK")
def _pack(operator: Operator) -> Emission:
    count, axis = read_options(operator, tflite.PackOptions, lambda options: (options.ValuesCount(), options.Axis()))
    parts = operands(operator, 1, max(1, len(operator.inputs)))
    require(len(parts) == count, f"must have {count} inputs, but got {len(parts)}")
    output = operator.outputs[0]
    shape = parts[0].shape
    dimension = axis_of([axis], len(shape) + 1)
    for part in parts:
        same_content(part, output)
        require(part.shape == shape, f"inputs must have the shape {list(shape)}, but got {list(part.shape)}")

    def emit(emitter: Emitter) -> ir.Value:
        layer = (*shape[:dimension], 1, *shape[dimension:])
        values = [emitter.reshape(emitter.value(part), layer) for part in parts]
        is_bytes = output.element in EIGHT_BIT
        return joined(emitter, values, dimension, output) if is_bytes else emitter.concatenate(values, dimension)

    return emit
