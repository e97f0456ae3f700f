"""Accumulators that wrap, means, and scales of ranges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qdialect.arithmetic import Multiplier, QuantParams, Rounding
from qdialect.arithmetic.convolution import conv2d_accumulate
from qdialect.arithmetic.ranges import range_scale, range_zero_point
from qdialect.reference.contraction_evaluators import matmul_accumulate
from qdialect.reference.qnn_evaluators import over_axes


@pytest.mark.parametrize(
    ("quantized", "bias", "expected"), [(255, 2**31 - 1, 255 * 255 - 2**31 - 1), (0, -(2**31), -(2**31))]
)
def test_accumulators_wrap_as_int32_does(quantized: int, bias: int, expected: int) -> None:
    values = np.full((1, 1, 1, 1), quantized, dtype=np.uint8)
    weight = np.full((1, 1, 1, 1), 255, dtype=np.uint8)
    offset = np.array([bias], dtype=np.int32)
    got = conv2d_accumulate(values, weight, 0, [0], (1, 1), (0, 0, 0, 0), (1, 1), 1, offset)
    assert got.tolist() == [[[[expected]]]]
    assert matmul_accumulate(values[:, 0, 0], weight[:, 0, 0], 0, [0], offset).tolist() == [[expected]]


@pytest.mark.parametrize("rounding", list(Rounding))
@given(height=st.integers(1, 9), width=st.integers(1, 9), seed=st.integers(0, 1000))
def test_mean_is_within_one_value_of_the_real_mean(rounding: Rounding, height: int, width: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(-128, 128, (1, height, width, 4)).astype(np.int8)
    got = over_axes(
        values, [1, 2], True, QuantParams(0.5, 3), QuantParams(0.25, -7), (-128, 127), rounding, Multiplier.F64
    )
    f32 = (values.astype(np.float64) - 3).mean(axis=(1, 2), keepdims=True) * 2 - 7
    assert got.shape == (1, 1, 1, 4)
    # Two roundings may add up to one quantization step.
    error = 1.0 if rounding in (Rounding.FIXED32_DOUBLE, Rounding.FIXED64_DOUBLE) else 0.5
    assert np.all(np.abs(got - np.clip(f32, -128, 127)) <= error + 1e-4)


# Scale and zero point of a range, on ranges whose results are known.


@pytest.mark.parametrize(
    ("minimum", "maximum", "scale", "zero_point"),
    [
        (0.0, 0.0, 1.0, 0.0),
        (0.0, 255.0, 1.0, -128.0),
        (-255.0, 0.0, 1.0, 127.0),
        (-100.0, 155.0, 1.0, -28.0),
        (3.0, 255.0, 1.0, -128.0),
        (-255.0, -7.0, 1.0, 127.0),
        (-100.25, 154.75, 1.0, -28.0),
        (-100.5, 154.5, 1.0, -28.0),
        (-130.5, 124.5, 1.0, 3.0),
        (-np.inf, 1.0, np.inf, 127.0),
    ],
)
def test_known_ranges(minimum: float, maximum: float, scale: float, zero_point: float) -> None:
    """Ties, 127 - 154.5 and 127 - 124.5, go away from zero; a width of infinity leaves the other end."""
    ends = np.array([minimum], np.float32), np.array([maximum], np.float32)
    np.testing.assert_array_equal(range_scale(*ends), np.array([scale], np.float32))
    np.testing.assert_array_equal(range_zero_point(*ends), np.array([zero_point], np.float32))
