"""Helpers of the tests: guarded processes, tolerances, variants together."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled_ops import check_compiled, variants_together
from drawn_graphs import graph
from guarded_worker import GuardedRunner
from numpy.typing import NDArray
from quantized_layers import fused
from tolerances import EXACT, TOLERANCES, Tolerance, assert_bits, assert_floats_within, assert_within

from qdialect.dialect import ClipOp, build
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.model_files import FORMATS

# The guards of the fuzz tests can fail: one byte outside ends the process, and a crash is reported.

TEST_FOLDER = str(Path(__file__).resolve().parents[1])
# Each byte is touched in a fork, which may end for it.
TOUCH = """
import ctypes, os, sys
sys.path.insert(0, sys.argv[1])
from guarded_worker import guarded
for offset, at_end in {touches}:
    child = os.fork()
    if not child:
        block = guarded({size}, at_end=at_end)
        ctypes.string_at(block.ctypes.data + offset, 1)
        ctypes.memset(block.ctypes.data + offset, 0, 1)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def statuses(size: int, *touches: tuple[int, bool]) -> list[int]:
    """The exit statuses of processes that touch one byte each, at an offset of a block, which may end at its guard."""
    script = TOUCH.format(size=size, touches=touches)
    done = subprocess.run([sys.executable, "-c", script, TEST_FOLDER], check=True, capture_output=True, text=True)
    return [int(line) for line in done.stdout.split()]


@pytest.mark.parametrize("size", [1, 100, 4096, 5000])
def test_one_byte_outside_ends_the_process(size: int) -> None:
    assert statuses(size, (size, True), (-1, False)) == [-signal.SIGSEGV] * 2


def test_a_crash_is_an_answer_and_the_next_request_is_served() -> None:
    runner = GuardedRunner()
    text = str(graph(["tensor<1x3x3x2xui8>"], fused))
    try:
        assert runner.check(text, "generic", 0) == []
        runner.kill()
        assert runner.check(text, "generic", 0) == ["compiled code ended the process with status -9"]
        assert runner.check(text, "generic", 0) == []
    finally:
        runner.close()


# Comparisons that have a bound of their own.


@pytest.mark.parametrize("suffix", TOLERANCES)
def test_the_table_names_operators_that_exist(suffix: str) -> None:
    assert set(TOLERANCES[suffix]) <= set(FORMATS[suffix].operators())


def test_comparisons_refuse_values_that_are_too_far() -> None:
    wanted = np.zeros(100, dtype=np.int8)
    one, far = wanted.copy(), wanted.copy()
    one[3], far[3] = 1, 2
    assert_within(one, wanted, Tolerance(1, 0.01, "why"))
    for found, tolerance in ((one, EXACT), (far, Tolerance(1, 0.01, "why")), (one, Tolerance(1, 0.009, "why"))):
        with pytest.raises(AssertionError):
            assert_within(found, wanted, tolerance)
    with pytest.raises(AssertionError):
        assert_within(wanted.astype(np.int16), wanted, EXACT)
    with pytest.raises(AssertionError):
        assert_floats_within(np.array([1.0001]), np.array([1.0]), "layer")


# The decorator that makes one test of many variants: wrong variants are found and named, as by a test for each.


@variants_together
@pytest.mark.parametrize("element", ["i8", "i32"])
@pytest.mark.parametrize(("bound", "wrong"), [(3, None), (5, "i32"), (6, "all"), (7, None)])
def clips(bound: int, wrong: str | None, element: str, fixture: list[str]) -> None:
    fixture.append(f"{element} {bound}")
    assert wrong != "all", "found by the test itself"
    x = np.arange(-8, 8).astype(NUMPY_DTYPES[element])
    module = graph([f"tensor<16x{element}>"], lambda x: build(ClipOp, x, element=element, min=0, max=bound).output)
    expected = np.clip(x, 0, bound)
    expected[3] += wrong == element
    check_compiled(module, "host", [[x]], [[expected]])


def test_every_variant_runs_and_those_that_are_wrong_are_named() -> None:
    seen: list[str] = []
    with pytest.raises(pytest.fail.Exception) as caught:
        clips(fixture=seen)
    message = str(caught.value)
    assert sorted(seen) == sorted(f"{element} {bound}" for bound in (3, 5, 6, 7) for element in ("i8", "i32"))
    assert message.startswith("3 of 8 variants fail; one alone: VARIANT=")
    assert "variant [bound=5, wrong='i32', element='i32']" in message
    assert "Mismatched elements: 1 / 16" in message
    # The line of the test that called the check.
    assert "check_compiled(module, " in message
    assert message.count("found by the test itself") >= 2
    assert "bound=7" not in message


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (np.array([0], np.float32), np.array([-0.0], np.float32)),
        (np.array([1], np.int8), np.array([1], np.uint8)),
        (np.array([[1]], np.int8), np.array([1], np.int8)),
        (np.array([np.nan], np.float32), np.array([1], np.float32)),
    ],
)
def test_bits_are_compared(found: NDArray[Any], wanted: NDArray[Any]) -> None:
    assert_bits(found, found.copy(), "output 3")
    with pytest.raises(AssertionError, match="output 3"):
        assert_bits(found, wanted, "output 3")


# A test whose model is absent is skipped with the reason, and fails in CI.

OF_ABSENT_MODELS = """
def test_model(require_model):
    require_model("no_such_model")

def test_recording(require_reference):
    require_reference("no_such_model", "layers")
"""


@pytest.mark.parametrize(("ci", "outcome"), [("", "2 skipped"), ("true", "2 failed")])
def test_a_test_of_an_absent_model(tmp_path: Path, ci: str, outcome: str) -> None:
    (tmp_path / "test_it.py").write_text(OF_ABSENT_MODELS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rsf", "-p", "conftest", "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "CI": ci, "PYTHONPATH": TEST_FOLDER, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in done.stdout
    assert "no_such_model is not here: run 'make models' or set QDIALECT_MODELS" in done.stdout
