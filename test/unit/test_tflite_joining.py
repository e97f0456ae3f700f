"""PACK and CONCATENATION of any count of inputs and of every type that tensors have."""

from typing import Any

import numpy as np
import pytest
import tflite
from tflite_graphs import options

from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

KIND = tflite.BuiltinOperator
OPTIONS = tflite.BuiltinOptions
FIRST, OTHER = Quantization((0.5,), (3,)), Quantization((0.25,), (7,))
COUNTS = [1, 17, 33]


def check(writer: ModelWriter, inputs: list[int], output: int, arrays: list[Any], wanted: Any) -> None:
    module = import_tflite(writer.finish(inputs, [output]))
    (found,) = interpreter.run(module, arrays)
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(compile_module(module)(*arrays), wanted)


def drawn(count: int, shape: tuple[int, ...], dtype: Any) -> list[Any]:
    random = np.random.default_rng(count)
    return [random.integers(0, 100, shape).astype(dtype) for _ in range(count)]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_packed(count: int, dtype: Any) -> None:
    writer, arrays = ModelWriter("pack"), drawn(count, (3, 5), dtype)
    parameters = None if dtype is np.float32 else FIRST
    inputs = [writer.tensor(f"x{i}", (3, 5), dtype, parameters) for i in range(count)]
    output = writer.tensor("y", (3, count, 5), dtype, parameters)
    writer.operator(KIND.PACK, inputs, output, OPTIONS.PackOptions, options(count, 1))
    check(writer, inputs, output, arrays, np.stack(arrays, axis=1))


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_joined(count: int, dtype: Any) -> None:
    writer, arrays = ModelWriter("concatenation"), drawn(count, (3, 5), dtype)
    parameters = None if dtype is np.float32 else FIRST
    inputs = [writer.tensor(f"x{i}", (3, 5), dtype, parameters) for i in range(count)]
    output = writer.tensor("y", (3, 5 * count), dtype, parameters)
    writer.operator(KIND.CONCATENATION, inputs, output, OPTIONS.ConcatenationOptions, options(1))
    check(writer, inputs, output, arrays, np.concatenate(arrays, axis=1))


def test_joined_with_parameters_of_their_own() -> None:
    """Half of a quarter step is half the value: ``(x - 7) / 2 + 3``, ties away from zero."""
    writer, arrays = ModelWriter("rescaled"), drawn(20, (2, 3), np.uint8)
    inputs = [writer.tensor(f"x{i}", (2, 3), np.uint8, OTHER if i % 2 else FIRST) for i in range(20)]
    output = writer.tensor("y", (40, 3), np.uint8, FIRST)
    writer.operator(KIND.CONCATENATION, inputs, output, OPTIONS.ConcatenationOptions, options(0))
    halves = [(array.astype(np.float64) - 7) / 2 for array in arrays]
    rescaled = [np.clip(np.sign(half) * np.floor(np.abs(half) + 0.5) + 3, 0, 255) for half in halves]
    wanted = np.concatenate([rescaled[i] if i % 2 else arrays[i] for i in range(20)]).astype(np.uint8)
    check(writer, inputs, output, arrays, wanted)
