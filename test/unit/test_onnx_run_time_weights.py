"""Conv, QLinearConv and ConvInteger whose weights the network is given or computes: ONNX Runtime's bits."""

from typing import Any

import numpy as np
import pytest
from onnx_agreement import agreed
from onnx_evaluated import refused
from onnx_graphs import ModelBuilder, drawn
from together import variants_together

KERNELS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "3x3": ((2, 5, 7, 6), (4, 5, 3, 3), {"pads": [1, 1, 1, 1]}),
    "strides and dilation": (
        (1, 3, 11, 9),
        (7, 3, 3, 2),
        {"strides": [2, 1], "dilations": [1, 2], "pads": [0, 1, 2, 0]},
    ),
    "groups": ((1, 6, 5, 5), (9, 2, 3, 3), {"group": 3, "pads": [1, 0, 1, 0]}),
    "depthwise": ((1, 6, 8, 8), (6, 1, 3, 3), {"group": 6}),
    "rows": ((2, 4, 17), (3, 4, 5), {"pads": [2, 2]}),
    "1x1": ((1, 19, 3, 4), (17, 19, 1, 1), {}),
}


@variants_together
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("kernel", KERNELS)
def test_quantized_convolutions(kernel: str, dtype: Any) -> None:
    data, weight, attributes = KERNELS[kernel]
    b = ModelBuilder()
    x = (b.input("x", data, np.uint8), *b.parameters((0.02, 131), np.uint8))
    w = (b.input("w", weight, dtype), *b.parameters((0.01, 3 if dtype is np.uint8 else 0), dtype))
    bias = b.constant(np.arange(weight[0], dtype=np.int32) * 900 - 1000)
    y = b.node("QLinearConv", *x, *w, *b.parameters((0.13, 120), np.uint8), bias, **attributes)
    agreed(b.finish(y), drawn(data, np.uint8), drawn(weight, dtype, seed=1))


@variants_together
@pytest.mark.parametrize("kernel", ["3x3", "strides and dilation", "groups"])
def test_integer_convolutions(kernel: str) -> None:
    data, weight, attributes = KERNELS[kernel]
    b = ModelBuilder()
    x, w = b.input("x", data, np.uint8), b.input("w", weight, np.uint8)
    points = [b.constant(np.array(point, np.uint8)) for point in (7, 120)]
    agreed(
        b.finish(b.node("ConvInteger", x, w, *points, **attributes), dtype=np.int32),
        drawn(data, np.uint8),
        drawn(weight, np.uint8, seed=1),
    )


@variants_together
@pytest.mark.parametrize("kernel", ["depthwise", "rows"])
def test_groups_of_convolutions(kernel: str) -> None:
    data, weight, attributes = KERNELS[kernel]
    b = ModelBuilder()
    x = b.dequantize(b.input("x", data, np.uint8), (0.02, 131))
    w = b.dequantize(b.input("w", weight, np.int8), (0.01, 0), np.int8)
    y = b.quantize(b.node("Conv", x, w, **attributes), (0.13, 120))
    agreed(b.finish(y), drawn(data, np.uint8), drawn(weight, np.int8, seed=1))


def test_weights_by_channel() -> None:
    data, weight, attributes = KERNELS["groups"]
    b = ModelBuilder()
    scales = np.linspace(0.004, 0.02, weight[0]).astype(np.float32)
    x = (b.input("x", data, np.uint8), *b.parameters((0.02, 131), np.uint8))
    w = (b.input("w", weight, np.int8), b.constant(scales), b.constant(np.zeros(weight[0], np.int8)))
    y = b.node("QLinearConv", *x, *w, *b.parameters((0.13, 120), np.uint8), **attributes)
    agreed(b.finish(y), drawn(data, np.uint8), drawn(weight, np.int8, seed=1))


def test_weights_that_the_network_computes() -> None:
    """The kernel is what another convolution gives, whose channels lie last."""
    b = ModelBuilder()
    x = b.input("x", (4, 3, 5, 5), np.uint8)
    parameters = b.parameters((0.02, 131), np.uint8)
    taps = (b.constant(drawn((3, 3, 3, 3), np.int8, seed=2)), *b.parameters((0.01, 0), np.int8))
    w = b.node("QLinearConv", x, *parameters, *taps, *parameters)
    y = b.node("QLinearConv", x, *parameters, w, *parameters, *b.parameters((0.13, 120), np.uint8))
    agreed(b.finish(y), drawn((4, 3, 5, 5), np.uint8))


@pytest.mark.parametrize(
    ("weight", "point", "reason"),
    [
        ((4, 3, 3, 3), 1, "input must have 1 * 3 channels, but got 5"),
        ((4, 5, 3), 1, "weight must have 4 dimensions, but got 3"),
    ],
)
def test_what_does_not_fit_is_refused(weight: tuple[int, ...], point: int, reason: str) -> None:
    b = ModelBuilder()
    names = [b.input("x", (1, 5, 6, 6), np.uint8), b.input("w", weight, np.uint8)]
    names += [b.constant(np.array(point, np.uint8))]
    assert reason in refused(b.finish(b.node("ConvInteger", *names), dtype=np.int32))


def test_both_are_not_known() -> None:
    b = ModelBuilder()
    names = [b.input("x", (1, 5, 6, 6), np.uint8), b.input("w", (4, 5, 3, 3), np.uint8), b.input("z", (), np.uint8)]
    content = b.finish(b.node("ConvInteger", *names), dtype=np.int32)
    assert "weight must be constant where the zero point of the data is not" in refused(content)
