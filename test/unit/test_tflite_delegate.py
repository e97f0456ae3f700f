"""What LiteRT's default delegate takes of an operator and what it leaves alone, against LiteRT itself."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tflite
from flatbuffers import Builder
from numpy.typing import NDArray
from recurrent_models import Lstm
from simple_recurrent_models import Svdf, table
from tflite_operators import Given, Option, Result, one_operator
from together import check_compiled, variants_together

from qdialect.frontends import frameworks
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.reader import read_graph
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter, Quantization
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

Array = NDArray[Any]
ROWS, DEPTH, COLUMNS = 40, 16, 40

KIND, OPTIONS = tflite.BuiltinOperator, tflite.BuiltinOptions


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
    delegate, kernels = (frameworks.load_litert(content, 1, is_reference=flag) for flag in (False, True))
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


def keeps_dimensions(builder: Builder) -> int:
    builder.StartObject(1)
    builder.PrependBoolSlot(0, True, False)
    return builder.EndObject()


def mean(dtype: type[np.generic], scales: tuple[float, float], points: tuple[int, int]) -> bytes:
    writer, shape = ModelWriter("mean"), (1, 7, 7, 576)
    before, after = (Quantization((scale,), (point,)) for scale, point in zip(scales, points, strict=True))
    data = writer.tensor("x", shape, dtype, before)
    axes = writer.constant("axes", np.array([1, 2], np.int32))
    result = writer.tensor("y", (shape[0], 1, 1, shape[3]), dtype, after)
    kind = tflite.BuiltinOptions.ReducerOptions
    writer.operator(tflite.BuiltinOperator.MEAN, [data, axes], result, kind, keeps_dimensions)
    return writer.finish([data], [result])


def of_sums(sums: Array, count: int) -> Array:
    """Columns of `count` elements that add up to the sums."""
    whole, rest = np.divmod(sums, count)
    return whole + (np.arange(count)[:, None] < rest)


@pytest.mark.parametrize(
    "scales",
    [
        (0.0031957149039953947, 0.003083461197093129),
        (0.0031957156024873257, 0.00308346189558506),
        (0.0031957163009792566, 0.0030834549106657505),
        (0.0031957176979631186, 0.0030834556091576815),
    ],
)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_means_that_are_near_ties(scales: tuple[float, float], dtype: type[np.generic]) -> None:
    """Of all sums those whose means are the nearest to half-way between two quantized values."""
    low, high, points = (0, 255, (83, 83)) if dtype is np.uint8 else (-128, 127, (-45, -45))
    sums = np.arange(low * 49, high * 49 + 1)
    exact = (sums - 49 * points[0]) / 49 * scales[0] / scales[1]
    sums = sums[np.argsort(np.abs(exact - np.floor(exact) - 0.5))[:576]]
    content = mean(dtype, scales, points)
    values = of_sums(sums, 49).astype(dtype).reshape(1, 7, 7, 576)
    check(content, [[values]])
    module = import_tflite(content, profile="tflite-xnnpack")
    np.testing.assert_array_equal(compile_module(module)(values), interpreter.run(module, [values])[0])


def delegated(kind: int, inputs: list[Given], output: Result, option: Option) -> None:
    """The operator with the delegate's arithmetic has the bits of LiteRT as desktops run it."""
    content = one_operator(kind, inputs, [output], option)
    arrays = [one.data for one in inputs if not one.is_constant]
    wanted = frameworks.load_litert(content, 1, is_reference=False)(arrays)
    module = import_tflite(content, profile="tflite-xnnpack")
    np.testing.assert_array_equal(interpreter.run(module, arrays)[0], wanted[0])
    check_compiled(module, "host", [arrays], [wanted])


def drawn_bytes(dtype: Any, *shape: int) -> NDArray[Any]:
    ends = np.iinfo(dtype)
    return np.random.default_rng(sum(shape)).integers(ends.min, ends.max + 1, shape).astype(dtype)


@variants_together
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("scales", [(0.01, 0.1), (0.01, 0.31), (0.03, 0.077), (0.01, 0.01)])
def test_sums_over_axes(scales: tuple[float, float], dtype: type[np.generic]) -> None:
    points = (3, -5) if dtype is np.int8 else (130, 7)
    known = [Quantization((scale,), (point,)) for scale, point in zip(scales, points, strict=True)]
    axes = Given(np.array([1], np.int32), is_constant=True)
    inputs = [Given(drawn_bytes(dtype, 700, 7), quantization=known[0]), axes]
    delegated(KIND.SUM, inputs, Result((700,), dtype, known[1]), (OPTIONS.ReducerOptions, table({}, 1)))


@variants_together
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("weight_point", [0, 5])
@pytest.mark.parametrize("scale", [0.05, 0.137, 1e-4])
def test_dense_products_of_run_time_weights(scale: float, weight_point: int, dtype: type[np.generic]) -> None:
    """The delegate leaves them to a kernel that rounds twice, ties up; factors of more than one, and of bytes alone."""
    data = Given(drawn_bytes(dtype, 90, 37), quantization=Quantization((0.02,), (3,)))
    weight = Given(drawn_bytes(dtype, 19, 37), quantization=Quantization((0.01,), (weight_point,)))
    output = Result((90, 19), dtype, Quantization((scale,), (7,)))
    delegated(KIND.FULLY_CONNECTED, [data, weight], output, (OPTIONS.FullyConnectedOptions, table({}, 1)))
