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


def test_every_byte_inside_may_be_touched() -> None:
    assert statuses(5000, *((offset, at_end) for offset in (0, 4999) for at_end in (True, False))) == [0] * 4


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
