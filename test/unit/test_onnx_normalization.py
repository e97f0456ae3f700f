"""Normalizations of ONNX models: against formulas, between quantizations and in float32, interpreted and compiled."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx_graphs import ModelBuilder, codes_of, drawn, f32_values

from qdialect.frontends.onnx import import_onnx
from qdialect.pipeline import PassManager
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

Array = NDArray[Any]
X, Y = (0.043, 117), (0.031, 90)


def run_both(content: bytes, *inputs: Array) -> Array:
    """What the reference and compiled code give, bit for bit the same."""
    module = import_onnx(content)
    (wanted,) = interpreter.run(module, inputs)
    for target in ("host", "generic"):
        np.testing.assert_array_equal(compile_module(module, target=target)(*inputs), wanted)
    return wanted


def dequantized_constant(b: ModelBuilder, dtype: type[np.generic], count: int, seed: int) -> tuple[str, Array]:
    """The name and the f32 values of a constant that goes through a DequantizeLinear."""
    codes, scale = drawn((count,), np.int8, seed).astype(dtype), np.float32(0.011)
    name = b.node("DequantizeLinear", b.constant(codes), b.constant(float(scale)), b.constant(np.zeros((), dtype)))
    return name, codes.astype(np.float32) * scale


def batch_normalized(x: Array, parameters: list[Array], epsilon: float) -> Array:
    """In the order of ONNX Runtime's kernel, every operation in float32; channels are dimension 1."""
    scale, bias, mean, variance = parameters
    factor = (np.float32(1) / np.sqrt(variance + np.float32(epsilon))) * scale
    offset = bias - mean * factor
    shape = (-1, *(1 for _ in x.shape[2:]))
    return x * factor.reshape(shape) + offset.reshape(shape)


def batch_parameters(b: ModelBuilder, channels: int) -> tuple[list[str], list[Array]]:
    """As a quantizer leaves them: scale and bias go through a DequantizeLinear, mean and variance are floats."""
    scale, bias = dequantized_constant(b, np.int8, channels, 1), dequantized_constant(b, np.int32, channels, 2)
    rng = np.random.default_rng(3)
    mean, variance = rng.normal(size=channels).astype(np.float32), rng.uniform(0.1, 3, channels).astype(np.float32)
    names = [scale[0], bias[0], b.constant(mean), b.constant(variance)]
    return names, [scale[1], bias[1], mean, variance]


@pytest.mark.parametrize("shape", [(2, 19, 5, 7), (1, 64, 9, 9), (4, 19), (2, 19, 33)])
def test_batch_normalization_between_quantizations(shape: tuple[int, ...]) -> None:
    b = ModelBuilder()
    names, arrays = batch_parameters(b, shape[1])
    data = b.dequantize(b.input("x", shape, np.uint8), X)
    content = b.finish(b.quantize(b.node("BatchNormalization", data, *names), Y))
    x = drawn(shape, np.uint8)
    np.testing.assert_array_equal(run_both(content, x), codes_of(batch_normalized(f32_values(x, X), arrays, 1e-5), Y))


def test_batch_normalization_of_floats_rounds_as_onnx_runtime() -> None:
    b, shape = ModelBuilder(), (2, 19, 5, 7)
    names, arrays = batch_parameters(b, 19)
    content = b.finish(b.node("BatchNormalization", b.input("x", shape), *names, epsilon=0.25), dtype=np.float32)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    np.testing.assert_array_equal(run_both(content, x), batch_normalized(x, arrays, 0.25))


def test_a_batch_normalization_holds_an_entry_for_each_channel_alone() -> None:
    """Not for each element: the constants of a network with large images would be larger than its weights."""
    b, shape = ModelBuilder(), (1, 16, 64, 64)
    names, _ = batch_parameters(b, 16)
    data = b.dequantize(b.input("x", shape, np.uint8), X)
    module = import_onnx(b.finish(b.quantize(b.node("BatchNormalization", data, *names), Y)))
    assert compile_module(module).constants_bytes < 4096


def test_no_transpose_stands_between_convolutions_and_batch_normalizations() -> None:
    b, shape = ModelBuilder(), (1, 3, 8, 8)
    first, second = (b.weight(drawn((8, n, 1, 1), np.int8, n), [0.01] * 8) for n in (3, 8))
    data = b.node("Conv", b.dequantize(b.input("x", shape, np.uint8), X), first)
    names, _ = batch_parameters(b, 8)
    normal = b.node("BatchNormalization", b.dequantize(b.quantize(data, X), X), *names)
    result = b.node("Conv", b.dequantize(b.quantize(normal, Y), Y), second)
    module = import_onnx(b.finish(b.quantize(result, X)))
    PassManager.parse("fuse-qnn").run(module)
    # Those of the function's argument and result.
    assert str(module).count("qnn.transpose") == 2
