"""How many products a node sums up, from the shapes of what it reads and gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from qdialect.frontends.common import Shape
from qdialect.frontends.onnx.model import Node

Shapes = Sequence[Shape | None]
"""Of the inputs, None where it is not known."""


def _of_outputs(weight: int) -> Callable[[Node, Shapes, Shape], int]:
    """A convolution: every output element has the products of one output channel's weights."""
    return lambda _, inputs, output: math.prod(output) * math.prod(_shape(inputs, weight)[1:])


def _of_inputs(weight: int) -> Callable[[Node, Shapes, Shape], int]:
    """A transposed convolution: every input element meets the weights of its channel."""
    return lambda _, inputs, output: math.prod(_shape(inputs, 0)) * math.prod(_shape(inputs, weight)[1:])


def _of_rows(node: Node, inputs: Shapes, output: Shape) -> int:
    """A product of matrices; rows of the first may be its columns."""
    data = _shape(inputs, 0)
    is_transposed = node.attributes.get("transA", 0) == 1 and len(data) > 1
    return math.prod(output) * (data[-2] if is_transposed else data[-1])


def _of_sequence(_: Node, inputs: Shapes, output: Shape) -> int:
    """A recurrent layer: every step of the sequence meets both weights."""
    del output
    return math.prod(_shape(inputs, 0)[:2]) * (math.prod(_shape(inputs, 1)) + math.prod(_shape(inputs, 2)))


def _shape(inputs: Shapes, index: int) -> Shape:
    """Raises `LookupError` where it is not known."""
    shape = inputs[index]
    if not shape:
        raise LookupError
    return shape


_MICROSOFT = "com.microsoft."
_PRODUCTS: dict[str, Callable[[Node, Shapes, Shape], int]] = {
    "Conv": _of_outputs(1),
    "ConvInteger": _of_outputs(1),
    "QLinearConv": _of_outputs(3),
    "ConvTranspose": _of_inputs(1),
    "MatMul": _of_rows,
    "MatMulInteger": _of_rows,
    "QLinearMatMul": _of_rows,
    "Gemm": _of_rows,
    "LSTM": _of_sequence,
    "GRU": _of_sequence,
    "RNN": _of_sequence,
    **dict.fromkeys(
        (f"{_MICROSOFT}{kind}" for kind in ("QGemm", "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "FusedMatMul")),
        _of_rows,
    ),
    f"{_MICROSOFT}DynamicQuantizeLSTM": _of_sequence,
}


def products(node: Node, inputs: Shapes, output: Shape | None) -> int:
    """Of one call, 0 for a node that sums up none and for one whose shapes are not known."""
    count = _PRODUCTS.get(node.kind)
    try:
        return count(node, inputs, output) if count and output is not None else 0
    except LookupError:
        return 0
