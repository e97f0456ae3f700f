"""Fixed-point multipliers, sums and products of kernels, against the reference's arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, check_compiled, drawn_inputs, ends, tensor
from drawn_graphs import graph
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qdialect.arithmetic import (
    AddArithmetic,
    BinaryQuantization,
    FixedMultiplier,
    IntArray,
    Multiplier,
    QuantParams,
    RequantizeParameters,
    Rounding,
    requantize,
    requantize_parameters,
    select_channels,
    thresholds_of,
)
from qdialect.arithmetic.elementwise import add
from qdialect.dialect import MulOp, build
from qdialect.ir._mlir import ir
from qdialect.lowering.cost.strategy import strategy_of
from qdialect.lowering.pipeline.phases import Phase, lower
from qdialect.lowering.qnn_to_linalg.bodies.addition import Addition, FixedPointSum, Quantization, fixed_point_sum
from qdialect.lowering.qnn_to_linalg.bodies.fixed_point_multiplier import (
    FixedPointMultiplier,
    WordMultiplier,
    channel_multipliers,
    fixed_point_multiplier,
    shifted_thresholds,
    word_multiplier,
)
from qdialect.lowering.qnn_to_linalg.program.program import Kernel, Program
from qdialect.reference import interpreter
from qdialect.targets import GENERIC, TARGETS, host_features

INT32 = np.iinfo(np.int32)
FIXED = [rounding for rounding in Rounding if rounding.is_fixed]
# One below one, powers of two, and what makes double roundings and ties frequent.
MULTIPLIERS = st.one_of(
    st.floats(2.0**-12, 0.9999),
    st.integers(-12, -1).map(lambda e: 2.0**e),
    st.sampled_from([0.0, 2.0**-40, 0.75, 1 / 3]),
)


def line(
    params: RequantizeParameters,
    zero_point: int,
    bounds: tuple[int, int],
    shift: int,
    rounding: Rounding,
    acc_range: tuple[IntArray, IntArray],
) -> FixedPointMultiplier | None:
    """The multipliers whose clamped values are those of `requantize` plus `shift`, if there are any."""
    steps = shifted_thresholds(params, zero_point, bounds, shift, rounding, acc_range)
    return None if steps is None else fixed_point_multiplier(steps, channel_multipliers(params, len(steps.low)))


def of_line(form: FixedPointMultiplier, acc: IntArray) -> IntArray:
    """What the kernel computes, with accumulators [..., C]; fails where 32 bits would not hold a number."""
    arrays = {p.name: p.values.astype(np.int64) for p in form.parameters}
    assert ("shift" in arrays) == (form.shift is None)
    slope, rest, shift = (
        arrays["slope"],
        arrays["rest"],
        arrays["shift"] if form.shift is None else np.int64(form.shift),
    )
    x = (acc + form.offset) % 2**32
    assert x.max() < 2**31
    rest = np.where(x < arrays["limit"], arrays["rest_below"], rest) if "limit" in arrays else rest
    total = (x * (slope % 2**32) >> 32) + rest
    assert INT32.min <= total.min()
    assert total.max() <= INT32.max
    return total >> shift


def check(
    rounding: Rounding,
    params: RequantizeParameters,
    zero_point: int,
    bounds: tuple[int, int],
    shift: int,
    acc_range: tuple[IntArray, IntArray],
) -> FixedPointMultiplier | None:
    """Compare the line, if there is one, with the reference on all accumulators; returns it."""
    low, high = acc_range
    form = line(params, zero_point, bounds, shift, rounding, acc_range)
    if form is None:
        return None
    acc: IntArray = np.clip(np.arange(low.min(), high.max() + 1, dtype=np.int64)[:, None], low, high)
    wanted = requantize(acc, select_channels(params, np.arange(len(low))), zero_point, *bounds, rounding) + shift
    found = np.clip(of_line(form, acc), bounds[0] + shift, bounds[1] + shift)
    np.testing.assert_array_equal(found, wanted)
    return form


@st.composite
def requantizations(draw: st.DrawFn) -> tuple[Any, ...]:
    """A rounding mode, multipliers, zero point, bounds, shift and reach."""
    channels = draw(st.integers(1, 4))
    rounding = draw(st.sampled_from(Rounding))
    f32 = draw(st.lists(MULTIPLIERS, min_size=channels, max_size=channels))
    f32 = f32[: draw(st.sampled_from([1, channels]))]
    lo = draw(st.sampled_from([-128, 0, -100, 7]))
    hi = draw(st.sampled_from([lo, lo + 1, lo + 100, lo + 255]))
    zero_point = draw(st.sampled_from([lo, hi, (lo + hi) // 2, lo - 3, 5]))
    ends = st.integers(-40000, 40000)
    pairs = [sorted((draw(ends), draw(ends))) for _ in range(channels)]
    low, high = np.array(pairs, np.int64).T
    return rounding, requantize_parameters(rounding, np.array(f32)), zero_point, (lo, hi), -lo, (low, high)


@given(requantizations())
def test_the_line_is_the_requantization(drawn: tuple[Any, ...]) -> None:
    form = check(*drawn)
    assert form is not None or not drawn[0].is_fixed


@pytest.mark.parametrize("rounding", FIXED)
@pytest.mark.parametrize("zero_point", [-128, 0, 127])
def test_fixed_rounding_modes_have_multipliers_at_multipliers_of_networks(rounding: Rounding, zero_point: int) -> None:
    # Others in every case: all their accumulators are compared, which takes long.
    seed = FIXED.index(rounding) * 256 + zero_point + 128
    f32 = 2.0 ** np.random.default_rng(seed).uniform(-13, -2, 20)
    acc_range = (np.full(20, -150_000), np.full(20, 150_000))
    assert check(rounding, requantize_parameters(rounding, f32), zero_point, (-128, 127), 128, acc_range) is not None


def test_two_roundings_jump_at_zero_and_one_rounding_does_not() -> None:
    acc_range = (np.array([-100_000]), np.array([100_000]))

    def jumps(rounding: Rounding, zero_point: int) -> bool:
        params = requantize_parameters(rounding, np.array([0.0012345]))
        form = check(rounding, params, zero_point, (0, 255), 0, acc_range)
        assert form is not None
        return "limit" in {parameter.name for parameter in form.parameters}

    assert jumps(Rounding.FIXED32_DOUBLE, 128)
    # What is below zero has no code of its own.
    assert not jumps(Rounding.FIXED32_DOUBLE, 0)
    assert not jumps(Rounding.FIXED64_UP, 128)


@pytest.mark.parametrize(
    ("zero_point", "f32", "shift"),
    [
        # Slopes of 26 to 30 bits tell all thresholds apart.
        (0, [0.02, 0.07, 0.25], 0),
        # Those of 21 bits do not; of 25 they do, with the least shift that a channel has of its own.
        (0, [0.06, 0.000345678], 4),
        # Below zero this rounding jumps by a unit of each channel's own shift.
        (128, [0.02, 0.07, 0.25], None),
    ],
)
def test_channels_have_one_shift_where_windows_are_wide(zero_point: int, f32: list[float], shift: int | None) -> None:
    params = requantize_parameters(Rounding.FIXED32_DOUBLE, np.array(f32))
    reach = np.full(len(f32), 700_000)
    form = check(Rounding.FIXED32_DOUBLE, params, zero_point, (0, 255), 0, (-reach, reach))
    assert form is not None
    assert form.shift == shift


@pytest.mark.parametrize("rounding", Rounding)
def test_where_multipliers_are_one_or_more_there_is_no_line(rounding: Rounding) -> None:
    params = requantize_parameters(rounding, np.array([0.5, 1.0]))
    assert line(params, 0, (0, 255), 0, rounding, (np.array([-9, -9]), np.array([9, 9]))) is None


def test_accumulators_that_wrap_have_no_line() -> None:
    params = requantize_parameters(Rounding.FIXED64_UP, np.array([0.001]))
    assert line(params, 0, (0, 255), 0, Rounding.FIXED64_UP, (np.array([0]), np.array([2**31]))) is None


def test_a_channel_without_weights_may_have_any_bias() -> None:
    params = requantize_parameters(Rounding.FIXED32_DOUBLE, np.array([2.0**-29, 0.001]))
    acc_range = (np.array([2**31 - 5, -1000]), np.array([2**31 - 1, 1000]))
    form = line(params, 3, (0, 255), 0, Rounding.FIXED32_DOUBLE, acc_range)
    assert form is not None
    acc = np.stack([*acc_range, (acc_range[0] + acc_range[1]) // 2])
    wanted = requantize(acc, params, 3, 0, 255, Rounding.FIXED32_DOUBLE)
    np.testing.assert_array_equal(np.clip(of_line(form, acc), 0, 255), wanted)


@given(
    st.lists(st.tuples(st.integers(2**30, 2**31 - 1), st.integers(-31, 0)), min_size=1, max_size=4),
    st.integers(-128, 255),
    st.sampled_from([(-2000, 2000), (-5, 3), (2**31 - 9, 2**31 - 1), (-(2**31), -(2**31) + 9), (-(2**31), 2**31 - 1)]),
)
def test_double_rounding_reaches_each_value_at_its_threshold(
    multipliers: list[tuple[int, int]], zero_point: int, ends: tuple[int, int]
) -> None:
    q, e = np.array(multipliers, np.int32).T
    params, rounding, bounds = FixedMultiplier(q, e), Rounding.FIXED32_DOUBLE, (-128, 127)
    low, high = (np.full(len(q), end) for end in ends)
    steps = thresholds_of(params, zero_point, bounds, rounding, (low, high))
    assert ((steps.first >= low) & (steps.first <= high + 1)).all()
    wanted = steps.values[:, None]
    reached = requantize(np.minimum(steps.first, high), params, zero_point, *bounds, rounding) >= wanted
    before = requantize(np.maximum(steps.first - 1, low), params, zero_point, *bounds, rounding) < wanted
    np.testing.assert_array_equal(reached, steps.first <= high)
    np.testing.assert_array_equal(before, steps.first > low)


@pytest.mark.parametrize("rounding", Rounding)
@pytest.mark.parametrize("f32", [[0.0123], [2.0**-3, 0.9, 1.5, 1000.0, 0.0]])
def test_steps_are_where_values_begin(rounding: Rounding, f32: list[float]) -> None:
    low, high = np.array([-3000, -1, 0, -40, 7]), np.array([3000, 1, 900, 40, 7])
    params, everyone = requantize_parameters(rounding, np.array(f32)), np.arange(5)
    steps = thresholds_of(params, 3, (-10, 20), rounding, (low, high))
    own = select_channels(params, everyone)

    def quantized(acc: IntArray) -> NDArray[np.int64]:
        return requantize(np.clip(acc, low, high), own, 3, -10, 20, rounding)

    wanted = steps.values[:, None]
    assert ((quantized(steps.first) >= wanted) | (steps.first == high + 1)).all()
    assert ((quantized(steps.first - 1) < wanted) | (steps.first == low)).all()


# A fixed-point sum equals the quantized sum on every pair of values, and is refused where none does.

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


# Requantization by sums and shifts of packed words, against the reference's arithmetic on every accumulator.

WORD = np.iinfo(np.int16)


def of_words(form: WordMultiplier, acc: IntArray) -> IntArray:
    """The bytes that packed words give for accumulators [..., C]; fails where a number would not fit."""
    slope, rest, shift = (p.values.astype(np.int64) for p in form.parameters)
    assert rest.min() >= 0
    assert rest.max() <= WORD.max
    assert shift.min() >= 0
    assert shift.max() <= 7
    x = acc + form.offset
    assert x.min() >= -(2**31)
    assert x.max() < 2**31
    high = np.clip(x * slope >> 32, WORD.min, WORD.max)
    return np.clip(np.clip(high + rest, WORD.min, WORD.max) >> shift, 0, 255)


def check_word_multiplier(
    rounding: Rounding, multipliers: list[float], zero_point: int, bounds: tuple[int, int], reach: int
) -> WordMultiplier | None:
    """Compare the form, if there is one, with the reference on all accumulators; returns it."""
    channels = len(multipliers)
    params = requantize_parameters(rounding, np.array(multipliers))
    acc_range = (np.full(channels, -reach), np.full(channels, reach))
    steps = shifted_thresholds(params, zero_point, bounds, -bounds[0], rounding, acc_range)
    assert steps is not None
    form = word_multiplier(steps, channel_multipliers(params, channels))
    if form is None:
        return None
    acc: IntArray = np.repeat(np.arange(-reach, reach + 1, dtype=np.int64)[:, None], channels, axis=1)
    wanted = requantize(acc, params, zero_point, *bounds, rounding) - bounds[0]
    np.testing.assert_array_equal(np.minimum(of_words(form, acc), bounds[1] - bounds[0]), wanted)
    return form


@given(
    st.sampled_from([rounding for rounding in Rounding if rounding.is_fixed]),
    st.lists(st.floats(2.0**-14, 0.75), min_size=1, max_size=3),
    st.sampled_from([-128, -3, 0, 127]),
    st.sampled_from([(-128, 127), (-128, 0), (0, 255)]),
    st.integers(1, 60_000),
)
def test_words_give_the_requantization(
    rounding: Rounding, multipliers: list[float], zero_point: int, bounds: tuple[int, int], reach: int
) -> None:
    check_word_multiplier(rounding, multipliers, zero_point, bounds, reach)


@pytest.mark.parametrize("rounding", [rounding for rounding in Rounding if rounding.is_fixed])
def test_multipliers_of_networks_have_words_where_nothing_is_below_the_zero_point(rounding: Rounding) -> None:
    multipliers = 2.0 ** np.random.default_rng(5).uniform(-11, -1.5, 12)
    assert check_word_multiplier(rounding, multipliers.tolist(), -128, (-128, 127), 150_000) is not None


def test_a_jump_at_zero_and_multipliers_of_a_half_have_no_words() -> None:
    assert check_word_multiplier(Rounding.FIXED32_DOUBLE, [0.0012345], 0, (-128, 127), 150_000) is None
    assert check_word_multiplier(Rounding.FIXED64_UP, [0.0012345], 0, (-128, 127), 150_000) is not None
    assert check_word_multiplier(Rounding.FIXED64_UP, [0.0012345, 0.5], 0, (-128, 127), 1000) is None


# Products of a tensor and one that repeats, on every kind of CPU that this machine executes, against the reference.

KINDS = [name if kind.features <= host_features() else f"{name},portable" for name, kind in TARGETS.items()]


def products(element: str, channels: int, extent: int = 5) -> ir.Module:
    """Of a tensor with one number for each of its channels and images, and one that is all the same."""
    types = [tensor((2, extent, 3, channels), element), tensor((2, 1, 1, channels), element), tensor((1,), element)]
    low, high = ends(element)
    base: dict[str, Any] = {
        "lhs_scale": 0.03,
        "rhs_scale": 1 / 256,
        "output_scale": 0.021,
        "output_min": low,
        "output_max": high,
    }

    def body(data: ir.Value, factor: ir.Value, scalar: ir.Value) -> list[ir.Value]:
        cases: list[tuple[tuple[ir.Value, ir.Value], int, int, int, dict[str, Any]]] = [
            ((data, factor), low + 14, low, low + 12, {"rounding": Rounding.FIXED32_DOUBLE}),
            ((factor, data), low + 100, low + 3, high - 5, {"rounding": Rounding.FIXED32_DOUBLE}),
            ((data, factor), high, high, low, {"rounding": Rounding.FIXED64_NEAREST, "output_max": high - 9}),
            ((scalar, data), low, low + 128, low + 128, {"rounding": Rounding.FIXED64_UP}),
            ((data, scalar), low + 7, low + 9, low + 11, {"rounding": Rounding.F32_RNE_ZP_FIRST}),
        ]
        return [
            build(
                MulOp,
                *operands,
                element=element,
                **(base | rest),
                lhs_zero_point=lhs,
                rhs_zero_point=rhs,
                output_zero_point=own,
            ).output
            for operands, lhs, rhs, own, rest in cases
        ]

    return graph(types, body)


@pytest.mark.parametrize("element", EIGHT_BIT)
@pytest.mark.parametrize("channels", [1, 5, 64, 87, 144])
def test_products_have_the_bits_of_the_reference_on_every_kind(element: str, channels: int) -> None:
    module = products(element, channels)
    inputs = drawn_inputs(module)
    wanted = interpreter.run(module, inputs)
    for name in KINDS:
        check_compiled(module, name, [inputs], [wanted])


def test_factors_are_computed_once_where_multiply_adds_are_fused() -> None:
    module = products("ui8", 64)
    text = {name: str(lower(module, TARGETS[name], Phase.X86).module) for name in ("avx2", "sse4.1")}
    assert text["avx2"].count("call @") > text["sse4.1"].count("call @")
    assert "math.fma" in text["avx2"]
    assert "math.fma" not in text["sse4.1"]
    few = str(lower(products("ui8", 64, 1), TARGETS["avx2"], Phase.X86).module)
    assert few.count("call @") < text["avx2"].count("call @")
