"""A bound on time that only an algorithm of the wrong order exceeds.

How fast a machine is must not decide whether a test passes. So the bound is a minute of processor time, where the work
takes a few seconds at most on any machine, and the input is so large that quadratic work would take several minutes and
exponential work would never end.
"""

import re
import resource
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

SECONDS = 60.0
"""Of processor time, for work that is bounded by the size of its input."""

HANG = 900.0
"""Of wall-clock time: a process that has not ended by then never will, however many others the machine runs."""


@contextmanager
def deadline(what: str = "this", seconds: float = SECONDS) -> Generator[None]:
    """Fail the test where the block takes more processor time than that; Python code is ended at once.

    Usable in the main thread, where pytest runs tests. The failure of the test is no `Exception`, so that no handler in
    the code under test takes it for its own.
    """

    expired: list[object] = []

    def late(*_: object) -> NoReturn:
        expired.append(what)
        pytest.fail(f"{what} must take at most {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, late)
    start = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    # Code of an extension is not interrupted, and may swallow what a handler raises.
    if expired or time.process_time() - start > seconds:
        late()


# A bound on the memory that a block takes at its peak, whatever the tests before it have taken in the same process.

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


@contextmanager
def memory_at_most(size: int, what: str = "this") -> Generator[None]:
    """Fail the test where the block needs more than `size` bytes beyond what the process holds at its start.

    The peak of the process is forgotten first.  Where the system cannot do that, a peak below the one of an earlier
    test is not seen.
    """
    before = _restarted()
    yield
    taken = _peak() - before
    assert taken <= size, f"{what} must take at most {size} bytes, but took {taken}"


def _restarted() -> int:
    """The bytes that the process holds, where its peak starts again; else the peak."""
    try:
        _CLEAR.write_text("5")
    except OSError:
        return _peak()
    return _kibibytes("VmRSS") << 10


def _peak() -> int:
    if _STATUS.exists():
        return _kibibytes("VmHWM") << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _kibibytes(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    assert found
    return int(found[1])
