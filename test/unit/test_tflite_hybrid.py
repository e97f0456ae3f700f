"""Float32 data and i8 weights: quantized when the network runs, with the bits of LiteRT's reference kernels."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tflite
from flatbuffers import Builder
from litert import reference
from numpy.typing import NDArray
from together import check_compiled, variants_together
from tolerances import assert_floats_within

from qdialect.frontends import frameworks
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from qdialect.reference import interpreter
from qdialect.support.diagnostics import ImportModelError

KIND = tflite.BuiltinOperator
OPTIONS = tflite.BuiltinOptions
RELU = tflite.ActivationFunctionType.RELU
Array = NDArray[Any]


def drawn(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(1, 3, shape).astype(np.float32)


def quantized_weight(writer: ModelWriter, shape: Sequence[int], axis: int, scales: int) -> int:
    """With `scales` different scales, or as many equal ones where that is negative."""
    random = np.random.default_rng(7)
    data = random.integers(-127, 128, shape).astype(np.int8)
    count = abs(scales)
    found = random.uniform(0.01, 0.05, count) if scales > 0 else np.full(count, 0.02)
    parameters = Quantization(tuple(found.tolist()), (0,) * count, axis)
    return writer.constant("weight", data, parameters)


def check(content: bytes, *inputs: Array) -> None:
    module = import_tflite(content)
    (wanted,) = reference(content, inputs)
    np.testing.assert_array_equal(interpreter.run(module, inputs)[0], wanted)
    check_compiled(module, "host", [inputs], [[wanted]])


def dense_options(is_asymmetric: bool, activation: int = 0) -> Callable[[Builder], int]:
    def write(builder: Builder) -> int:
        builder.StartObject(4)
        builder.PrependInt8Slot(0, activation, 0)
        builder.PrependBoolSlot(3, is_asymmetric, False)
        return builder.EndObject()

    return write


def dense(rows: int, is_asymmetric: bool, scales: int = 5, has_bias: bool = True, activation: int = 0) -> bytes:
    writer = ModelWriter("fully connected")
    x, weight = writer.tensor("x", (rows, 37), np.float32), quantized_weight(writer, (5, 37), 0, scales)
    inputs = [x, weight, *([writer.constant("bias", drawn(1, 5))] if has_bias else [])]
    y = writer.tensor("y", (rows, 5), np.float32)
    option = OPTIONS.FullyConnectedOptions, dense_options(is_asymmetric, activation)
    writer.operator(KIND.FULLY_CONNECTED, inputs, y, *option)
    return writer.finish([x], [y])


@variants_together
@pytest.mark.parametrize("is_asymmetric", [False, True])
@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize("scales", [1, 5])
def test_fully_connected(is_asymmetric: bool, rows: int, scales: int) -> None:
    check(dense(rows, is_asymmetric, scales), drawn(2, rows, 37))


@variants_together
@pytest.mark.parametrize("is_asymmetric", [False, True])
def test_fully_connected_without_a_bias_and_with_an_activation(is_asymmetric: bool) -> None:
    check(dense(3, is_asymmetric, has_bias=False, activation=RELU), drawn(3, 3, 37))


@variants_together
@pytest.mark.parametrize("is_asymmetric", [False, True])
def test_rows_whose_ranges_are_special(is_asymmetric: bool) -> None:
    """Nothing but zero; of one sign; as far to either side, where the zero point is a tie; tiny; far apart."""
    x = drawn(4, 6, 37)
    x[0], x[1], x[2] = 0, np.abs(x[1]) + 1, -np.abs(x[2]) - 1
    x[3] = np.clip(x[3], -2.5, 2.5)
    x[3, :2], x[4], x[5, 0] = (-2.5, 2.5), x[4] * np.float32(1e-30), 1e6
    check(dense(6, is_asymmetric), x)


def test_zero_points_of_many_ties() -> None:
    sides = np.random.default_rng(5).uniform(0.1, 9, 500).astype(np.float32)
    x = np.zeros((500, 37), np.float32)
    x[:, 0], x[:, 1], x[:, 2] = sides, -sides, sides / 3
    check(dense(500, True), x)


def near_ties(shape: Sequence[int], axes: tuple[int, ...], steps: int) -> Array:
    """Numbers within a few last places of halves of quantization steps, which are `steps` in a range, and its ends."""
    random = np.random.default_rng(8)
    kept = [1 if axis in axes else extent for axis, extent in enumerate(shape)]
    low, high = random.uniform(-3, -0.1, kept), random.uniform(0.1, 3, kept)
    low = low if steps == 255 else -high
    step = (high - low) / steps if steps == 255 else high / steps
    x = ((random.integers(-30, 30, shape) + 0.5) * step).astype(np.float32)
    x = np.clip((x.view(np.int32) + random.integers(-2, 3, shape).astype(np.int32)).view(np.float32), low, high)
    flat = np.moveaxis(x, axes, range(-len(axes), 0))
    rows = np.ascontiguousarray(flat).reshape(*flat.shape[: -len(axes)], -1)
    rows[..., 0], rows[..., 1] = np.squeeze(low, axes), np.squeeze(high, axes)
    return np.moveaxis(rows.reshape(flat.shape), range(-len(axes), 0), axes).astype(np.float32)


@variants_together
@pytest.mark.parametrize("is_asymmetric", [False, True])
def test_rows_of_near_ties(is_asymmetric: bool) -> None:
    """LiteRT rounds eight numbers at once, and what is left of a row one by one."""
    check(dense(200, is_asymmetric), near_ties((200, 37), (1,), 255 if is_asymmetric else 127))


@variants_together
@pytest.mark.parametrize("is_asymmetric", [False, True])
def test_what_is_no_number(is_asymmetric: bool) -> None:
    """It is passed over where the range is found, and goes to an end of the range."""
    x = drawn(9, 4, 37)
    x[0, 3], x[1, 9], x[2, 5], x[3, 7] = np.nan, np.nan, np.inf, -np.inf
    x[1] -= 6
    check(dense(4, is_asymmetric), x)


def window_options(stride: int, padding: int, slots: int, dilation: int = 1) -> Callable[[Builder], int]:
    """Of CONV_2D, whose activation is field 3, or DEPTHWISE_CONV_2D with the multiplier before it."""

    def write(builder: Builder) -> int:
        builder.StartObject(slots)
        builder.PrependInt8Slot(0, padding, 0)
        builder.PrependInt32Slot(1, stride, 0)
        builder.PrependInt32Slot(2, stride, 0)
        if slots == 7:
            builder.PrependInt32Slot(3, 1, 0)
        for slot in (slots - 2, slots - 1):
            builder.PrependInt32Slot(slot, dilation, 1)
        return builder.EndObject()

    return write


def convolution(
    kind: int,
    batch: int,
    stride: int,
    padding: int,
    scales: int = 6,
    channels: int = 6,
    depth: int = 6,
    width: int = 3,
) -> bytes:
    writer, is_depthwise = ModelWriter("convolution"), kind == KIND.DEPTHWISE_CONV_2D
    x = writer.tensor("x", (batch, 9, 7, 6), np.float32)
    shape = (1, width, width, 6) if is_depthwise else (channels, width, width, depth)
    weight = quantized_weight(writer, shape, 3 if is_depthwise else 0, scales)
    size = [-(-(extent if padding == 0 else extent - width + 1) // stride) for extent in (9, 7)]
    y = writer.tensor("y", (batch, *size, channels), np.float32)
    table = OPTIONS.DepthwiseConv2DOptions if is_depthwise else OPTIONS.Conv2DOptions
    inputs = [x, weight, writer.constant("bias", drawn(1, channels))]
    writer.operator(kind, inputs, y, table, window_options(stride, padding, 7 if is_depthwise else 6))
    return writer.finish([x], [y])


@variants_together
@pytest.mark.parametrize("kind", [KIND.CONV_2D, KIND.DEPTHWISE_CONV_2D])
@pytest.mark.parametrize(("batch", "stride", "padding"), [(1, 1, 0), (1, 2, 1), (3, 2, 0)])
def test_convolutions(kind: int, batch: int, stride: int, padding: int) -> None:
    check(convolution(kind, batch, stride, padding), drawn(6, batch, 9, 7, 6))


@variants_together
@pytest.mark.parametrize(("batch", "stride", "padding"), [(1, 1, 0), (1, 2, 1), (3, 2, 0)])
@pytest.mark.parametrize("channels", [6, 1])
def test_convolutions_of_one_scale(channels: int, batch: int, stride: int, padding: int) -> None:
    check(convolution(KIND.CONV_2D, batch, stride, padding, 1, channels), drawn(6, batch, 9, 7, 6))


@variants_together
@pytest.mark.parametrize("kind", [KIND.CONV_2D, KIND.DEPTHWISE_CONV_2D])
def test_convolutions_of_near_ties(kind: int) -> None:
    check(convolution(kind, 2, 1, 0), near_ties((2, 9, 7, 6), (1, 2, 3), 255))


@variants_together
@pytest.mark.parametrize("kind", [KIND.CONV_2D, KIND.DEPTHWISE_CONV_2D])
def test_scales_by_channel_that_are_all_the_same(kind: int) -> None:
    """A convolution of LiteRT compares them, and quantizes without a zero point then."""
    check(convolution(kind, 1, 1, 0, -6), drawn(6, 1, 9, 7, 6))


def test_a_depthwise_convolution_of_one_scale_is_refused() -> None:
    with pytest.raises(ImportModelError) as caught:
        import_tflite(convolution(KIND.DEPTHWISE_CONV_2D, 1, 1, 0, scales=1))
    assert "weight must have a scale for each of 6 channels, but got 1" in caught.value.render()


def matrix_options(is_transposed: bool, is_asymmetric: bool) -> Callable[[Builder], int]:
    def write(builder: Builder) -> int:
        builder.StartObject(3)
        builder.PrependBoolSlot(1, is_transposed, False)
        builder.PrependBoolSlot(2, is_asymmetric, False)
        return builder.EndObject()

    return write


def product(shape: tuple[int, ...], is_transposed: bool, is_asymmetric: bool, scales: int = 1) -> bytes:
    writer, axis = ModelWriter("matrix product"), len(shape) - (2 if is_transposed else 1)
    x, weight = writer.tensor("x", (2, 4, 16), np.float32), quantized_weight(writer, shape, axis, scales)
    y = writer.tensor("y", (2, 4, 5), np.float32)
    option = OPTIONS.BatchMatMulOptions, matrix_options(is_transposed, is_asymmetric)
    writer.operator(KIND.BATCH_MATMUL, [x, weight], y, *option)
    return writer.finish([x], [y])


@variants_together
@pytest.mark.parametrize("is_asymmetric", [False, True])
@pytest.mark.parametrize(("shape", "scales"), [((16, 5), 5), ((2, 16, 5), 1), ((2, 16, 5), 5), ((1, 16, 5), 1)])
def test_matrix_products(shape: tuple[int, ...], scales: int, is_asymmetric: bool) -> None:
    check(product(shape, is_transposed=False, is_asymmetric=is_asymmetric, scales=scales), drawn(7, 2, 4, 16))


@variants_together
@pytest.mark.parametrize(("shape", "scales"), [((5, 16), 1), ((2, 5, 16), 5)])
def test_products_with_transposed_matrices(shape: tuple[int, ...], scales: int) -> None:
    check(product(shape, is_transposed=True, is_asymmetric=True, scales=scales), drawn(7, 2, 4, 16))


@variants_together
@pytest.mark.parametrize("index", range(9))
def test_the_delegate(index: int) -> None:
    """It has one way to quantize; a last place may differ, as its multiply-adds are fused where the CPU has them."""
    content, shape = [
        (dense(5, is_asymmetric=False), (5, 37)),
        (dense(5, is_asymmetric=True, scales=1, has_bias=False, activation=RELU), (5, 37)),
        (convolution(KIND.CONV_2D, 2, 1, 0), (2, 9, 7, 6)),
        (convolution(KIND.CONV_2D, 1, 2, 1, scales=1), (1, 9, 7, 6)),
        (convolution(KIND.CONV_2D, 2, 1, 0, width=1), (2, 9, 7, 6)),
        (convolution(KIND.CONV_2D, 1, 2, 0, width=1), (1, 9, 7, 6)),
        (convolution(KIND.CONV_2D, 1, 1, 0, depth=3, width=1), (1, 9, 7, 6)),
        (convolution(KIND.DEPTHWISE_CONV_2D, 1, 1, 0), (1, 9, 7, 6)),
        (product((2, 5, 16), is_transposed=True, is_asymmetric=False, scales=5), (2, 4, 16)),
    ][index]
    x = near_ties(shape, (len(shape) - 1,), 255)
    (wanted,) = frameworks.load_litert(content, 1, is_reference=False)([x])
    found = interpreter.run(import_tflite(content, profile="tflite-xnnpack"), [x])[0]
    largest = np.abs(wanted).max()
    assert_floats_within(found / largest, wanted / largest, "network")


@variants_together
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_weights_alone(axis: int | None, dtype: Any) -> None:
    """Float products with constants that a node makes of 8-bit ones, with a scale or one along an axis."""
    writer, random = ModelWriter("weights alone"), np.random.default_rng(7)
    count = 1 if axis is None else (5, 37)[axis]
    low, zero_points = (-127, (0,) * count) if dtype is np.int8 else (0, (128,) * count)
    scales = tuple(random.uniform(0.01, 0.05, count).tolist())
    held = random.integers(low, low + 255, (5, 37)).astype(dtype)
    narrow = writer.constant("narrow", held, Quantization(scales, zero_points, axis or 0))
    x, y = writer.tensor("x", (3, 37), np.float32), writer.tensor("y", (3, 5), np.float32)
    weight = writer.tensor("w", (5, 37), np.float32)
    writer.operator(KIND.DEQUANTIZE, [narrow], weight)
    writer.operator(KIND.FULLY_CONNECTED, [x, weight, -1], y, OPTIONS.FullyConnectedOptions, dense_options(False))
    check(writer.finish([x], [y]), drawn(8, 3, 37))
