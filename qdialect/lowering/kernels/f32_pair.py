"""A float32 function of two stored quantized values, rounded once: `qdialect.quant_math.pairs.real_pair`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from qdialect.lowering.kernel_text import Body
from qdialect.lowering.kernels.addition import Quantization
from qdialect.lowering.kernels.elementwise import Emit
from qdialect.lowering.program import Kernel

EmitF32 = Callable[[Body, str, str], str]
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
        """Declare the scalars as parameters of `kernel`; returns what emits a stored code from two."""
        sides = [
            (kernel.number(f"{name}_zero_point", q.zero_point + q.shift, "i32"), _scale(kernel, name, q))
            for name, q in (("lhs", self.lhs), ("rhs", self.rhs))
        ]
        scale, point = _scale(kernel, "output", self.output), self.output.zero_point
        low, high = (kernel.number(n, b - point, "f32") for n, b in zip(("low", "high"), self.bounds, strict=True))
        zero_point = kernel.number("output_zero_point", point + self.output.shift, "i32")

        def emit(body: Body, values: Sequence[str]) -> str:
            left, right = (_f32(body, code, *side) for code, side in zip(values, sides, strict=True))
            quotient = body.binary("arith.divf", self.function(body, left, right), scale, "f32")
            # Bounds are integers: clamping before rounding gives the same code and keeps the conversion in range.
            rounded = body.op(f"math.roundeven {body.clamp(quotient, low, high, 'f32')} : f32")
            code = body.binary("arith.addi", body.cast("arith.fptosi", rounded, "f32", "i32"), zero_point, "i32")
            return body.narrow(code, "i32")

        return emit


def _scale(kernel: Kernel, name: str, quantization: Quantization) -> str:
    return kernel.number(f"{name}_scale", float(np.float32(quantization.scale)), "f32")


def _f32(body: Body, code: str, zero_point: str, scale: str) -> str:
    offset = body.binary("arith.subi", body.cast("arith.extui", code, "i8", "i32"), zero_point, "i32")
    return body.binary("arith.mulf", body.cast("arith.sitofp", offset, "i32", "f32"), scale, "f32")


def difference(body: Body, left: str, right: str) -> str:
    """``left - right``."""
    return body.binary("arith.subf", left, right, "f32")


def quotient(body: Body, left: str, right: str) -> str:
    """``left / right``."""
    return body.binary("arith.divf", left, right, "f32")


def larger(body: Body, left: str, right: str) -> str:
    """The larger of two numbers."""
    return _selected(body, "ogt", left, right, left, right)


def smaller(body: Body, left: str, right: str) -> str:
    """The smaller of two numbers."""
    return _selected(body, "olt", left, right, left, right)


def with_slope(body: Body, data: str, slope: str) -> str:
    """`data` where positive, ``data * slope`` elsewhere."""
    product = body.binary("arith.mulf", data, slope, "f32")
    return _selected(body, "ogt", data, body.constant(0, "f32"), data, product)


def _selected(body: Body, predicate: str, left: str, right: str, then: str, other: str) -> str:
    condition = body.op(f"arith.cmpf {predicate}, {left}, {right} : f32")
    return body.op(f"arith.select {condition}, {then}, {other} : f32")
