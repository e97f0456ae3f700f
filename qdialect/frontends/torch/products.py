"""How many products a node sums up, from the shapes of what it reads and gives."""

from __future__ import annotations

import math
from collections.abc import Callable

from qdialect.frontends.common import Shape
from qdialect.frontends.torch.model import Node, Ref

ShapeOf = Callable[[str], Shape | None]
"""The shape of what a name stands for."""

_BY_ROWS = {
    "aten.linear.default": "input",
    "aten.matmul.default": "self",
    "aten.mm.default": "self",
    "aten.bmm.default": "self",
    "aten.addmm.default": "mat1",
}
_CONVOLUTIONS = ("aten.conv1d.", "aten.conv2d.", "aten.conv3d.", "aten.convolution.")


def products(node: Node, shape_of: ShapeOf) -> int:
    """Of one call, 0 for a node that sums up none and for one whose shapes are not known."""
    elements = sum(math.prod(output.shape) for output in node.outputs)
    if node.kind in _BY_ROWS:
        rows = _shape(node, _BY_ROWS[node.kind], shape_of)
        return elements * rows[-1] if rows else 0
    weight = _shape(node, "weight", shape_of)
    if node.kind.startswith("aten.conv_transpose") or node.arguments.get("transposed") is True:
        return math.prod(_shape(node, "input", shape_of)) * math.prod(weight[1:]) if weight else 0
    return elements * math.prod(weight[1:]) if weight and node.kind.startswith(_CONVOLUTIONS) else 0


def _shape(node: Node, argument: str, shape_of: ShapeOf) -> Shape:
    value = node.arguments.get(argument)
    return (shape_of(value.name) or ()) if isinstance(value, Ref) else ()
