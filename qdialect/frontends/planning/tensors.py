"""What a name of a graph stands for while the import is planned, as far as it is alike for every framework."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from qdialect.dialect import ClipOp, LutOp
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES
from qdialect.frontends.budget import Budget, check_shape
from qdialect.frontends.common import Array, Shape, require
from qdialect.frontends.planning.demands import Demands
from qdialect.frontends.planning.emitter import Emission, Emitted, Emitter, Value
from qdialect.quant_math import dequantize_array

Floats = tuple[float, ...]
Integers = tuple[int, ...]

EIGHT_BIT = ("i8", "ui8")


@dataclass(frozen=True)
class Quantization(ABC):
    """How a tensor is quantized per tensor."""

    element: str
    scale: float
    zero_point: int

    @abstractmethod
    def quantize(self, f32_values: Array) -> Array:
        """The quantized values of f32 values."""

    def quantize_scalar(self, f32_value: float) -> int:
        """The quantized value of one f32 value."""
        return int(self.quantize(np.array([f32_value], dtype=np.float32))[0])


@dataclass
class Plan:
    """The values to emit, in order."""

    values: list[Value] = field(default_factory=list[Value])
    budget: Budget = field(default_factory=Budget)
    """Of constants that are made while the model is read."""

    def __post_init__(self) -> None:
        self._demands = Demands(self.values)

    def ask(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """What `compute` gives, once for each `key`; raises `UnsupportedError` where it does."""
        return self._demands.ask(key, compute)

    def compute(self, name: str, shape: Shape, element: str, emission: Emission) -> Value:
        """A value that `emission` builds; raises `UnsupportedError` for a shape that no tensor can have."""
        check_shape(shape, "result")
        value = Value(name, shape, element, emission=emission)
        self.values.append(value)
        return value


@dataclass(frozen=True, eq=False)
class Constant:
    """Known integers or f32 values."""

    array: Array

    @property
    def shape(self) -> Shape:
        """Its extents."""
        return self.array.shape


@dataclass(frozen=True, eq=False)
class QuantizedTensor:
    """The f32 values of quantized values, by one scale and zero point or by those of each index of `axis`."""

    shape: Shape
    values: Value
    scales: Floats
    zero_points: Integers
    axis: int = 0

    @property
    def is_eight_bit(self) -> bool:
        """Whether it is quantized per tensor to 8 bits."""
        return len(self.scales) == 1 and self.values.element in EIGHT_BIT

    def f32_values(self) -> Array | None:
        """The f32 values, where the quantized values are constant."""
        if self.values.data is None:
            return None
        return dequantize_array(self.values.data, self.scales, self.zero_points, self.axis)

    def with_values(self, values: Value) -> Self:
        """Other quantized values with the same parameters."""
        return replace(self, shape=values.shape, values=values)


_ELEMENT_NAMES = {dtype: name for name, dtype in NUMPY_DTYPES.items()}


def known(name: str, array: Array) -> Value:
    """A value that holds a constant; raises `UnsupportedError` for a type that no tensor of the dialect has."""
    require(array.dtype in _ELEMENT_NAMES, f"constant must be of a type of the dialect, but got {array.dtype}")
    return Value(name, array.shape, _ELEMENT_NAMES[array.dtype], data=array)


def clip(plan: Plan, name: str, values: Value, minimum: int, maximum: int) -> Value:
    """`values` clipped to [`minimum`, `maximum`]; themselves where that is the range of their type."""
    if (minimum, maximum) == ELEMENT_RANGES[values.element]:
        return values

    def emit(emitter: Emitter) -> Emitted:
        value, is_channels_last = emitter.either(values)
        return emitter.build(ClipOp, value, element=values.element, min=minimum, max=maximum), is_channels_last

    return plan.compute(name, values.shape, values.element, emit)


def look_up_table(plan: Plan, name: str, source: Value, table: Array, before: Quantization, to: Quantization) -> Value:
    """The entry of `table` (shape [256]) for each 8-bit value."""

    def emit(emitter: Emitter) -> Emitted:
        value, is_channels_last = emitter.either(source)
        return emitter.build(LutOp, value, element=to.element, table=table, **mapping(before, to)), is_channels_last

    return plan.compute(name, source.shape, to.element, emit)


def mapping(before: Quantization, to: Quantization) -> Mapping[str, Any]:
    """The attributes that name both quantizations of an 8-bit function."""
    return {
        "input_scale": before.scale,
        "input_zero_point": before.zero_point,
        "output_scale": to.scale,
        "output_zero_point": to.zero_point,
    }
