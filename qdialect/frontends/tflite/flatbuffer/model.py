"""The content of a .tflite file that the importer needs, as plain checked values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from flatbuffers import Table
from numpy.typing import NDArray

from qdialect.arithmetic import QuantParams
from qdialect.frontends.building.checks import Budget

Shape = tuple[int, ...]


class OptionsTable(Protocol):
    """An options class of the `tflite` package."""

    def Init(self, buf: bytes | bytearray, pos: int) -> None: ...  # noqa: N802


@dataclass(frozen=True)
class Tensor:
    """A tensor of the graph.

    `element` is the name of the element type (``"ui8"``); `scales` is empty where the tensor is not quantized, else it
    has one entry or one for each index of `axis`, and `zero_points` has as many. `data` is None where the tensor is
    computed.
    """

    index: int
    name: str
    shape: Shape
    element: str
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int
    data: NDArray[Any] | None
    signature: Shape = ()
    """-1 for extents that are only known when the operators are, where `shape` has any; empty where all are known."""
    block: int = 0
    """How many elements of a row share a scale; 0 where rows are not divided."""
    block_scales: NDArray[Any] | None = None
    """Those of a constant of 4 bits [rows, blocks], whose zero points are 0."""
    bits: int = 0
    """Of each integer in the file, where a constant is wider here than there; else 0."""
    narrow: Tensor | None = None
    """The quantized constant that a node made these numbers of; None for any others."""

    @property
    def leaves_open(self) -> bool:
        """Whether the file leaves some extents open."""
        return -1 in self.signature

    @property
    def params(self) -> QuantParams:
        """Those of a tensor quantized per tensor."""
        return QuantParams(self.scale, self.zero_point)

    @property
    def scale(self) -> float:
        """Scale of a tensor quantized per tensor."""
        return self.scales[0]

    @property
    def zero_point(self) -> int:
        """Zero point of a tensor quantized per tensor."""
        return self.zero_points[0]


@dataclass(frozen=True)
class Operator:
    """A node of the graph: its index, the name of its operator and its tensors (None for an omitted input)."""

    index: int
    kind: str
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    options_type: int
    options_table: Table | None
    budget: Budget
    """How much all nodes of the model together may make in addition to the file's content."""
    intermediates: tuple[Tensor, ...] = ()
    """Tensors whose scales decide how the node rounds between its inputs and outputs."""
    decomposition: int | None = None
    """The subgraph that a composite stands for."""

    @property
    def title(self) -> str:
        """How messages call the node: its index, operator and first output."""
        produced = f" ('{self.outputs[0].name}')" if self.outputs else ""
        return f"node {self.index} {self.kind}{produced}"


@dataclass(frozen=True)
class Graph:
    """A subgraph of a model, nodes in the order of execution."""

    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    budget: Budget
    """Of all its nodes."""
    names: Mapping[int, str] = field(default_factory=dict[int, str])
    """The names of inputs and outputs in the chosen signature, by the index of the tensor."""
    subgraph: int = 0
    """Its index in the file."""
    others: Mapping[int, Graph] = field(default_factory=dict[int, "Graph"])
    """The file's other subgraphs, where one of these nodes runs them."""

    def name_of(self, tensor: Tensor) -> str:
        """The users' name of an input or an output."""
        return self.names.get(tensor.index, tensor.name)
