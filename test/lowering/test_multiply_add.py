"""Requantization and sums by fused multiply-adds, against the reference's arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from drawn_vector import HOST_TARGETS, run, x86_text
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qdialect.arithmetic import (
    AddArithmetic,
    BinaryQuantization,
    IntArray,
    Multiplier,
    QuantParams,
    RequantizeParameters,
    Rounding,
    float_sum_numbers,
    requantize,
    requantize_parameters,
)
from qdialect.arithmetic.elementwise import add
from qdialect.arithmetic.machine import multiply_add
from qdialect.arithmetic.multipliers import FloatSum
from qdialect.lowering.qnn_to_linalg.bodies.addition import multiply_add_sum
from qdialect.lowering.qnn_to_linalg.bodies.fixed_point_multiplier import channel_multipliers, shifted_thresholds
from qdialect.lowering.qnn_to_linalg.bodies.multiply_add_rounding import (
    FactorProduct,
    MultiplyAddRounding,
    factor_product,
    multiply_add_rounding,
)
from qdialect.targets import GENERIC, TARGETS, Target

INT32 = np.iinfo(np.int32)
FIXED = [rounding for rounding in Rounding if rounding.is_fixed]


def of_multiply_add(form: MultiplyAddRounding, acc: IntArray) -> IntArray:
    """As the kernel computes it, with accumulators [..., C]; fails where 32 bits would not hold a number."""
    multiplier, rest = (p.values for p in form.parameters)
    x = acc + form.offset
    assert x.min() >= INT32.min
    assert x.max() <= INT32.max
    number = x.astype(np.float32)
    if rest.dtype == np.int32:
        rest = np.where(x < 0, -rest.view(np.float32), rest.view(np.float32))
    total = multiply_add(number, np.broadcast_to(multiplier, x.shape), np.broadcast_to(rest, x.shape))
    assert np.abs(total).max() < 2.0**31
    return np.trunc(total).astype(np.int64) + form.zero_point


def check(
    rounding: Rounding,
    params: RequantizeParameters,
    zero_point: int,
    bounds: tuple[int, int],
    acc_range: tuple[IntArray, IntArray],
    acc: IntArray | None = None,
) -> MultiplyAddRounding | None:
    """Compare the form, if there is one, with the reference on all accumulators; returns it."""
    low, high = acc_range
    shift = -bounds[0]
    steps = shifted_thresholds(params, zero_point, bounds, shift, rounding, acc_range)
    assert steps is not None
    form = multiply_add_rounding(steps, channel_multipliers(params, len(low)), zero_point + shift)
    if form is None:
        return None
    every = np.arange(low.min(), high.max() + 1, dtype=np.int64)[:, None] if acc is None else acc
    acc = np.clip(every, low, high)
    wanted = requantize(acc, params, zero_point, *bounds, rounding) + shift
    np.testing.assert_array_equal(np.clip(of_multiply_add(form, acc), 0, bounds[1] + shift), wanted)
    return form


@st.composite
def requantizations(draw: st.DrawFn) -> tuple[Any, ...]:
    """A rounding mode, multipliers of two channels, a zero point, bounds and ranges."""
    rounding = draw(st.sampled_from(FIXED))
    multipliers = st.one_of(st.floats(2.0**-12, 4.0), st.integers(-12, 1).map(lambda e: 2.0**e), st.just(1 / 3))
    f32 = np.array(draw(st.lists(multipliers, min_size=2, max_size=2)))
    lo = draw(st.sampled_from([-128, 0, -100, 7]))
    hi = draw(st.sampled_from([lo, lo + 1, lo + 100, lo + 255]))
    zero_point = draw(st.sampled_from([lo, hi, (lo + hi) // 2, lo - 3, 5]))
    ends = st.integers(-40000, 40000)
    pairs = [sorted((draw(ends), draw(ends))) for _ in range(2)]
    low, high = np.array(pairs, np.int64).T
    return rounding, requantize_parameters(rounding, f32), zero_point, (lo, hi), (low, high)


@given(requantizations())
def test_multiply_adds_give_the_requantization(drawn: tuple[Any, ...]) -> None:
    check(*drawn)


@pytest.mark.parametrize(
    ("multiplier", "reach"),
    [(2.0**-18, 2**26), (0.0, 1000), (0.9, 2**31 - 1)],
    ids=["thresholds of 25 bits", "no multiplier", "results of 31 bits"],
)
def test_numbers_beyond_float32_have_none(multiplier: float, reach: int) -> None:
    params = requantize_parameters(Rounding.FIXED32_DOUBLE, np.array([multiplier]))
    acc_range = (np.array([-reach]), np.array([reach]))
    assert check(Rounding.FIXED32_DOUBLE, params, 0, (-128, 127), acc_range, np.zeros((1, 1), np.int64)) is None


def of_factors(form: FactorProduct, lhs: IntArray, rhs: IntArray) -> IntArray:
    factors = rhs.astype(np.float32) * form.multiplier
    negative = (lhs < 0)[:, None] ^ (rhs < 0)
    rest = np.where(negative, -form.rest, form.rest)
    shape = rest.shape
    total = multiply_add(np.broadcast_to(lhs[:, None].astype(np.float32), shape), np.broadcast_to(factors, shape), rest)
    return np.trunc(total).astype(np.int64)


def check_product(
    rounding: Rounding, multiplier: float, points: tuple[int, int, int], bounds: tuple[int, int]
) -> FactorProduct | None:
    """Compare the product by factors, if there is one, with the reference on all pairs; returns it."""
    values = np.arange(-128, 128)
    lhs, rhs, zero_point = values - points[0], values - points[1], points[2]
    params = requantize_parameters(rounding, np.array([multiplier]))
    wanted = requantize((lhs[:, None] * rhs).reshape(-1, 1), params, zero_point, *bounds, rounding).reshape(256, 256)
    form = factor_product(wanted, lhs, rhs, zero_point, bounds, multiplier)
    if form is not None:
        np.testing.assert_array_equal(np.clip(of_factors(form, lhs, rhs) + zero_point, *bounds), wanted)
    return form


POINTS = st.sampled_from([-128, -5, 0, 127])


@given(
    st.sampled_from(Rounding),
    st.one_of(st.floats(2.0**-12, 2.0), st.integers(-12, 1).map(lambda e: 2.0**e)),
    st.tuples(POINTS, POINTS, POINTS),
    st.sampled_from([(-128, 127), (-5, 127), (-128, 0), (0, 0)]),
)
def test_factors_give_the_product(
    rounding: Rounding, multiplier: float, points: tuple[int, int, int], bounds: tuple[int, int]
) -> None:
    check_product(rounding, multiplier, points, bounds)


# Two multiply-adds equal the quantized sum on every pair of values, and are refused where they do not.

# Stored values: signed ones are stored with 128 added to them.
STORED, SHIFT = np.arange(256), 128


@pytest.mark.parametrize("rounding", FIXED)
@pytest.mark.parametrize("zero_point", [-128, -7, 0, 50])
def test_multipliers_of_networks_have_multiply_adds(rounding: Rounding, zero_point: int) -> None:
    seed = FIXED.index(rounding) * 256 + zero_point + 128
    multipliers = 2.0 ** np.random.default_rng(seed).uniform(-10, -2, 12)
    acc_range = (np.full(12, -150_000), np.full(12, 150_000))
    form = check(rounding, requantize_parameters(rounding, multipliers), zero_point, (-128, 127), acc_range)
    assert form is not None
    assert (form.parameters[1].element == "f32") == (zero_point == -128)


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


# Fused multiply-adds on targets without the instruction: the bits of exact rational numbers, and of NumPy's.

F32Array = NDArray[np.float32]

WITHOUT = [GENERIC, *(one for one in HOST_TARGETS if "fma" not in one.code_features)]
SHAPE = (97, 16)
KERNEL = """
func.func @main(%a: memref<97x16xf32>, %b: memref<97x16xf32>, %c: memref<97x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = arith.constant 97 : index
  scf.for %i = %c0 to %rows step %c1 {
    %x = vector.load %a[%i, %c0] : memref<97x16xf32>, vector<16xf32>
    %y = vector.load %b[%i, %c0] : memref<97x16xf32>, vector<16xf32>
    %z = vector.load %c[%i, %c0] : memref<97x16xf32>, vector<16xf32>
    %r = math.fma %x, %y, %z : vector<16xf32>
    vector.store %r, %c[%i, %c0] : memref<97x16xf32>, vector<16xf32>
  }
  return
}
"""
RNG = np.random.default_rng(5)


def drawn() -> list[F32Array]:
    """Numbers of any exponent, close ones whose sums cancel, ties, subnormal and special ones."""
    bits = RNG.integers(0, 2**32, (3, *SHAPE), np.uint32).view(np.float32)
    near = (RNG.integers(-(2**12), 2**12, (3, *SHAPE)) * 2.0 ** RNG.integers(-30, 6, (3, *SHAPE))).astype(np.float32)
    small = (RNG.integers(-(2**23), 2**23, (3, *SHAPE)) * 2.0**-90).astype(np.float32)
    special = RNG.choice(np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 3e38, 1e-45], np.float32), (3, *SHAPE))
    return [bits, near, small, lost_near_ties(), lost_near_subnormal_ties(), special]


def lost_near_ties() -> F32Array:
    """Odd products, half of them of 25 bits and thus ties, and a sum that float64 does not see."""
    odd = RNG.integers(2**11, 2**12, (2, *SHAPE)) * 2 + 1
    sign, tiny = RNG.choice([-1, 1], (2, *SHAPE))
    return np.stack([odd[0] * sign, odd[1], tiny * 2.0**-60]).astype(np.float32)


def lost_near_subnormal_ties() -> F32Array:
    """A number below 2^-126, and half of its last place less what float64 does not see."""
    half, sign = 2.0**-75, RNG.choice([-1, 1], SHAPE)
    whole = RNG.integers(2**22, 2**23, SHAPE) * 2.0**-149 * RNG.choice([-1, 1], SHAPE)
    return np.stack([half * (1 + 2.0**-23) * sign, np.full(SHAPE, half * (1 - 2.0**-23)), whole]).astype(np.float32)


@pytest.mark.parametrize("chosen", WITHOUT, ids=lambda chosen: chosen.name)
def test_vectors_have_the_bits_of_the_instruction(chosen: Target) -> None:
    for numbers in drawn():
        found = run(KERNEL, list(numbers), chosen)[2]
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(found, multiply_add(*numbers))


@pytest.mark.parametrize("chosen", [one for one in HOST_TARGETS if one not in WITHOUT], ids=lambda chosen: chosen.name)
def test_the_instruction_itself_has_them(chosen: Target) -> None:
    for numbers in drawn():
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(run(KERNEL, list(numbers), chosen)[2], multiply_add(*numbers))


def test_only_targets_without_the_instruction_are_given_other_ones() -> None:
    for name in ("generic", "x86-64", "sse4.1"):
        assert "math.fma" not in x86_text(KERNEL, TARGETS[name])
    assert "math.fma" in x86_text(KERNEL, TARGETS["avx2"])
