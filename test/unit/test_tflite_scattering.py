"""Sums at run-time indices and over segments, compared with LiteRT's reference kernels."""

from typing import Any

import numpy as np
import pytest
import tflite
from numpy.typing import NDArray

from qdialect.frontends import frameworks
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

KIND = tflite.BuiltinOperator
Array = NDArray[Any]
RNG = np.random.default_rng(5)


def check(kind: int, given: list[Array], constants: list[Array], shape: tuple[int, ...], dtype: Any) -> None:
    """The operator reads what is given, then the constants."""
    writer = ModelWriter("one operator")
    tensors = [writer.tensor(f"x{i}", array.shape, array.dtype.type) for i, array in enumerate(given)]
    known = [writer.constant(f"c{i}", array) for i, array in enumerate(constants)]
    output = writer.tensor("y", shape, dtype)
    writer.operator(kind, [*tensors, *known], output)
    content = writer.finish(tensors, [output])
    # SEGMENT_SUM is not among the reference kernels.
    (wanted,) = frameworks.load_litert(content, 1, is_reference=kind != KIND.SEGMENT_SUM)(given)
    module = import_tflite(content)
    np.testing.assert_array_equal(interpreter.run(module, given)[0], wanted)
    np.testing.assert_array_equal(compile_module(module)(*given), wanted)


def drawn(dtype: Any, *shape: int) -> Array:
    values = RNG.integers(-99, 100, shape)
    return (values / 7 if dtype is np.float32 else values).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
@pytest.mark.parametrize(("shape", "depth"), [((4, 3, 5), 1), ((4, 3, 5), 2), ((2, 3), 2)])
def test_scatter_nd(dtype: Any, shape: tuple[int, ...], depth: int) -> None:
    """Equal indices add up."""
    at = (RNG.random((9, depth)) * shape[:depth]).astype(np.int32)
    wanted = np.array(shape, np.int32)
    check(KIND.SCATTER_ND, [at, drawn(dtype, 9, *shape[depth:])], [wanted], shape, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_segment_sum(dtype: Any) -> None:
    check(KIND.SEGMENT_SUM, [drawn(dtype, 6, 4)], [np.array([0, 0, 1, 2, 2, 3], np.int32)], (4, 4), dtype)


@pytest.mark.parametrize("kind", ["SUM", "PROD", "MAX", "MIN"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_unsorted_segments(kind: str, dtype: Any) -> None:
    constants = [np.array([3, 0, 3, 1, 0, 3], np.int32), np.array(5, np.int32)]
    number: int = getattr(KIND, f"UNSORTED_SEGMENT_{kind}")
    check(number, [drawn(dtype, 6, 4)], constants, (5, 4), dtype)
