"""Operators between float32 tensors: what LiteRT's reference kernels give, and what they gave (recorded)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import recordings
import tflite
from compiled_ops import check_compiled, variants_together
from tflite_graphs import Given, Option, Result, check_operator, one_operator, options_of, refused
from tolerances import assert_floats_within

import qdialect
from qdialect.frontends import frameworks
from qdialect.frontends.tflite import import_tflite
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

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


KIND = tflite.BuiltinOperator
SAME, VALID = tflite.Padding.SAME, tflite.Padding.VALID
RELU, RELU6, RELU_N1_TO_1 = (getattr(tflite.ActivationFunctionType, name) for name in ("RELU", "RELU6", "RELU_N1_TO_1"))
Node = tuple[int, list[Given], tuple[int, ...], Option | None]


def f32(*shape: int, seed: int = 0) -> Given:
    return Given(np.random.default_rng(seed).normal(size=shape).astype(np.float32) * np.float32(3))


def known(given: Given) -> Given:
    return Given(given.data, is_constant=True)


def extents(*entries: int) -> Given:
    return Given(np.array(entries, np.int32), is_constant=True)


def windows(padding: int, strides: Any, dilation: Any = (1, 1, 1), activation: int = 0) -> Option:
    """Options: padding, strides D, W and H, activation, dilation D, W and H."""
    numbers, apart = ((n[0], n[2], n[1]) for n in (strides, dilation))
    return options_of("Conv3D", padding, *numbers, activation, *apart)


def zeros_and_small(*shape: int) -> Given:
    """One row is zero, one nearly."""
    data = f32(*shape).data
    data[0], data[1] = 0, data[1] * 1e-9
    return Given(data)


Matrices = tuple[Any, Any, tuple[bool, bool], tuple[int, ...]]
MATRICES: list[Matrices] = [
    ((5, 7), (7, 3), (False, False), (5, 3)),
    ((2, 5, 7), (2, 7, 3), (False, False), (2, 5, 3)),
    ((2, 7, 5), (2, 3, 7), (True, True), (2, 5, 3)),
    ((2, 1, 5, 7), (4, 3, 7), (False, True), (2, 4, 5, 3)),
    ((2, 5, 7), (7, 3), (False, False), (2, 5, 3)),
    ((5, 7), (2, 7, 3), (False, False), (2, 5, 3)),
]


def products(matrices: Sequence[Matrices]) -> list[Node]:
    """By a constant matrix, and by one that is given."""
    return [
        (
            KIND.BATCH_MATMUL,
            [f32(*lhs), known(f32(*rhs, seed=1)) if is_known else f32(*rhs, seed=1)],
            shape,
            options_of("BatchMatMul", *adjoints),
        )
        for lhs, rhs, adjoints, shape in matrices
        for is_known in (True, False)
    ]


CONVOLUTIONS: list[tuple[Any, Any, int, Any, Any, tuple[int, ...]]] = [
    ((1, 5, 7, 6, 3), (3, 3, 3, 3, 4), SAME, (1, 1, 1), (1, 1, 1), (1, 5, 7, 6, 4)),
    ((2, 6, 7, 9, 2), (2, 3, 4, 2, 5), VALID, (2, 1, 3), (1, 1, 1), (2, 3, 5, 2, 5)),
    ((1, 7, 9, 8, 1), (2, 3, 2, 1, 3), VALID, (1, 2, 1), (2, 1, 3), (1, 5, 4, 5, 3)),
    ((1, 5, 5, 7, 2), (3, 2, 3, 2, 1), SAME, (2, 3, 2), (1, 1, 1), (1, 3, 2, 4, 1)),
]
TRANSPOSED: list[tuple[Any, Any, int, Any, tuple[int, ...]]] = [
    ((1, 3, 4, 2, 3), (2, 2, 2, 5, 3), VALID, (2, 2, 2), (1, 6, 8, 4, 5)),
    ((2, 3, 3, 4, 2), (3, 3, 2, 4, 2), SAME, (2, 1, 3), (2, 6, 3, 12, 4)),
    ((1, 2, 3, 3, 4), (3, 2, 4, 1, 4), VALID, (1, 3, 2), (1, 4, 9, 8, 1)),
]
POOLS: list[tuple[int, Any, Any, tuple[int, ...], int]] = [
    (VALID, (2, 3), (2, 1), (2, 3, 5, 5), 0),
    (SAME, (3, 3), (2, 2), (2, 4, 4, 5), RELU6),
    (SAME, (7, 7), (1, 1), (2, 7, 7, 5), RELU_N1_TO_1),
    (SAME, (1, 1), (3, 2), (2, 3, 4, 5), 0),
]
# Outputs larger than the full extent too.
IMAGES: list[tuple[int, Any, Any, tuple[int, ...], int]] = [
    (SAME, (3, 3), (2, 2), (2, 8, 10, 3), 0),
    (VALID, (3, 2), (1, 1), (2, 6, 6, 3), RELU),
    (VALID, (2, 2), (3, 3), (2, 11, 14, 3), 0),
    (VALID, (2, 4), (3, 2), (2, 13, 13, 3), RELU6),
    (SAME, (1, 5), (2, 3), (2, 7, 13, 3), 0),
    (VALID, (5, 5), (2, 2), (2, 12, 14, 3), 0),
]
NODES: list[Node] = [
    *((KIND.PRELU, [f32(3, 19), known(f32(*shape, seed=1))], (3, 19), None) for shape in ((19,), (3, 1), (3, 19))),
    *(
        (kind, [f32(3, 19), f32(*shape, seed=2)], (3, 19), None)
        for kind in (KIND.SQUARED_DIFFERENCE, KIND.FLOOR_DIV, KIND.FLOOR_MOD)
        for shape in ((19,), (3, 1), (3, 19))
    ),
    # Sums of long rows are taken in order.
    *((kind, [f32(5, 100), extents(1)], (5,), options_of("Reducer", False)) for kind in (KIND.SUM, KIND.MEAN)),
    *products(MATRICES),
    *(
        (
            KIND.CONV_3D,
            [f32(*data), known(f32(*weight)), *([known(f32(weight[4]))] if has_bias else [])],
            shape,
            windows(padding, strides, dilation, int(has_bias)),
        )
        for data, weight, padding, strides, dilation, shape in CONVOLUTIONS
        for has_bias in (False, True)
    ),
    *(
        (
            KIND.CONV_3D_TRANSPOSE,
            [extents(*shape), known(f32(*weight)), f32(*data), *([known(f32(weight[3]))] if has_bias else [])],
            shape,
            windows(padding, strides),
        )
        for data, weight, padding, strides, shape in TRANSPOSED
        for has_bias in (False, True)
    ),
    *(
        (KIND.L2_NORMALIZATION, [given], given.data.shape, options_of("L2Norm"))
        for given in (f32(7), zeros_and_small(3, 5), zeros_and_small(2, 3, 4, 33))
    ),
    (KIND.L2_POOL_2D, [f32(1, 7, 7, 5)], (1, 4, 4, 5), options_of("Pool2D", SAME, 2, 2, 3, 3)),
    (KIND.L2_POOL_2D, [f32(1, 7, 7, 5)], (1, 3, 3, 5), options_of("Pool2D", VALID, 2, 2, 2, 2)),
    *(
        (kind, [f32(2, 7, 7, 5)], shape, options_of("Pool2D", padding, *strides[::-1], *kernel[::-1], activation))
        for padding, kernel, strides, shape, activation in POOLS
        for kind in (KIND.MAX_POOL_2D, KIND.AVERAGE_POOL_2D)
    ),
    *(
        (
            KIND.TRANSPOSE_CONV,
            [extents(*shape), known(f32(3, *kernel, 4)), f32(2, 4, 5, 4), *([known(f32(3))] if has_bias else [])],
            shape,
            options_of("TransposeConv", padding, *strides[::-1], activation),
        )
        for padding, kernel, strides, shape, activation in IMAGES
        for has_bias in (False, True)
    ),
]


@variants_together
@pytest.mark.parametrize("number", range(len(NODES)))
def test_operators(number: int) -> None:
    kind, inputs, shape, option = NODES[number]
    check_operator(kind, inputs, [Result(shape, np.float32)], option)


# Sums by the delegate: (data, weight, strides, dilation, shape) of convolutions, without dilation of transposed ones.
DELEGATED_IMAGES: list[tuple[Any, Any, Any, Any, Any]] = [
    ((2, 9, 8, 5), (7, 3, 2, 5), (2, 1), (1, 1), (2, 5, 8, 7)),
    ((1, 9, 8, 5), (17, 3, 3, 5), (1, 1), (2, 3), (1, 9, 8, 17)),
    ((1, 7, 6, 1), (3, 3, 3, 1), (1, 1), (1, 1), (1, 7, 6, 3)),
    ((1, 7, 6, 70), (33, 1, 1, 70), (1, 1), (1, 1), (1, 7, 6, 33)),
]
DELEGATED_TRANSPOSED: list[tuple[Any, Any, Any, Any]] = [
    ((1, 5, 4, 3), (7, 2, 2, 3), (2, 2), (1, 10, 8, 7)),
    ((2, 5, 4, 3), (7, 3, 3, 3), (2, 2), (2, 10, 8, 7)),
    ((1, 5, 4, 3), (7, 2, 3, 3), (2, 1), (1, 10, 4, 7)),
    ((1, 5, 4, 3), (7, 5, 4, 3), (3, 2), (1, 15, 8, 7)),
    ((1, 5, 4, 1), (1, 3, 3, 1), (1, 1), (1, 5, 4, 1)),
]
DELEGATED: list[Node] = [
    *(
        (
            KIND.CONV_2D,
            [f32(*data), known(f32(*weight, seed=1)), known(f32(weight[0], seed=2))],
            shape,
            options_of("Conv2D", SAME, *strides[::-1], activation, *dilation[::-1]),
        )
        for data, weight, strides, dilation, shape in DELEGATED_IMAGES
        for activation in (0, RELU6)
    ),
    *(
        (
            KIND.TRANSPOSE_CONV,
            [extents(*shape), known(f32(*weight, seed=1)), f32(*data), *([known(f32(weight[0], seed=2))] * has_bias)],
            shape,
            options_of("TransposeConv", SAME, *strides[::-1], 0),
        )
        for data, weight, strides, shape in DELEGATED_TRANSPOSED
        for has_bias in (False, True)
    ),
    *(
        (
            KIND.FULLY_CONNECTED,
            [f32(rows, 300), known(f32(33, 300, seed=1)), *([known(f32(33, seed=2))] * has_bias)],
            (rows, 33),
            options_of("FullyConnected", RELU),
        )
        for rows in (1, 5)
        for has_bias in (False, True)
    ),
    *products([one for one in MATRICES if not one[2][0] and len(one[0]) >= len(one[1])]),
    *(
        (kind, [f32(2, 9, 5, 33), extents(*axes)], shape, options_of("Reducer", False))
        for kind in (KIND.SUM, KIND.MEAN)
        for axes, shape in (((1, 2), (2, 33)), ((1,), (2, 5, 33)))
    ),
]


@variants_together
@pytest.mark.parametrize("number", range(len(DELEGATED)))
def test_sums_of_the_delegate(number: int) -> None:
    """Products are not rounded before they are added, from the bias on; means are multiplied by a reciprocal."""
    kind, inputs, shape, option = DELEGATED[number]
    content = one_operator(kind, inputs, [Result(shape, np.float32)], option)
    arrays = [one.data for one in inputs if not one.is_constant]
    (wanted,) = frameworks.load_litert(content, 1, is_reference=False, needs_delegate=True)(arrays)
    module = import_tflite(content, profile="tflite-xnnpack")
    np.testing.assert_array_equal(interpreter.run(module, arrays)[0], wanted)
    check_compiled(module, "host", [arrays], [[wanted]])


@variants_together
@pytest.mark.parametrize("shape", [(50, 10), (50, 100), (3, 7, 129), (1, 1000)], ids=str)
@pytest.mark.parametrize("beta", [1.0, 0.3])
def test_softmax(shape: tuple[int, ...], beta: float) -> None:
    """The exponentials of the C library, added in order."""
    result = Result(shape, np.float32)
    check_operator(KIND.SOFTMAX, [f32(*shape)], [result], options_of("Softmax", beta))


@variants_together
@pytest.mark.parametrize(
    ("radius", "channels", "bias", "alpha", "beta"),
    [(1, 1, 2.0, 0.3, 0.75), (2, 7, 1.0, 1.0, 0.5), (5, 40, 2.0, 0.3, 0.75), (40, 9, 2.0, 0.3, 0.75)],
)
def test_local_response_normalization(radius: int, channels: int, bias: float, alpha: float, beta: float) -> None:
    """As LiteRT's default kernel has it; the reference kernel leaves out the last of the neighbours."""
    option = options_of("LocalResponseNormalization", radius, bias, alpha, beta)
    data = np.random.default_rng(0).normal(size=(2, 3, 2, channels)).astype(np.float32)
    content = one_operator(KIND.LOCAL_RESPONSE_NORMALIZATION, [Given(data)], [Result(data.shape, np.float32)], option)
    module, (wanted,) = import_tflite(content), frameworks.load_litert(content, 1, is_reference=False)([data])
    assert_floats_within(interpreter.run(module, [data])[0], wanted, "formula")
    assert_floats_within(np.asarray(qdialect.compile(module)(data)), wanted, "formula")


@pytest.mark.parametrize("kind", [KIND.LOGISTIC, KIND.GELU])
def test_functions_keep_their_digits_far_below_zero(kind: int) -> None:
    """Of results that are subnormal few are left."""
    data = np.concatenate([np.linspace(-105, 20, 997), np.linspace(-14, 1, 997)]).astype(np.float32)
    content = one_operator(kind, [Given(data)], [Result(data.shape, np.float32)])
    module, (wanted,) = import_tflite(content), frameworks.load_litert(content, 1, is_reference=True)([data])
    found = interpreter.run(module, [data])[0]
    np.testing.assert_allclose(found, wanted, rtol=3e-5, atol=1e-44)
    check_compiled(module, "host", [[data]], [[found]])


@pytest.mark.parametrize("kind", [KIND.CONV_2D, KIND.DEPTHWISE_CONV_2D])
def test_weights_that_are_not_finite_are_refused(kind: int) -> None:
    """LiteRT leaves out what lies outside of an image."""
    weight = Given(np.full((1, 3, 3, 1), np.inf, np.float32), is_constant=True)
    option = options_of("Conv2D" if kind == KIND.CONV_2D else "DepthwiseConv2D", SAME, 1, 1)
    assert "weight must be finite" in refused(
        one_operator(kind, [f32(1, 3, 3, 1), weight], [Result((1, 3, 3, 1), np.float32)], option)
    )


@pytest.mark.parametrize("kind", [KIND.MAX_POOL_2D, KIND.AVERAGE_POOL_2D])
def test_pools_larger_than_memory_are_refused(kind: int) -> None:
    option = options_of("Pool2D", SAME, 1, 1, 2**30, 2**30)
    refused(one_operator(kind, [f32(1, 3, 3, 2)], [Result((1, 3, 3, 2), np.float32)], option))
