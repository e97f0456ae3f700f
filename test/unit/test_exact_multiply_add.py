"""Fused multiply-adds on targets without the instruction: the bits of exact rational numbers, and of NumPy's."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from vector_programs import HOST_TARGETS, reasons, run, x86_text

from qdialect.arithmetic.machine import multiply_add
from qdialect.targets import GENERIC, TARGETS, Target

F32Array = NDArray[np.float32]

WITHOUT = [GENERIC, *(one for one in HOST_TARGETS if "fma" not in one.code_features)]
SHAPE = (97, 16)
KERNEL = """
func.func @main(%a: memref<97x16xf32>, %b: memref<97x16xf32>, %c: memref<97x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = arith.constant 97 : index
  scf.for %i = %c0 to %rows step %c1 {
    %x = vector.load %a[%i, %c0] : memref<97x16xf32>, vector<16xf32>
    %y = vector.load %b[%i, %c0] : memref<97x16xf32>, vector<16xf32>
    %z = vector.load %c[%i, %c0] : memref<97x16xf32>, vector<16xf32>
    %r = math.fma %x, %y, %z : vector<16xf32>
    vector.store %r, %c[%i, %c0] : memref<97x16xf32>, vector<16xf32>
  }
  return
}
"""
SCALAR = """
func.func @main(%a: memref<1xf32>, %b: memref<1xf32>, %c: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %x = memref.load %a[%c0] : memref<1xf32>
  %y = memref.load %b[%c0] : memref<1xf32>
  %z = memref.load %c[%c0] : memref<1xf32>
  %r = math.fma %x, %y, %z : f32
  memref.store %r, %c[%c0] : memref<1xf32>
  return
}
"""
WIDE = """
func.func @main(%a: vector<4xf64>) -> vector<4xf64> {
  %r = math.fma %a, %a, %a : vector<4xf64>
  return %r : vector<4xf64>
}
"""
RNG = np.random.default_rng(5)


def drawn() -> list[F32Array]:
    """Numbers of any exponent, close ones whose sums cancel, ties, subnormal and special ones."""
    bits = RNG.integers(0, 2**32, (3, *SHAPE), np.uint32).view(np.float32)
    near = (RNG.integers(-(2**12), 2**12, (3, *SHAPE)) * 2.0 ** RNG.integers(-30, 6, (3, *SHAPE))).astype(np.float32)
    small = (RNG.integers(-(2**23), 2**23, (3, *SHAPE)) * 2.0**-90).astype(np.float32)
    special = RNG.choice(np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 3e38, 1e-45], np.float32), (3, *SHAPE))
    return [bits, near, small, lost_beside_ties(), lost_beside_subnormal_ties(), special]


def lost_beside_ties() -> F32Array:
    """Odd products, half of them of 25 bits and thus ties, and a sum that float64 does not see."""
    odd = RNG.integers(2**11, 2**12, (2, *SHAPE)) * 2 + 1
    sign, tiny = RNG.choice([-1, 1], (2, *SHAPE))
    return np.stack([odd[0] * sign, odd[1], tiny * 2.0**-60]).astype(np.float32)


def lost_beside_subnormal_ties() -> F32Array:
    """A number below 2^-126, and half of its last place less what float64 does not see."""
    half, sign = 2.0**-75, RNG.choice([-1, 1], SHAPE)
    whole = RNG.integers(2**22, 2**23, SHAPE) * 2.0**-149 * RNG.choice([-1, 1], SHAPE)
    return np.stack([half * (1 + 2.0**-23) * sign, np.full(SHAPE, half * (1 - 2.0**-23)), whole]).astype(np.float32)


def is_nearest(found: float, wanted: Fraction) -> bool:
    """Whether neither neighbour is nearer, or as near with an even last bit."""
    number = np.float32(found)
    own, is_odd = abs(Fraction(float(number)) - wanted), bool(number.view(np.uint32) & 1)
    sides = (np.nextafter(number, np.float32(side)) for side in (-np.inf, np.inf))
    others = [abs(Fraction(float(side)) - wanted) for side in sides]
    return min(others) > own or (min(others) == own and not is_odd)


@pytest.mark.parametrize("chosen", WITHOUT, ids=lambda chosen: chosen.name)
def test_vectors_have_the_bits_of_the_instruction(chosen: Target) -> None:
    for numbers in drawn():
        found = run(KERNEL, list(numbers), chosen)[2]
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(found, multiply_add(*numbers))


@pytest.mark.parametrize("chosen", WITHOUT, ids=lambda chosen: chosen.name)
@pytest.mark.parametrize("ties", [lost_beside_ties, lost_beside_subnormal_ties])
def test_one_tie_is_found_in_a_vector(chosen: Target, ties: Callable[[], F32Array]) -> None:
    numbers, lanes = RNG.normal(size=(3, *SHAPE)).astype(np.float32), np.arange(SHAPE[0])
    numbers[:, lanes, lanes % SHAPE[1]] = ties()[:, lanes, 0]
    found, wanted = run(KERNEL, list(numbers), chosen)[2], multiply_add(*numbers)
    np.testing.assert_array_equal(found, wanted)
    twice = (numbers[0].astype(np.float64) * numbers[1] + numbers[2]).astype(np.float32)
    assert (wanted != twice).any()


@pytest.mark.parametrize("chosen", [one for one in HOST_TARGETS if one not in WITHOUT], ids=lambda chosen: chosen.name)
def test_the_instruction_itself_has_them(chosen: Target) -> None:
    for numbers in drawn():
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(run(KERNEL, list(numbers), chosen)[2], multiply_add(*numbers))


def test_results_are_the_nearest_numbers() -> None:
    for numbers in drawn()[1:5]:
        found = run(KERNEL, list(numbers), GENERIC)[2].tolist()
        for i, j in np.ndindex(31, 16):
            a, b, c = (Fraction(float(value)) for value in numbers[:, i, j])
            assert is_nearest(found[i][j], a * b + c)


def test_a_single_number() -> None:
    """97 * 257 * 673 is 2^24 + 1, a tie."""
    numbers = [np.array([value], np.float32) for value in (97 * 257, 673, 2.0**-60)]
    assert run(SCALAR, numbers, GENERIC)[2] == [2.0**24 + 2]


def test_only_targets_without_the_instruction_are_given_other_ones() -> None:
    for name in ("generic", "x86-64", "sse4.1"):
        assert "math.fma" not in x86_text(KERNEL, TARGETS[name])
    assert "math.fma" in x86_text(KERNEL, TARGETS["avx2"])


def test_other_numbers_are_left_alone() -> None:
    assert reasons(WIDE, GENERIC) == ["[exact-multiply-add] 'math.fma' numbers must be f32, but got f64"]
