"""The kinds of planned tensors that only PyTorch has: quantized ones, by scales known or found at run time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qdialect.arithmetic.profiles import PYTORCH
from qdialect.dialect import DequantizeOp, QuantizeOp
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of, shape_of
from qdialect.frontends.building.checks import UnsupportedError, require
from qdialect.frontends.planning import tensors as planning
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import F32Tensor, Plan, QuantizedTensorType
from qdialect.ir._mlir import ir

# PyTorch quantizes by ``clamp(round_half_even(x * float32(1 / s)) + z)`` and dequantizes by ``float32(q - z) * s``,
# both in float32 (``quantized_decomposed``).


class Quantized(planning.Quantized):
    """The result of a dequantize."""

    profile = PYTORCH


# Quotients of float32 numbers rounded as if they were known exactly, in float32 operations.
#
# For a number x and a scale s, ``n = round(x / s)`` is the nearest integer or an adjacent one.  The remainder
# ``x - n * s`` is a float32 number (as IEEE 754's remainder is), and with s in two parts of 12 bits each operation on
# the way to it is exact (T. J. Dekker, A floating-point technique for extending the available precision).  Which
# integer is nearest follows from the remainder and s / 2.

_HIGH_BITS = np.int32(-1 << 12)
# Beyond it all quotients saturate, within it their products with 12 bits are exact.
_LARGEST = 1024.0


def rounded_quotient(emitter: Emitter, x: ir.Value, scale: ir.Value, offset: ir.Value) -> ir.Value:
    """``half_even(x / scale + offset)`` of f32 tensors that broadcast to x; offsets are whole numbers of 8 bits."""
    shape = shape_of(x.type)
    s = emitter.f32
    # The first 12 bits of the scale's significand.
    bits = emitter.convert("arith.bitcast", scale, "i32")
    mask = emitter.broadcast(emitter.constant(np.array(_HIGH_BITS)), shape_of(scale.type))
    high = emitter.convert("arith.bitcast", emitter.upstream("arith.andi", bits, mask), "f32")
    low = emitter.f32("subf", scale, high)
    near = s("roundeven", s("minimumf", s("maximumf", s("divf", x, scale), -_LARGEST), _LARGEST))
    rest = s("subf", s("subf", x, s("mulf", near, high)), s("mulf", near, low))
    size, half = s("absf", rest), emitter.broadcast(s("mulf", scale, 0.5), shape)
    # 1/2 leaves the choice to the sum; 3/4 stands for all that is larger, and the sum holds it.
    beyond = emitter.select(emitter.compare("eq", size, half), emitter.number(0.5, shape), 0.0)
    more = emitter.select(emitter.compare("gt", size, half), 0.75, beyond)
    return s("roundeven", s("addf", s("addf", near, offset), s("copysign", more, rest)))


# Tensors whose scale and zero point are found when the network runs: of a whole tensor or of each of its rows.

_WHOLE: dict[str, Any] = {"scales": (1.0,), "zero_points": (0,), **PYTORCH.quantization}
"""Of a quantization of whole numbers, which stay as they are within the range of their type."""


@dataclass(frozen=True, eq=False)
class RunTimeScale(F32Tensor):
    """A scale that PyTorch holds in float64, though float32 has computed it."""

    value: Value

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        raise UnsupportedError("scale must be read by quantize and dequantize alone, but it is quantized itself")

    def _f32(self, plan: Plan, name: str) -> Value:
        raise UnsupportedError("scale must be read by quantize and dequantize alone, for its type is float64")


@dataclass(frozen=True)
class RunTimeParameters:
    """An f32 scale and a zero point of integers: [1], or one of each for every row, [..., 1]."""

    scale: Value
    zero_point: Value
    element: str
    """Of the quantized values, ``"i8"`` or ``"ui8"``."""
    minimum: int
    maximum: int
    rounds_last: bool
    """Whether the zero point is added before the sum is rounded; otherwise to what is rounded."""
    in_float64: bool = False
    """Whether PyTorch divides and rounds in float64, as by the scale of a row that it holds so."""

    @property
    def is_of_tensor(self) -> bool:
        """Whether one scale and one zero point hold for all elements."""
        return self.scale.shape in ((), (1,)) and self.zero_point.shape in ((), (1,))

    def held(self, emitter: Emitter, value: Value) -> Emitted:
        """A tensor as it is held; with the model's order of dimensions where rows have parameters of their own."""
        return emitter.either(value) if self.is_of_tensor else (emitter.to_channels_first(value), False)

    def quantize(self, emitter: Emitter, f32: ir.Value) -> ir.Value:
        """``clamp(round(x * (1 / scale)) + zero_point)``, in float32 unless `in_float64`."""
        s, moved = emitter.f32, self._moved(emitter, f32)
        if (self.minimum, self.maximum) != ELEMENT_RANGES[self.element]:
            moved = s("minimumf", s("maximumf", moved, float(self.minimum)), float(self.maximum))
        return emitter.build(QuantizeOp, moved, element=self.element, **_WHOLE)

    def _moved(self, emitter: Emitter, f32: ir.Value) -> ir.Value:
        """Whole numbers, which may lie outside of the range."""
        scale, point = emitter.to_channels_first(self.scale), self._f32_point(emitter)
        if self.in_float64:
            return rounded_quotient(emitter, f32, scale, point)
        s, inverse = emitter.f32, emitter.f32("divf", 1.0, scale)
        scaled = s("mulf", f32, inverse)
        if self.rounds_last:
            return s("roundeven", s("addf", scaled, point))
        return s("addf", s("roundeven", scaled), point)

    def dequantize(self, emitter: Emitter, values: ir.Value) -> ir.Value:
        """``(q - zero_point) * scale``, in float32."""
        s = emitter.f32
        plain = emitter.build(DequantizeOp, values, element="f32", scales=(1.0,), zero_points=(0,))
        return s("mulf", s("subf", plain, self._f32_point(emitter)), emitter.to_channels_first(self.scale))

    def narrow_point(self, emitter: Emitter) -> ir.Value:
        """The zero point as an integer of the quantized values' type."""
        return emitter.build(QuantizeOp, self._f32_point(emitter), element=self.element, **_WHOLE)

    def _f32_point(self, emitter: Emitter) -> ir.Value:
        point = emitter.to_channels_first(self.zero_point)
        return point if element_of(point.type) == "f32" else emitter.convert("arith.sitofp", point, "f32")


@dataclass(frozen=True, eq=False)
class RunTimeValues(Value):
    """Values that are quantized when the network runs, with what they are quantized from."""

    source: F32Tensor | None = None
    parameters: RunTimeParameters | None = None


@dataclass(frozen=True, eq=False)
class RunTimeQuantized(F32Tensor):
    """The f32 values of `values`; `source` is what these are quantized from with the same parameters, if known."""

    values: Value
    parameters: RunTimeParameters
    source: F32Tensor | None = None

    def _f32(self, plan: Plan, name: str) -> Value:
        def emit(emitter: Emitter) -> Emitted:
            values, is_channels_last = self.parameters.held(emitter, self.values)
            return self.parameters.dequantize(emitter, values), is_channels_last

        return plan.compute(name, self.shape, "f32", emit)


def dequantized(name: str, values: Value, parameters: RunTimeParameters) -> RunTimeQuantized:
    """The f32 values of quantized values."""
    require(values.element == parameters.element, f"input must be {parameters.element}, but got {values.element}")
    source = values.source if isinstance(values, RunTimeValues) and values.parameters == parameters else None
    return RunTimeQuantized(values.shape, values, parameters, source, name=name)


def quantized_at_run_time(plan: Plan, name: str, source: F32Tensor, parameters: RunTimeParameters) -> RunTimeValues:
    """The quantized values of f32 values."""
    f32 = source.f32(plan, name)

    def emit(emitter: Emitter) -> Emitted:
        held, is_channels_last = parameters.held(emitter, f32)
        return parameters.quantize(emitter, held), is_channels_last

    value = RunTimeValues(name, f32.shape, parameters.element, None, emit, source, parameters)
    plan.add(value)
    return value
