"""What a name of an ONNX graph stands for while the import is planned; nothing is built yet.

A quantized graph alternates between quantized values and the f32 values they stand for.  An f32 value is not computed:
it waits for the QuantizeLinear that asks for its quantized values, and then the QDQ group becomes one integer op.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from qdialect.dialect import DequantizeOp, QuantizeOp
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES
from qdialect.frontends.budget import check_shape
from qdialect.frontends.common import Array, Shape, UnsupportedError, require
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import (
    EIGHT_BIT,
    Constant,
    Floats,
    Integers,
    Plan,
    Quantization,
    QuantizedTensor,
    clip,
    look_up_table,
)
from qdialect.profiles import ORT
from qdialect.quant_math import (
    ElementFunction,
    FloatArray,
    build_table,
    quantize_array,
    table_codes,
)


@dataclass(frozen=True)
class Parameters(Quantization):
    """How a tensor is quantized per tensor."""

    @property
    def range(self) -> tuple[int, int]:
        """Smallest and largest quantized value."""
        return ELEMENT_RANGES[self.element]

    def quantize(self, f32_values: Array) -> Array:
        """The quantized values of f32 values: float32 quotients by the scale, rounded to even (ONNX QuantizeLinear)."""
        rounding = (ORT.float_rounding, ORT.scaling, ORT.nan)
        return quantize_array(f32_values, self.scale, self.zero_point, 0, NUMPY_DTYPES[self.element], *rounding)


@dataclass(frozen=True, eq=False)
class F32Tensor(ABC):
    """f32 values of `shape`."""

    shape: Shape

    def __post_init__(self) -> None:
        check_shape(self.shape, "result")
        # Operands come first, so that a table is made of tables that are known, however long the chain.
        self.table()

    def quantized(self, plan: Plan, name: str, to: Parameters) -> Value:
        """Their quantized values; raises `UnsupportedError` where no integer op gives them."""
        return plan.ask((self, to), lambda: self._quantized(plan, name, to))

    def f32(self, plan: Plan, name: str) -> Value:
        """Themselves as an f32 value; raises `UnsupportedError` where the module cannot compute them."""
        return plan.ask((self, None), lambda: self._f32(plan, name))

    def table(self) -> Table | None:
        """Themselves as a function of one 8-bit tensor, where they are one."""
        return self._known_table

    @cached_property
    def _known_table(self) -> Table | None:
        return self._table()

    @abstractmethod
    def _quantized(self, plan: Plan, name: str, to: Parameters) -> Value: ...

    def _f32(self, plan: Plan, name: str) -> Value:
        raise UnsupportedError("result must be quantized by a QuantizeLinear, but it is used as a float")

    def _table(self) -> Table | None:
        return None


Tensor = Constant | Value | F32Tensor
"""What a name stands for: something known, quantized values, or f32 values."""


@dataclass(frozen=True, eq=False)
class Quantized(QuantizedTensor, F32Tensor):
    """The f32 values of quantized values, by one scale and zero point or by those of each index of `axis`."""

    @property
    def parameters(self) -> Parameters:
        """Of quantized values that are quantized per tensor; raises `UnsupportedError` where they are not."""
        require(len(self.scales) == 1, f"tensor must have one scale, but got {len(self.scales)}")
        return Parameters(self.values.element, self.scales[0], self.zero_points[0])

    def _table(self) -> Table | None:
        is_held = self.is_eight_bit and self.values.data is None
        return Table(self.shape, self, lambda f32_values: f32_values) if is_held else None

    def _quantized(self, plan: Plan, name: str, to: Parameters) -> Value:
        f32_values = self.f32_values()
        if f32_values is not None:
            return Value(name, self.shape, to.element, data=to.quantize(f32_values))
        if len(self.scales) > 1 or self.values.element not in EIGHT_BIT or to.element not in EIGHT_BIT:
            return quantize(plan, name, self.f32(plan, name), to)
        return self.values if self.parameters == to else look_up(plan, name, self, to, lambda f32_values: f32_values)

    def _f32(self, plan: Plan, name: str) -> Value:
        def emit(emitter: Emitter) -> Emitted:
            parameters = {"scales": self.scales, "zero_points": self.zero_points, "axis": self.axis}
            return emitter.build(
                DequantizeOp, emitter.to_channels_first(self.values), element="f32", **parameters
            ), False

        return plan.compute(name, self.shape, "f32", emit)


@dataclass(frozen=True, eq=False)
class Computed(F32Tensor):
    """An f32 value of the module."""

    value: Value

    def _quantized(self, plan: Plan, name: str, to: Parameters) -> Value:
        return quantize(plan, name, self.value, to)

    def _f32(self, plan: Plan, name: str) -> Value:
        return self.value


@dataclass(frozen=True, eq=False)
class Clamped(F32Tensor):
    """The f32 values of `source` between two bounds.

    Quantization is monotonic, so the quantized values are clamped to the quantized bounds.
    """

    source: F32Tensor
    minimum: float
    maximum: float

    def _table(self) -> Table | None:
        table = self.source.table()
        return None if table is None else table.then(lambda f32_values: np.clip(f32_values, self.minimum, self.maximum))

    def _quantized(self, plan: Plan, name: str, to: Parameters) -> Value:
        source = self.source.quantized(plan, name, to)
        return clip(plan, name, source, to.quantize_scalar(self.minimum), to.quantize_scalar(self.maximum))

    def _f32(self, plan: Plan, name: str) -> Value:
        source = self.source.f32(plan, name)

        def emit(emitter: Emitter) -> Emitted:
            value = emitter.to_channels_first(source)
            for op, bound in (("arith.maximumf", self.minimum), ("arith.minimumf", self.maximum)):
                if np.isfinite(bound):
                    value = emitter.float_op(
                        op, value, emitter.constant(np.broadcast_to(np.float32(bound), self.shape))
                    )
            return value, False

        return plan.compute(name, self.shape, "f32", emit)


@dataclass(frozen=True, eq=False)
class Table(F32Tensor):
    """A function of an 8-bit tensor, evaluated in float32 on each of its quantized values."""

    source: Quantized
    function: ElementFunction

    @cached_property
    def entries(self) -> FloatArray:
        """The function of the f32 value of each of the 256 quantized values."""
        before = self.source.parameters
        offsets = (table_codes(NUMPY_DTYPES[before.element]) - before.zero_point).astype(np.float32)
        with np.errstate(all="ignore"):
            return self.function(offsets * np.float32(before.scale)).astype(np.float32)

    def then(self, function: ElementFunction) -> Table:
        """`function` of these numbers."""
        return self.of_entries(self.shape, function, self.entries)

    def of_entries(self, shape: Shape, function: Callable[..., FloatArray], *entries: FloatArray) -> Table:
        """`function` of arrays with an entry for each quantized value of the same source."""
        with np.errstate(all="ignore"):
            result = function(*entries)
        return Table(shape, self.source, lambda _: result)

    def _table(self) -> Table | None:
        return self

    def _quantized(self, plan: Plan, name: str, to: Parameters) -> Value:
        return look_up(plan, name, self.source, to, self.function)


def clamp_integers(plan: Plan, name: str, source: Value, minimum: float, maximum: float) -> Value:
    """8-bit integers between two bounds."""
    low, high = ELEMENT_RANGES[source.element]
    return clip(plan, name, source, *(int(min(max(bound, low), high)) for bound in (minimum, maximum)))


def quantize(plan: Plan, name: str, value: Value, to: Parameters) -> Value:
    """The quantized values of an f32 value (ONNX QuantizeLinear; NaN becomes the smallest one, as in ONNX Runtime)."""
    return quantize_along(plan, name, value, to.element, (to.scale,), (to.zero_point,), 0)


def quantize_along(
    plan: Plan, name: str, value: Value, element: str, scales: Floats, zero_points: Integers, axis: int
) -> Value:
    """As `quantize`, with a scale and a zero point for each index of `axis`."""

    def emit(emitter: Emitter) -> Emitted:
        parameters = {"scales": scales, "zero_points": zero_points, "axis": axis}
        held, is_channels_last = (
            emitter.either(value) if len(scales) == 1 else (emitter.to_channels_first(value), False)
        )
        return emitter.build(QuantizeOp, held, element=element, **parameters, **ORT.quantization), is_channels_last

    return plan.compute(name, value.shape, element, emit)


def look_up(plan: Plan, name: str, source: Quantized, to: Parameters, function: ElementFunction) -> Value:
    """The quantized values of `function` of 8-bit numbers: a table with entries rounded to even (ONNX Runtime)."""
    before = source.parameters
    require(before.element in EIGHT_BIT, f"input must be i8 or ui8, but got {before.element}")
    require(to.element in EIGHT_BIT, f"output must be i8 or ui8, but got {to.element}")
    origin = (before.scale, before.zero_point, NUMPY_DTYPES[before.element])
    target = (to.scale, to.zero_point, NUMPY_DTYPES[to.element])
    table = build_table(function, *origin, *target, **ORT.table)
    return look_up_table(plan, name, source.values, table, before, to)
