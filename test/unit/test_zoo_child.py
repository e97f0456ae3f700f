"""tools/zoo/child.py: a child's failure is told, and its limits hold."""

import time

import pytest
from deadline import HANG

from tools.zoo.child import Limits, run

LIMITS = Limits(HANG, 4.0)


def _python(code: str, limits: Limits = LIMITS) -> tuple[str, str]:
    """Output and failure of a child that runs `code` once."""
    ended = run("timeit", ["-n", "1", "-r", "1", code], limits)
    return ended.output, ended.failure


def test_a_child_that_ends_well_has_no_failure() -> None:
    output, failure = _python("print('said', end=' ')")
    assert output.startswith("said ")
    assert failure == ""


def test_the_failure_of_a_child_is_the_last_line_of_its_traceback() -> None:
    assert _python("raise ValueError('why')")[1] == "ended with status 1: ValueError: why"


def test_a_crash_is_told_by_its_signal() -> None:
    assert _python("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")[1] == "ended by SIGSEGV"


def test_a_child_that_takes_too_long_ends_with_all_that_it_started() -> None:
    start = time.monotonic()
    # The grandchild keeps the pipe open, so that a kill of the child alone would wait for it.
    code = "import subprocess; subprocess.run(['sleep', '3600'])"
    assert _python(code, Limits(1.0, 4.0))[1] == "took longer than 1 s"
    assert time.monotonic() - start < HANG


def test_a_child_that_takes_too_much_memory_fails() -> None:
    limits = Limits(HANG, 1.0)
    assert _python("bytearray(2**31)", limits)[1] == "ended with status 1: MemoryError"


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"])
def test_a_child_computes_on_one_thread(name: str) -> None:
    assert _python(f"import os; print(os.environ['{name}'], end=' ')")[0].startswith("1 ")
