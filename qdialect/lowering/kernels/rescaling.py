"""From integers of one scale to stored quantized values of another: requantization into any integer type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qdialect.lowering.program import Kernel
from qdialect.lowering.requantization.arithmetic import ZERO_POINT_FIRST, Requantization, emit_requantize, emit_scale
from qdialect.lowering.text.scalar_body import Body, Value

EmitRescale = Callable[[Body, Value, Sequence[Value]], Value]
"""(body, integer, multiplier parameters) -> stored element."""

_INT32 = (-(2**31), 2**31 - 1)
# Beyond int32 plus any zero point, and exact in float32.
_FAR = 2.0**33


@dataclass(frozen=True)
class Rescaling:
    """``clamp(round(x * M) + zero_point)`` plus `shift`, as `element`; zero point and bounds are without it."""

    how: Requantization
    zero_point: int
    bounds: tuple[int, int]
    shift: int
    element: str

    def declare(self, kernel: Kernel) -> EmitRescale:
        """Declare zero point and bounds as parameters of `kernel`."""
        return self._declare_wide(kernel) if self.element == "i32" else self._declare_narrow(kernel)

    def scalars(self, kernel: Kernel) -> list[Value]:
        """Declare the per-tensor multiplier as parameters of `kernel`."""
        return [kernel.number(p.name, p.values[0], p.element) for p in self.how.parameters]

    def _declare_narrow(self, kernel: Kernel) -> EmitRescale:
        emit_rescale = declare_rescale(kernel, self.how, self.zero_point, self.bounds, self.shift)

        def emit(body: Body, value: Value, parameters: Sequence[Value]) -> Value:
            quantized = emit_rescale(body, value, parameters)
            return (
                body.narrow(quantized) if self.element == "i8" else body.cast("arith.trunci", quantized, self.element)
            )

        return emit

    def _declare_wide(self, kernel: Kernel) -> EmitRescale:
        """32-bit quantized values: float32 does not hold their bounds, so that they are clamped as 64-bit integers."""
        zero_point = kernel.number("zero_point", self.zero_point, "i64")
        low, high = (kernel.number(n, b, "i64") for n, b in zip(("low", "high"), self.bounds, strict=True))
        f32 = kernel.number("f32_zero_point", self.zero_point, "f32")

        def emit(body: Body, value: Value, parameters: Sequence[Value]) -> Value:
            if self.how.rounding in ZERO_POINT_FIRST:
                quantized = self._early(body, value, parameters[0], f32)
            else:
                quantized = body.add(self._late(body, value, parameters), zero_point)
            return body.cast("arith.trunci", body.clamp(quantized, low, high), "i32")

        return emit

    def _early(self, body: Body, value: Value, multiplier: Value, zero_point: Value) -> Value:
        product = body.multiply(body.cast("arith.sitofp", value, "f32"), multiplier)
        quantized = body.add(product, zero_point)
        return _as_integer(body, ZERO_POINT_FIRST[self.how.rounding](body, quantized))

    def _late(self, body: Body, value: Value, parameters: Sequence[Value]) -> Value:
        """The scaled value before its zero point; fixed-point rounding modes saturate it to 32 bits."""
        scaled = emit_scale(body, self.how, value, parameters)
        if not self.how.rounding.is_fixed:
            return _as_integer(body, scaled)
        wide = body.cast("arith.extsi", scaled, "i64")
        low, high = (body.constant(bound, "i64") for bound in _INT32)
        return body.clamp(wide, low, high)


def declare_rescale(
    kernel: Kernel, how: Requantization, zero_point: int, bounds: tuple[int, int], shift: int
) -> EmitRescale:
    """``clamp(round(x * M) + zero_point) + shift`` as i32, for bounds that float32 holds.

    A zero point that joins before the rounding must be without the shift: float32 rounds elsewhere around a shifted
    one.
    """
    early = 0 if how.rounding in ZERO_POINT_FIRST else shift
    own = kernel.number("zero_point", zero_point + early, how.wide)
    low, high = (kernel.number(n, b + early, how.wide) for n, b in zip(("low", "high"), bounds, strict=True))
    from_zero = bounds[0] + early >= 0

    def emit(body: Body, value: Value, parameters: Sequence[Value]) -> Value:
        quantized = emit_requantize(body, how, value, parameters, own, (low, high), from_zero=from_zero)
        if shift == early:
            return quantized
        return body.add(quantized, body.constant(shift - early, "i32"))

    return emit


def _as_integer(body: Body, value: Value) -> Value:
    limited = body.clamp(value, body.constant(-_FAR, "f32"), body.constant(_FAR, "f32"))
    return body.cast("arith.fptosi", limited, "i64")
