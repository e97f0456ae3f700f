"""Accumulators of convolutions and dense layers, pools, dynamic quantization and ranges, against plain loops."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from arithmetic import plain_arithmetic as plain
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch.nn import functional

from qdialect.arithmetic import Division, Multiplier, QuantParams, Rounding, quantized_range
from qdialect.arithmetic.convolution import conv2d_accumulate
from qdialect.arithmetic.ranges import range_scale, range_zero_point
from qdialect.reference.contraction_evaluators import conv_transpose2d_accumulate, matmul_accumulate
from qdialect.reference.qnn_evaluators import avg_pool2d, max_pool2d, over_axes

DTYPES = st.sampled_from(["int8", "uint8"])
EITHER_END = st.sampled_from([0.0, 0.5, 1.0])


def drawn_values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> NDArray[np.integer[Any]]:
    lo, hi = quantized_range(dtype)
    return rng.integers(lo, hi + 1, shape, dtype=np.int64).astype(dtype)


def zero_point_at(dtype: str, where: float) -> int:
    lo, hi = quantized_range(dtype)
    return round(lo + where * (hi - lo))


@dataclass(frozen=True)
class Case:
    """Values NHWC and weights OHWI with their zero points, a bias or 0, and where the kernel goes."""

    data: NDArray[Any]
    weight: NDArray[Any]
    zero_points: tuple[int, list[int]]
    bias: NDArray[np.int32] | None
    strides: tuple[int, int]
    dilation: tuple[int, int]
    groups: int

    def exact(self, of: Callable[..., torch.Tensor], weight: NDArray[np.float64]) -> NDArray[Any]:
        """PyTorch's sums of the differences to the zero points, NHWC, exact in float64; the bias is added."""
        data = torch.tensor(self.data.transpose(0, 3, 1, 2).astype(np.float64) - self.zero_points[0])
        sums = of(data, torch.tensor(weight), None, self.strides, groups=self.groups, dilation=self.dilation)
        return sums.numpy().transpose(0, 2, 3, 1) + (0 if self.bias is None else self.bias)

    @property
    def centred(self) -> NDArray[np.float64]:
        """Weights less their zero points, OIHW."""
        points = np.reshape(self.zero_points[1], (-1, 1, 1, 1))
        return (self.weight.astype(np.float64) - points).transpose(0, 3, 1, 2)


@st.composite
def cases(draw: st.DrawFn, images: tuple[int, int]) -> Case:
    """Images of extents between the two."""

    def pair(minimum: int, maximum: int) -> tuple[int, int]:
        return draw(st.integers(minimum, maximum)), draw(st.integers(minimum, maximum))

    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    groups, group_in, group_out = (draw(st.integers(1, 3)) for _ in range(3))
    data_dtype, weight_dtype = draw(DTYPES), draw(DTYPES)
    data = drawn_values(rng, (draw(st.integers(1, 2)), *pair(*images), groups * group_in), data_dtype)
    weight = drawn_values(rng, (groups * group_out, *pair(1, 3), group_in), weight_dtype)
    points = rng.integers(*quantized_range(weight_dtype), groups * group_out if draw(st.booleans()) else 1).tolist()
    bias = rng.integers(-(2**20), 2**20, groups * group_out).astype(np.int32) if draw(st.booleans()) else None
    zero_points = zero_point_at(data_dtype, draw(EITHER_END)), points
    return Case(data, weight, zero_points, bias, pair(1, 3), pair(1, 2), groups)


@given(case=cases((3, 9)), padding=st.tuples(*[st.integers(0, 2)] * 4))
def test_conv2d_is_that_of_pytorch(case: Case, padding: tuple[int, int, int, int]) -> None:
    top, left, bottom, right = padding
    sizes = [extent + more for extent, more in zip(case.data.shape[1:3], (top + bottom, left + right), strict=True)]
    assume(all((case.weight.shape[1 + i] - 1) * case.dilation[i] < sizes[i] for i in range(2)))
    got = conv2d_accumulate(
        case.data, case.weight, *case.zero_points, case.strides, padding, case.dilation, case.groups, case.bias
    )
    padded = np.pad(
        case.data.astype(np.int64), ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=case.zero_points[0]
    )
    assert got.dtype == np.int32
    assert np.array_equal(got, replace(case, data=padded).exact(functional.conv2d, case.centred))


@given(case=cases((1, 4)), extra=st.tuples(*[st.integers(0, 2)] * 2), cut=st.tuples(*[st.integers(0, 2)] * 4))
def test_conv_transpose2d_is_that_of_pytorch(
    case: Case, extra: tuple[int, int], cut: tuple[int, int, int, int]
) -> None:
    """Its whole result, with zeros behind it for the padding of the output, of which edges are cut off."""
    top, left, bottom, right = cut
    # PyTorch's weights have the channels of the data first.
    weight = np.concatenate([one.swapaxes(0, 1) for one in np.split(case.centred, case.groups)])
    whole = replace(case, bias=None).exact(functional.conv_transpose2d, weight)
    whole = np.pad(whole, ((0, 0), (0, extra[0]), (0, extra[1]), (0, 0)))
    height, width = whole.shape[1] - bottom, whole.shape[2] - right
    assume(height > top and width > left)
    window = case.strides, cut, extra, case.dilation, case.groups
    got = conv_transpose2d_accumulate(case.data, case.weight, *case.zero_points, *window, case.bias)
    assert got.dtype == np.int32
    assert np.array_equal(got, whole[:, top:height, left:width] + (0 if case.bias is None else case.bias))


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_dense_equals_integer_products(data: st.DataObject, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, depth, channels = (data.draw(st.integers(1, 20)) for _ in range(3))
    data_dtype, weight_dtype = data.draw(DTYPES), data.draw(DTYPES)
    values, weight = drawn_values(rng, (2, rows, depth), data_dtype), drawn_values(rng, (channels, depth), weight_dtype)
    zero_point = zero_point_at(data_dtype, data.draw(EITHER_END))
    weight_zero_points = rng.integers(*quantized_range(weight_dtype), channels if data.draw(st.booleans()) else 1)
    bias = rng.integers(-(2**20), 2**20, channels).astype(np.int32)
    got = matmul_accumulate(values, weight.T, zero_point, weight_zero_points.tolist(), bias)
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
    assert matmul_accumulate(values[:, 0, 0], weight[:, 0, 0], 0, [0], offset).tolist() == [[expected]]


# Pools and means against plain loops.

Window = tuple[tuple[int, int], tuple[int, int], tuple[int, int, int, int]]


@st.composite
def windows(draw: st.DrawFn) -> tuple[NDArray[np.int8], Window]:
    """Quantized values [2, H, W, 3] and a window that never lies in the padding alone."""
    kernel = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    strides = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    top, left, bottom, right = (draw(st.integers(0, kernel[i % 2] - 1)) for i in range(4))
    height, width = kernel[0] + draw(st.integers(0, 4)), kernel[1] + draw(st.integers(0, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = rng.integers(-128, 128, (2, height, width, 3)).astype(np.int8)
    return values, (kernel, strides, (top, left, bottom, right))


def elements(values: NDArray[Any], window: Window, index: tuple[int, ...], outside: int | None) -> list[int]:
    """The elements of the window at an output index; padding is `outside`, or left out."""
    kernel, strides, padding = window
    found: list[int] = []
    for r, s in np.ndindex(*kernel):
        y, x = index[1] * strides[0] - padding[0] + r, index[2] * strides[1] - padding[1] + s
        if 0 <= y < values.shape[1] and 0 <= x < values.shape[2]:
            found.append(int(values[index[0], y, x, index[3]]))
        elif outside is not None:
            found.append(outside)
    return found


def mean_value(values: list[int], division: Division, zero_point: int) -> int:
    if division is Division.HALF_AWAY_CENTERED:
        return tosa_mean(sum(values) - zero_point * len(values), len(values)) + zero_point
    exact = Fraction(sum(values), len(values))
    return plain.half_away(exact) if division is Division.HALF_AWAY else int(exact)


def tosa_mean(total: int, count: int) -> int:
    """As the specification of TOSA states it: reciprocal_scale, then apply_scale_32 without double_round."""
    shift = (count - 1).bit_length()
    return (total * (((2**30 + 1) << shift) // count) + (1 << (29 + shift))) >> (30 + shift)


@given(case=windows(), division=st.sampled_from(list(Division)), include=st.booleans(), value=st.integers(-128, 127))
def test_average(case: tuple[NDArray[np.int8], Window], division: Division, include: bool, value: int) -> None:
    values, window = case
    got = avg_pool2d(values, *window, division, -100, 100, count_include_pad=include, zero_point=value)
    for index in np.ndindex(*got.shape):
        seen = elements(values, window, index, value if include else None)
        expected = mean_value(seen, division, value)
        assert got[index] == plain.clamp(expected, -100, 100)


@given(case=windows())
def test_maximum(case: tuple[NDArray[np.int8], Window]) -> None:
    values, window = case
    got = max_pool2d(values, *window, -100, 100)
    for index in np.ndindex(*got.shape):
        assert got[index] == plain.clamp(max(elements(values, window, index, None)), -100, 100)


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
