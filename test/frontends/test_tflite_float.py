"""Operators between float32 tensors, against what TFLite's reference kernels gave (recorded)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import recordings
import tflite
from compiled_ops import variants_together
from numpy.typing import NDArray
from tflite_graphs import Given, Result, both, check_operator, compiled, one_operator, options_of
from tolerances import assert_floats_within

import qdialect
from qdialect.frontends import frameworks
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

Array = NDArray[Any]
CASES = recordings.read_family("f32_tflite")
# Units of the last place of the larger term: a C library's functions are not always rounded correctly.
DISTANCES = {"network": 0, "softmax": 0, "arithmetic": 0, "functions": 32}


@pytest.mark.parametrize("name", DISTANCES)
def test_recorded_results(name: str) -> None:
    recorded = CASES[name]
    module = import_tflite(recorded.model)
    (data,), (wanted,) = recorded.inputs, recorded.outputs
    (found,) = interpreter.run(module, [data])
    distance = np.abs(found.view(np.int32).astype(np.int64) - wanted.view(np.int32))
    assert distance.max() <= DISTANCES[name]
    for target in ("host", "generic"):
        np.testing.assert_array_equal(compile_module(module, target=target)(data), found)


# Operators between float32 tensors, compared with LiteRT's reference kernels.

KIND = tflite.BuiltinOperator
OPTIONS = tflite.BuiltinOptions


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
    found, wanted = both(kind, inputs, (5,), *options_of("Reducer", False), constants=1)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("columns", [10, 100])
def test_softmax_rounds_exponentials_once_and_adds_in_order(columns: int) -> None:
    writer, rows = ModelWriter("softmax"), drawn(7, 50, columns)
    x, y = (writer.tensor(name, rows.shape, np.float32) for name in "xy")
    writer.operator(KIND.SOFTMAX, [x], y, *options_of("Softmax", 1.0))
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
    option = options_of("BatchMatMul", *adjoints)
    found, wanted = both(KIND.BATCH_MATMUL, inputs, shape, *option, constants=constants)
    np.testing.assert_array_equal(found, wanted)


# Convolutions of float32 volumes and normalizations of float32 rows, compared with LiteRT's reference kernels.

SAME, VALID = 0, 1


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def windows(padding: int, strides: tuple[int, int, int], dilation: tuple[int, int, int], activation: int = 0) -> Any:
    """Options: padding, strides D, W and H, activation, dilation D, W and H."""
    numbers, apart = ((n[0], n[2], n[1]) for n in (strides, dilation))
    return options_of("Conv3D", padding, *numbers, activation, *apart)


CONVOLUTIONS = [
    ((1, 5, 7, 6, 3), (3, 3, 3, 3, 4), SAME, (1, 1, 1), (1, 1, 1), (1, 5, 7, 6, 4)),
    ((2, 6, 7, 9, 2), (2, 3, 4, 2, 5), VALID, (2, 1, 3), (1, 1, 1), (2, 3, 5, 2, 5)),
    ((1, 7, 9, 8, 1), (2, 3, 2, 1, 3), VALID, (1, 2, 1), (2, 1, 3), (1, 5, 4, 5, 3)),
    ((1, 5, 5, 7, 2), (3, 2, 3, 2, 1), SAME, (2, 3, 2), (1, 1, 1), (1, 3, 2, 4, 1)),
]


@variants_together
@pytest.mark.parametrize(("data", "weight", "padding", "strides", "dilation", "shape"), CONVOLUTIONS)
@pytest.mark.parametrize("has_bias", [False, True])
def test_convolutions(
    data: Any, weight: Any, padding: int, strides: Any, dilation: Any, shape: Any, has_bias: bool
) -> None:
    inputs = [Given(normal(*data)), Given(normal(*weight, seed=1), is_constant=True)]
    inputs += [Given(normal(weight[4], seed=2), is_constant=True)] if has_bias else []
    option = windows(padding, strides, dilation, activation=int(has_bias))
    check_operator(KIND.CONV_3D, inputs, [Result(shape, np.float32)], option)


TRANSPOSED = [
    ((1, 3, 4, 2, 3), (2, 2, 2, 5, 3), VALID, (2, 2, 2), (1, 6, 8, 4, 5)),
    ((2, 3, 3, 4, 2), (3, 3, 2, 4, 2), SAME, (2, 1, 3), (2, 6, 3, 12, 4)),
    ((1, 2, 3, 3, 4), (3, 2, 4, 1, 4), VALID, (1, 3, 2), (1, 4, 9, 8, 1)),
]


@variants_together
@pytest.mark.parametrize(("data", "weight", "padding", "strides", "shape"), TRANSPOSED)
@pytest.mark.parametrize("has_bias", [False, True])
def test_transposed_convolutions(
    data: Any, weight: Any, padding: int, strides: Any, shape: Any, has_bias: bool
) -> None:
    inputs = [Given(np.array(shape, np.int32), is_constant=True), Given(normal(*weight), is_constant=True)]
    inputs += [Given(normal(*data, seed=1))]
    inputs += [Given(normal(weight[3], seed=2), is_constant=True)] if has_bias else []
    option = windows(padding, strides, (1, 1, 1))
    check_operator(KIND.CONV_3D_TRANSPOSE, inputs, [Result(shape, np.float32)], option)


@variants_together
@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 4, 33)])
def test_l2_normalization(shape: tuple[int, ...]) -> None:
    """One row is zero, one nearly."""
    data = normal(*shape)
    if len(shape) > 1:
        data[0], data[1] = 0, data[1] * 1e-9
    check_operator(KIND.L2_NORMALIZATION, [Given(data)], [Result(shape, np.float32)], options_of("L2Norm"))


@pytest.mark.parametrize(("kernel", "padding", "shape"), [(3, SAME, (1, 4, 4, 5)), (2, VALID, (1, 3, 3, 5))])
def test_l2_pools(kernel: int, padding: int, shape: tuple[int, ...]) -> None:
    option = options_of("Pool2D", padding, 2, 2, kernel, kernel)
    check_operator(KIND.L2_POOL_2D, [Given(normal(1, 7, 7, 5))], [Result(shape, np.float32)], option)


@variants_together
@pytest.mark.parametrize(
    ("radius", "channels", "bias", "alpha", "beta"),
    [(1, 1, 2.0, 0.3, 0.75), (2, 7, 1.0, 1.0, 0.5), (5, 40, 2.0, 0.3, 0.75), (40, 9, 2.0, 0.3, 0.75)],
)
def test_local_response_normalization(radius: int, channels: int, bias: float, alpha: float, beta: float) -> None:
    """As LiteRT's default kernel has it; the reference kernel leaves out the last of the neighbours."""
    option = options_of("LocalResponseNormalization", radius, bias, alpha, beta)
    data = normal(2, 3, 2, channels)
    content = one_operator(KIND.LOCAL_RESPONSE_NORMALIZATION, [Given(data)], [Result(data.shape, np.float32)], option)
    module, (wanted,) = import_tflite(content), frameworks.load_litert(content, 1, is_reference=False)([data])
    assert_floats_within(interpreter.run(module, [data])[0], wanted, "formula")
    assert_floats_within(np.asarray(qdialect.compile(module)(data)), wanted, "formula")


# Float32 pools and transposed convolutions of .tflite files, compared with LiteRT's reference kernels.

ACTIVATION, PADDING = tflite.ActivationFunctionType, tflite.Padding


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
    option = options_of("Pool2D", padding, *strides[::-1], *kernel[::-1], activation)
    found, wanted = both(kind, [drawn(1, 2, 7, 7, 5)], shape, *option)
    np.testing.assert_array_equal(found, wanted)


def test_pools_larger_than_memory_are_refused() -> None:
    option = options_of("Pool2D", PADDING.SAME, 1, 1, 2**30, 2**30)
    for kind in (KIND.MAX_POOL_2D, KIND.AVERAGE_POOL_2D):
        with pytest.raises(ImportModelError):
            both(kind, [drawn(1, 1, 3, 3, 2)], (1, 3, 3, 2), *option)


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
def test_transposed_convolutions_of_images(
    padding: int, kernel: Any, strides: Any, shape: Any, activation: int, has_bias: bool
) -> None:
    """Outputs larger than the full extent too."""
    weight, data = drawn(2, 3, *kernel, 4), drawn(3, 2, 4, 5, 4)
    bias = [drawn(4, 3)] if has_bias else []
    option = options_of("TransposeConv", padding, *strides[::-1], activation)
    inputs, names = [data, np.array(shape, np.int32), weight, *bias], [1, 2, 0, *([3] if has_bias else [])]
    found, wanted = both(KIND.TRANSPOSE_CONV, inputs, shape, *option, constants=len(inputs) - 1, order=names)
    np.testing.assert_array_equal(found, wanted)
