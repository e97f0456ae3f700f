"""What LiteRT's default delegate takes of an operator and what it leaves alone, against LiteRT itself."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tflite
from flatbuffers import Builder
from numpy.typing import NDArray
from recurrent_models import Lstm
from simple_recurrent_models import Svdf

from qdialect.frameworks import litert
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.reader import read_graph
from qdialect.frontends.tflite.writer import ModelWriter, Quantization
from qdialect.reference import interpreter

Array = NDArray[Any]
ROWS, DEPTH, COLUMNS = 40, 16, 40


def adjoint(is_transposed: bool) -> Callable[[Builder], int]:
    def write(builder: Builder) -> int:
        builder.StartObject(3)
        builder.PrependBoolSlot(1, is_transposed, False)
        return builder.EndObject()

    return write


def product(shape: tuple[int, ...], *, is_constant: bool, is_transposed: bool = False, zero_point: int = -7) -> bytes:
    writer = ModelWriter("matrix product")
    lhs = writer.tensor("a", (2, ROWS, DEPTH), np.int8, Quantization((0.021,), (3,)))
    if is_constant:
        values = np.random.default_rng(5).integers(-128, 128, shape).astype(np.int8)
        rhs = writer.constant("b", values, Quantization((0.017,), (0,)))
    else:
        rhs = writer.tensor("b", shape, np.int8, Quantization((0.017,), (zero_point,)))
    result = writer.tensor("y", (2, ROWS, COLUMNS), np.int8, Quantization((0.1862,), (5,)))
    kind = tflite.BuiltinOptions.BatchMatMulOptions
    writer.operator(tflite.BuiltinOperator.BATCH_MATMUL, [lhs, rhs], result, kind, adjoint(is_transposed))
    return writer.finish([lhs] if is_constant else [lhs, rhs], [result])


def drawn(content: bytes, count: int) -> list[list[Array]]:
    random = np.random.default_rng(1)
    shapes = [tensor.shape for tensor in read_graph(content).inputs]
    return [[random.integers(-128, 128, shape).astype(np.int8) for shape in shapes] for _ in range(count)]


def check(content: bytes, samples: list[list[Array]]) -> int:
    """How many elements of the reference kernels differ from the delegate's, which the profile must equal."""
    delegate, kernels = (litert.load(content, 1, is_reference=flag) for flag in (False, True))
    module, different = import_tflite(content, profile="tflite-xnnpack"), 0
    for inputs in samples:
        (wanted,) = delegate(inputs)
        np.testing.assert_array_equal(interpreter.run(module, inputs)[0], wanted)
        different += int(np.count_nonzero(kernels(inputs)[0] != wanted))
    return different


@pytest.mark.parametrize(("shape", "is_transposed"), [((2, DEPTH, COLUMNS), False), ((2, COLUMNS, DEPTH), True)])
def test_products_of_run_time_matrices_are_the_reference_kernels(shape: tuple[int, ...], is_transposed: bool) -> None:
    content = product(shape, is_constant=False, is_transposed=is_transposed)
    assert check(content, drawn(content, 8)) == 0


def test_products_of_run_time_matrices_without_a_zero_point_are_the_delegates() -> None:
    content = product((2, DEPTH, COLUMNS), is_constant=False, zero_point=0)
    assert check(content, drawn(content, 8)) > 0


@pytest.mark.parametrize("shape", [(DEPTH, COLUMNS), (2, DEPTH, COLUMNS)])
def test_products_with_constant_matrices_are_the_delegates(shape: tuple[int, ...]) -> None:
    content = product(shape, is_constant=True)
    assert check(content, drawn(content, 8)) > 0


@pytest.mark.parametrize("model", [Lstm(cells=24), Lstm(has_peepholes=True, width=13), Svdf()])
def test_recurrent_operators_are_the_reference_kernels(model: Lstm | Svdf) -> None:
    content = model.content()
    assert check(content, drawn(content, 8)) == 0
