"""The guards of the fuzz tests can fail: one byte outside ends the process, and a crash is reported."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from graphs import graph
from guarded import GuardedRunner
from quantized_layers import fused

TEST_FOLDER = str(Path(__file__).resolve().parents[1])
TOUCH = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
from guarded_worker import guarded
block = guarded({size}, at_end={at_end})
ctypes.string_at(block.ctypes.data + {offset}, 1)
ctypes.memset(block.ctypes.data + {offset}, 0, 1)
"""


def status(size: int, offset: int, *, at_end: bool) -> int:
    script = TOUCH.format(size=size, offset=offset, at_end=at_end)
    return subprocess.run([sys.executable, "-c", script, TEST_FOLDER], check=False).returncode


@pytest.mark.parametrize("size", [1, 100, 4096, 5000])
def test_one_byte_outside_ends_the_process(size: int) -> None:
    assert status(size, size, at_end=True) == -signal.SIGSEGV
    assert status(size, -1, at_end=False) == -signal.SIGSEGV


def test_every_byte_inside_may_be_touched() -> None:
    assert [status(5000, offset, at_end=at_end) for offset in (0, 4999) for at_end in (True, False)] == [0] * 4


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


def test_what_cannot_be_compiled_is_an_answer() -> None:
    runner = GuardedRunner()
    try:
        assert "function" in runner.check("module {}", "generic", 0)[0]
    finally:
        runner.close()
