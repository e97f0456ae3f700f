"""Accumulators that wrap, means, scales of ranges, and packed weights of few bits."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qdialect.arithmetic import Multiplier, QuantParams, Rounding
from qdialect.arithmetic.block_weights import pack, quantize_blocks, unpack
from qdialect.arithmetic.convolution import conv2d_accumulate
from qdialect.arithmetic.machine import NUMPY
from qdialect.arithmetic.ranges import range_scale, range_zero_point
from qdialect.arithmetic.small_floats import ROUND, WIDEN
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


# Packed weights of few bits, and rows that are quantized in blocks.


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_the_first_number_of_a_byte_is_in_its_lowest_bits(bits: int) -> None:
    values = np.arange(3) + 1
    packed = pack(values, bits)
    assert packed.tolist() == {2: [0b111001], 4: [0x21, 0x03], 8: [1, 2, 3]}[bits]
    assert unpack(packed, bits, 3).tolist() == values.tolist()


def test_numbers_of_a_block_are_multiplied_by_a_reciprocal_and_ties_are_even() -> None:
    largest = np.float32(3.1234567)
    # Where x * (127 / m) and x / (m / 127) round apart.
    apart = np.float32(0.1844561)
    data = np.array([[127, 0.5, 1.5, 2.5, -0.5, -1.5, largest, apart, 0, 0, 0, 0]], np.float32)
    integers, scales = quantize_blocks(data, 6, f16_scales=False)
    assert integers[0, :6].tolist() == [127, 0, 2, 2, 0, -2]
    assert scales[0].tolist() == [1, largest / np.float32(127)]
    assert integers[0, 7] == 7 != np.rint(apart / (largest / np.float32(127)))
    assert quantize_blocks(data, 6, f16_scales=True)[1][0, 1] == np.float32(np.float16(largest / np.float32(127)))


@pytest.mark.parametrize(
    ("number", "integer", "scale"),
    [(np.inf, 0, np.nan), (-np.inf, 0, np.nan), (np.nan, 0, np.nan), (0.0, 0, 0.0), (2.0**-121, 0, 2.0**-121 / 127)],
)
def test_blocks_of_what_is_not_finite_or_is_close_to_zero(number: float, integer: int, scale: float) -> None:
    integers, scales = quantize_blocks(np.array([[0, number, 1, 1]], np.float32), 2, f16_scales=False)
    assert integers.tolist() == [[0, integer, 127, 127]]
    assert np.array_equal(scales[0, :1], np.array([scale], np.float32), equal_nan=True)


# Floats of 16 bits against NumPy's and ml_dtypes' conversions: every number, and f32 numbers around every rounding.


DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
BITS = np.arange(2**16).astype(np.uint16).view(np.int16)


@pytest.mark.parametrize("element", DTYPES)
def test_all_numbers_are_widened(element: str) -> None:
    found, wanted = WIDEN[element](NUMPY, BITS), BITS.view(DTYPES[element]).astype(np.float32)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


@pytest.mark.parametrize("element", DTYPES)
def test_numbers_are_rounded_half_to_even(element: str) -> None:
    """At, next to and halfway between all numbers, overflow and subnormal ones among them."""
    around = np.array([-1, 0, 1, 0xFFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001], np.int32)
    bits = (WIDEN[element](NUMPY, BITS).view(np.int32)[:, None] + around).ravel()
    drawn = np.random.default_rng(0).integers(-(2**31), 2**31, 100_000).astype(np.int32)
    numbers = np.concatenate([bits, drawn]).view(np.float32)
    with np.errstate(all="ignore"):
        wanted = numbers.astype(DTYPES[element])
        found = ROUND[element](NUMPY, numbers).view(DTYPES[element])
    np.testing.assert_array_equal(np.isnan(found), np.isnan(numbers))
    is_number = ~np.isnan(numbers)
    np.testing.assert_array_equal(found[is_number].view(np.int16), wanted[is_number].view(np.int16))
