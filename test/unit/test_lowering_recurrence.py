"""Recurrent cells: compiled they are the reference, and the reference is the formula in float64."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import check, tensor
from graphs import graph
from numpy.typing import NDArray
from together import variants_together
from tolerances import assert_floats_within

from qdialect.dialect import F32GruOp, F32LstmOp, F32RecurrentOp, F32RnnOp, build
from qdialect.dialect.constants import constant
from qdialect.ir._mlir import ir
from qdialect.reference import interpreter

Array = NDArray[Any]
CELLS: tuple[type[F32RecurrentOp], ...] = (F32LstmOp, F32GruOp, F32RnnOp)
SIZES = [(5, 1, 19), (3, 2, 16), (4, 9, 8), (1, 3, 5), (2, 1, 96), (3, 17, 33)]


def numbers(*shape: int, seed: int = 0) -> Array:
    return (np.random.default_rng(seed).normal(size=shape) * 0.5).astype(np.float32)


def module_of(op: type[F32RecurrentOp], sizes: tuple[int, int, int], **attributes: Any) -> ir.Module:
    """Gates and initial states are arguments, weights constants."""
    steps, batch, hidden = sizes
    types = [tensor((steps, batch, op.gate_count * hidden), "f32"), tensor((batch, op.state_count * hidden), "f32")]

    def body(*values: ir.Value) -> ir.Value:
        weights = constant(numbers(hidden, op.gate_count * hidden, seed=2))
        bias = [constant(numbers(hidden, seed=3))] if attributes.get("reset_after") else []
        return build(op, values[0], weights, values[1], *bias, element="f32", **attributes).output

    return graph(types, body)


@variants_together
@pytest.mark.parametrize("number", range(len(SIZES)))
@pytest.mark.parametrize("op", CELLS)
def test_cells(op: type[F32RecurrentOp], number: int) -> None:
    check(module_of(op, SIZES[number], reverse=bool((number + CELLS.index(op)) % 2)))


@variants_together
@pytest.mark.parametrize("sizes", SIZES)
def test_a_unit_that_resets_after_its_product(sizes: tuple[int, int, int]) -> None:
    check(module_of(F32GruOp, sizes, reset_after=True))


@variants_together
@pytest.mark.parametrize("op", CELLS)
def test_limits_of_gates_and_other_functions(op: type[F32RecurrentOp]) -> None:
    names = ("activation",) if op is F32RnnOp else ("gate_activation", "cell_activation")
    check(module_of(op, (3, 2, 7), clip=0.25, **dict.fromkeys(names, "relu")))


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def test_the_reference_is_the_formula_of_long_short_term_memory() -> None:
    gates, initial, weights = numbers(4, 2, 20), numbers(2, 10, seed=1), numbers(5, 20, seed=2).astype(np.float64)
    hidden, cell = initial[:, :5].astype(np.float64), initial[:, 5:].astype(np.float64)
    (found,) = interpreter.run(module_of(F32LstmOp, (4, 2, 5)), [gates, initial])
    np.testing.assert_array_equal(found[0], initial)
    for step in range(4):
        i, f, g, o = np.split(gates[step] + hidden @ weights, 4, axis=1)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(cell)
        assert_floats_within(found[step + 1], np.concatenate([hidden, cell], axis=1), "formula")


@pytest.mark.parametrize("reset_after", [False, True])
def test_the_reference_is_the_formula_of_gated_units(reset_after: bool) -> None:
    gates, hidden, weights = numbers(4, 2, 15), numbers(2, 5, seed=1).astype(np.float64), numbers(5, 15, seed=2)
    bias = numbers(5, seed=3)
    (found,) = interpreter.run(
        module_of(F32GruOp, (4, 2, 5), reset_after=reset_after, reverse=True), [gates, numbers(2, 5, seed=1)]
    )
    for step in range(3, -1, -1):
        z, r = np.split(sigmoid(gates[step, :, :10] + hidden @ weights[:, :10]), 2, axis=1)
        last = weights[:, 10:].astype(np.float64)
        inner = r * (hidden @ last + bias) if reset_after else (r * hidden) @ last
        hidden = (1 - z) * np.tanh(gates[step, :, 10:] + inner) + z * hidden
        assert_floats_within(found[step], hidden, "formula")


def test_the_reference_is_the_formula_of_simple_cells() -> None:
    gates, hidden, weights = numbers(4, 2, 5), numbers(2, 5, seed=1).astype(np.float64), numbers(5, 5, seed=2)
    (found,) = interpreter.run(module_of(F32RnnOp, (4, 2, 5)), [gates, numbers(2, 5, seed=1)])
    for step in range(4):
        hidden = np.tanh(gates[step] + hidden @ weights)
        assert_floats_within(found[step + 1], hidden, "formula")


def test_a_long_sequence_is_one_kernel_with_a_loop() -> None:
    """However long it is, the code is the same."""
    from qdialect.runtime import compile_module

    gates, initial = numbers(500, 1, 64), numbers(1, 32, seed=1)
    module = module_of(F32LstmOp, (500, 1, 16))
    executable = compile_module(module)
    assert len(executable.calls) == 1
    np.testing.assert_array_equal(executable(gates, initial), interpreter.run(module, [gates, initial])[0])
