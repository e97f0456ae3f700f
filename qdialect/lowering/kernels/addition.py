"""Quantized addition of two stored codes, in the three arithmetics of `qdialect.reference.elementwise.add`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qdialect.diagnostics import CompileError
from qdialect.lowering.arithmetic import Requantization, emit_requantize, emit_scale, requantization
from qdialect.lowering.kernel_text import Body
from qdialect.lowering.program import Kernel
from qdialect.quant_math import (
    AddArithmetic,
    Multiplier,
    Rounding,
    quantize_multiplier,
    real_multiplier,
    requantize_parameters,
)
from qdialect.quant_math.multipliers import FixedMultiplier

EmitSum = Callable[[Body, str, str], str]
"""(body, lhs code as i32, rhs code as i8) -> clamped sum as i32."""

_LEFT_SHIFT = 20
# Far outside any 8-bit sum and exact in float32: with ratios below 2^20 no rescaled code gets there.
_BOUNDS = (-(2**30), 2**30)
_LARGEST_RATIO = 2.0**20


@dataclass(frozen=True)
class Quantization:
    """Scale and zero point of stored codes."""

    scale: float
    zero_point: int


@dataclass(frozen=True)
class Addition:
    """lhs + rhs at the output's quantization, clamped to `bounds`; zero points and bounds are those of stored codes."""

    lhs: Quantization
    rhs: Quantization
    output: Quantization
    bounds: tuple[int, int]
    arithmetic: AddArithmetic
    rounding: Rounding
    multiplier: Multiplier

    def declare(self, kernel: Kernel) -> EmitSum:
        """Declare the scalars as parameters of `kernel`; returns what emits the sum into a body."""
        if self.arithmetic is AddArithmetic.SHIFTED_FIXED:
            return self._shifted(kernel)
        if self.arithmetic is AddArithmetic.FLOAT_ONCE:
            return self._float(kernel)
        return self._each(kernel)

    def _shifted(self, kernel: Kernel) -> EmitSum:
        twice_max = 2 * max(self.lhs.scale, self.rhs.scale)
        lhs = _Rescale.fixed(kernel, "lhs", self.lhs.scale / twice_max)
        rhs = _Rescale.fixed(kernel, "rhs", self.rhs.scale / twice_max)
        total = _Rescale.fixed(kernel, "sum", twice_max / ((1 << _LEFT_SHIFT) * self.output.scale))
        points = _numbers(kernel, "i64", lhs=self.lhs, rhs=self.rhs, sum=self.output)
        low, high = _bounds(kernel, self.bounds, "i64")

        def lifted(body: Body, code: str, type_: str, zero_point: str) -> str:
            wide = body.cast("arith.extsi" if type_ == "i32" else "arith.extui", code, type_, "i64")
            offset = body.binary("arith.subi", wide, zero_point, "i64")
            return body.binary("arith.shli", offset, body.constant(_LEFT_SHIFT, "i64"), "i64")

        def emit(body: Body, left: str, right: str) -> str:
            a = lhs.emit(body, lifted(body, left, "i32", points["lhs"]), "i64")
            b = rhs.emit(body, lifted(body, right, "i8", points["rhs"]), "i64")
            value = total.emit(body, body.binary("arith.addi", a, b, "i64"), "i64")
            value = body.clamp(body.binary("arith.addi", value, points["sum"], "i64"), low, high, "i64")
            return body.cast("arith.trunci", value, "i64", "i32")

        return emit

    def _each(self, kernel: Kernel) -> EmitSum:
        lhs = self._to_output(kernel, "lhs", self.lhs)
        rhs = self._to_output(kernel, "rhs", self.rhs)
        zero_point = kernel.number("sum_zero_point", self.output.zero_point, "i64")
        low, high = _bounds(kernel, self.bounds, "i64")

        def emit(body: Body, left: str, right: str) -> str:
            a = body.cast("arith.extsi", lhs(body, left), "i32", "i64")
            b = body.cast("arith.extsi", rhs(body, body.cast("arith.extui", right, "i8", "i32")), "i32", "i64")
            value = body.binary("arith.addi", a, b, "i64")
            value = body.clamp(body.binary("arith.subi", value, zero_point, "i64"), low, high, "i64")
            return body.cast("arith.trunci", value, "i64", "i32")

        return emit

    def _to_output(self, kernel: Kernel, name: str, own: Quantization) -> Callable[[Body, str], str]:
        if own == self.output:
            return lambda _, code: code
        real = real_multiplier(own.scale, [1.0], self.output.scale, self.multiplier)
        if real[0] >= _LARGEST_RATIO:
            raise CompileError(
                f"scales of an addition must be within 2^20 of each other, but got a ratio of {real[0]:g}"
            )
        how = requantization(self.rounding, requantize_parameters(self.rounding, real))
        return rescale(kernel, name, how, own.zero_point, self.output.zero_point, _BOUNDS)

    def _float(self, kernel: Kernel) -> EmitSum:
        scale = np.float32(self.output.scale)
        left_ratio, right_ratio = np.float32(self.lhs.scale) / scale, np.float32(self.rhs.scale) / scale
        points = left_ratio * np.float32(self.lhs.zero_point) + right_ratio * np.float32(self.rhs.zero_point)
        sides = (("lhs", left_ratio), ("rhs", right_ratio))
        ratios = tuple(kernel.number(f"{name}_ratio", float(ratio), "f32") for name, ratio in sides)
        offset = kernel.number("sum_offset", float(np.float32(self.output.zero_point) - points), "f32")
        low, high = _bounds(kernel, self.bounds, "f32")

        def emit(body: Body, left: str, right: str) -> str:
            a = body.binary("arith.mulf", body.cast("arith.sitofp", left, "i32", "f32"), ratios[0], "f32")
            b = body.binary("arith.mulf", body.cast("arith.uitofp", right, "i8", "f32"), ratios[1], "f32")
            value = body.binary("arith.addf", a, body.binary("arith.addf", b, offset, "f32"), "f32")
            value = body.op(f"math.roundeven {body.clamp(value, low, high, 'f32')} : f32")
            return body.op(f"arith.fptosi {value} : f32 to i32")

        return emit


@dataclass(frozen=True)
class _Rescale:
    """A doubly rounding multiplier whose parameters are scalars of a kernel."""

    how: Requantization
    names: list[str]

    @classmethod
    def fixed(cls, kernel: Kernel, name: str, real: float) -> _Rescale:
        q, e = quantize_multiplier(real)
        pair = FixedMultiplier(np.array([q], dtype=np.int32), np.array([e], dtype=np.int32))
        how = requantization(Rounding.FIXED32_DOUBLE, pair)
        return cls(how, [kernel.number(f"{name}_{p.name}", p.values[0], p.element) for p in how.parameters])

    def emit(self, body: Body, value: str, type_: str) -> str:
        return emit_scale(body, self.how, value, type_, self.names)


def rescale(
    kernel: Kernel, name: str, how: Requantization, zero_point: int, output_zero_point: int, bounds: tuple[int, int]
) -> Callable[[Body, str], str]:
    """Emit ``clamp(round((value - z) * M) + z_o)``, i32 to i32, per tensor; the scalars are parameters of `kernel`."""
    parameters = [kernel.number(f"{name}_{p.name}", p.values[0], p.element) for p in how.parameters]
    own = kernel.number(f"{name}_zero_point", zero_point, "i32")
    output = kernel.number(f"{name}_output_zero_point", output_zero_point, how.wide)
    limits = _bounds(kernel, bounds, how.wide, name)

    def emit(body: Body, value: str) -> str:
        offset = body.binary("arith.subi", value, own, "i32")
        return emit_requantize(body, how, offset, "i32", parameters, output, limits)

    return emit


def _numbers(kernel: Kernel, type_: str, **quantizations: Quantization) -> dict[str, str]:
    return {
        name: kernel.number(f"{name}_zero_point", quantization.zero_point, type_)
        for name, quantization in quantizations.items()
    }


def _bounds(kernel: Kernel, bounds: tuple[int, int], type_: str, name: str = "sum") -> tuple[str, str]:
    return kernel.number(f"{name}_low", bounds[0], type_), kernel.number(f"{name}_high", bounds[1], type_)
