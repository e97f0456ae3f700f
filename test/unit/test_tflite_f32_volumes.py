"""Convolutions of float32 volumes and normalizations of float32 rows, beside LiteRT's reference kernels."""

from typing import Any

import numpy as np
import pytest
import tflite
from simple_recurrent_models import table
from tflite_operators import Array, Given, Result, check_operator, one_operator
from together import variants_together
from tolerances import assert_floats_within

import qdialect
from qdialect.frontends import frameworks
from qdialect.frontends.tflite import import_tflite
from qdialect.reference import interpreter

KIND, OPTIONS = tflite.BuiltinOperator, tflite.BuiltinOptions
SAME, VALID = 0, 1


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def windows(padding: int, strides: tuple[int, int, int], dilation: tuple[int, int, int], activation: int = 0) -> Any:
    """Options: padding, strides D, W and H, activation, dilation D, W and H."""
    numbers = [("Int32", n) for n in (strides[0], strides[2], strides[1])]
    apart = [("Int32", n) for n in (dilation[0], dilation[2], dilation[1])]
    fields = [("Int8", padding), *numbers, ("Int8", activation), *apart]
    return OPTIONS.Conv3DOptions, table(dict(enumerate(fields)), 8)


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
    inputs = [Given(drawn(*data)), Given(drawn(*weight, seed=1), is_constant=True)]
    inputs += [Given(drawn(weight[4], seed=2), is_constant=True)] if has_bias else []
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
    inputs = [Given(np.array(shape, np.int32), is_constant=True), Given(drawn(*weight), is_constant=True)]
    inputs += [Given(drawn(*data, seed=1))]
    inputs += [Given(drawn(weight[3], seed=2), is_constant=True)] if has_bias else []
    option = windows(padding, strides, (1, 1, 1))
    check_operator(KIND.CONV_3D_TRANSPOSE, inputs, [Result(shape, np.float32)], option)


@variants_together
@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 4, 33)])
def test_l2_normalization(shape: tuple[int, ...]) -> None:
    """One row is zero, one nearly."""
    data = drawn(*shape)
    if len(shape) > 1:
        data[0], data[1] = 0, data[1] * 1e-9
    check_operator(
        KIND.L2_NORMALIZATION, [Given(data)], [Result(shape, np.float32)], (OPTIONS.L2NormOptions, table({}, 1))
    )


@pytest.mark.parametrize(("kernel", "padding", "shape"), [(3, SAME, (1, 4, 4, 5)), (2, VALID, (1, 3, 3, 5))])
def test_l2_pools(kernel: int, padding: int, shape: tuple[int, ...]) -> None:
    numbers = [("Int8", padding), *(("Int32", n) for n in (2, 2, kernel, kernel)), ("Int8", 0)]
    option = OPTIONS.Pool2DOptions, table(dict(enumerate(numbers)), 6)
    check_operator(KIND.L2_POOL_2D, [Given(drawn(1, 7, 7, 5))], [Result(shape, np.float32)], option)


@variants_together
@pytest.mark.parametrize(
    ("radius", "channels", "bias", "alpha", "beta"),
    [(1, 1, 2.0, 0.3, 0.75), (2, 7, 1.0, 1.0, 0.5), (5, 40, 2.0, 0.3, 0.75), (40, 9, 2.0, 0.3, 0.75)],
)
def test_local_response_normalization(radius: int, channels: int, bias: float, alpha: float, beta: float) -> None:
    """As LiteRT's default kernel has it; the reference kernel leaves out the last of the neighbours."""
    numbers = [("Int32", radius), *(("Float32", number) for number in (bias, alpha, beta))]
    option = OPTIONS.LocalResponseNormalizationOptions, table(dict(enumerate(numbers)), 4)
    data = drawn(2, 3, 2, channels)
    content = one_operator(KIND.LOCAL_RESPONSE_NORMALIZATION, [Given(data)], [Result(data.shape, np.float32)], option)
    module, (wanted,) = import_tflite(content), frameworks.load_litert(content, 1, is_reference=False)([data])
    assert_floats_within(interpreter.run(module, [data])[0], wanted, "formula")
    assert_floats_within(np.asarray(qdialect.compile(module)(data)), wanted, "formula")
