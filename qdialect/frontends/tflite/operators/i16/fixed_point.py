"""Fixed-point arithmetic of TFLite's kernels on tensors of integers, by upstream ops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qdialect._mlir import ir
from qdialect.frontends.arithmetic import Arithmetic
from qdialect.frontends.common import require
from qdialect.quant_math import quantize_multiplier

_INT32 = (-(2**31), 2**31 - 1)
_LARGEST_EXPONENT = 30


@dataclass(frozen=True)
class FixedPoint:
    """A multiplier ``q * 2^(e - 31)``, which rounds twice (see `qdialect.quant_math.fixed_point`)."""

    q: int
    e: int

    @classmethod
    def of(cls, factor: float) -> FixedPoint:
        """That of a real factor; raises `UnsupportedError` where 32 bits hold no product with it."""
        require(0 <= factor < 2.0**_LARGEST_EXPONENT, f"rescale factor must be in [0, 2^30), but got {factor}")
        return cls(*quantize_multiplier(factor))

    def scaled(self, s: Arithmetic, value: ir.Value) -> ir.Value:
        """An i32 tensor times the multiplier, as an i32 tensor."""
        wide = s.resize(value, "i64")
        if self.e > 0:
            wide = clamped(s, s.op("arith.muli", wide, 1 << self.e), _INT32)
        product = s.op("arith.addi", s.op("arith.muli", wide, self.q), 1 << 30)
        high = s.op("arith.shrsi", product, 31)
        return s.resize(shifted_right(s, high, max(-self.e, 0)), "i32")


def shifted_right(s: Arithmetic, value: ir.Value, count: int) -> ir.Value:
    """An i64 tensor ``value / 2^count``, ties away from zero: a tie of a negative number must not move up."""
    if count == 0:
        return value
    sign = s.op("arith.shrsi", value, 63)
    nudged = s.op("arith.addi", s.op("arith.addi", value, 1 << (count - 1)), sign)
    return s.op("arith.shrsi", nudged, count)


def clamped(s: Arithmetic, value: ir.Value, bounds: tuple[int, int]) -> ir.Value:
    """`value` limited to `bounds`."""
    return s.op("arith.minsi", s.op("arith.maxsi", value, bounds[0]), bounds[1])


def narrowed(s: Arithmetic, value: ir.Value, bounds: tuple[int, int]) -> ir.Value:
    """`value` limited to `bounds`, which are those of i16 or narrower, as i16."""
    return s.resize(clamped(s, value, bounds), "i16")


def f32_quotient(*numbers: float) -> float:
    """The first number divided by the others, in float32."""
    first, *others = (np.float32(number) for number in numbers)
    for other in others:
        first = first / other
    return float(first)
