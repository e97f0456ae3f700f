"""What the importer needs of an .onnx file, as checked Python values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qdialect.frontends.common import Array, Interface

ELEMENTS = {1: "f32", 2: "ui8", 3: "i8", 4: "ui16", 5: "i16", 6: "i32", 7: "i64", 9: "i1"}
"""Names of the element types by their numbers in the schema."""


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
