"""Types of a node's attributes: what the file gives against what the operator's schema declares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from qdialect.frontends.common import require
from qdialect.frontends.onnx.model import Node

if TYPE_CHECKING:
    import onnx

NEWEST = 24
"""The operator set up to which attributes are known."""
_READ_LATER = {"SpaceToDepth": ("mode",)}
"""Those of later operator sets that are read."""
_SCALARS: dict[type, str] = {int: "INT", float: "FLOAT", str: "STRING", np.ndarray: "TENSOR"}
_LISTS: dict[type, str] = {int: "INTS", float: "FLOATS", str: "STRINGS", np.ndarray: "TENSORS"}


def check_attributes(node: Node) -> None:
    """Raise `UnsupportedError` unless every attribute that the operator's schema declares has the declared type.

    Nothing reads an attribute that came after `NEWEST`, so a node with one is refused.  Operators of other domains have
    no schema here; their planners ask for attributes by type.
    """
    declared, read = _declared(node, node.version), _declared(node, min(node.version, NEWEST))
    for name, value in node.attributes.items():
        is_read = name in read or name not in declared or name in _READ_LATER.get(node.kind, ())
        require(is_read, f"attribute '{name}' is of an operator set after {NEWEST}")
        wanted = declared.get(name)
        if wanted is not None:
            check_type(name, value, wanted)


def check_type(name: str, value: Any, wanted: str) -> None:
    """Raise `UnsupportedError` unless `value` is of the attribute type `wanted` (``INTS``)."""
    found = type_name(value)
    fits = found == wanted or (found == "EMPTY" and wanted.endswith("S"))
    require(fits, f"attribute '{name}' must be of type {wanted}, but got {found}")


def attributes_of(node: Node) -> Sequence[onnx.AttributeProto]:
    """The attributes that the operator's schema declares, in the form of the package `onnx`."""
    import onnx
    from onnx import helper, numpy_helper

    found: list[onnx.AttributeProto] = []
    for name, wanted in _declared(node, node.version).items():
        if name in node.attributes:
            value: Any = node.attributes[name]
            held = numpy_helper.from_array(value) if wanted == "TENSOR" else value
            found.append(helper.make_attribute(name, held, attr_type=onnx.AttributeProto.AttributeType.Value(wanted)))
    return found


def integer_attribute(node: Node, name: str, default: int) -> int:
    """An attribute that `check_attributes` has found to be an integer."""
    value = node.attributes.get(name, default)
    check_type(name, value, "INT")
    return int(value)


def _declared(node: Node, version: int) -> dict[str, str]:
    """Names of the types of the attributes that the schema of an operator set declares."""
    from onnx import defs

    try:
        schema = defs.get_schema(node.kind, version, "")
    except (defs.SchemaError, TypeError, OverflowError):
        return {}
    return {name: str(attribute.type).rpartition(".")[2] for name, attribute in schema.attributes.items()}


def type_name(value: object) -> str:
    """The name of the attribute type that a value has; ``EMPTY`` for an empty list, which may be of any entries."""
    if not isinstance(value, list):
        return _SCALARS.get(type(value), type(value).__name__.removesuffix("Proto").upper())
    entries = cast("list[object]", value)
    return _LISTS.get(type(entries[0]), "a list") if entries else "EMPTY"
