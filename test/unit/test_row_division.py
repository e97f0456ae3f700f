"""Rows divided by a number each: products with its reciprocal have the bits of the division."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import check, tensor
from graphs import graph
from numpy.typing import NDArray

import qdialect
from qdialect.dialect import BroadcastOp, build
from qdialect.ir._mlir import arith, ir
from qdialect.lowering.instructions.instruction_set import is_slow_divider
from qdialect.targets import resolve

F32Array = NDArray[np.float32]
TARGETS = ("host", "amxint8,portable", "avx512bw,portable", "avx2,portable")
COLUMNS = 512
ENDS = [2.0**100, 2.0**-100, 2.0**-126, 1e-45, 3e38, 0.0, -0.0, np.inf, -np.inf, np.nan]


def quotients(rows: int, columns: int) -> ir.Module:
    """Numbers divided by one of each row."""

    def body(x: ir.Value, divisors: ir.Value) -> ir.Value:
        spread = build(BroadcastOp, divisors, element="f32", shape=(rows, columns)).output
        return arith.divf(x, spread)

    return graph([tensor((rows, columns), "f32"), tensor((rows, 1), "f32")], body)


def near_midpoints(rng: np.random.Generator, divisors: F32Array) -> F32Array:
    """Numbers whose quotients are next to the midpoint of two float32 numbers, of any size."""
    shape = (len(divisors), COLUMNS)
    midpoints = rng.integers(2**23, 2**24, shape) * 2.0**-23 + 2.0**-24
    sizes = np.ldexp(rng.choice([-1.0, 1.0], shape), rng.integers(-90, 90, shape))
    return (midpoints * divisors * sizes).astype(np.float32)


def around_ends() -> F32Array:
    """Numbers that are not divided by products, and those next to them, with either sign."""
    bits = np.array(ENDS, np.float32).view(np.int32)[:, None] + np.arange(-1, 2)
    numbers = bits.astype(np.int32).view(np.float32).reshape(-1)
    return np.concatenate([numbers, -numbers])


def same(found: F32Array, wanted: F32Array) -> None:
    np.testing.assert_array_equal(found, wanted)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(wanted)[known])


@pytest.mark.parametrize("target", TARGETS)
def test_quotients_have_the_bits_of_a_division(target: str) -> None:
    rng, rows = np.random.default_rng(1), 512
    executable: Any = qdialect.compile(quotients(rows, COLUMNS), target=target)
    for first in (2**23, 2**24 - rows, None):
        fractions = rng.integers(2**23, 2**24, rows) if first is None else np.arange(first, first + rows)
        divisors = np.ldexp(fractions * 2.0**-23, rng.integers(-25, 25, rows)).astype(np.float32)[:, None]
        drawn = (rng.normal(size=(rows, COLUMNS)) * 10).astype(np.float32)
        for numbers in (near_midpoints(rng, divisors), drawn):
            same(executable(numbers, divisors), numbers / divisors)


@pytest.mark.parametrize("target", TARGETS)
def test_quotients_of_numbers_at_the_ends_are_divided(target: str) -> None:
    """Also several in a vector."""
    divisors = np.array([3.0, 1e-6, 2.0**20, 2.0**-20, 1e7, -3.0, *ENDS], np.float32)[:, None]
    specials = around_ends()
    numbers = np.random.default_rng(2).normal(size=(len(divisors), COLUMNS)).astype(np.float32)
    numbers[:, 5::11] = np.resize(specials, numbers[:, 5::11].shape[1])
    numbers[:, :16] = 0
    executable: Any = qdialect.compile(quotients(*numbers.shape), target=target)
    with np.errstate(all="ignore"):
        same(executable(numbers, divisors), numbers / divisors)


@pytest.mark.parametrize("target", TARGETS)
def test_a_single_number_at_an_end_is_divided(target: str) -> None:
    """Wherever it is in a row that has no other."""
    rng, specials = np.random.default_rng(3), np.repeat(around_ends(), 12)
    numbers = rng.normal(size=(len(specials), COLUMNS)).astype(np.float32)
    numbers[np.arange(len(specials)), rng.integers(0, COLUMNS, len(specials))] = specials
    divisors = rng.choice([3.0, 0.7, 1e-5, 2.0**20], (len(specials), 1)).astype(np.float32)
    executable: Any = qdialect.compile(quotients(*numbers.shape), target=target)
    with np.errstate(all="ignore"):
        same(executable(numbers, divisors), numbers / divisors)


@pytest.mark.parametrize("columns", [1, 15, 17, 100])
def test_rows_of_any_length(columns: int) -> None:
    check(quotients(5, columns))


def test_only_a_slow_divider_is_avoided() -> None:
    machine = resolve("sapphirerapids").machine
    assert is_slow_divider(machine.division_cycles, machine.vector_instructions)
    assert not is_slow_divider(4, 2)
    assert not is_slow_divider(resolve("znver5").machine.division_cycles, 4)


def test_rows_in_the_first_level_are_left_to_a_fast_divider_alone() -> None:
    machine = resolve("znver4").machine
    assert not is_slow_divider(machine.division_cycles, machine.vector_instructions)
    assert is_slow_divider(machine.division_cycles, machine.vector_instructions, in_place=True)
    assert not is_slow_divider(4, 2, in_place=True)
