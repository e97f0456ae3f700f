"""Reciprocals of scales against PyTorch, at ties and with scales that no float32 is; and when two scales are one."""

import math
from importlib import import_module

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from reference import plain_arithmetic as plain

from qdialect.arithmetic import (
    FloatRounding,
    NanPolicy,
    Rounding,
    Scaling,
    quantize_array,
    requantize_f32,
    same_scale,
    scale_factors,
)

# Registers the operators of exported programs.
import_module("torch.ao.quantization.fx._decomposed")
# Equal as float32; the first is what a .pt2 file holds, the second what a text says.
CLOSE = (0.17717300355434418, 0.177173)
_WHOLE = (-(2**31), 2**31 - 1)


def ties(scale: float) -> NDArray[np.float32]:
    """The 720 float32 numbers closest to the ties between the quantized values -360 and 360."""
    return ((np.arange(-360, 360) + 0.5) * scale).astype(np.float32)


def quantized(x: NDArray[np.float32], scale: float, scaling: Scaling) -> NDArray[np.int32]:
    how = (FloatRounding.HALF_EVEN, scaling, NanPolicy.ZERO_POINT)
    return quantize_array(x, scale, 0, 0, np.int32, *how).astype(np.int32)


def decomposed(x: NDArray[np.float32], scale: float) -> NDArray[np.int32]:
    """PyTorch's operator of exported programs."""
    quantize = torch.ops.quantized_decomposed.quantize_per_tensor.default
    return quantize(torch.tensor(x), scale, 0, *_WHOLE, torch.int32).numpy()


SCALES = [0.03, *CLOSE, *(10.0 ** np.random.default_rng(5).uniform(-4, 2, 300)).tolist()]


def test_ties_are_those_of_exported_programs() -> None:
    for scale in SCALES:
        np.testing.assert_array_equal(quantized(ties(scale), scale, Scaling.RECIPROCAL), decomposed(ties(scale), scale))


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_ties_are_those_of_quantized_tensors() -> None:
    for scale in SCALES:
        found = quantized(ties(scale), scale, Scaling.RECIPROCAL_F32)
        wanted = torch.quantize_per_tensor(torch.tensor(ties(scale)), scale, 0, torch.qint32).int_repr()
        np.testing.assert_array_equal(found, wanted.numpy())


@pytest.mark.parametrize("scaling", [Scaling.RECIPROCAL, Scaling.RECIPROCAL_F32, Scaling.DIVIDE])
def test_the_stage_of_a_fused_op_quantizes_likewise(scaling: Scaling) -> None:
    for scale in SCALES:
        found = requantize_f32(ties(scale), scale, 0, *_WHOLE, Rounding.F32_RNE_ZP_LAST, scaling)
        np.testing.assert_array_equal(found, quantized(ties(scale), scale, Scaling(scaling.value)))


def test_the_two_reciprocals_differ() -> None:
    """In 470 of 720 ties: a test that takes one for the other fails."""
    found = [quantized(ties(0.03), 0.03, scaling) for scaling in (Scaling.RECIPROCAL, Scaling.RECIPROCAL_F32)]
    assert np.count_nonzero(found[0] != found[1]) == 470


def test_scales_of_channels() -> None:
    """PyTorch divides one by float32 scales in float32: both reciprocals are the same there."""
    scales = np.array(SCALES, dtype=np.float32)
    x = np.stack([ties(float(scale)) for scale in scales])
    channels = torch.ops.quantized_decomposed.quantize_per_channel.default
    points = torch.zeros(len(scales), dtype=torch.int64)
    wanted = channels(torch.tensor(x), torch.tensor(scales), points, 0, *_WHOLE, torch.int32)
    for scaling in (Scaling.RECIPROCAL, Scaling.RECIPROCAL_F32):
        how = (FloatRounding.HALF_EVEN, scaling, NanPolicy.ZERO_POINT)
        np.testing.assert_array_equal(
            quantize_array(x, scales.astype(np.float64), np.zeros(len(scales)), 0, np.int32, *how), wanted.numpy()
        )


@given(scale=st.floats(2.0**-60, 2.0**30))
def test_factors_equal_exact_arithmetic(scale: float) -> None:
    assert scale_factors(scale, Scaling.DIVIDE) == plain.float32(scale)
    assert scale_factors(scale, Scaling.RECIPROCAL) == plain.float32(1 / scale)
    assert scale_factors(scale, Scaling.RECIPROCAL_F32) == plain.float32(1 / plain.float32(scale))


def test_factors_beyond_float32() -> None:
    assert scale_factors(1e-300, Scaling.DIVIDE) == 0
    assert [float(scale_factors(1e-300, s)) for s in (Scaling.RECIPROCAL, Scaling.RECIPROCAL_F32)] == [math.inf] * 2


def test_scales_that_are_one_float32_are_the_same() -> None:
    assert same_scale(*CLOSE)
    assert not same_scale(0.177173, float(np.nextafter(np.float32(0.177173), np.float32(1))))
