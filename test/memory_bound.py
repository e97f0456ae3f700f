"""A bound on the memory that a block takes at its peak, whatever the tests before it have taken in the same process."""

from __future__ import annotations

import re
import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

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
