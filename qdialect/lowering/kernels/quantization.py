"""Between stored quantized values and the f32 values they stand for, in the float32 operations of the reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qdialect.lowering.program import Kernel
from qdialect.lowering.requantization.arithmetic import ROUND_HALF_EVEN, ZERO_POINT_FIRST
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.quant_math import QuantParams, Rounding, Scaling, scale_factors

Emit = Callable[[Body, Value], Value]


@dataclass(frozen=True)
class Quantization(QuantParams):
    """Parameters of quantized values, and what is added to a value when it is stored."""

    shift: int = 0

    @property
    def stored_zero_point(self) -> int:
        """The zero point of stored values."""
        return self.zero_point + self.shift


def declare_dequantize(kernel: Kernel, name: str, own: Quantization) -> Emit:
    """Emit the f32 value (f32) of a stored value (i32); the scalars are parameters of `kernel`."""
    zero_point = kernel.number(f"{name}_zero_point", own.stored_zero_point, "i32")
    scale = kernel.number(f"{name}_scale", float(np.float32(own.scale)), "f32")

    def emit(body: Body, quantized: Value) -> Value:
        offset = body.subtract(quantized, zero_point)
        return body.multiply(body.cast("arith.sitofp", offset, "f32"), scale)

    return emit


def declare_quantize(
    kernel: Kernel, name: str, output: Quantization, bounds: tuple[int, int], rounding: Rounding, scaling: Scaling
) -> Emit:
    """Emit the stored value (i32) of an f32 value (f32), by the float rounding mode `rounding`.

    `bounds` are those of the quantized values; they are integers, so that they may be applied before the rounding.
    """
    divides, early = scaling is Scaling.DIVIDE, rounding in ZERO_POINT_FIRST
    factor = kernel.number(f"{name}_scale", float(scale_factors(output.scale, scaling)), "f32")
    joined, left = (output.zero_point, 0) if early else (0, output.zero_point)
    point = kernel.number(f"{name}_zero_point", joined, "f32")
    low, high = (kernel.number(f"{name}_{n}", b - left, "f32") for n, b in zip(("low", "high"), bounds, strict=True))
    rest = kernel.number(f"{name}_stored_zero_point", left + output.shift, "i32")
    round_f32 = ZERO_POINT_FIRST.get(rounding, ROUND_HALF_EVEN)

    def emit(body: Body, f32: Value) -> Value:
        value = body.binary("arith.divf" if divides else "arith.mulf", f32, factor)
        if early:
            value = body.add(value, point)
        rounded = round_f32(body, body.clamp(value, low, high))
        return body.add(body.cast("arith.fptosi", rounded, "i32"), rest)

    return emit
