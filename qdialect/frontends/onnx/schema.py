"""Reads the schema of an operator: types of its attributes, and types and shapes of what a node gives."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from qdialect.frontends.building.checks import Interface, require
from qdialect.frontends.onnx.model import ELEMENTS, Attributes, Node, known_tensor
from qdialect.frontends.planning.emitter import Value
from qdialect.frontends.planning.tensors import Constant, Tensor

if TYPE_CHECKING:
    import onnx


# Types of a node's attributes: those in the file against those that the operator's schema declares.

_SCALARS: dict[type, str] = {int: "INT", float: "FLOAT", str: "STRING", np.ndarray: "TENSOR"}
_ANY_NUMBER = 2**31 - 1
"""The schema's maximum for an operator with any number of inputs."""
_NEWEST = 2**31 - 1
"""No operator set is newer."""
_LISTS: dict[type, str] = {int: "INTS", float: "FLOATS", str: "STRINGS", np.ndarray: "TENSORS"}


def check_attributes(node: Node) -> None:
    """Raise `UnsupportedError` unless every attribute that the operator's schema declares has the declared type.

    Operators of other domains have no schema here; their planners ask for attributes by type.
    """
    declared = _declared(node.kind, node.version)
    for name, value in node.attributes.items():
        if name in declared:
            check_type(name, value, declared[name].type)


def check_inputs(node: Node) -> None:
    """Raise `UnsupportedError` unless a node has as many inputs as its operator's schema, if there is one, allows.

    A node that is newer than its operator set has those of the newest one.
    """
    schema, found = _schema(node.kind, node.version) or _schema(node.kind, _NEWEST), len(node.inputs)
    if schema is not None:
        fewest, most = schema.min_input, schema.max_input
        wanted = f"{fewest} to {most}" if most < _ANY_NUMBER else f"at least {fewest}"
        wanted = str(fewest) if fewest == most else wanted
        require(fewest <= found <= most, f"must have {wanted} inputs, but got {found}")


def check_read(node: Node, attributes: Attributes) -> None:
    """Raise `UnsupportedError` for an attribute that nothing has read, unless it equals its default."""
    for name, value in attributes.unread().items():
        declared = _declared(node.kind, node.version).get(name)
        is_default = declared is not None and declared.default is not None and value == declared.default
        require(is_default, f"attribute '{name}' is not supported, but is {_shown(value)}")


def check_type(name: str, value: Any, wanted: str) -> None:
    """Raise `UnsupportedError` unless `value` is of the attribute type `wanted` (``INTS``)."""
    found = type_name(value)
    fits = found == wanted or (found == "EMPTY" and wanted.endswith("S"))
    require(fits, f"attribute '{name}' must be of type {wanted}, but got {found}")


def attributes_of(node: Node) -> Sequence[onnx.AttributeProto]:
    """The attributes that the operator's schema declares, in the form of the package `onnx`; defaults are written out.

    The package's inference of the shape of STFT takes another default than its schema states.
    """
    import onnx
    from onnx import helper, numpy_helper

    found: list[onnx.AttributeProto] = []
    for name, attribute in _declared(node.kind, node.version).items():
        value = node.attributes.get(name, attribute.default)
        if value is not None:
            wanted = attribute.type
            held = numpy_helper.from_array(value) if wanted == "TENSOR" else value
            found.append(helper.make_attribute(name, held, attr_type=onnx.AttributeProto.AttributeType.Value(wanted)))
    return found


def integer_attribute(node: Node, name: str, default: int) -> int:
    """An attribute that `check_attributes` has found to be an integer."""
    value = node.attributes.get(name, default)
    check_type(name, value, "INT")
    return int(value)


@dataclass(frozen=True)
class _Declared:
    """A schema's entry for an attribute; `default` is None if it has none."""

    type: str
    default: Any


@cache
def _schema(kind: str, version: int) -> onnx.defs.OpSchema | None:
    """That of an operator set of the standard domain."""
    from onnx import defs

    try:
        return defs.get_schema(kind, version, "")
    except (defs.SchemaError, TypeError, OverflowError):
        return None


@cache
def _declared(kind: str, version: int) -> dict[str, _Declared]:
    """The attributes that the schema of an operator set declares, by name."""
    from onnx import helper

    schema = _schema(kind, version)
    found: dict[str, _Declared] = {}
    for name, attribute in schema.attributes.items() if schema else ():
        held = attribute.default_value
        value: Any = helper.get_attribute_value(held) if held.type else None
        default = value.decode() if isinstance(value, bytes) else value
        found[name] = _Declared(str(attribute.type).rpartition(".")[2], default)
    return found


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, int | float | str) else f"of type {type_name(value)}"


def type_name(value: object) -> str:
    """The name of the attribute type that a value has; ``EMPTY`` for an empty list, which may be of any entries."""
    if not isinstance(value, list):
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(value).__name__.removesuffix("Proto"))
        return _SCALARS.get(type(value), words.upper())
    entries = cast("list[object]", value)
    return _LISTS.get(type(entries[0]), "a list") if entries else "EMPTY"


# Types and shapes of what a node gives that is not planned, as the operator's schema infers them.

# Extents and axes are as short; longer constants are told by their type.
_LONGEST = 64


def inferred(node: Node, inputs: Sequence[Tensor | None]) -> list[Interface]:
    """The outputs of a node of the standard domain, those of which type and shape follow from its inputs.

    A node that holds graphs is not looked into.
    """
    from onnx import defs, numpy_helper, shape_inference

    if "." in node.kind or any(_holds_graph(value) for value in node.attributes.values()):
        return []
    given = {name: tensor for name, tensor in zip(node.inputs, inputs, strict=True) if tensor is not None}
    types = {name: _type(tensor) for name, tensor in given.items()}
    known = {name: tensor.array for name, tensor in given.items() if isinstance(tensor, Constant)}
    data = {name: numpy_helper.from_array(array) for name, array in known.items() if array.size <= _LONGEST}
    # The package raises many exceptions where a node does not fit its schema.
    try:
        schema = defs.get_schema(node.kind, node.version, "")
        found: dict[str, onnx.TypeProto] = shape_inference.infer_node_outputs(schema, _proto(node), types, data)
    except Exception:
        return []
    return [known for name, type_ in found.items() if (known := known_tensor(name, type_)) is not None]


def inferred_graph(model: onnx.ModelProto) -> onnx.GraphProto:
    """The nodes of a model with the types and shapes that follow from those of its inputs; without weights.

    Types and shapes need no weights, which inference would copy.
    """
    from onnx import helper, shape_inference

    graph = model.graph
    given = {value.name for value in graph.input}
    short = [one for one in graph.initializer if math.prod(one.dims) <= _LONGEST]
    weights = [
        helper.make_tensor_value_info(one.name, one.data_type, one.dims)
        for one in graph.initializer
        if one.name not in given and math.prod(one.dims) > _LONGEST
    ]
    found = helper.make_graph(graph.node, graph.name, [*graph.input, *weights], graph.output, short)
    light = helper.make_model(found, opset_imports=model.opset_import, ir_version=model.ir_version)
    with suppress(shape_inference.InferenceError, ValueError):
        return shape_inference.infer_shapes(light, data_prop=True).graph
    return found


def _holds_graph(value: object) -> bool:
    entries = cast("list[object]", value) if isinstance(value, list) else [value]
    return not all(isinstance(entry, int | float | str | np.ndarray) for entry in entries)


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


_NUMBERS = {element: number for number, element in ELEMENTS.items()}
