"""Operators between float32 tensors, beside LiteRT's reference kernels."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tflite
from flatbuffers import Builder
from numpy.typing import NDArray
from tflite_f32_graphs import both, compiled

from qdialect.frontends import frameworks
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter

KIND = tflite.BuiltinOperator
OPTIONS = tflite.BuiltinOptions
Array = NDArray[Any]


def flags(*entries: bool) -> Callable[[Builder], int]:
    def write(builder: Builder) -> int:
        builder.StartObject(len(entries))
        for slot, entry in enumerate(entries):
            builder.PrependBoolSlot(slot, entry, False)
        return builder.EndObject()

    return write


def slope(alpha: float) -> Callable[[Builder], int]:
    def write(builder: Builder) -> int:
        builder.StartObject(1)
        builder.PrependFloat32Slot(0, alpha, 0.0)
        return builder.EndObject()

    return write


def drawn(seed: int, *shape: int) -> Array:
    return (np.random.default_rng(seed).normal(size=shape) * 3).astype(np.float32)


X = drawn(0, 3, 19)


@pytest.mark.parametrize("shape", [(19,), (3, 1), (3, 19)])
def test_prelu(shape: tuple[int, ...]) -> None:
    found, wanted = both(KIND.PRELU, [X, drawn(1, *shape)], X.shape, constants=1)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", [KIND.SQUARED_DIFFERENCE, KIND.FLOOR_DIV, KIND.FLOOR_MOD])
@pytest.mark.parametrize("shape", [(19,), (3, 1), (3, 19)])
def test_pairs(kind: int, shape: tuple[int, ...]) -> None:
    found, wanted = both(kind, [X, drawn(2, *shape)], X.shape)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", [KIND.SUM, KIND.MEAN])
def test_sums_of_long_rows_are_taken_in_order(kind: int) -> None:
    inputs = [drawn(6, 5, 100), np.array([1], np.int32)]
    found, wanted = both(kind, inputs, (5,), OPTIONS.ReducerOptions, flags(False), constants=1)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("columns", [10, 100])
def test_softmax_rounds_exponentials_once_and_adds_in_order(columns: int) -> None:
    writer, rows = ModelWriter("softmax"), drawn(7, 50, columns)
    x, y = (writer.tensor(name, rows.shape, np.float32) for name in "xy")
    writer.operator(KIND.SOFTMAX, [x], y, OPTIONS.SoftmaxOptions, slope(1.0))
    raised = np.exp((rows - rows.max(axis=1, keepdims=True)).astype(np.float64)).astype(np.float32)
    total = np.add.accumulate(raised, axis=1, dtype=np.float32)[:, -1:]
    content = writer.finish([x], [y])
    found = compiled(content, [rows])
    np.testing.assert_array_equal(found, raised / total)
    # The C library's exponentials are not all rounded to the nearest number.
    (wanted,) = frameworks.load_litert(content, 1, is_reference=True)([rows])
    assert np.mean(found != wanted) < 0.01


@pytest.mark.parametrize(
    ("lhs", "rhs", "adjoints", "shape"),
    [
        ((5, 7), (7, 3), (False, False), (5, 3)),
        ((2, 5, 7), (2, 7, 3), (False, False), (2, 5, 3)),
        ((2, 7, 5), (2, 3, 7), (True, True), (2, 5, 3)),
        ((2, 1, 5, 7), (4, 3, 7), (False, True), (2, 4, 5, 3)),
        ((2, 5, 7), (7, 3), (False, False), (2, 5, 3)),
        ((5, 7), (2, 7, 3), (False, False), (2, 5, 3)),
    ],
)
@pytest.mark.parametrize("constants", [0, 1])
def test_batch_matmul(lhs: Any, rhs: Any, adjoints: Any, shape: Any, constants: int) -> None:
    inputs = [drawn(4, *lhs), drawn(5, *rhs)]
    option = OPTIONS.BatchMatMulOptions, flags(*adjoints)
    found, wanted = both(KIND.BATCH_MATMUL, inputs, shape, *option, constants=constants)
    np.testing.assert_array_equal(found, wanted)
