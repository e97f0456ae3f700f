"""The content of a .tflite file that the importer needs, as plain checked values."""

from __future__ import annotations

import struct
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import tflite
from flatbuffers import Table

from qdialect.arithmetic import QuantParams
from qdialect.frontends.building.checks import Array, Budget, Shape, require
from qdialect.support.diagnostics import ImportModelError

MAX_DIMENSIONS = 8
# A table without a field: four bytes of its own fields' sizes, and where to find these.
_NO_FIELDS = (struct.pack("<HHi", 4, 4, 4), 4)
_FIRST_SLOT = 4
_OPTIONS = {name.removesuffix("Options").lower(): name for name in vars(tflite.BuiltinOptions)}
_SHARED_OPTIONS = {
    **dict.fromkeys(("AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"), "Pool2DOptions"),
    **dict.fromkeys(("MEAN", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"), "ReducerOptions"),
    "CONV_3D_TRANSPOSE": "Conv3DOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "SUM": "ReducerOptions",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
}
"""The options of operators that are not called like these."""


@contextmanager
def reading(what: str) -> Generator[None]:
    """Turn what the schema's accessors raise on broken bytes into `ImportModelError`."""
    try:
        yield
    except (struct.error, IndexError, ValueError, TypeError, OverflowError) as error:
        raise ImportModelError(f"file is damaged: {what} cannot be read") from error


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
    data: Array | None
    signature: Shape = ()
    """-1 for extents that are only known when the operators are, where `shape` has any; empty where all are known."""
    block: int = 0
    """How many elements of a row share a scale; 0 where rows are not divided."""
    block_scales: Array | None = None
    """Those of a constant of 4 bits [rows, blocks], whose zero points are 0."""
    bits: int = 0
    """Of each integer in the file, where a constant is wider here than there; else 0."""
    narrow: Tensor | None = None
    """The quantized constant that a node made these numbers of; None for any others."""

    @property
    def is_open(self) -> bool:
        """Whether a file leaves a computed tensor's shape open, wholly or in some extents.

        A file that omits a shape looks like one that has a tensor without dimensions.
        """
        return self.data is None and (self.shape == () or -1 in self.signature)

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

    @property
    def options_class(self) -> type[Any]:
        """The schema's class of its options."""
        name = _SHARED_OPTIONS.get(self.kind) or _OPTIONS[self.kind.replace("_", "").lower()]
        return getattr(tflite, name)

    def read_options(self) -> Any:
        """Its options, an object of their class; all have their default where it has none.

        Raises `ImportModelError` where they are of another kind or damaged, and `UnsupportedError` where they say more
        than the class knows.
        """
        kind, table = self.options_class, self.options_table
        is_absent = table is None or self.options_type == tflite.BuiltinOptions.NONE
        if not is_absent and self.options_type != getattr(tflite.BuiltinOptions, kind.__name__):
            raise ImportModelError(f"file is damaged: {self.title} must have {kind.__name__}")
        with reading(f"{kind.__name__} of {self.title}"):
            if table is not None and not is_absent:
                _check_fields(table, kind.__name__)
            found = kind()
            found.Init(*(_NO_FIELDS if is_absent or table is None else (table.Bytes, table.Pos)))
            return found

    def options(self, *names: str) -> tuple[Any, ...]:
        """The fields of its options with these names in the schema; raises as `read_options`."""
        found = self.read_options()
        with reading(f"{type(found).__name__} of {self.title}"):
            return tuple(_field(found, name) for name in names)

    def option(self, name: str) -> Any:
        """As `options`, one of them."""
        return self.options(name)[0]


class _Fields:
    """Counts the fields of a table, as a builder is told them."""

    def StartObject(self, count: int) -> None:  # noqa: N802
        self.count = count


def _check_fields(table: Table, name: str) -> None:
    """No field of a table is newer than the schema here."""
    fields = _Fields()
    getattr(tflite, f"{name}Start")(fields)
    begin = table.Pos - int(struct.unpack_from("<i", table.Bytes, table.Pos)[0])
    slots = (int(struct.unpack_from("<H", table.Bytes, begin)[0]) - _FIRST_SLOT) // 2
    for slot in range(fields.count, slots):
        is_set = struct.unpack_from("<H", table.Bytes, begin + _FIRST_SLOT + 2 * slot)[0] != 0
        require(not is_set, f"{name} has a field that this version does not know, its number {slot + 1}")


def _field(options: Any, name: str) -> Any:
    """One of several entries is a tuple, of extents or dimensions."""
    read = getattr(options, name)
    if not hasattr(options, f"{name}Length"):
        return read()
    count = getattr(options, f"{name}Length")()
    require(count <= MAX_DIMENSIONS, f"{name} must have at most {MAX_DIMENSIONS} entries, but got {count}")
    return tuple(read(index) for index in range(count))


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
