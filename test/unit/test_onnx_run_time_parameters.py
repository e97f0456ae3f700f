"""QuantizeLinear and DequantizeLinear with parameters of run time: bit for bit what the standard says."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx_evaluated import check, refused
from onnx_graphs import ModelBuilder

RANDOM = np.random.default_rng(0)
X: NDArray[Any] = (RANDOM.normal(size=(3, 5, 7)) * 4).astype(np.float32)
SCALE = np.array(0.037, np.float32)


def _drawn(dtype: Any, *shape: int) -> NDArray[Any]:
    bounds = np.iinfo(dtype)
    return RANDOM.integers(bounds.min, bounds.max, shape, endpoint=True).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_one_scale(dtype: Any) -> None:
    point = np.array(9, dtype)
    check("QuantizeLinear", [X, SCALE, point], version=21)
    check("DequantizeLinear", [_drawn(dtype, 3, 7), SCALE, point], version=21)
    check("DequantizeLinear", [_drawn(dtype, 3, 7), SCALE], version=21)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scales_along_an_axis(axis: int) -> None:
    extent: int = X.shape[axis]
    scales = RANDOM.uniform(0.01, 0.1, extent).astype(np.float32)
    points = RANDOM.integers(-20, 20, extent).astype(np.int8)
    check("QuantizeLinear", [X, scales, points], axis=axis, version=21)
    check("QuantizeLinear", [X, scales, points], axis=axis, constants=1, version=21)
    check("DequantizeLinear", [_drawn(np.int8, *X.shape), scales, points], axis=axis, version=21)


def test_a_type_without_a_zero_point_is_that_of_the_attribute() -> None:
    check("QuantizeLinear", [X, SCALE])
    check("QuantizeLinear", [X, SCALE], output_dtype=3, version=21)


@pytest.mark.parametrize(
    ("scale", "point", "reason"),
    [
        ((4,), None, "scale must have 1 or 5 entries, but got 4"),
        ((5, 1), None, "scale must have 0 or 1 dimensions, but got 2"),
        ((5,), (), "zero point must be i8 of shape [5], but got []"),
    ],
)
def test_what_does_not_fit_is_refused(scale: tuple[int, ...], point: tuple[int, ...] | None, reason: str) -> None:
    model = ModelBuilder()
    names = [model.input("x", X.shape, np.int8), model.input("s", scale)]
    names += [] if point is None else [model.input("z", point, np.int8)]
    assert reason in refused(model.finish(model.node("DequantizeLinear", *names), dtype=np.float32))
