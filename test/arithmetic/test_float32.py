"""Float32 functions of kernels: polynomials as derived, errors within one unit of the last place."""

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiled_ops import Array

from qdialect.arithmetic import activations, float32, transcendental
from qdialect.arithmetic.expressions import Expression
from qdialect.arithmetic.float32.functions import (
    ERF,
    EXPM1,
    EXPONENTIAL,
    LOGARITHM,
    NEAR,
    OFFSET,
    POWER_OF_TWO,
    ROWS,
    SHIFT,
)
from qdialect.arithmetic.float32.machine import ENTRIES
from qdialect.arithmetic.float32.machine import NUMPY as NUMPY32
from qdialect.arithmetic.machine import F32Array
from qdialect.arithmetic.transcendental import NUMPY
from tools import float_tanh
from tools.float_coefficients import approximations, derive
from tools.float_errors import TRUTHS, errors
from tools.float_pieces import Piecewise, derive_piece, pieces

F32 = np.float32
NAMES = [name.removeprefix("math.") for name in float32.ALGORITHMS]
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-45, -1e-45, 1e-40, 2**-126, 3.4e38, -3.4e38], F32)
TABLES = {"EXPONENTIAL": EXPONENTIAL, "EXPM1": EXPM1, "POWER_OF_TWO": POWER_OF_TWO, "LOGARITHM": LOGARITHM}


def any_floats(count: int, seed: int) -> Any:
    """Float32 numbers of every size, drawn by their bits."""
    return np.random.default_rng(seed).integers(0, 2**32, count, dtype=np.uint32).view(F32)


@pytest.mark.parametrize("wanted", approximations(), ids=lambda wanted: wanted.name)
def test_polynomials_are_those_that_the_tool_derives(wanted: Any) -> None:
    np.testing.assert_array_equal(np.array(TABLES[wanted.name], F32), np.array(derive(wanted), F32))


@pytest.mark.parametrize("wanted", pieces(), ids=lambda wanted: wanted.name)
def test_pieces_are_those_that_the_tool_derives(wanted: Any) -> None:
    assert wanted.name == "ERF"
    count = len(wanted.edges()) - 1
    assert (ERF.scale, ERF.offset, ERF.shift) == (wanted.scale, wanted.offset, wanted.shift)
    assert len(ERF.rows) == count <= ENTRIES
    for index in (0, 1, count // 2, count - 1):
        row, _ = derive_piece(wanted, index)
        np.testing.assert_array_equal(np.array(ERF.rows[index], F32), np.array(row, F32))


def test_tanh_is_made_of_what_the_tool_derives() -> None:
    assert (float_tanh.PIECES.offset, float_tanh.PIECES.shift) == (OFFSET, SHIFT)
    assert len(float_tanh.PIECES.edges()) - 1 == len(ROWS) <= ENTRIES
    np.testing.assert_array_equal(np.array(NEAR, F32), np.array(float_tanh.polynomial(), F32))
    np.testing.assert_array_equal(np.array(ROWS, F32), np.array(float_tanh.rows(), F32))


@pytest.mark.parametrize(
    ("wanted", "limit"), [(*pieces(), 0.85), (float_tanh.PIECES, 1)], ids=lambda wanted: getattr(wanted, "name", None)
)
def test_every_piece_is_within_one_unit_of_the_last_place(wanted: Piecewise, limit: float) -> None:
    """Both ends of each piece, and numbers between them."""
    ends = np.array([2.0**-13, *map(float, wanted.edges()[1:])], F32).view(np.int32)
    near = ends[:, None] + np.arange(-200, 201)
    inside = np.random.default_rng(5).integers(ends[0], ends[-1], 60_000)
    x = np.concatenate([near.reshape(-1), inside]).astype(np.int32).view(F32)
    name = wanted.name.lower()
    assert errors(float32.evaluate(f"math.{name}", x), TRUTHS[name](x.astype(np.float64))).max() <= limit


def next_to_halves() -> F32Array:
    """The 64 numbers on either side of multiples of 1/4, where an exponent k changes."""
    bits = np.concatenate([np.arange(0.25, 2.25, 0.25), -np.arange(0.25, 1.25, 0.25)]).astype(F32).view(np.int32)
    return (bits[:, None] + np.arange(-64, 65, dtype=np.int32)).view(F32).reshape(-1)


@pytest.mark.parametrize("name", NAMES)
def test_errors_are_within_one_unit_of_the_last_place(name: str) -> None:
    rng = np.random.default_rng(2)
    ranges = [(-105, 90), (-4, 4), (-1, 1), (-0.5, 0.5), (0.7, 1.5), (15, 19), (-1e-6, 1e-6)]
    drawn = [rng.uniform(low, high, 15_000).astype(F32) for low, high in ranges]
    x = np.concatenate([*drawn, any_floats(60_000, 3), next_to_halves(), SPECIAL])
    with np.errstate(all="ignore"):
        distance = errors(float32.evaluate(f"math.{name}", x), TRUTHS[name](x.astype(np.float64)))
    assert distance.max() <= 1, x[np.argmax(distance)]


@pytest.mark.parametrize("name", ["expm1", "tanh", "erf", "log1p"])
def test_small_numbers_keep_their_sign_and_size(name: str) -> None:
    x = np.array([0.0, -0.0, 1e-45, -1e-45, 1e-40, -1e-40], F32)
    found = float32.evaluate(f"math.{name}", x)
    wanted = TRUTHS[name](x.astype(np.float64)).astype(F32)
    np.testing.assert_array_equal(found.view(np.int32), wanted.view(np.int32))


def test_functions_of_what_is_not_positive_have_the_bits_of_the_whole_function() -> None:
    drawn = [
        SPECIAL,
        any_floats(200_000, 12),
        -np.abs(any_floats(200_000, 13)),
        np.linspace(-20, 0, 200_000, dtype=F32),
    ]
    x = np.concatenate(drawn)
    x = x[~(x > 0)]
    for name, algorithm in float32.BELOW_ZERO.items():
        with np.errstate(all="ignore"):
            found = np.asarray(algorithm(NUMPY32, x), F32)
        np.testing.assert_array_equal(found.view(np.uint32), float32.evaluate(name, x).view(np.uint32))


# The project's own transcendental functions against the libraries' ones.

LIBRARY: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "expm1": np.expm1,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf),
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
}


def values() -> Any:
    """Numbers of many sizes, both signs, and the points where the algorithms change."""
    rng = np.random.default_rng(7)
    drawn = [rng.normal(size=4000) * size for size in (1e-12, 1e-6, 1e-3, 0.3, 1.0, 4.0, 30.0)]
    return np.concatenate([*drawn, [0.0, 1.0, -1.0, 6.0, -6.0, 20.0, 40.0, -40.0, 300.0, -300.0]])


@pytest.mark.parametrize("name", LIBRARY)
def test_within_a_few_units_of_the_last_place(name: str) -> None:
    x = values()
    if name in ("sin", "cos"):
        x = x.astype(F32).astype(np.float64)
    with np.errstate(all="ignore"):
        found, wanted = getattr(transcendental, name)(NUMPY, x), LIBRARY[name](x)
    x, found, wanted = (array[np.isfinite(wanted)] for array in (x, found, wanted))
    assert np.all(np.abs(found - wanted) <= 8 * np.spacing(np.abs(wanted)))


def test_powers() -> None:
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 1e-30, 7.3])
    drawn = np.random.default_rng(1).normal(size=(2, 500)) * 3
    x, y = (np.concatenate(pair).astype(np.float32).astype(np.float64) for pair in (
        (np.repeat(special, len(special)), drawn[0]), (np.tile(special, len(special)), drawn[1]),
    ))  # fmt: skip
    with np.errstate(all="ignore"):
        found, wanted = transcendental.power(NUMPY, x, y), np.power(x, y)
        np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))


def test_exponentials_are_those_of_the_c_library() -> None:
    """Those next to a tie of float32 are what glibc gives on CPUs with fused multiply-adds."""
    ties = {
        2.2124498: 9.138075,
        32.564632: 1.3888015e14,
        -63.09946: 3.9468667e-28,
        0.237968: 1.2686687,
        -1.7358403: 0.17625204,
    }
    library = ctypes.CDLL("libm.so.6").expf
    library.argtypes, library.restype = [ctypes.c_float], ctypes.c_float
    x = np.concatenate([any_floats(20_000, 5), np.linspace(-110, 95, 20_000, dtype=F32), SPECIAL])
    wanted = np.array([library(number) for number in x], F32)
    found = transcendental.evaluate(transcendental.expf, np.concatenate([x, np.array([*ties], F32)]))
    np.testing.assert_array_equal(found, np.concatenate([wanted, np.array([*ties.values()], F32)]))


def test_ends_of_the_range() -> None:
    x = np.array([np.inf, -np.inf, np.nan])
    machine = NUMPY
    with np.errstate(all="ignore"):
        found = [getattr(transcendental, name)(machine, x).astype(np.float32).tolist() for name in LIBRARY]
    assert found[0][:2] == [math.inf, 0.0]
    assert found[1][:2] == [math.inf, -1.0]
    assert found[2][:2] == [1.0, -1.0]
    assert found[3][:2] == [1.0, -1.0]
    assert all(math.isnan(row[2]) for row in found)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_angles_of_every_size(name: str) -> None:
    """Every float32; libraries reduce those of any size."""
    bits = np.random.default_rng(3).integers(0, 2**32, 200_000, dtype=np.uint32)
    with np.errstate(all="ignore"):
        x = bits.view(np.float32).astype(np.float64)
        found, wanted = getattr(transcendental, name)(NUMPY, x), LIBRARY[name](x)
        np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))
    assert np.signbit(transcendental.sin(NUMPY, np.array(-0.0)))


# Inverse trigonometric functions of kernels, against float64.


NUMBERS = np.concatenate(
    [np.linspace(-1, 1, 20001), np.random.default_rng(0).normal(size=9999) * 3, [np.inf, -np.inf, 1e30, -1e-30]]
).astype(np.float32)


@pytest.mark.parametrize(
    ("function", "truth"), [(activations.acos, np.arccos), (activations.asin, np.arcsin), (activations.atan, np.arctan)]
)
def test_three_units_of_the_last_place(function: Expression, truth: Callable[[Array], Array]) -> None:
    with np.errstate(invalid="ignore"):
        wanted = truth(NUMBERS.astype(np.float64))
    found = function.in_kernel(NUMBERS)
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    units = np.abs(found - wanted) / np.spacing(np.abs(wanted).astype(np.float32))
    assert np.nanmax(units) <= 3
