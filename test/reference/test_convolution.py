"""Convolution and dense accumulators against plain loops, over drawn shapes and parameters."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from reference import plain_arithmetic as plain

from qdialect.arithmetic import quantized_range
from qdialect.arithmetic.convolution import conv2d_accumulate
from qdialect.reference.contraction_evaluators import conv_transpose2d_accumulate, dense_accumulate

DTYPES = st.sampled_from(["int8", "uint8"])
EITHER_END = st.sampled_from([0.0, 0.5, 1.0])


def drawn_values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> NDArray[np.integer[Any]]:
    lo, hi = quantized_range(dtype)
    return rng.integers(lo, hi + 1, shape, dtype=np.int64).astype(dtype)


def zero_point_at(dtype: str, where: float) -> int:
    lo, hi = quantized_range(dtype)
    return round(lo + where * (hi - lo))


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_conv2d_equals_a_loop_nest(data: st.DataObject, seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups, group_in, group_out = (data.draw(st.integers(1, 3)) for _ in range(3))
    kernel = (data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3)))
    dilation = (data.draw(st.integers(1, 2)), data.draw(st.integers(1, 2)))
    strides = (data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3)))
    top, left, bottom, right = (data.draw(st.integers(0, 2)) for _ in range(4))
    acc_range = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    height = max(acc_range[0] - top - bottom, 1) + data.draw(st.integers(0, 4))
    width = max(acc_range[1] - left - right, 1) + data.draw(st.integers(0, 4))
    data_dtype, weight_dtype = data.draw(DTYPES), data.draw(DTYPES)
    values = drawn_values(rng, (data.draw(st.integers(1, 2)), height, width, groups * group_in), data_dtype)
    weight = drawn_values(rng, (groups * group_out, *kernel, group_in), weight_dtype)
    per_channel = data.draw(st.booleans())
    weight_zero_points = rng.integers(*quantized_range(weight_dtype), groups * group_out if per_channel else 1).tolist()
    bias = rng.integers(-(2**20), 2**20, groups * group_out).astype(np.int32) if data.draw(st.booleans()) else None
    zero_points = (zero_point_at(data_dtype, data.draw(EITHER_END)), weight_zero_points)
    window = (strides, (top, left, bottom, right), dilation, groups)
    got = conv2d_accumulate(values, weight, *zero_points, *window, bias)
    expected = plain.conv2d(values, weight, *zero_points, *window) + (0 if bias is None else bias)
    assert got.dtype == np.int32
    assert np.array_equal(got, expected)


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_conv_transpose2d_equals_a_loop_nest(data: st.DataObject, seed: int) -> None:
    def pair(minimum: int, maximum: int) -> tuple[int, int]:
        return data.draw(st.integers(minimum, maximum)), data.draw(st.integers(minimum, maximum))

    rng = np.random.default_rng(seed)
    groups, group_in, group_out = (data.draw(st.integers(1, 3)) for _ in range(3))
    kernel, strides, dilation, extra, size = pair(1, 3), pair(1, 3), pair(1, 2), pair(0, 2), pair(1, 4)
    full = [(size[i] - 1) * strides[i] + (kernel[i] - 1) * dilation[i] + 1 + extra[i] for i in range(2)]
    top, left = (data.draw(st.integers(0, min(2, extent - 1))) for extent in full)
    bottom, right = (data.draw(st.integers(0, min(2, full[i] - 1 - cut))) for i, cut in enumerate((top, left)))
    data_dtype, weight_dtype = data.draw(DTYPES), data.draw(DTYPES)
    values = drawn_values(rng, (data.draw(st.integers(1, 2)), *size, groups * group_in), data_dtype)
    weight = drawn_values(rng, (groups * group_out, *kernel, group_in), weight_dtype)
    per_channel = data.draw(st.booleans())
    weight_zero_points = rng.integers(*quantized_range(weight_dtype), groups * group_out if per_channel else 1).tolist()
    bias = rng.integers(-(2**20), 2**20, groups * group_out).astype(np.int32) if data.draw(st.booleans()) else None
    zero_points = (zero_point_at(data_dtype, data.draw(EITHER_END)), weight_zero_points)
    window = (strides, (top, left, bottom, right), extra, dilation, groups)
    got = conv_transpose2d_accumulate(values, weight, *zero_points, *window, bias)
    expected = plain.conv_transpose2d(values, weight, *zero_points, *window) + (0 if bias is None else bias)
    assert got.dtype == np.int32
    assert np.array_equal(got, expected)


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_dense_equals_integer_products(data: st.DataObject, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, depth, channels = (data.draw(st.integers(1, 20)) for _ in range(3))
    data_dtype, weight_dtype = data.draw(DTYPES), data.draw(DTYPES)
    values, weight = drawn_values(rng, (2, rows, depth), data_dtype), drawn_values(rng, (channels, depth), weight_dtype)
    zero_point = zero_point_at(data_dtype, data.draw(EITHER_END))
    weight_zero_points = rng.integers(*quantized_range(weight_dtype), channels if data.draw(st.booleans()) else 1)
    bias = rng.integers(-(2**20), 2**20, channels).astype(np.int32)
    got = dense_accumulate(values, weight, zero_point, weight_zero_points.tolist(), bias)
    centred = weight.astype(np.int64) - weight_zero_points.reshape(-1, 1)
    assert np.array_equal(got, (values.astype(np.int64) - zero_point) @ centred.T + bias)


@pytest.mark.parametrize(
    ("quantized", "bias", "expected"), [(255, 2**31 - 1, 255 * 255 - 2**31 - 1), (0, -(2**31), -(2**31))]
)
def test_accumulators_wrap_as_int32_does(quantized: int, bias: int, expected: int) -> None:
    values = np.full((1, 1, 1, 1), quantized, dtype=np.uint8)
    weight = np.full((1, 1, 1, 1), 255, dtype=np.uint8)
    offset = np.array([bias], dtype=np.int32)
    got = conv2d_accumulate(values, weight, 0, [0], (1, 1), (0, 0, 0, 0), (1, 1), 1, offset)
    assert got.tolist() == [[[[expected]]]]
    assert dense_accumulate(values[:, 0, 0], weight[:, 0, 0], 0, [0], offset).tolist() == [[expected]]
