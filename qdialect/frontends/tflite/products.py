"""How many products an operator sums up, from the shapes of its tensors."""

from __future__ import annotations

import math

from qdialect.frontends.tflite.model import Operator, Shape

_RECURRENT = ("UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN")


def products(operator: Operator) -> int:
    """Of one call, 0 for an operator that sums up none."""
    shapes = [() if tensor is None else tensor.shape for tensor in operator.inputs]
    elements = sum(math.prod(tensor.shape) for tensor in operator.outputs)
    if operator.kind in _RECURRENT:
        return _of_sequence(operator)
    if len(shapes) < 2 or not all(shapes[:2]):
        return 0
    match operator.kind:
        case "CONV_2D" | "CONV_3D":
            return elements * math.prod(shapes[1][1:])
        case "DEPTHWISE_CONV_2D":
            return elements * math.prod(shapes[1][1:3])
        case "FULLY_CONNECTED" | "BATCH_MATMUL":
            return elements * shapes[0 if operator.kind == "BATCH_MATMUL" else 1][-1]
        case "TRANSPOSE_CONV" if len(shapes) > 2:
            # The weights' last dimension is that of the input, whose elements meet all the others.
            return math.prod(shapes[2]) * math.prod(shapes[1][:-1])
        case _:
            return 0


def _of_sequence(operator: Operator) -> int:
    """Every step of every sequence meets all weights, the constants of two dimensions."""
    held = (tensor for tensor in operator.inputs if tensor is not None and tensor.data is not None)
    weights = sum(math.prod(tensor.shape) for tensor in held if len(tensor.shape) == 2)
    first = operator.inputs[0]
    return math.prod(_steps(first.shape)) * weights if first is not None else 0


def _steps(shape: Shape) -> Shape:
    return shape[:2]
