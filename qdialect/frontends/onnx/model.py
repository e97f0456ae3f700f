"""What the importer needs of an .onnx file, as checked Python values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from qdialect.frontends.common import Array, Interface

if TYPE_CHECKING:
    import onnx

ELEMENTS = {1: "f32", 2: "ui8", 3: "i8", 4: "ui16", 5: "i16", 6: "i32", 7: "i64", 9: "i1"}
"""Names of the element types by their numbers in the schema."""

F32 = 1
"""The number of that type."""


def element_name(number: int) -> str:
    """What messages call an element type: the dialect's name, or that of the schema (``bool``)."""
    from onnx import TensorProto

    known = number in ELEMENTS or number in TensorProto.DataType.values()
    return ELEMENTS.get(number) or (TensorProto.DataType.Name(number).lower() if known else f"element type {number}")


class Attributes(Mapping[str, Any]):
    """Attributes of a node that is planned; those that nobody asks for are known afterwards."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._asked = set[str]()

    def __getitem__(self, name: str) -> Any:
        self._asked.add(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def unread(self) -> dict[str, Any]:
        """Those that nobody has asked for."""
        return {name: value for name, value in self._values.items() if name not in self._asked}


@dataclass(frozen=True)
class Node:
    """A node of the graph; `kind` has the operator's domain in front unless it is the standard one.

    An omitted input is an empty name. Attributes are integers, floats, strings, arrays and lists of these.  `version`
    is that of the operator set the operator is of.
    """

    index: int
    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    version: int
    captured: tuple[str, ...] = ()
    """Names that graphs inside the node read."""

    @property
    def title(self) -> str:
        """How messages call the node: its index, operator, and name or first output."""
        called = self.name or next(iter(self.outputs), "")
        return f"node {self.index} {self.kind}" + (f" ('{called}')" if called else "")


@dataclass(frozen=True)
class Graph:
    """Nodes in the order of execution; inputs that have initial values are constants."""

    nodes: tuple[Node, ...]
    inputs: tuple[Interface, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Array]
    unsupported: Mapping[str, str]
    """Why the constants of these names cannot be read; a model may hold them as long as no node needs them."""
    declared: Mapping[str, Interface] = field(default_factory=dict[str, Interface])
    """What is said of values between nodes, where that is a type and a shape."""

    def declaring(self, infos: Iterable[onnx.ValueInfoProto]) -> Graph:
        """The same with more of that; infos that leave something open are left out."""
        found = (known_tensor(info.name, info.type) for info in infos)
        return replace(self, declared={**self.declared, **{tensor.name: tensor for tensor in found if tensor}})


def known_tensor(name: str, type_: onnx.TypeProto) -> Interface | None:
    """A tensor whose element type and extents are all known."""
    tensor = type_.tensor_type
    extents = [entry.dim_value if entry.HasField("dim_value") else -1 for entry in tensor.shape.dim]
    is_known = tensor.HasField("shape") and min(extents, default=0) >= 0 and tensor.elem_type in ELEMENTS
    return Interface(name, tuple(extents), ELEMENTS[tensor.elem_type]) if is_known else None
