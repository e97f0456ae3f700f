"""Operators on i32, i64 and boolean tensors, beside LiteRT's reference kernels."""

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
OPTION = {
    KIND.ADD: (OPTIONS.AddOptions, options(0)),
    KIND.SUB: (OPTIONS.SubOptions, options(0)),
    KIND.MUL: (OPTIONS.MulOptions, options(0)),
    KIND.DIV: (OPTIONS.DivOptions, options(0)),
}


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
@pytest.mark.parametrize("kind", [KIND.ADD, KIND.SUB, KIND.MUL, KIND.MAXIMUM, KIND.MINIMUM])
def test_pairs(kind: int, dtype: Any) -> None:
    check(kind, [drawn(0, dtype, 3, 19), drawn(1, dtype, 19)], dtype, (3, 19), *OPTION.get(kind, ()))


@pytest.mark.parametrize("kind", [KIND.DIV, KIND.FLOOR_DIV, KIND.FLOOR_MOD])
def test_quotients(kind: int) -> None:
    divisor = drawn(1, np.int32, 3, 19)
    divisor[divisor == 0] = 4
    check(kind, [drawn(0, np.int32, 3, 19), divisor], np.int32, (3, 19), *OPTION.get(kind, ()))


def test_squared_difference() -> None:
    check(KIND.SQUARED_DIFFERENCE, [drawn(0, np.int32, 3, 19), drawn(1, np.int32, 19)], np.int32, (3, 19))


@pytest.mark.parametrize("kind", [KIND.SUM, KIND.REDUCE_MAX, KIND.REDUCE_MIN])
def test_reductions(kind: int) -> None:
    inputs = [drawn(0, np.int32, 3, 7, 5), np.array([1], np.int32)]
    check(kind, inputs, np.int32, (3, 5), OPTIONS.ReducerOptions, options(0), known=1)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("axes", [[1], [0, 2]])
def test_means(axes: list[int], dtype: Any) -> None:
    """Cut towards zero, of sums that 32 bits do not hold."""
    values = drawn(0, dtype, 3, 7, 5)
    values[:, 0] = values[:, 1] = np.iinfo(np.int32).max
    kept = [extent for axis, extent in enumerate(values.shape) if axis not in axes]
    check(KIND.MEAN, [values, np.array(axes, np.int32)], dtype, kept, OPTIONS.ReducerOptions, options(0), known=1)


def test_signs() -> None:
    check(KIND.SIGN, [drawn(0, np.int32, 3, 19)], np.int32, (3, 19))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.bool_])
def test_concatenations(dtype: Any) -> None:
    inputs = [drawn(0, dtype, 2, 3, 5), drawn(1, dtype, 2, 4, 5), drawn(2, dtype, 2, 1, 5)]
    option = OPTIONS.ConcatenationOptions, options(-2)
    check(KIND.CONCATENATION, inputs, dtype, (2, 8, 5), *option)
    check(KIND.CONCATENATION, inputs, dtype, (2, 8, 5), *option, known=1)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32])
@pytest.mark.parametrize(
    "kind", [KIND.EQUAL, KIND.NOT_EQUAL, KIND.LESS, KIND.LESS_EQUAL, KIND.GREATER, KIND.GREATER_EQUAL]
)
def test_comparisons(kind: int, dtype: Any) -> None:
    check(kind, [drawn(0, dtype, 3, 19), drawn(1, dtype, 19)], np.bool_, (3, 19))


@pytest.mark.parametrize("kind", [KIND.LOGICAL_AND, KIND.LOGICAL_OR, KIND.LOGICAL_NOT])
def test_logic(kind: int) -> None:
    inputs = [drawn(0, np.bool_, 3, 19), drawn(1, np.bool_, 3, 19)]
    check(kind, inputs[: 1 if kind == KIND.LOGICAL_NOT else 2], np.bool_, (3, 19))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32])
def test_select(dtype: Any) -> None:
    check(KIND.SELECT_V2, [drawn(0, np.bool_, 3, 1), drawn(1, dtype, 3, 19), drawn(2, dtype, 19)], dtype, (3, 19))


@pytest.mark.parametrize("target", [np.float32, np.int32, np.int64])
def test_casts_of_booleans(target: Any) -> None:
    check(KIND.CAST, [drawn(0, np.bool_, 3, 19)], target, (3, 19))


def test_types_that_differ_are_refused() -> None:
    writer = ModelWriter("mixed")
    inputs = [writer.tensor("x", (3,), np.int32), writer.tensor("z", (3,), np.int64)]
    output = writer.tensor("y", (3,), np.int32)
    writer.operator(KIND.FLOOR_MOD, inputs, output)
    with pytest.raises(ImportModelError) as caught:
        import_tflite(writer.finish(inputs, [output]))
    assert "inputs must be of one type, but got i32 and i64" in caught.value.render()
