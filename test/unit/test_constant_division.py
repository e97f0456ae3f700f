"""Numbers divided by a constant: two products have the bits of the division."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import tensor
from graphs import graph
from numpy.typing import NDArray

import qdialect
from qdialect.dialect.constants import constant
from qdialect.ir._mlir import arith, ir

F32Array = NDArray[np.float32]
TARGETS = ("host", "amxint8,portable", "avx512bw,portable", "avx2,portable")
# Both lists have divisors at the ends of what is multiplied.
SHORT = [3.0, 6.0, 7.0, 49.0, 0.375, 1000.0, 2.0**20 - 4.0, 3 * 2.0**-20, 2.0**19 - 1.0]
LONG = [0.1, 2.0**19 + 1.0, 3 * 2.0**20, -6.0, 4.0]
ENDS = [0.0, -0.0, 2.0**-80, 2.0**-126, 1e-45, 9 * 2.0**-149, 3e38, np.inf, -np.inf, np.nan]


def near_midpoints(rng: np.random.Generator, divisor: float) -> F32Array:
    """Numbers whose quotients are next to the midpoint of two float32 numbers, of any size."""
    midpoints = rng.integers(2**23, 2**24, 4000) * 2.0**-23 + 2.0**-24
    sizes = np.ldexp(rng.choice([-1.0, 1.0], 4000), rng.integers(-149, 127, 4000))
    with np.errstate(over="ignore"):
        return (midpoints * divisor * sizes).astype(np.float32)


def around_ends(divisor: float) -> F32Array:
    """Numbers at the ends of the range, those of which the quotient is there, and those next to them, of both signs."""
    with np.errstate(over="ignore"):
        ends = np.array([*ENDS, *(np.array(ENDS) * divisor)], np.float32)
    bits = ends.view(np.int32)[:, None] + np.arange(-20, 21, dtype=np.int32)
    numbers = bits.view(np.float32).reshape(-1)
    return np.concatenate([numbers, -numbers])


def numbers(divisor: float, columns: int) -> F32Array:
    rng = np.random.default_rng(1)
    any_bits = rng.integers(0, 2**32, 8000, dtype=np.uint32).view(np.float32)
    found = np.concatenate([near_midpoints(rng, divisor), any_bits, around_ends(divisor)])
    # Some rows without numbers that have to be divided.
    usual = np.concatenate([rng.normal(size=5 * columns), near_midpoints(rng, divisor)]).astype(np.float32)
    usual[np.abs(usual) < 1e-20] = 0
    found = np.concatenate([found, usual])
    return np.resize(found, (-(-len(found) // columns), columns))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("number", range(len(SHORT + LONG)))
def test_quotients_have_the_bits_of_a_division(number: int, target: str) -> None:
    divisor, columns = (SHORT + LONG)[number], (16, 19, 256)[(number + TARGETS.index(target)) % 3]
    x = numbers(divisor, columns)

    def body(value: ir.Value) -> ir.Value:
        return arith.divf(value, constant(np.full(x.shape, divisor, np.float32)))

    executable: Any = qdialect.compile(graph([tensor(x.shape, "f32")], body), target=target, cache=False)
    with np.errstate(all="ignore"):
        found, wanted = executable(x), x / np.float32(divisor)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(found[known].view(np.int32), wanted[known].view(np.int32))
