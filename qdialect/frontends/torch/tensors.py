"""What a node's result stands for while the import is planned; nothing is built yet.

As in the ONNX front end, an f32 value is not computed but waits for the quantization that asks for its quantized
values. PyTorch quantizes by ``clamp(round_half_even(x * float32(1 / s)) + z)`` and dequantizes by ``float32(q - z) *
s``, both in float32 (``quantized_decomposed``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from qdialect.dialect import DequantizeOp, QuantizeOp
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES
from qdialect.frontends.common import Array, Shape, require
from qdialect.frontends.planning import tensors as planning
from qdialect.frontends.planning.emitter import Emission, Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import (
    EIGHT_BIT,
    Constant,
    Floats,
    Integers,
    Quantization,
    QuantizedTensor,
    clip,
    look_up_table,
)
from qdialect.profiles import PYTORCH
from qdialect.quant_math import (
    dequantize_array,
    encode_table,
    quantize_array,
    same_scale,
    table_codes,
)

Function = Callable[[Array], Array]
"""A function of f32 values, float32 to float32, element by element."""

ROUNDING = PYTORCH.quantization


@dataclass(frozen=True)
class Parameters(Quantization):
    """How a tensor is quantized per tensor; quantized values are clamped to [`minimum`, `maximum`]."""

    minimum: int
    maximum: int

    @property
    def is_narrow(self) -> bool:
        """Whether the quantized values leave out some of the type's."""
        return (self.minimum, self.maximum) != ELEMENT_RANGES[self.element]

    def same_meaning(self, other: Parameters) -> bool:
        """Whether a quantized value stands for the same f32 value in both."""
        same_points = (self.element, self.zero_point) == (other.element, other.zero_point)
        return same_points and same_scale(self.scale, other.scale)

    def quantize(self, f32_values: Array) -> Array:
        """The quantized values of f32 values."""
        how = (PYTORCH.float_rounding, PYTORCH.scaling, PYTORCH.nan)
        values = quantize_array(
            f32_values.astype(np.float32), self.scale, self.zero_point, 0, NUMPY_DTYPES[self.element], *how
        )
        return np.clip(values, self.minimum, self.maximum)

    def dequantize(self, values: Array) -> Array:
        """The f32 values of quantized values."""
        return dequantize_array(values, self.scale, self.zero_point, 0)


@dataclass(frozen=True, eq=False)
class F32Tensor(ABC):
    """f32 values of `shape`."""

    shape: Shape

    @abstractmethod
    def quantized(self, plan: Plan, name: str, to: Parameters) -> Value:
        """Their quantized values; raises `UnsupportedError` where the module cannot compute them."""

    @abstractmethod
    def computed(self, plan: Plan, name: str) -> Value:
        """Themselves as an f32 value; raises `UnsupportedError` where the module cannot compute them."""

    def f32(self, plan: Plan, name: str) -> Value:
        """As `computed`, once for all readers."""
        if self not in plan.f32_values:
            plan.f32_values[self] = self.computed(plan, name)
        return plan.f32_values[self]

    def encoded(self, plan: Plan, name: str, to: Parameters) -> Value:
        """As `quantized`, once for all readers."""
        key = self, to
        if key not in plan.encoded:
            plan.encoded[key] = self.quantized(plan, name, to)
        return plan.encoded[key]


@dataclass
class Plan(planning.Plan):
    """The values to emit, in order, and which of them hold f32 or quantized values that somebody asked for.

    A tensor that many others are computed of may be asked for with as many parameters; `limit` is how many values and
    evaluations that may take in all.
    """

    limit: int = 0
    counted: int = 0
    f32_values: dict[F32Tensor, Value] = field(default_factory=dict["F32Tensor", Value])
    encoded: dict[tuple[F32Tensor, Parameters], Value] = field(
        default_factory=dict[tuple["F32Tensor", Parameters], Value]
    )

    def compute(self, name: str, shape: Shape, element: str, emission: Emission) -> Value:
        self.count()
        return super().compute(name, shape, element, emission)

    def count(self) -> None:
        """One value or evaluation more; raises `UnsupportedError` where there are too many."""
        self.counted += 1
        require(self.counted <= self.limit, f"program must not take more than {self.limit} ops and evaluations")


Tensor = Constant | Value | F32Tensor
"""Something known, integers, or f32 values."""
Result = Tensor | tuple[Tensor, ...]
"""What a node gives."""


@dataclass(frozen=True, eq=False)
class Quantized(QuantizedTensor, F32Tensor):
    """The f32 values of quantized values, by one scale and zero point or by those of each index of `axis`."""

    @property
    def parameters(self) -> Parameters:
        """Of quantized values that are quantized per tensor; raises `UnsupportedError` where they are not."""
        require(len(self.scales) == 1, f"tensor must have one scale, but got {len(self.scales)}")
        return Parameters(
            self.values.element, self.scales[0], self.zero_points[0], *ELEMENT_RANGES[self.values.element]
        )

    @property
    def key(self) -> tuple[Value, Floats, Integers]:
        """Equal for tensors that hold the same numbers: a graph may dequantize a tensor once for each reader."""
        return self.values, self.scales, self.zero_points

    def quantized(self, plan: Plan, name: str, to: Parameters) -> Value:
        f32_values = self.f32_values()
        if f32_values is not None:
            return Value(name, self.shape, to.element, data=to.quantize(f32_values))
        if not self.is_eight_bit or to.element not in EIGHT_BIT:
            return quantize(plan, name, self.f32(plan, name), to)
        if self.parameters.same_meaning(to):
            return limit(plan, name, self.values, to)
        return look_up(plan, name, self, to, lambda f32_values: f32_values)

    def computed(self, plan: Plan, name: str) -> Value:
        def emit(emitter: Emitter) -> Emitted:
            values, is_channels_last = emitter.either(self.values)
            axis = stored_axis(self.axis, len(self.shape), is_channels_last)
            parameters = {"scales": self.scales, "zero_points": self.zero_points, "axis": axis}
            return emitter.build(DequantizeOp, values, element="f32", **parameters), is_channels_last

        return plan.compute(name, self.shape, "f32", emit)


@dataclass(frozen=True, eq=False)
class Computed(F32Tensor):
    """An f32 value of the module."""

    value: Value

    def quantized(self, plan: Plan, name: str, to: Parameters) -> Value:
        return quantize(plan, name, self.value, to)

    def computed(self, plan: Plan, name: str) -> Value:
        return self.value


def stored_axis(axis: int, rank: int, is_channels_last: bool) -> int:
    """Where dimension `axis` of the model lies, given whether the channels come last."""
    return (0, rank - 1, *range(1, rank - 1))[axis] if is_channels_last else axis


def limit(plan: Plan, name: str, values: Value, to: Parameters) -> Value:
    """`values`, of the parameters `to`, between its bounds."""
    return clip(plan, name, values, to.minimum, to.maximum) if to.is_narrow else values


def quantize(plan: Plan, name: str, value: Value, to: Parameters) -> Value:
    """The quantized values of an f32 value."""

    def emit(emitter: Emitter) -> Emitted:
        parameters = {"scales": (to.scale,), "zero_points": (to.zero_point,), **ROUNDING}
        held, is_channels_last = emitter.either(value)
        return emitter.build(QuantizeOp, held, element=to.element, **parameters), is_channels_last

    return limit(plan, name, plan.compute(name, value.shape, to.element, emit), to)


def look_up(plan: Plan, name: str, source: Quantized, to: Parameters, function: Function) -> Value:
    """The quantized values of `function` of 8-bit numbers: a table, of which each entry is computed as PyTorch does."""
    before = source.parameters
    dtype = NUMPY_DTYPES[before.element]
    results = to.quantize(function(before.dequantize(table_codes(dtype))).astype(np.float32))
    table = encode_table(results.astype(np.int64), NUMPY_DTYPES[to.element])
    return look_up_table(plan, name, source.values, table, before, to)
