"""Programs that may crash or hang, run where neither can harm the tests."""

import subprocess
import sys
from pathlib import Path

from bounds import HANG

_ROOT = Path(__file__).resolve().parents[1]

IN_THREADS = """
import threading

def in_threads(work, count=8):
    failures = []
    def guarded(index):
        try:
            work(index)
        except BaseException as error:
            failures.append(repr(error))
    found = [threading.Thread(target=guarded, args=(index,)) for index in range(count)]
    for thread in found:
        thread.start()
    for thread in found:
        thread.join()
    assert not failures, failures
"""
"""The beginning of a program: `in_threads` calls a function with numbers from 0 on, each in a thread of its own."""


def output_of(program: str, *arguments: str) -> str:
    """The text of the Python program `program`; fails with its stderr where it does not end well and in time."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
        cwd=_ROOT,
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stderr[-4000:]}"
    return done.stdout
