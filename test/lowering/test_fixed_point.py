"""Fixed-point multipliers, sums and products of kernels, against the reference's arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, check_compiled, drawn_inputs, ends, tensor
from drawn_graphs import graph
from hypothesis import given
from hypothesis import strategies as st

from qdialect.arithmetic import (
    AddArithmetic,
    BinaryQuantization,
    IntArray,
    Multiplier,
    QuantParams,
    RequantizeParameters,
    Rounding,
    requantize,
    requantize_parameters,
    select_channels,
)
from qdialect.arithmetic.elementwise import add
from qdialect.dialect import MulOp, build
from qdialect.ir._mlir import ir
from qdialect.lowering.qnn_to_linalg.bodies.addition import FixedPointSum, fixed_point_sum
from qdialect.lowering.qnn_to_linalg.bodies.fixed_point_multiplier import (
    FixedPointMultiplier,
    channel_multipliers,
    fixed_point_multiplier,
    shifted_thresholds,
)
from qdialect.reference import interpreter
from qdialect.targets import TARGETS, host_features

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
    """As the kernel computes it, with accumulators [..., C]; fails where 32 bits would not hold a number."""
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


def test_accumulators_that_wrap_have_no_line() -> None:
    params = requantize_parameters(Rounding.FIXED64_UP, np.array([0.001]))
    assert line(params, 0, (0, 255), 0, Rounding.FIXED64_UP, (np.array([0]), np.array([2**31]))) is None


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


def test_ties_to_even_are_no_line() -> None:
    """Half of every odd sum is a tie, and goes up and down in turn."""
    bounds, half = (-128, 127), QuantParams(0.5, 0)
    values = _sums(half, half, QuantParams(1.0, 0), AddArithmetic.FLOAT_ONCE, bounds)
    assert fixed_point_sum(values, QUANTIZED, QUANTIZED, (0.5, 0.5), bounds) is None


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
@pytest.mark.parametrize("channels", [1, 87, 144])
def test_products_have_the_bits_of_the_reference_on_every_kind(element: str, channels: int) -> None:
    module = products(element, channels)
    inputs = drawn_inputs(module)
    wanted = interpreter.run(module, inputs)
    for name in KINDS:
        check_compiled(module, name, [inputs], [wanted])
