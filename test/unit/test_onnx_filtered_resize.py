"""frontends/onnx/operators/filtered_resize.py: filters as products with matrices, compared with ONNX Runtime."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from onnx_graphs import ModelBuilder, drawn, run
from tolerances import assert_floats_within

import qdialect
from qdialect.frontends.onnx import import_onnx
from qdialect.support.diagnostics import ImportModelError

ORT: Any = import_module("onnxruntime")
X = np.random.default_rng(0).normal(size=(1, 2, 9, 10)).astype(np.float32)
COORDINATES = ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"]


def _content(scales: Sequence[float], x: Any = X, **attributes: Any) -> bytes:
    model = ModelBuilder()
    given = model.input("x", x.shape), "", model.constant(np.array(scales, np.float32))
    return model.finish(model.node("Resize", *given, **attributes), dtype=np.float32, version=19)


def _check(content: bytes, x: Any = X) -> None:
    options = ORT.SessionOptions()
    options.log_severity_level = 3
    session = ORT.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    (wanted,) = session.run(None, {"x": x})
    assert_floats_within(run(content, x), wanted, "layer")


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("exclude_outside", [0, 1])
def test_cubic(coordinates: str, exclude_outside: int) -> None:
    for scales in ([1, 1, 1.5, 2], [1, 1, 0.4, 0.7], [1, 1, 1, 3]):
        how = {"coordinate_transformation_mode": coordinates, "exclude_outside": exclude_outside}
        _check(_content(scales, mode="cubic", cubic_coeff_a=-0.5, **how))


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_filters_against_aliasing(coordinates: str, mode: str) -> None:
    for scales in ([1, 1, 0.5, 0.7], [1, 1, 0.34, 2]):
        _check(_content(scales, mode=mode, antialias=1, coordinate_transformation_mode=coordinates))


@pytest.mark.parametrize("coordinates", COORDINATES)
def test_linear_of_any_rank_and_scale(coordinates: str) -> None:
    """Rows, volumes, channels and scales that extents are rounded down from."""
    random = np.random.default_rng(1)
    for shape, scales in (((1, 2, 9), [1, 1, 2]), ((1, 2, 3, 4, 5), [1, 1, 2, 1, 0.5]), ((2, 7, 9, 2), [1, 2, 1.5, 1])):
        x = random.normal(size=shape).astype(np.float32)
        _check(_content(scales, x, mode="linear", coordinate_transformation_mode=coordinates), x)
    _check(_content([1, 1, 1.7, 0.65], mode="linear", coordinate_transformation_mode=coordinates))


@pytest.mark.parametrize("how", [{"mode": "nearest"}, {"mode": "linear"}, {"mode": "cubic"}, {"antialias": 1}])
def test_symmetric_centers(how: dict[str, Any]) -> None:
    for scales in ([1, 1, 2, 1.5], [1, 1, 1, 0.5]):
        _check(_content(scales, **{"mode": "linear", **how}, coordinate_transformation_mode="half_pixel_symmetric"))


def test_symmetric_centers_of_extents_that_are_rounded_down_are_refused() -> None:
    with pytest.raises(ImportModelError) as caught:
        import_onnx(_content([1, 1, 1.5, 2], mode="cubic", coordinate_transformation_mode="half_pixel_symmetric"))
    assert "scales of half_pixel_symmetric must be the ratios of the extents" in caught.value.render()


def test_compiled_it_is_the_reference() -> None:
    content = _content([1, 1, 1.5, 0.5], mode="cubic", antialias=1)
    np.testing.assert_array_equal(qdialect.compile(import_onnx(content))(X), run(content, X))


def test_nearest_elements_need_no_filter() -> None:
    found = run(_content([1, 1, 2, 2], mode="nearest", antialias=1), X)
    np.testing.assert_array_equal(found, run(_content([1, 1, 2, 2], mode="nearest"), X))


def test_a_row_that_is_constant_stays_so_between_quantizations() -> None:
    model = ModelBuilder()
    source = model.dequantize(model.input("x", X.shape, np.uint8), (0.1, 100))
    resized = model.node("Resize", source, "", model.constant(np.array([1, 1, 2, 2], np.float32)), mode="cubic")
    content = model.finish(model.quantize(resized, (0.1, 100)), version=19)
    x = np.broadcast_to(drawn((1, 2, 1, 1), np.uint8), X.shape).copy()
    np.testing.assert_array_equal(run(content, x), np.broadcast_to(x[..., :1, :1], (1, 2, 18, 20)))
