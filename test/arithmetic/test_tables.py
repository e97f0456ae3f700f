"""Tables in their four conventions, their composition, and softmax."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from arithmetic import plain_arithmetic as plain
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from qdialect.arithmetic import (
    ElementFunction,
    Entries,
    FloatRounding,
    NanPolicy,
    QuantizedDtype,
    Scaling,
    Table,
    activations,
    build_table,
    clamp_of_table,
    compose_tables,
    encode_table,
    identity_table,
    quantize_array,
    quantized_range,
    table_values,
    tflite_hard_swish_table,
    tflite_leaky_relu_table,
    tvm_leaky_relu_table,
)
from qdialect.arithmetic.machine import NUMPY
from qdialect.arithmetic.softmax_tables import float_entries, float_share, reciprocal, share_shift, softmax_tables
from qdialect.reference.qnn_evaluators import softmax_fixed, softmax_float

DTYPES = ["int8", "uint8"]


FUNCTIONS: dict[str, ElementFunction] = {
    "relu": activations.relu,
    "relu6": activations.relu6,
    "leaky_relu": activations.leaky_relu(0.1),
    "hardswish": activations.hardswish,
    "silu": activations.silu,
    "sigmoid": activations.sigmoid,
    "tanh": activations.tanh,
    "gelu": activations.gelu,
    "elu": activations.elu(0.7),
    "exp": activations.exp,
    "erf": activations.erf,
    "log": activations.log,
    "sqrt": activations.sqrt,
    "rsqrt": activations.rsqrt,
    "abs": activations.absolute,
}
EXACT: dict[str, Callable[[float], float]] = {
    "relu": lambda x: max(x, 0.0),
    "relu6": lambda x: min(max(x, 0.0), 6.0),
    "leaky_relu": lambda x: x if x >= 0 else 0.1 * x,
    "hardswish": lambda x: x * min(max(x + 3, 0.0), 6.0) / 6,
    "silu": lambda x: x / (1 + math.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "tanh": math.tanh,
    "gelu": lambda x: x / 2 * math.erfc(-x / math.sqrt(2)),
    "elu": lambda x: x if x >= 0 else 0.7 * math.expm1(x),
    "exp": math.exp,
    "erf": math.erf,
    "log": lambda x: math.log(x) if x > 0 else (-math.inf if x == 0 else math.nan),
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan,
    "rsqrt": lambda x: 1 / math.sqrt(x) if x > 0 else (math.inf if x == 0 else math.nan),
    "abs": abs,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("floating", [np.float32, np.float64])
def test_functions_are_close_to_the_real_ones(name: str, floating: type[np.float32] | type[np.float64]) -> None:
    x = np.linspace(-30, 30, 1001).astype(floating)
    got = FUNCTIONS[name](x)
    expected = np.array([EXACT[name](float(v)) for v in x])
    assert got.dtype == floating
    # gelu and silu cancel near zero results, so the absolute term counts there.
    assert np.allclose(got, expected, rtol=16 * np.finfo(floating).eps, atol=8 * np.finfo(floating).eps, equal_nan=True)


@pytest.mark.parametrize("entries", list(Entries))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "function", [activations.hardswish, activations.sigmoid, activations.absolute, activations.exp]
)
@given(
    scales=st.tuples(st.floats(2.0**-8, 0.5, width=32), st.floats(2.0**-8, 0.5, width=32)),
    zero_points=st.tuples(st.integers(0, 127), st.integers(0, 127)),
)
def test_entries_follow_their_convention(
    function: ElementFunction, dtype: str, entries: Entries, scales: tuple[float, float], zero_points: tuple[int, int]
) -> None:
    lo, hi = quantized_range(dtype)
    source, result = (QuantizedDtype(scales[i], zero_points[i], dtype) for i in range(2))
    table = build_table(function, source, result, entries, NanPolicy.MAX)
    floating = np.float64 if entries is Entries.HALF_AWAY_DOUBLE else np.float32
    scale = floating(scales[1])
    indices = np.arange(0, 256, 5, dtype=np.uint8)
    values = function((indices.view(dtype).astype(np.int64) - zero_points[0]).astype(floating) * floating(scales[0]))
    with np.errstate(over="ignore"):
        ratios = values * (1 / scale) if entries is Entries.HALF_AWAY_RECIPROCAL else values / scale
    for index, ratio in zip(indices, ratios, strict=True):
        exact = plain.Fraction(min(max(float(ratio), -1e6), 1e6))
        rounded = round(exact) if entries is Entries.HALF_EVEN_DIVIDE else plain.half_away(exact)
        assert int(table.view(dtype)[index]) == plain.clamp(rounded + zero_points[1], lo, hi)


@pytest.mark.parametrize(("nan", "quantized"), [(NanPolicy.MAX, 127), (NanPolicy.MIN, -128), (NanPolicy.ZERO_POINT, 9)])
def test_special_values(nan: NanPolicy, quantized: int) -> None:
    how = QuantizedDtype(0.1, 0, "int8"), QuantizedDtype(0.1, 9, "int8"), Entries.HALF_AWAY_DIVIDE, nan
    roots = build_table(activations.rsqrt, *how).view(np.int8)
    logarithms = build_table(activations.log, *how).view(np.int8)
    assert roots[0] == 127
    assert logarithms[0] == -128
    assert roots[128:].tolist() == logarithms[128:].tolist() == [quantized] * 128


def test_composition_applies_the_first_table_first() -> None:
    double = encode_table(np.clip(table_values("int8") * 2, -128, 127), "int8")
    add_three = encode_table(np.clip(table_values("int8") + 3, -128, 127), "int8")
    both = compose_tables(double, add_three).view(np.int8)
    assert both[5] == 13
    assert both[256 - 5] == -7
    assert np.array_equal(compose_tables(identity_table(), double), double)
    assert np.array_equal(compose_tables(double, identity_table()), double)


@pytest.mark.parametrize("dtype", DTYPES)
@given(first=st.integers(-128, 255), second=st.integers(-128, 255))
def test_clamps_are_recognized(dtype: str, first: int, second: int) -> None:
    lo, hi = (plain.clamp(bound, *quantized_range(dtype)) for bound in sorted((first, second)))
    table = encode_table(np.clip(table_values(dtype), lo, hi), dtype)
    assert clamp_of_table(table, dtype, dtype) == (lo, hi)


def test_one_wrong_entry_is_no_clamp() -> None:
    table = encode_table(np.clip(table_values("int8"), -10, 10), "int8")
    table[3] = 4
    assert clamp_of_table(table, "int8", "int8") is None


@pytest.mark.parametrize("builder", [tflite_leaky_relu_table, tvm_leaky_relu_table])
def test_negative_slopes_are_refused(builder: Callable[..., Table]) -> None:
    with pytest.raises(ValueError, match="multiplier must be finite and not negative"):
        builder(-0.1, *[QuantizedDtype(0.1, 0, "int8")] * 2)


def test_hard_swish_refuses_a_tiny_output_scale() -> None:
    with pytest.raises(ValueError, match=r"output scale must be greater than 0\.0078125, but got 0\.001"):
        tflite_hard_swish_table(QuantizedDtype(1.0, 0, "int8"), QuantizedDtype(0.001, 0, "int8"))


@pytest.mark.parametrize(("nan", "quantized"), [(NanPolicy.MAX, 255), (NanPolicy.MIN, 0), (NanPolicy.ZERO_POINT, 7)])
def test_quantize_special_values(nan: NanPolicy, quantized: int) -> None:
    x = np.array([math.nan, math.inf, -math.inf, 3e38, -3e38], dtype=np.float32)
    got = quantize_array(x, 1e-3, 7, -1, "uint8", FloatRounding.HALF_EVEN, Scaling.DIVIDE, nan)
    assert got.tolist() == [quantized, 255, 0, 255, 0]


# Softmax: the fixed point stays close to the real function, its tables are those of the op, and float rounds once.


@given(total=st.integers(1, 2**31 - 1))
def test_reciprocal_equals_exact_integers(total: int) -> None:
    word = np.array([total], np.int32)
    assert (int(reciprocal(NUMPY, word)[0]), 35 - int(share_shift(NUMPY, word)[0])) == plain.reciprocal(total)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@given(scale=st.floats(2.0**-10, 1.0, width=32), seed=st.integers(0, 10**6), size=st.integers(1, 60))
def test_fixed_point_is_within_one_value_of_the_real_softmax(dtype: str, scale: float, seed: int, size: int) -> None:
    values = np.random.default_rng(seed).integers(0, 256, (3, size)).astype(np.uint8).view(dtype)
    got = softmax_fixed(values, -1, softmax_tables(scale, 1.0))
    f32 = np.exp(scale * (values.astype(np.float64) - values.max(axis=-1, keepdims=True)))
    f32 /= f32.sum(axis=-1, keepdims=True)
    lowest = np.iinfo(dtype).min
    assert np.all(np.abs(got - lowest - np.minimum(f32 * 256, 255)) <= 1)


def float_softmax(
    values: NDArray[np.int8], axis: int, scale: float, beta: float, output_scale: float, zero_point: int
) -> NDArray[np.float64]:
    share = partial(float_share, NUMPY, output_scale=np.float32(output_scale))
    return softmax_float(values, axis, zero_point, float_entries(scale, beta), share)


def test_distances_beyond_the_radius_have_no_probability() -> None:
    tables = softmax_tables(1.0, 1.0)
    assert tables.exponentials[0] == 2**31 - 1
    assert tables.addends[0] == 2**19
    assert np.all(np.diff(tables.exponentials.astype(np.int64)) <= 0)
    assert tables.exponentials[15] > 0
    assert np.all(tables.exponentials[16:] == 0)


def test_a_vanishing_scale_is_refused() -> None:
    with pytest.raises(ValueError, match=r"input scale times beta must exceed 2\^-26"):
        softmax_tables(1e-9, 1.0)


@given(seed=st.integers(0, 10**6), size=st.integers(1, 40))
def test_float_softmax_rounds_the_real_one(seed: int, size: int) -> None:
    values = np.random.default_rng(seed).integers(-128, 128, (2, size)).astype(np.int8)
    got = np.clip(float_softmax(values, -1, 0.1, 0.5, 0.01, -50), -128, 127)
    f32 = np.exp(0.05 * values.astype(np.float64))
    f32 /= f32.sum(axis=-1, keepdims=True)
    assert np.all(np.abs(got + 50 - f32 / 0.01) <= 0.5 + 1e-4)
