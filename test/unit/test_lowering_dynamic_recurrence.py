"""A cell that quantizes its state in each step: compiled it is the reference, and the reference is the formula."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import check, tensor
from graphs import graph
from numpy.typing import NDArray
from together import variants_together
from tolerances import assert_floats_within

from qdialect.dialect import DynamicLstmOp, build
from qdialect.dialect.constants import constant
from qdialect.ir._mlir import ir
from qdialect.reference import interpreter
from qdialect.runtime import compile_module

Array = NDArray[Any]
# More weights than the first level holds.
LARGE = [(5, 1, 96), (1, 1, 100), (4, 3, 112)]
SIZES = [(5, 1, 19), (3, 2, 16), (4, 9, 8), (1, 3, 5), (2, 1, 96), (3, 17, 33), (2, 1, 1), *LARGE]


def numbers(*shape: int, seed: int = 0) -> Array:
    return (np.random.default_rng(seed).normal(size=shape) * 0.5).astype(np.float32)


def weights_of(hidden: int, dtype: type[np.integer[Any]] = np.int8) -> tuple[Array, Array]:
    """Weights [H, 4 * H] over the whole range of `dtype`, and scales."""
    random, limits = np.random.default_rng(4), np.iinfo(dtype)
    weights = random.integers(limits.min, limits.max, (hidden, 4 * hidden), dtype, endpoint=True)
    return weights, random.uniform(0.001, 0.01, 4 * hidden).astype(np.float32)


def module_of(
    sizes: tuple[int, int, int],
    dtype: type[np.integer[Any]] = np.int8,
    points: tuple[int, ...] = (0,),
    **attributes: Any,
) -> ir.Module:
    """Gates and initial states are arguments."""
    steps, batch, hidden = sizes
    types = [tensor((steps, batch, 4 * hidden), "f32"), tensor((batch, 2 * hidden), "f32")]
    weights, scales = weights_of(hidden, dtype)

    def body(*values: ir.Value) -> ir.Value:
        operands = (values[0], constant(weights), values[1], constant(scales))
        return build(DynamicLstmOp, *operands, element="f32", weight_zero_points=points, **attributes).output

    return graph(types, body)


@variants_together
@pytest.mark.parametrize("number", range(len(SIZES)))
def test_sizes(number: int) -> None:
    check(module_of(SIZES[number], reverse=bool(number % 2)))


@variants_together
@pytest.mark.parametrize("point", [0, 1, 128, 255])
def test_zero_points_of_unsigned_weights(point: int) -> None:
    check(module_of((3, 2, 21), np.uint8, (point,)))


@variants_together
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_zero_points_by_column(dtype: type[np.integer[Any]]) -> None:
    limits = np.iinfo(dtype)
    points = np.random.default_rng(5).integers(limits.min, limits.max, 4 * 18, endpoint=True)
    check(module_of((3, 3, 18), dtype, tuple(points.tolist())))


def test_limits_of_gates_and_other_functions() -> None:
    functions = dict.fromkeys(("gate_activation", "cell_activation", "output_activation"), "relu")
    check(module_of((3, 2, 7), clip=0.25, **functions))


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def test_the_reference_quantizes_the_state_by_the_range_of_all_of_it() -> None:
    gates, initial = numbers(3, 2, 20), numbers(2, 10, seed=1)
    (found,) = interpreter.run(module_of((3, 2, 5), np.uint8, (100,)), [gates, initial])
    weights, scales = weights_of(5, np.uint8)
    hidden, cell = initial[:, :5].astype(np.float64), initial[:, 5:].astype(np.float64)
    for step in range(3):
        low, high = min(hidden.min(), 0), max(hidden.max(), 0)
        scale = (high - low) / 255
        values = np.clip(np.rint(hidden / scale), -np.rint(-low / scale), 255 - np.rint(-low / scale))
        products = values @ (weights.astype(np.float64) - 100)
        i, f, g, o = np.split(gates[step] + products * scale * scales, 4, axis=1)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(cell)
        assert_floats_within(found[step + 1], np.concatenate([hidden, cell], axis=1), "layer")


def test_a_state_of_zeros_is_quantized_to_zeros() -> None:
    module, gates = module_of((1, 1, 4)), numbers(1, 1, 16)
    (found,) = interpreter.run(module, [gates, np.zeros((1, 8), np.float32)])
    i, _, g, o = np.split(gates[0], 4, axis=1)
    cell = sigmoid(i) * np.tanh(g)
    assert_floats_within(found[1], np.concatenate([sigmoid(o) * np.tanh(cell), cell], axis=1), "formula")


def test_sums_that_float32_does_not_hold_are_exact() -> None:
    """600 products of 255 and 255 exceed 2^24: they are summed up as integers, and rounded once."""
    hidden, gates = 600, np.zeros((1, 1, 2400), np.float32)
    initial = np.ones((1, 1200), np.float32)
    weights = np.full((hidden, 4 * hidden), 255, np.uint8)
    weights[0] = np.arange(4 * hidden) % 256

    def body(*values: ir.Value) -> ir.Value:
        scales = constant(np.full(4 * hidden, 2.0**-26, np.float32))
        operands = (values[0], constant(weights), values[1], scales)
        return build(DynamicLstmOp, *operands, element="f32", gate_activation="relu", cell_activation="relu").output

    module = graph([tensor(gates.shape, "f32"), tensor(initial.shape, "f32")], body)
    (wanted,) = interpreter.run(module, [gates, initial])
    np.testing.assert_array_equal(compile_module(module)(gates, initial), wanted)
    sums = 255 * weights.astype(np.int64).sum(axis=0)
    assert sums.max() > 2**24
    scale = np.float32(1) / np.float32(255)
    i, f, g, _ = np.split(sums.astype(np.float32) * (scale * np.float32(2.0**-26)), 4)
    np.testing.assert_array_equal(wanted[1, 0, hidden:], f * np.float32(1) + i * g)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_become_bounds(value: float) -> None:
    module, gates, initial = module_of((2, 2, 9)), numbers(2, 2, 36), numbers(2, 18, seed=1)
    initial[1, 3] = value
    (wanted,) = interpreter.run(module, [gates, initial])
    np.testing.assert_array_equal(compile_module(module)(gates, initial), wanted)


def test_a_long_sequence_is_one_kernel_with_a_loop() -> None:
    """However long it is, the code is the same."""
    gates, initial = numbers(500, 1, 64), numbers(1, 32, seed=1)
    module = module_of((500, 1, 16))
    executable = compile_module(module)
    assert len(executable.calls) == 1
    np.testing.assert_array_equal(executable(gates, initial), interpreter.run(module, [gates, initial])[0])
