"""A fixed-point sum equals the quantized sum on every pair of values, and is refused where none does."""

import numpy as np
import pytest

from qdialect.arithmetic import AddArithmetic, BinaryQuantization, IntArray, Multiplier, QuantParams, Rounding
from qdialect.arithmetic.elementwise import add
from qdialect.lowering.cost.strategy import strategy_of
from qdialect.lowering.qnn_to_linalg.bodies.addition import Addition, FixedPointSum, Quantization, fixed_point_sum
from qdialect.lowering.qnn_to_linalg.program.program import Kernel, Program
from qdialect.targets import GENERIC

QUANTIZED = np.arange(-128, 128)


def _sums(
    lhs: QuantParams, rhs: QuantParams, output: QuantParams, arithmetic: AddArithmetic, bounds: tuple[int, int]
) -> IntArray:
    how = arithmetic, Rounding.FIXED32_DOUBLE, Multiplier.F64
    return add(QUANTIZED[:, None], QUANTIZED[None, :], BinaryQuantization(lhs, rhs, output, bounds), *how)


def _value(line: FixedPointSum, bounds: tuple[int, int]) -> IntArray:
    """As a kernel computes it, every number wrapped to 32 bits."""
    products = [(QUANTIZED * factor).astype(np.int32) for factor in (line.lhs, line.rhs)]
    with np.errstate(over="raise"):
        total = products[0][:, None] + (products[1] + np.int32(line.rest))
    return np.clip(total >> np.int32(line.shift), *bounds).astype(np.int64)


@pytest.mark.parametrize("arithmetic", [AddArithmetic.SHIFTED_FIXED, AddArithmetic.FLOAT_ONCE])
@pytest.mark.parametrize("bounds", [(-128, 127), (-20, 100)])
def test_lines_give_every_sum(arithmetic: AddArithmetic, bounds: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(12):
        scales, points = np.exp(rng.uniform(-2, 2, 3)), rng.integers(-128, 128, 3)
        lhs, rhs, output = (QuantParams(float(scale), int(z)) for scale, z in zip(scales, points, strict=True))
        values = _sums(lhs, rhs, output, arithmetic, bounds)
        line = fixed_point_sum(
            values, QUANTIZED, QUANTIZED, (lhs.scale / output.scale, rhs.scale / output.scale), bounds
        )
        if line is not None:
            found += 1
            np.testing.assert_array_equal(_value(line, bounds), values)
    assert found >= 8


def test_a_line_is_refused_where_one_sum_is_no_step_of_it() -> None:
    bounds, one = (-128, 127), QuantParams(0.5, 0)
    values = _sums(one, QuantParams(0.3, 4), QuantParams(0.7, -3), AddArithmetic.SHIFTED_FIXED, bounds)
    ratios = (0.5 / 0.7, 0.3 / 0.7)
    assert fixed_point_sum(values, QUANTIZED, QUANTIZED, ratios, bounds) is not None
    values[120, 130] += 1
    assert fixed_point_sum(values, QUANTIZED, QUANTIZED, ratios, bounds) is None


def test_ties_to_even_are_no_line() -> None:
    """Half of every odd sum is a tie, and goes up and down in turn."""
    bounds, half = (-128, 127), QuantParams(0.5, 0)
    values = _sums(half, half, QuantParams(1.0, 0), AddArithmetic.FLOAT_ONCE, bounds)
    assert fixed_point_sum(values, QUANTIZED, QUANTIZED, (0.5, 0.5), bounds) is None


@pytest.mark.parametrize("scale", [1e-30, 1e30, 1e308])
def test_scales_far_apart_are_no_line_or_the_right_one(scale: float) -> None:
    bounds, lhs, output = (-128, 127), QuantParams(0.5, 0), QuantParams(0.07, 0)
    values = _sums(lhs, QuantParams(min(scale, 1e30), 0), output, AddArithmetic.FLOAT_ONCE, bounds)
    line = fixed_point_sum(values, QUANTIZED, QUANTIZED, (lhs.scale / output.scale, scale / output.scale), bounds)
    assert line is None or np.array_equal(_value(line, bounds), values)


def _numbers_of(arithmetic: AddArithmetic, rhs: Quantization) -> int:
    """How many numbers a kernel is handed for a sum of whole bytes: four where it is a line."""
    kernel = Kernel(Program([], [], strategy_of(GENERIC)))
    lhs, output = Quantization(0.31, 3), Quantization(0.57, -7)
    how = arithmetic, Rounding.FIXED32_DOUBLE, Multiplier.F64
    Addition(lhs, rhs, output, (0, 255), *how).declare(kernel)
    return len(kernel.actuals)


def test_which_sums_are_lines() -> None:
    other, same = Quantization(0.43, 100), Quantization(0.57, -7)
    assert _numbers_of(AddArithmetic.SHIFTED_FIXED, other) == 4
    assert _numbers_of(AddArithmetic.FLOAT_ONCE, other) == 4
    assert _numbers_of(AddArithmetic.REQUANTIZE_EACH, same) == 4
    assert _numbers_of(AddArithmetic.REQUANTIZE_EACH, other) > 4
