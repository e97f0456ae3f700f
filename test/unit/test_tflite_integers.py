"""Means of integers beside LiteRT's reference kernel, and integers of two types."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tflite
from litert import reference
from numpy.typing import NDArray
from tflite_graphs import options

from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

KIND = tflite.BuiltinOperator
OPTIONS = tflite.BuiltinOptions
Array = NDArray[Any]


def check(kind: int, inputs: Sequence[Array], dtype: Any, shape: Sequence[int], *option: Any, known: int = 0) -> None:
    writer, free = ModelWriter("one operator"), len(inputs) - known
    tensors = [writer.tensor(f"x{i}", array.shape, array.dtype.type) for i, array in enumerate(inputs[:free])]
    names = tensors + [writer.constant(f"c{i}", array) for i, array in enumerate(inputs[free:])]
    output = writer.tensor("y", shape, dtype)
    writer.operator(kind, names, output, *option)
    content = writer.finish(tensors, [output])
    (wanted,) = reference(content, inputs[:free])
    module = import_tflite(content)
    (found,) = interpreter.run(module, inputs[:free])
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(compile_module(module)(*inputs[:free]), wanted)


def drawn(seed: int, dtype: Any, *shape: int) -> Array:
    values = np.random.default_rng(seed).integers(-9, 10, shape)
    return (values > 0) if dtype is np.bool_ else values.astype(dtype)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("axes", [[1], [0, 2]])
def test_means(axes: list[int], dtype: Any) -> None:
    """Cut towards zero, of sums that 32 bits do not hold."""
    values = drawn(0, dtype, 3, 7, 5)
    values[:, 0] = values[:, 1] = np.iinfo(np.int32).max
    kept = [extent for axis, extent in enumerate(values.shape) if axis not in axes]
    check(KIND.MEAN, [values, np.array(axes, np.int32)], dtype, kept, OPTIONS.ReducerOptions, options(0), known=1)


def test_types_that_differ_are_refused() -> None:
    writer = ModelWriter("mixed")
    inputs = [writer.tensor("x", (3,), np.int32), writer.tensor("z", (3,), np.int64)]
    output = writer.tensor("y", (3,), np.int32)
    writer.operator(KIND.FLOOR_MOD, inputs, output)
    with pytest.raises(ImportModelError) as caught:
        import_tflite(writer.finish(inputs, [output]))
    assert "inputs must be of one type, but got i32 and i64" in caught.value.render()
