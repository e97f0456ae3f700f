"""Float32 pools and transposed convolutions of .tflite files, compared with LiteRT's reference kernels."""

from typing import Any

import numpy as np
import pytest
import tflite
from flatbuffers import Builder
from numpy.typing import NDArray
from tflite_f32_graphs import both

from qdialect.support.diagnostics import ImportModelError

KIND, OPTIONS = tflite.BuiltinOperator, tflite.BuiltinOptions
ACTIVATION, PADDING = tflite.ActivationFunctionType, tflite.Padding
Array = NDArray[Any]


def drawn(seed: int, *shape: int) -> Array:
    return (np.random.default_rng(seed).normal(size=shape) * 3).astype(np.float32)


def pool_options(padding: int, kernel: tuple[int, int], strides: tuple[int, int], activation: int = 0) -> Any:
    def write(builder: Builder) -> int:
        tflite.Pool2DOptionsStart(builder)
        tflite.Pool2DOptionsAddPadding(builder, padding)
        tflite.Pool2DOptionsAddFilterHeight(builder, kernel[0])
        tflite.Pool2DOptionsAddFilterWidth(builder, kernel[1])
        tflite.Pool2DOptionsAddStrideH(builder, strides[0])
        tflite.Pool2DOptionsAddStrideW(builder, strides[1])
        tflite.Pool2DOptionsAddFusedActivationFunction(builder, activation)
        return tflite.Pool2DOptionsEnd(builder)

    return write


@pytest.mark.parametrize("kind", [KIND.MAX_POOL_2D, KIND.AVERAGE_POOL_2D])
@pytest.mark.parametrize(
    ("padding", "kernel", "strides", "shape", "activation"),
    [
        (PADDING.VALID, (2, 3), (2, 1), (2, 3, 5, 5), ACTIVATION.NONE),
        (PADDING.SAME, (3, 3), (2, 2), (2, 4, 4, 5), ACTIVATION.RELU6),
        (PADDING.SAME, (7, 7), (1, 1), (2, 7, 7, 5), ACTIVATION.RELU_N1_TO_1),
        (PADDING.SAME, (1, 1), (3, 2), (2, 3, 4, 5), ACTIVATION.NONE),
    ],
)
def test_pools(kind: int, padding: int, kernel: Any, strides: Any, shape: Any, activation: int) -> None:
    options = OPTIONS.Pool2DOptions, pool_options(padding, kernel, strides, activation)
    found, wanted = both(kind, [drawn(1, 2, 7, 7, 5)], shape, *options)
    np.testing.assert_array_equal(found, wanted)


def test_pools_larger_than_memory_are_refused() -> None:
    options = OPTIONS.Pool2DOptions, pool_options(PADDING.SAME, (2**30, 2**30), (1, 1))
    for kind in (KIND.MAX_POOL_2D, KIND.AVERAGE_POOL_2D):
        with pytest.raises(ImportModelError):
            both(kind, [drawn(1, 1, 3, 3, 2)], (1, 3, 3, 2), *options)


def transposed(padding: int, strides: tuple[int, int], activation: int) -> Any:
    def write(builder: Builder) -> int:
        builder.StartObject(4)
        builder.PrependInt8Slot(0, padding, 0)
        builder.PrependInt32Slot(1, strides[1], 0)
        builder.PrependInt32Slot(2, strides[0], 0)
        builder.PrependInt8Slot(3, activation, 0)
        return builder.EndObject()

    return write


@pytest.mark.parametrize(
    ("padding", "kernel", "strides", "shape", "activation"),
    [
        (PADDING.SAME, (3, 3), (2, 2), (2, 8, 10, 3), ACTIVATION.NONE),
        (PADDING.VALID, (3, 2), (1, 1), (2, 6, 6, 3), ACTIVATION.RELU),
        (PADDING.VALID, (2, 2), (3, 3), (2, 11, 14, 3), ACTIVATION.NONE),
        (PADDING.VALID, (2, 4), (3, 2), (2, 13, 13, 3), ACTIVATION.RELU6),
        (PADDING.SAME, (1, 5), (2, 3), (2, 7, 13, 3), ACTIVATION.NONE),
        (PADDING.VALID, (5, 5), (2, 2), (2, 12, 14, 3), ACTIVATION.NONE),
    ],
)
@pytest.mark.parametrize("has_bias", [False, True])
def test_transposed_convolutions(
    padding: int, kernel: Any, strides: Any, shape: Any, activation: int, has_bias: bool
) -> None:
    """Outputs larger than the full extent too."""
    weight, data = drawn(2, 3, *kernel, 4), drawn(3, 2, 4, 5, 4)
    bias = [drawn(4, 3)] if has_bias else []
    option = OPTIONS.TransposeConvOptions, transposed(padding, strides, activation)
    inputs, names = [data, np.array(shape, np.int32), weight, *bias], [1, 2, 0, *([3] if has_bias else [])]
    found, wanted = both(KIND.TRANSPOSE_CONV, inputs, shape, *option, constants=len(inputs) - 1, order=names)
    np.testing.assert_array_equal(found, wanted)
