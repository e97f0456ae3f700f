"""Sums of words that are added up as floats: the bound, the bits of what is computed so, and threads that flush."""

import ctypes
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
from graphs import convolution
from numpy.typing import NDArray
from together import check_compiled, variants_together

from qdialect.lowering.kernels import stored_words
from qdialect.lowering.kernels.contraction import Contraction
from qdialect.lowering.pipeline import Phase, lower
from qdialect.lowering.program import Kernel, Program
from qdialect.lowering.tiling.float_sums import runs_of, shift_of, sums_fit
from qdialect.lowering.tiling.strategy import Strategy, strategy_of
from qdialect.reference.interpreter import run
from qdialect.runtime import compile_module
from qdialect.target import TARGETS, host_features, resolve

KINDS = ("avx512bw", "avx2", "sse4.1", "x86-64")
HERE = [f"{name},tune=znver4" + ("" if TARGETS[name].features <= host_features() else ",portable") for name in KINDS]
WINDOWS = [
    ((1, 5, 7, 33), (8, 3, 3, 33), (2, 2), (0, 1, 1, 0), (1, 1), 1),
    ((1, 6, 6, 64), (33, 3, 3, 64), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    ((1, 6, 6, 40), (24, 2, 3, 40), (1, 1), (1, 1, 1, 1), (2, 1), 1),
    ((2, 3, 5, 72), (72, 1, 1, 36), (1, 1), (0, 0, 0, 0), (1, 1), 2),
    ((1, 1, 9, 131), (40, 1, 1, 131), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    ((1, 1, 13, 1024), (48, 1, 1, 1024), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    ((1, 1, 7, 1030), (16, 1, 1, 1030), (1, 1), (0, 0, 0, 0), (1, 1), 1),
]
DENSE = ((1, 1, 64, 768), (64, 1, 1, 768), (1, 1), (0, 0, 0, 0), (1, 1), 1)
FLUSHING = 0x8040
"""The bits of the control register by which a thread takes subnormal numbers for zero, and makes zero of them."""


def extreme(shape: tuple[int, ...], dtype: Any, seed: int) -> NDArray[Any]:
    ends = np.iinfo(dtype)
    return np.random.default_rng(seed).choice([ends.min, ends.max - 1, ends.max], shape).astype(dtype)


def always(op: Contraction, strategy: Strategy, beside: float = 0) -> bool:
    del op, strategy, beside
    return True


def test_bits_of_floats_add_up_as_integers_do_up_to_2_to_the_24th() -> None:
    rng = np.random.default_rng(0)
    total = rng.integers(0, 2**24 + 1, 200_000).astype(np.int32)
    total[:4] = 2**24, 2**23, 2**23 - 1, 0
    first = (total * rng.random(len(total))).astype(np.int32)
    floats = first.view(np.float32) + (total - first).view(np.float32)
    np.testing.assert_array_equal(floats.view(np.int32), total)


def test_a_run_keeps_the_bound_or_not() -> None:
    fits = np.full((1, 257), 255, np.int16)
    assert sums_fit(fits)
    assert not sums_fit(np.full((1, 259), 255, np.int16))
    assert not sums_fit(np.array([[3, -1]], np.int16))


def test_weights_are_cut_into_as_few_runs_as_keep_the_bound() -> None:
    assert runs_of(np.full((2, 256), 255, np.int16)) == 1
    assert runs_of(np.full((2, 3, 512), 255, np.int16)) == 2
    assert runs_of(np.full((2, 3, 518), 255, np.int16)) == 7
    assert runs_of(np.full((2, 514), 255, np.int16)) is None
    assert runs_of(np.full((2, 62), 1, np.int16)) is None
    assert (shift_of(np.array([-128, 3])), shift_of(np.array([4, 3]))) == (128, 0)


def test_weights_beyond_the_bound_are_no_parameter() -> None:
    kernel = Kernel(Program([], [], strategy_of(resolve("avx2,tune=znver4"))))
    kernel.float_run("weights", np.full((128, 1, 8, 2), 255, np.int16))
    with pytest.raises(ValueError, match=r"weights must have runs .* whose sums of products are exact as floats"):
        kernel.float_run("weights", np.full((130, 1, 8, 2), 255, np.int16))


@variants_together
@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize("number", range(len(WINDOWS)))
def test_every_weight_and_zero_point_is_exact(target: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_words, "is_faster", always)
    data, weight = (np.uint8, np.int8)[number % 2], (np.int8, np.uint8)[number // 2 % 2]
    low, channels = np.iinfo(weight).min, WINDOWS[number][1][0]
    points = tuple(low + (128, 255, 0, 1)[(number + k) % 4] for k in range(channels if number % 2 else 1))
    names = {np.uint8: "ui8", np.int8: "i8"}
    module = convolution(WINDOWS[number], names[data], extreme(WINDOWS[number][1], weight, number), points)
    rounds = [[extreme(WINDOWS[number][0], data, 9)], [np.full(WINDOWS[number][0], np.iinfo(data).max, data)]]
    check_compiled(module, target, rounds, [run(module, arrays) for arrays in rounds])


@pytest.mark.parametrize(
    ("target", "as_floats"),
    [("avx2,tune=znver4", True), ("sse4.1,tune=znver4", True), ("znver3", False), ("haswell", False), ("avx2", False)],
)
def test_sums_are_floats_where_the_core_adds_them_beside_products(target: str, as_floats: bool) -> None:
    module = convolution(DENSE, "ui8", extreme(DENSE[1], np.int8, 0), (0,))
    text = str(lower(module, resolve(target), Phase.X86).module)
    assert ("qnn.float_run = 128" in text, "arith.addf" in text, "x86.sse.ldmxcsr" in text) == (as_floats,) * 3


@pytest.fixture
def flushing_thread() -> Generator[None]:
    """A thread that flushes subnormal numbers; afterwards as it was."""
    before = environment()
    changed = environment()
    changed[-1] |= FLUSHING
    assert ctypes.CDLL("libm.so.6").fesetenv(ctypes.byref(changed)) == 0
    yield
    assert ctypes.CDLL("libm.so.6").fesetenv(ctypes.byref(before)) == 0


def environment() -> Any:
    """What `fegetenv` gives; the last of these words is the control register."""
    found = (ctypes.c_uint32 * 8)()
    assert ctypes.CDLL("libm.so.6").fegetenv(ctypes.byref(found)) == 0
    return found


@pytest.mark.skipif(not TARGETS["avx2"].features <= host_features(), reason="needs AVX2")
@pytest.mark.usefixtures("flushing_thread")
def test_a_thread_that_flushes_subnormal_numbers_gets_the_same_bits_and_goes_on_flushing() -> None:
    module = convolution(DENSE, "ui8", extreme(DENSE[1], np.int8, 0), (0,))
    data = extreme(DENSE[0], np.uint8, 1)
    found = compile_module(module, target="avx2,tune=znver4")(data)
    np.testing.assert_array_equal(found, run(module, [data])[0])
    assert environment()[-1] & FLUSHING == FLUSHING
