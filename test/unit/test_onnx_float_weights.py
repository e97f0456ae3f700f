"""Constant f32 weights between quantizations, which ONNX Runtime's optimizer quantizes itself."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx_agreement import agreed
from onnx_graphs import ModelBuilder, drawn
from together import variants_together

from qdialect.frontends.onnx import import_onnx

Array = NDArray[Any]
# The shapes of the data and of the weights, and attributes.
KINDS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "Conv": ((1, 4, 8, 8), (8, 2, 3, 3), {"pads": [1, 1, 1, 1], "group": 2}),
    "ConvTranspose": ((1, 4, 5, 5), (4, 3, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "Gemm": ((9, 16), (16, 8), {}),
}
INTEGER_OPS = {"Conv": "qnn.conv2d", "ConvTranspose": "qnn.conv_transpose2d", "Gemm": "qnn.dense"}
WEIGHTS = {"both signs": (-0.2, 0.3), "positive": (0.1, 0.4), "negative": (-0.4, -0.1), "zero": (0.0, 0.0)}


def weights_of(kind: str, bounds: tuple[float, float] = (-0.2, 0.3)) -> tuple[Array, Array]:
    """F32 weights and a bias."""
    generator, shape = np.random.default_rng(4), KINDS[kind][1]
    channels = shape[0] if kind == "Conv" else shape[1]
    return generator.uniform(*bounds, shape).astype(np.float32), generator.normal(size=channels).astype(np.float32)


@variants_together
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("end", ["", "Relu", "Clip"])
@pytest.mark.parametrize("bounds", WEIGHTS)
def test_quantized_values_equal_onnx_runtime(bounds: str, end: str, dtype: Any, kind: str) -> None:
    b, (shape, _, attributes) = ModelBuilder(), KINDS[kind]
    weights, bias = weights_of(kind, WEIGHTS[bounds])
    data = b.dequantize(b.input("x", shape, dtype), (0.02, 3), dtype)
    result = b.node(kind, data, b.constant(weights), b.constant(bias), **attributes)
    if end:
        result = b.node(end, result, *([b.constant(-1.0), b.constant(1.0)] if end == "Clip" else []))
    agreed(b.finish(b.quantize(result, (0.013, 3), dtype), dtype=dtype), drawn(shape, dtype))


def gemm(
    before: str = "", after: str = "", bias_shape: tuple[int, ...] = (8,), *, is_read_twice: bool = False
) -> bytes:
    """A Gemm of f32 weights, with operators before and after it."""
    b, (weights, bias) = ModelBuilder(), weights_of("Gemm")
    target = {"Reshape": [b.constant(np.array([9, 16]))], "Flatten": [], "": []}[before]
    data = b.dequantize(b.input("x", (9, 16) if not before else (9, 2, 8), np.uint8), (0.02, 100))
    data = b.node(before, data, *target) if before else data
    operands = [b.constant(bias.reshape(bias_shape))] if bias_shape else []
    result = b.node("Gemm", data, b.constant(weights), *operands)
    for kind in after.split():
        result = b.node(kind, result, *([b.constant(np.array([72]))] if kind == "Reshape" else []))
    more = [b.quantize(result, (0.1, 100))] if is_read_twice else []
    return b.finish(b.quantize(result, (0.05, 100)), *more)


@variants_together
@pytest.mark.parametrize(
    ("before", "after", "bias_shape"),
    [
        *(("", "", ()), ("Reshape", "", (8,)), ("", "Reshape", (8,)), ("", "Relu Reshape", (8,))),
        *(("Flatten", "", (8,)), ("", "Reshape Relu", (8,)), ("", "", (1, 8))),
    ],
)
def test_what_is_around_decides(before: str, after: str, bias_shape: tuple[int, ...]) -> None:
    content = gemm(before, after, bias_shape)
    stays_f32 = before == "Flatten" or after == "Reshape Relu" or bias_shape == (1, 8)
    text = str(import_onnx(content))
    assert ("weight_zero_points" not in text) == stays_f32
    agreed(content, drawn((9, 2, 8) if before else (9, 16), np.uint8))


def test_a_result_that_is_quantized_twice_is_f32() -> None:
    assert "weight_zero_points" not in str(import_onnx(gemm(is_read_twice=True)))


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_those_of_integers(kind: str) -> None:
    b, (shape, _, attributes) = ModelBuilder(), KINDS[kind]
    data = b.dequantize(b.input("x", shape, np.uint8), (0.02, 3))
    result = b.node(kind, data, *map(b.constant, weights_of(kind)), **attributes)
    assert INTEGER_OPS[kind] in str(import_onnx(b.finish(b.quantize(result, (0.013, 3)))))
