"""Requantization, sums and products of kernels by fixed-point multipliers and by fused multiply-adds, compared with the
reference's arithmetic."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import EIGHT_BIT, WIDTHS, check_compiled, drawn_inputs, ends, tensor
from drawn_graphs import graph
from drawn_vector import HOST_TARGETS, run, x86_text
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qdialect.arithmetic import (
    FixedMultiplier,
    IntArray,
    RequantizeParameters,
    Rounding,
    requantize,
    requantize_parameters,
    select_channels,
)
from qdialect.arithmetic.machine import multiply_add
from qdialect.dialect import MulOp, build
from qdialect.ir._mlir import ir
from qdialect.lowering.qnn_to_linalg.bodies.fixed_point_multiplier import (
    FixedPointMultiplier,
    channel_multipliers,
    fixed_point_multiplier,
    shifted_thresholds,
)
from qdialect.lowering.qnn_to_linalg.bodies.multiply_add_rounding import (
    FactorProduct,
    MultiplyAddRounding,
    factor_product,
    multiply_add_rounding,
)
from qdialect.reference import interpreter
from qdialect.targets import GENERIC, TARGETS, Target

INT32 = np.iinfo(np.int32)
FIXED = [rounding for rounding in Rounding if rounding.is_fixed]
# One below one, powers of two, and multipliers of many double roundings and ties.
MULTIPLIERS = st.one_of(
    st.floats(2.0**-12, 4.0),
    st.integers(-12, 1).map(lambda e: 2.0**e),
    st.sampled_from([0.0, 2.0**-40, 0.75, 0.9999, 1 / 3]),
)
Requantization = tuple[Rounding, RequantizeParameters, int, tuple[int, int], tuple[IntArray, IntArray]]
"""A rounding mode, multipliers, a zero point, bounds, and the range of the accumulators of each channel."""


@st.composite
def requantizations(draw: st.DrawFn) -> Requantization:
    channels, rounding = draw(st.integers(1, 4)), draw(st.sampled_from(Rounding))
    f32 = draw(st.lists(MULTIPLIERS, min_size=channels, max_size=channels))[: draw(st.sampled_from([1, channels]))]
    lo = draw(st.sampled_from([-128, 0, -100, 7]))
    hi = draw(st.sampled_from([lo, lo + 1, lo + 100, lo + 255]))
    zero_point = draw(st.sampled_from([lo, hi, (lo + hi) // 2, lo - 3, 5]))
    pairs = [sorted((draw(st.integers(-40000, 40000)), draw(st.integers(-40000, 40000)))) for _ in range(channels)]
    low, high = np.array(pairs, np.int64).T
    return rounding, requantize_parameters(rounding, np.array(f32)), zero_point, (lo, hi), (low, high)


def line(drawn: Requantization) -> FixedPointMultiplier | None:
    """The multipliers whose clamped values are those of `requantize` less the lower bound, if there are any."""
    rounding, params, zero_point, bounds, acc_range = drawn
    steps = shifted_thresholds(params, zero_point, bounds, -bounds[0], rounding, acc_range)
    return None if steps is None else fixed_point_multiplier(steps, channel_multipliers(params, len(steps.low)))


def multiply_adds(drawn: Requantization) -> MultiplyAddRounding | None:
    """Multiply-adds with the same values, if there are any."""
    rounding, params, zero_point, bounds, acc_range = drawn
    steps = shifted_thresholds(params, zero_point, bounds, -bounds[0], rounding, acc_range)
    assert steps is not None
    return multiply_add_rounding(steps, channel_multipliers(params, len(acc_range[0])), zero_point - bounds[0])


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


def check(drawn: Requantization) -> tuple[FixedPointMultiplier | None, MultiplyAddRounding | None]:
    """Compare both forms, if there are any, with the reference on all accumulators."""
    rounding, params, zero_point, (lo, hi), (low, high) = drawn
    every: IntArray = np.clip(np.arange(low.min(), high.max() + 1, dtype=np.int64)[:, None], low, high)
    wanted = requantize(every, select_channels(params, np.arange(len(low))), zero_point, lo, hi, rounding) - lo
    fixed, float_form = line(drawn), multiply_adds(drawn) if rounding.is_fixed else None
    if fixed is not None:
        np.testing.assert_array_equal(np.clip(of_line(fixed, every), 0, hi - lo), wanted)
    if float_form is not None:
        np.testing.assert_array_equal(np.clip(of_multiply_add(float_form, every), 0, hi - lo), wanted)
    return fixed, float_form


@given(requantizations())
def test_both_forms_are_the_requantization(drawn: Requantization) -> None:
    """Every fixed-point multiplication by numbers below one has a line."""
    (fixed, _), params = check(drawn), drawn[1]
    assert fixed is not None or not isinstance(params, FixedMultiplier) or params.e.max() > 0


@pytest.mark.parametrize("rounding", FIXED)
@pytest.mark.parametrize("zero_point", [-128, -7, 0, 127])
def test_multipliers_of_networks_have_both_forms(rounding: Rounding, zero_point: int) -> None:
    # Others in every case: all their accumulators are compared, which takes long.
    seed = FIXED.index(rounding) * 256 + zero_point + 128
    f32 = 2.0 ** np.random.default_rng(seed).uniform(-13, -2, 16)
    acc_range = np.full(16, -150_000), np.full(16, 150_000)
    fixed, form = check((rounding, requantize_parameters(rounding, f32), zero_point, (-128, 127), acc_range))
    assert fixed is not None
    assert form is not None
    assert (form.parameters[1].element == "f32") == (zero_point == -128)


def test_accumulators_that_wrap_have_no_line() -> None:
    params = requantize_parameters(Rounding.FIXED64_UP, np.array([0.001]))
    assert line((Rounding.FIXED64_UP, params, 0, (0, 255), (np.array([0]), np.array([2**31])))) is None


@pytest.mark.parametrize(
    ("multiplier", "reach"),
    [(2.0**-18, 2**26), (0.0, 1000), (0.9, 2**31 - 1)],
    ids=["thresholds of 25 bits", "no multiplier", "results of 31 bits"],
)
def test_numbers_beyond_float32_have_no_multiply_adds(multiplier: float, reach: int) -> None:
    params = requantize_parameters(Rounding.FIXED32_DOUBLE, np.array([multiplier]))
    acc_range = np.array([-reach]), np.array([reach])
    assert multiply_adds((Rounding.FIXED32_DOUBLE, params, 0, (-128, 127), acc_range)) is None


# Products of a tensor and one that repeats, by vectors of every width, against the reference.


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
def test_products_have_the_bits_of_the_reference(element: str, channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[FactorProduct | None] = []

    def noted(*given: Any) -> FactorProduct | None:
        found.append(factor_product(*given))
        return found[-1]

    monkeypatch.setattr(f"{factor_product.__module__}.factor_product", noted)
    module = products(element, channels)
    inputs = drawn_inputs(module)
    wanted = interpreter.run(module, inputs)
    for name in WIDTHS:
        check_compiled(module, name, [inputs], [wanted])
    assert any(found)


# Fused multiply-adds on targets without the instruction: the bits of exact rational numbers, and of NumPy's.

F32Array = NDArray[np.float32]

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


@pytest.mark.parametrize("chosen", [GENERIC, *HOST_TARGETS], ids=lambda chosen: chosen.name)
def test_vectors_have_the_bits_of_the_instruction(chosen: Target) -> None:
    """Whether the target has it or not."""
    for numbers in drawn():
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(run(KERNEL, list(numbers), chosen)[2], multiply_add(*numbers))


def test_only_targets_without_the_instruction_are_given_other_ones() -> None:
    for name in ("generic", "x86-64", "sse4.1"):
        assert "math.fma" not in x86_text(KERNEL, TARGETS[name])
    assert "math.fma" in x86_text(KERNEL, TARGETS["avx2"])
