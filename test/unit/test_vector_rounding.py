"""Vectors of f32 numbers rounded without an instruction that rounds: the bits of NumPy's functions."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from vector_programs import run, x86_text

from qdialect.targets import TARGETS

SHAPE = (64, 8)
KERNEL = """
func.func @main(%a: memref<64x8xf32>, %b: memref<64x8xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = arith.constant 64 : index
  scf.for %i = %c0 to %rows step %c1 {{
    %x = vector.load %a[%i, %c0] : memref<64x8xf32>, vector<8xf32>
    %r = math.{} %x : vector<8xf32>
    vector.store %r, %b[%i, %c0] : memref<64x8xf32>, vector<8xf32>
  }}
  return
}}
"""
FUNCTIONS: dict[str, Callable[[NDArray[np.float32]], NDArray[np.float32]]] = {
    "roundeven": np.rint,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
}


def drawn(kind: str, random: np.random.Generator) -> NDArray[np.float32]:
    """Numbers of any bits, halves and their neighbours, or special ones."""
    if kind == "bits":
        return random.integers(0, 2**32, SHAPE, np.uint32).view(np.float32)
    if kind == "special":
        edges = [0.0, -0.0, 0.5, -0.5, 1.5, -2.5, 2.0**23 - 0.5, 2.0**23, 2.0**23 + 1, -(2.0**31), 2.0**31, 1e-45]
        return random.choice(np.array([*edges, np.inf, -np.inf, np.nan], np.float32), SHAPE)
    halves = (random.integers(-(2**23), 2**23, SHAPE) / 2 / random.choice([1, 2**8, 2**20], SHAPE)).astype(np.float32)
    return (
        np.nextafter(halves, random.choice(np.array([-np.inf, np.inf], np.float32), SHAPE))
        if kind == "near"
        else halves
    )


@pytest.mark.parametrize("kind", ["bits", "halves", "near", "special"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rounds_as_numpy(name: str, kind: str) -> None:
    data = drawn(kind, np.random.default_rng(7))
    _, result = run(KERNEL.format(name), [data, np.zeros_like(data)], TARGETS["x86-64"])
    with np.errstate(invalid="ignore"):
        wanted = FUNCTIONS[name](data)
    is_number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(result), ~is_number)
    np.testing.assert_array_equal(result[is_number].view(np.uint32), wanted[is_number].view(np.uint32))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_only_targets_without_the_instruction_take_it_apart(name: str) -> None:
    assert f"math.{name}" not in x86_text(KERNEL.format(name), TARGETS["x86-64"])
    assert f"math.{name}" in x86_text(KERNEL.format(name), TARGETS["sse4.1"])
