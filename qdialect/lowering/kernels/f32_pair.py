"""A float32 function of two stored quantized values, rounded once: `qdialect.quant_math.pairs.f32_pair`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from qdialect.lowering.kernels.elementwise import Emit
from qdialect.lowering.kernels.quantization import Quantization
from qdialect.lowering.program import Kernel
from qdialect.lowering.text.scalar_body import Body, Value

EmitF32 = Callable[[Body, Value, Value], Value]
"""(body, lhs, rhs) -> result, all f32."""


@dataclass(frozen=True)
class F32Pair:
    """``clamp(half_even(f(lhs, rhs) / s_y) + z_y)`` of f32 values; bounds are those of the quantized values."""

    lhs: Quantization
    rhs: Quantization
    output: Quantization
    bounds: tuple[int, int]
    function: EmitF32

    def declare(self, kernel: Kernel) -> Emit:
        """Declare the scalars as parameters of `kernel`; returns what emits a stored value from two."""
        sides = [
            (kernel.number(f"{name}_zero_point", q.stored_zero_point, "i32"), _scale(kernel, name, q))
            for name, q in (("lhs", self.lhs), ("rhs", self.rhs))
        ]
        scale, point = _scale(kernel, "output", self.output), self.output.zero_point
        low, high = (kernel.number(n, b - point, "f32") for n, b in zip(("low", "high"), self.bounds, strict=True))
        zero_point = kernel.number("output_zero_point", self.output.stored_zero_point, "i32")

        def emit(body: Body, values: Sequence[Value]) -> Value:
            left, right = (_f32(body, quantized, *side) for quantized, side in zip(values, sides, strict=True))
            quotient = body.divide(self.function(body, left, right), scale)
            # Bounds are integers: clamping before rounding gives the same result and keeps the conversion in range.
            rounded = body.unary("math.roundeven", body.clamp(quotient, low, high))
            quantized = body.add(body.cast("arith.fptosi", rounded, "i32"), zero_point)
            return body.narrow(quantized)

        return emit


def _scale(kernel: Kernel, name: str, quantization: Quantization) -> Value:
    return kernel.number(f"{name}_scale", float(np.float32(quantization.scale)), "f32")


def _f32(body: Body, quantized: Value, zero_point: Value, scale: Value) -> Value:
    offset = body.subtract(body.cast("arith.extui", quantized, "i32"), zero_point)
    return body.multiply(body.cast("arith.sitofp", offset, "f32"), scale)


def difference(body: Body, left: Value, right: Value) -> Value:
    """``left - right``."""
    return body.subtract(left, right)


def quotient(body: Body, left: Value, right: Value) -> Value:
    """``left / right``."""
    return body.divide(left, right)


def larger(body: Body, left: Value, right: Value) -> Value:
    """The larger of two numbers."""
    return _selected(body, "ogt", left, right, left, right)


def smaller(body: Body, left: Value, right: Value) -> Value:
    """The smaller of two numbers."""
    return _selected(body, "olt", left, right, left, right)


def with_slope(body: Body, data: Value, slope: Value) -> Value:
    """`data` where positive, ``data * slope`` elsewhere."""
    product = body.multiply(data, slope)
    return _selected(body, "ogt", data, body.constant(0, "f32"), data, product)


def _selected(body: Body, predicate: str, left: Value, right: Value, then: Value, other: Value) -> Value:
    condition = body.compare(predicate, left, right)
    return body.select(condition, then, other)
