"""A graph of PyTorch operators in memory, as the reader hands it to the importer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast

import ml_dtypes
import numpy as np

from qdialect.frontends.building.checks import Array, Interface, Shape

UNKNOWN = "another type"
ELEMENTS = {
    "bool": "i1",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "int8": "i8",
    "uint8": "ui8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
}
"""The dialect's names of the dtypes by PyTorch's."""
NARROW: Mapping[str, np.dtype[Any]] = {
    name: np.dtype(getattr(ml_dtypes, name))
    for name in (*("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),)
}
"""PyTorch's floats that NumPy lacks, by their names: the dtypes of arrays."""
FLOAT8 = NARROW.keys() - {"bfloat16"}
"""Those that are float32 numbers for callers."""


def held_dtype(name: str) -> np.dtype[Any]:
    """How an array holds a dtype of PyTorch's."""
    return NARROW.get(name) or np.dtype(name)


def held_element(array: Array) -> str:
    """The element type that an array holds: the dialect's name, or PyTorch's where it has none."""
    return ELEMENTS.get(array.dtype.name, array.dtype.name)


@dataclass(frozen=True)
class Ref:
    """An argument that is the result of another node or an input."""

    name: str


@dataclass(frozen=True)
class Element:
    """An argument that is a dtype."""

    name: str


@dataclass(frozen=True)
class Output:
    """Shape and element type of a node's result."""

    shape: Shape
    element: str
    is_contiguous: bool = True
    """Whether its elements lie in memory in their order, one behind the other."""


def is_contiguous(shape: Shape, strides: Shape) -> bool:
    """Whether `strides`, in elements, are those of a contiguous tensor."""
    wanted = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != wanted:
            return False
        wanted *= extent
    return True


@dataclass(frozen=True, eq=False)
class Node:
    """A call of an operator; `kind` is its name with its overload, ``aten.add.Tensor``.

    Arguments are `Ref`, `Element`, numbers, strings, None, a `Graph` that the operator runs, and tuples of these, those
    that have defaults among them, by the names of the operator's schema.  `where` is the path of the module that called
    it.
    """

    name: str
    kind: str
    arguments: Mapping[str, Any]
    outputs: tuple[Output, ...]
    where: str
    origin: str = ""
    """The node of the program of which this is a part, where PyTorch makes it of several."""

    @property
    def label(self) -> str:
        """The name of the program's node."""
        return self.origin or self.name

    def renamed(self, names: Callable[[str], str]) -> Self:
        """The node that reads others."""
        arguments = {name: _renamed(argument, names) for name, argument in self.arguments.items()}
        return replace(self, arguments=arguments)

    @property
    def title(self) -> str:
        """How messages call the node: its name, operator and module."""
        kind = self.kind.removeprefix("quantized_decomposed.").removesuffix(".default")
        return f"node '{self.name}' {kind}" + (f" ({self.where})" if self.where else "")

    def refs(self) -> tuple[str, ...]:
        """The names that the arguments refer to, in order, each once."""
        return tuple(dict.fromkeys(_refs(tuple(self.arguments.values()))))


def _renamed(argument: Any, names: Callable[[str], str]) -> Any:
    if isinstance(argument, Ref):
        return Ref(names(argument.name))
    if isinstance(argument, tuple):
        return tuple(_renamed(part, names) for part in cast("tuple[Any, ...]", argument))
    return argument


def _refs(argument: Any) -> list[str]:
    if isinstance(argument, Ref):
        return [argument.name]
    if isinstance(argument, tuple):
        parts = cast("tuple[Any, ...]", argument)
        return [name for part in parts for name in _refs(part)]
    return []


def memory_groups(arrays: Mapping[str, Array]) -> list[list[str]]:
    """The names of arrays, those together whose memory overlaps from its first byte to its last."""
    groups: list[list[str]] = []
    end = 0
    for name in sorted(arrays, key=lambda one: _ends(arrays[one])):
        first, last = _ends(arrays[name])
        if groups and first < end:
            groups[-1].append(name)
        else:
            groups.append([name])
        end = max(end, last)
    return groups


def _ends(array: Array) -> tuple[int, int]:
    """Where the memory of an array begins, and where it ends; strides are those of PyTorch, which go forwards."""
    start: int = array.__array_interface__["data"][0]
    steps = ((extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True))
    return start, start + (sum(steps) + array.itemsize if array.size else 0)


def in_own_memory(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Copies of arrays, which share memory with each other where the arrays do."""
    found: dict[str, Array] = {}
    for group in memory_groups(arrays):
        if len(group) == 1:
            found[group[0]] = np.array(arrays[group[0]])
            continue
        ends = [_ends(arrays[name]) for name in group]
        first, last = min(ends)[0], max(last for _, last in ends)
        # As far behind a multiple of what every element is aligned to as it was.
        begin = first - first % _ALIGNMENT
        block = np.zeros(last - begin, np.uint8)
        for name, (start, _) in zip(group, ends, strict=True):
            array = arrays[name]
            found[name] = np.ndarray(array.shape, array.dtype, block, start - begin, array.strides)
            found[name][...] = array
    return {name: found[name] for name in arrays}


_ALIGNMENT = 16
Original = tuple[tuple[Node, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Graph:
    """Nodes in the order of execution; parameters and buffers are constants."""

    nodes: tuple[Node, ...]
    inputs: tuple[Interface, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Array]
    written: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of constants that change when the program runs: the name of what they hold then."""
    original: Original | None = None
    """Before what works in place was replaced: nodes, and outputs with `written` behind; None where all of it was."""
    entangled: str = ""
    """Why nodes do not tell what is written, where another constant has the same memory: then PyTorch runs them all."""

    def opened(self) -> Graph:
        """The same with what is written as inputs and outputs, behind the others."""
        held = {name: self.constants[name] for name in self.written}
        states = [Interface(name, array.shape, held_element(array)) for name, array in held.items()]
        constants = {name: array for name, array in self.constants.items() if name not in held}
        return Graph(self.nodes, (*self.inputs, *states), (*self.outputs, *self.written.values()), constants)
