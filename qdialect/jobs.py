"""How many threads a compilation may use at the same time, as ``--jobs`` of a build tool says it.

What is compiled does not depend on the number.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from qdialect.diagnostics import CompileError

_jobs: ContextVar[int | None] = ContextVar("jobs", default=None)


def checked(jobs: object) -> int:
    """`jobs` as a count; raises `CompileError` unless it is at least 1."""
    if not isinstance(jobs, int) or isinstance(jobs, bool) or jobs < 1:
        raise CompileError(f"jobs must be an integer of at least 1, but got {jobs!r}")
    return jobs


def available() -> int:
    """The number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def active() -> int:
    """The number for what is compiled now: as `using` says, at most one for each CPU of this process."""
    return min(_jobs.get() or available(), available())


@contextmanager
def using(jobs: int | None) -> Generator[None]:
    """Compile inside on `jobs` threads, by default one for each CPU; raises `CompileError` as `checked` does."""
    token = _jobs.set(None if jobs is None else checked(jobs))
    try:
        yield
    finally:
        _jobs.reset(token)
