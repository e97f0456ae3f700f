"""Types and shapes of what a node gives that is not planned, as the operator's schema infers them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from qdialect.frontends.common import Array, Interface
from qdialect.frontends.onnx.model import ELEMENTS, Node, known_tensor
from qdialect.frontends.onnx.schema import attributes_of
from qdialect.frontends.planning.emitter import Value
from qdialect.frontends.planning.tensors import Constant, Tensor

if TYPE_CHECKING:
    import onnx

# Extents and axes are as short; longer constants are told by their type.
_LONGEST = 64


def inferred(node: Node, inputs: Sequence[Tensor | None]) -> list[Interface]:
    """The outputs of a node of the standard domain, those of which type and shape follow from its inputs.

    A node that holds graphs is not looked into.
    """
    from onnx import defs, shape_inference

    if "." in node.kind or any(_holds_graph(value) for value in node.attributes.values()):
        return []
    given = {name: tensor for name, tensor in zip(node.inputs, inputs, strict=True) if tensor is not None}
    types = {name: _type(tensor) for name, tensor in given.items()}
    data = {name: _data(tensor.array) for name, tensor in given.items() if _is_short(tensor)}
    # The package says in many ways that a node does not fit its schema.
    try:
        schema = defs.get_schema(node.kind, node.version, "")
        found: dict[str, onnx.TypeProto] = shape_inference.infer_node_outputs(schema, _proto(node), types, data)
    except Exception:
        return []
    return [known for name, type_ in found.items() if (known := known_tensor(name, type_)) is not None]


def _holds_graph(value: object) -> bool:
    entries: Sequence[Any] = value if isinstance(value, list) else [value]
    return not all(isinstance(entry, int | float | str | np.ndarray) for entry in entries)


def _is_short(tensor: Tensor) -> bool:
    return isinstance(tensor, Constant) and tensor.array.size <= _LONGEST


def _proto(node: Node) -> onnx.NodeProto:
    from onnx import helper

    proto = helper.make_node(node.kind, node.inputs, node.outputs)
    proto.attribute.extend(attributes_of(node))
    return proto


def _type(tensor: Tensor) -> onnx.TypeProto:
    from onnx import helper

    if isinstance(tensor, Constant):
        return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(tensor.array.dtype), tensor.shape)
    element = tensor.element if isinstance(tensor, Value) else "f32"
    return helper.make_tensor_type_proto(_NUMBERS[element], tensor.shape)


def _data(array: Array) -> onnx.TensorProto:
    from onnx import numpy_helper

    return numpy_helper.from_array(array)


_NUMBERS = {element: number for number, element in ELEMENTS.items()}
