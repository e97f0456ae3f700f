"""Convolutions of ONNX in float32: against formulas in float64, interpreted and compiled."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx_evaluated import found_by
from onnx_graphs import ModelBuilder, drawn, evaluated
from together import variants_together
from tolerances import assert_floats_within

from qdialect.frontends.onnx import import_onnx
from qdialect.support.diagnostics import ImportModelError

Array = NDArray[Any]

# Shapes of data and weights, and attributes.
TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 5, 4), (3, 5, 3, 3), {}),
    ((1, 4, 5, 4), (4, 5, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((1, 4, 5, 4), (4, 3, 2, 2), {"strides": [2, 2], "group": 2}),
    ((1, 3, 3, 4), (3, 2, 2, 3), {"strides": [3, 4], "output_padding": [1, 2]}),
    ((1, 3, 6, 5), (3, 2, 3, 2), {"strides": [2, 1], "dilations": [2, 3], "pads": [3, 1, 0, 2]}),
    ((1, 2, 9, 9), (2, 2, 3, 3), {"strides": [2, 2], "pads": [0, 0, 12, 12]}),
    ((2, 3, 7), (3, 4, 4), {"strides": [3], "pads": [2, 1]}),
    ((1, 2, 5, 5), (2, 2, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
]


def numbers(shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def layer(kind: str, data: Array, weight: Array, bias: Array, attributes: dict[str, Any]) -> bytes:
    model = ModelBuilder()
    constants = model.constant(weight), model.constant(bias)
    node = model.node(kind, model.input("x0", data.shape), *constants, **attributes)
    return model.finish(node, dtype=np.float32, version=11)


@variants_together
@pytest.mark.parametrize(("shape", "kernel", "attributes"), TRANSPOSED)
def test_a_transposed_convolution(shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any]) -> None:
    data, weight = numbers(shape, 0), numbers(kernel, 1)
    groups = attributes.get("group", 1)
    bias = numbers((kernel[1] * groups,), 2)
    (found,) = found_by(layer("ConvTranspose", data, weight, bias, attributes), data)
    # onnx's reference knows one group.
    parts = zip(np.split(data, groups, 1), np.split(weight, groups), np.split(bias, groups), strict=True)
    alone = {**attributes, "group": 1}
    wanted = [evaluated(layer("ConvTranspose", x, w, b, alone), x) for x, w, b in parts]
    wanted = np.concatenate(wanted, 1)
    assert found.shape == wanted.shape
    assert_floats_within(found, wanted, "formula")


def test_a_transposed_convolution_with_f32_weights_of_quantized_data() -> None:
    model = ModelBuilder()
    data = model.dequantize(model.input("x0", (1, 4, 5, 5), np.uint8), (0.05, 7))
    layer = model.node("ConvTranspose", data, model.constant(numbers((4, 3, 2, 2), 1)), strides=[2, 2])
    content = model.finish(model.node("Relu", layer), dtype=np.float32, version=19)
    quantized = drawn((1, 4, 5, 5), np.uint8)
    (found,) = found_by(content, quantized)
    assert_floats_within(found, evaluated(content, quantized), "formula")


@variants_together
@pytest.mark.parametrize("attributes", [{}, {"strides": [2], "pads": [2, 1], "dilations": [2], "group": 2}])
def test_a_convolution_of_one_dimension(attributes: dict[str, Any]) -> None:
    data, weight = numbers((2, 4, 11), 0), numbers((6, 4 // attributes.get("group", 1), 3), 1)
    content = layer("Conv", data, weight, numbers((6,), 2), attributes)
    (found,) = found_by(content, data)
    assert_floats_within(found, evaluated(content, data), "formula")


@pytest.mark.parametrize(
    ("kind", "kernel", "attributes", "message"),
    [
        ("ConvTranspose", (3, 2, 3, 3), {}, "weight must have 4 inputs, but got 3"),
        ("ConvTranspose", (4, 2, 3, 3), {"group": 3}, "group must divide 4 channels, but got 3"),
        ("ConvTranspose", (4, 2, 3), {}, "weight must have 4 dimensions, but got 3"),
        ("ConvTranspose", (4, 3, 3, 3), {}, r"bias must have the shape \[3\], but got \[2\]"),
        ("Conv", (2, 4, 3), {}, "weight must have 4 dimensions, but got 3"),
    ],
)
def test_what_does_not_fit_is_told(
    kind: str, kernel: tuple[int, ...], attributes: dict[str, Any], message: str
) -> None:
    data = numbers((1, 4, 5, 5), 0)
    with pytest.raises(ImportModelError, match=message):
        import_onnx(layer(kind, data, numbers(kernel, 1), numbers((2,), 2), attributes))
