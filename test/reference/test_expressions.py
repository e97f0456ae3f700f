"""Expression trees: written as formulas, evaluated in the type of what they take, and put into each other."""

from typing import Any

import numpy as np
import pytest

from qdialect.arithmetic import activations, onnx_activations
from qdialect.arithmetic.expressions import Alpha, Expression, Input, Number, fold

X, Y = Input(0), Input(1)
VALUES = np.linspace(-4, 4, 33)


def text(expression: Expression) -> str:
    """A tree as nested calls."""
    return fold(expression, ("x", "y"), "alpha", repr, lambda op, operands: f"{op.split('.')[1]}({','.join(operands)})")


def test_a_formula_keeps_its_order() -> None:
    assert text(Number(1.0) - 2.0 * X) == "subf(1.0,mulf(2.0,x))"
    assert text(1 / (1 + -X)) == "divf(1,addf(1,negf(x)))"
    assert text(X.where_positive(X, Y * Alpha())) == "select(cmpf(x,0.0),x,mulf(y,alpha))"
    assert text(abs(X).at_least(Y).at_most(3.0)) == "minimumf(maximumf(absf(x),y),3.0)"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_result_has_the_type_of_the_inputs(dtype: type[np.floating[Any]]) -> None:
    x = VALUES.astype(dtype)
    for expression in (activations.gelu, activations.elu(0.7), X + 0.1, onnx_activations.mish):
        assert expression(x).dtype == dtype


def test_numbers_are_rounded_to_the_type_of_the_values() -> None:
    x = np.array([1.0], np.float32)
    assert (X * 0.1)(x)[0] == np.float32(0.1)
    assert (X * Alpha())(x, alpha=0.1)[0] == np.float32(0.1)
    assert (X * 0.1)(x.astype(np.float64))[0] == 0.1


def test_a_tree_takes_another_one() -> None:
    assert text(activations.square.of(X + 1.0)) == "mulf(addf(x,1.0),addf(x,1.0))"
    assert text(activations.leaky_relu(Alpha()).of(Y)) == "select(cmpf(y,0.0),y,mulf(y,alpha))"


def test_variants_of_a_function_are_near_each_other() -> None:
    pairs = [
        (activations.gelu_tanh, activations.tflite_gelu_tanh),
        (activations.elu(0.7), onnx_activations.elu(0.7)),
        (activations.hardswish, onnx_activations.hard_swish),
        (activations.silu, onnx_activations.swish(1.0)),
        (activations.hardsigmoid, onnx_activations.hard_sigmoid(1 / 6, 0.5)),
    ]
    for one, other in pairs:
        np.testing.assert_allclose(one(VALUES), other(VALUES), rtol=1e-12, atol=1e-14)
        assert one != other


def test_a_parameter_without_a_number_is_an_error() -> None:
    with pytest.raises(AssertionError, match="the function has a parameter"):
        fold(X * Alpha(), ("x",), None, repr, lambda op, operands: op)
