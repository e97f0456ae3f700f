"""A node of a .tflite graph with what its operands hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import tflite

from qdialect.bench.frameworks import Array
from qdialect.bench.truth import NoTruthError
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor

T = TypeVar("T")
Options = TypeVar("Options")
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

    @property
    def all(self) -> list[Array]:
        """All operands, which are there."""
        return [self[index] for index in range(len(self.arrays))]

    def optional(self, index: int) -> Array | None:
        """An operand, None where it is left out."""
        return self.arrays[index] if index < len(self.arrays) else None

    def tensor(self, index: int) -> Tensor:
        """The file's description of an operand."""
        tensor = self.operator.inputs[index]
        assert tensor is not None
        return tensor

    def integers(self, index: int) -> tuple[int, ...]:
        return tuple(int(entry) for entry in self[index].ravel())

    def options(self, table: type[Options], read: Callable[[Options], T]) -> T:
        found = self.operator.read_options()
        assert isinstance(found, table)
        return read(found)

    def axis(self, table: Any) -> int:
        """The axis in options of the class `table`."""
        return self.options(table, lambda options: options.Axis())

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


# The grids of quantized tensors: what stored values stand for, and to which of them numbers are rounded.

DTYPES = {"i8": np.int8, "ui8": np.uint8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
"""Of quantized values, by the name of their element."""
_LARGEST = 127


def is_quantized(tensor: Tensor) -> bool:
    """Whether a tensor holds quantized values."""
    return bool(tensor.scales) and tensor.element in DTYPES


def numbers(tensor: Tensor, array: Array) -> Array:
    """The values that stored integers stand for; integers without scales stand for themselves."""
    if not is_quantized(tensor):
        return array.astype(np.float64) if array.dtype == np.float32 else array
    scales, zero_points = _grid(tensor, array.ndim)
    return (array.astype(np.float64) - zero_points) * scales


def stored(tensor: Tensor, exact: Array) -> Array:
    """The quantized values as float64; the numbers themselves where there are none."""
    return rounded(tensor, exact)[1] if is_quantized(tensor) else np.asarray(exact, np.float64)


def rounded(tensor: Tensor, exact: Array) -> tuple[Array, Array]:
    """Positions and quantized values of a tensor, rounded half away from zero."""
    scales, zero_points = _grid(tensor, exact.ndim)
    scaled, limits = exact / scales, np.iinfo(DTYPES[tensor.element])
    return scaled + zero_points, np.clip(away(scaled) + zero_points, limits.min, limits.max)


def on_grid(tensor: Tensor, exact: Array) -> Array:
    """Numbers rounded to those that the tensor can hold."""
    return numbers(tensor, rounded(tensor, exact)[1]) if is_quantized(tensor) else exact


def on_range(data: Array, axes: tuple[int, ...], *, is_asymmetric: bool) -> Array:
    """Numbers rounded to the grid of 8 bits of their own range over `axes`, as a dynamic-range operator does."""
    low: Array = data.min(axis=axes, keepdims=True)
    high: Array = data.max(axis=axes, keepdims=True)
    if not is_asymmetric:
        scale = np.maximum(np.abs(low), np.abs(high)) / _LARGEST
        return away(data / np.where(scale == 0, 1, scale)) * scale
    low, high = np.minimum(low, 0), np.maximum(high, 0)
    scale = (high - low) / 255
    scale = np.where(scale == 0, 1, scale)
    # From the end of the range at which the zero point loses less.
    at_low, at_high = -128 - low / scale, 127 - high / scale
    is_low = 128 + np.abs(low / scale) < 127 + np.abs(high / scale)
    zero_point = np.clip(away(np.where(is_low, at_low, at_high)), -128, 127)
    return (np.clip(away(data / scale) + zero_point, -128, 127) - zero_point) * scale


def away(exact: Array) -> Array:
    """Rounded half away from zero."""
    return np.sign(exact) * np.floor(np.abs(exact) + 0.5)


def _grid(tensor: Tensor, rank: int) -> tuple[Array, Array]:
    """Scales and zero points, shaped to meet the tensor."""
    shape = [1] * rank
    if len(tensor.scales) > 1:
        shape[tensor.axis] = -1
    return np.array(tensor.scales).reshape(shape), np.array(tensor.zero_points, np.float64).reshape(shape)
