"""A node of a .tflite graph with what its operands hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import tflite

from qdialect.bench.frameworks.runner import Array
from qdialect.bench.truth import NoTruthError
from qdialect.frontends.tflite.flatbuffer.model import Operator, OptionsTable, Tensor
from qdialect.frontends.tflite.flatbuffer.reader import read_options

T = TypeVar("T")
Options = TypeVar("Options", bound=OptionsTable)
Evaluator = Callable[["Node"], "tuple[Array, ...]"]


@dataclass(frozen=True)
class Node:
    """An operator and its operands: float64 numbers, or integers and booleans that stand for themselves."""

    operator: Operator
    arrays: tuple[Array | None, ...]

    def __getitem__(self, index: int) -> Array:
        """An operand that is there."""
        array = self.arrays[index]
        if array is None:
            raise NoTruthError(f"{self.operator.title}: input {index} is left out")
        return array

    def optional(self, index: int) -> Array | None:
        """An operand, None where it is left out."""
        return self.arrays[index] if index < len(self.arrays) else None

    def tensor(self, index: int) -> Tensor:
        """What the file says of an operand."""
        tensor = self.operator.inputs[index]
        assert tensor is not None
        return tensor

    def integers(self, index: int) -> tuple[int, ...]:
        """An operand of integers."""
        return tuple(int(entry) for entry in self[index].ravel())

    def options(self, table: type[Options], read: Callable[[Options], T]) -> T:
        """What `read` takes from the node's options."""
        return read_options(self.operator, table, read)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the first output."""
        return self.operator.outputs[0].shape


def traced_name(tensor: Tensor) -> str:
    """A tensor by its number, since names need not differ, and by the first of the names that a fusion has left."""
    return f"{tensor.index}:{tensor.name.partition(';')[0]}"


_KIND = tflite.ActivationFunctionType
_ACTIVATIONS: dict[int, Callable[[Array], Array]] = {
    _KIND.NONE: lambda x: x,
    _KIND.RELU: lambda x: np.maximum(x, 0),
    _KIND.RELU_N1_TO_1: lambda x: np.clip(x, -1, 1),
    _KIND.RELU6: lambda x: np.clip(x, 0, 6),
    _KIND.TANH: np.tanh,
}


def activated(kind: int, numbers: Array) -> Array:
    """Numbers after a fused activation."""
    if kind not in _ACTIVATIONS:
        raise NoTruthError(f"activation {kind} has no evaluator in float64")
    return _ACTIVATIONS[kind](numbers)


def fused(node: Node, table: Any, numbers: Array) -> Array:
    """Numbers after the activation that options of the class `table` name."""
    kind: int = node.options(table, lambda options: options.FusedActivationFunction())
    return activated(kind, numbers)
