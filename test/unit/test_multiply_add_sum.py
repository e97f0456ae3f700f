"""Two multiply-adds equal the quantized sum on every pair of values, and are refused where they do not."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from qdialect.arithmetic import (
    AddArithmetic,
    BinaryQuantization,
    IntArray,
    Multiplier,
    QuantParams,
    Rounding,
    float_sum_numbers,
)
from qdialect.arithmetic.elementwise import add
from qdialect.arithmetic.multipliers import FloatSum
from qdialect.lowering.cost.strategy import strategy_of
from qdialect.lowering.qnn_to_linalg.bodies.addition import Addition, Quantization, multiply_add_sum
from qdialect.lowering.qnn_to_linalg.program.program import Kernel, Program
from qdialect.targets import resolve

# Stored values: signed ones are stored with 128 added to them.
STORED, SHIFT = np.arange(256), 128


def _sums(scales: list[float], points: list[int], arithmetic: AddArithmetic, bounds: tuple[int, int]) -> IntArray:
    lhs, rhs, output = (QuantParams(scale, point) for scale, point in zip(scales, points, strict=True))
    how = arithmetic, Rounding.FIXED32_DOUBLE, Multiplier.F64
    values = STORED - SHIFT
    return add(values[:, None], values[None, :], BinaryQuantization(lhs, rhs, output, bounds), *how) + SHIFT


def _found(
    sums: IntArray, scales: list[float], points: list[int], bounds: tuple[int, int]
) -> tuple[FloatSum | None, tuple[int, int]]:
    stored = bounds[0] + SHIFT, bounds[1] + SHIFT
    numbers = float_sum_numbers(scales, [point + SHIFT for point in points])
    return multiply_add_sum(sums, STORED, STORED, numbers, stored), stored


def _rounded(exact: Fraction) -> Fraction:
    """The nearest float32 number, ties to even, without any floating-point arithmetic."""
    if not exact:
        return exact
    exponent = abs(exact.numerator).bit_length() - exact.denominator.bit_length()
    exponent -= abs(exact) < Fraction(2) ** exponent
    unit = Fraction(2) ** (exponent - 23)
    return round(exact / unit) * unit


def _fused(a: int, b: int, numbers: FloatSum) -> int:
    first, second, rest = (Fraction(float(number)) for number in numbers)
    return round(_rounded(a * first + _rounded(b * second + rest)))


@pytest.mark.parametrize("arithmetic", [AddArithmetic.FLOAT_ONCE, AddArithmetic.SHIFTED_FIXED])
@pytest.mark.parametrize("bounds", [(-128, 127), (-20, 100)])
def test_multiply_adds_give_every_sum(arithmetic: AddArithmetic, bounds: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    count = 0
    for _ in range(12):
        scales = [float(np.float32(scale)) for scale in np.exp(rng.uniform(-2, 2, 3))]
        points = [int(point) for point in rng.integers(-128, 128, 3)]
        sums = _sums(scales, points, arithmetic, bounds)
        numbers, (low, high) = _found(sums, scales, points, bounds)
        if numbers is None:
            continue
        count += 1
        pairs: NDArray[np.int64] = rng.integers(0, 256, (400, 2))
        for a, b in pairs.tolist():
            assert min(max(_fused(a, b, numbers), low), high) == sums[a, b]
    assert count >= 8


def test_they_are_refused_where_one_sum_is_another() -> None:
    scales, points, bounds = [0.5, 0.3, 0.7], [0, 4, -3], (-128, 127)
    sums = _sums(scales, points, AddArithmetic.FLOAT_ONCE, bounds)
    assert _found(sums, scales, points, bounds)[0] is not None
    sums[120, 130] += 1
    assert _found(sums, scales, points, bounds)[0] is None


@pytest.mark.parametrize("ratio", [2.0**-11, 2.0**11])
def test_they_are_refused_beyond_what_float64_computes_exactly(ratio: float) -> None:
    scales, points, bounds = [ratio, 1.0, 1.0], [0, 0, 0], (-128, 127)
    sums = _sums(scales, points, AddArithmetic.FLOAT_ONCE, bounds)
    assert _found(sums, scales, points, bounds)[0] is None


@pytest.mark.parametrize(("target", "count"), [("avx512vnni", 3), ("amxint8", 3), ("avx2", 4), ("generic", 4)])
def test_which_targets_add_in_float32(target: str, count: int) -> None:
    """Two ratios and a rest, where fixed point has a shift too."""
    kernel = Kernel(Program([], [], strategy_of(resolve(target))))
    lhs, rhs, output = Quantization(0.31, 3), Quantization(0.43, 100), Quantization(0.57, -7)
    how = AddArithmetic.FLOAT_ONCE, Rounding.FIXED32_DOUBLE, Multiplier.F64
    Addition(lhs, rhs, output, (0, 255), *how).declare(kernel)
    assert len(kernel.actuals) == count
