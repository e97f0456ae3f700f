"""Exponentials of numbers around and far below the bound from which they are zero, where no instruction limits them."""

from typing import Any

import numpy as np
import pytest
from compiled_ops import tensor
from graphs import graph

import qdialect
from qdialect.arithmetic import float32
from qdialect.ir._mlir import math

F32 = np.float32
TARGETS = ("host", "amxint8,portable", "avx512bw,portable", "avx2,portable")
FUNCTIONS = {"exp": (math.exp, -105.0), "exp2": (math.exp2, -151.0)}


def numbers(bound: float) -> Any:
    """The numbers next to the bound, those whose results are subnormal, any by their bits, and the ends."""
    rng = np.random.default_rng(3)
    near = (F32(bound).view(np.int32) + np.arange(-3000, 3001, dtype=np.int32)).view(F32)
    small = rng.uniform(bound - 5, 0.8 * bound, 4000).astype(F32)
    drawn = rng.integers(0, 2**32, 8000, dtype=np.uint32).view(F32)
    powers = -np.ldexp(F32(1), np.arange(-149, 128)).astype(F32)
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -3.4e38, 3.4e38, 89, 129], F32)
    return np.concatenate([near, small, drawn, powers, ends])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("columns", [1, 7, 16, 19, 512])
def test_kernels_have_the_bits_of_the_reference(name: str, target: str, columns: int) -> None:
    function, bound = FUNCTIONS[name]
    drawn = numbers(bound)
    x = np.resize(drawn, (-(-len(drawn) // columns), columns))
    executable: Any = qdialect.compile(graph([tensor(x.shape, "f32")], function), target=target, cache=False)
    found, wanted = executable(x), float32.evaluate(f"math.{name}", x)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(found[known].view(np.int32), wanted[known].view(np.int32))
    assert not np.isnan(found[x < bound]).any()
