"""How many threads a network may be divided among, and how many a compilation may use."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from qdialect.support.diagnostics import CompileError

# How many threads a network may be divided among, and what its code calls of their runtime.

MAX = 256
"""Parts beyond this have nothing left to compute."""

SYMBOLS = ("GOMP_parallel", "omp_get_num_threads", "omp_get_thread_num")
"""What compiled code for several threads takes from an OpenMP runtime."""


def checked(threads: object) -> int:
    """`threads` as a count; raises `CompileError` unless it is at least 1."""
    if not isinstance(threads, int) or isinstance(threads, bool) or not 1 <= threads <= MAX:
        raise CompileError(f"threads must be an integer from 1 to {MAX}, but got {threads!r}")
    return threads


# How many threads a compilation may use at the same time, like ``--jobs`` of a build tool.
#
# What is compiled does not depend on the number.

_jobs: ContextVar[int | None] = ContextVar("jobs", default=None)


def checked_jobs(jobs: object) -> int:
    """`jobs` as a count; raises `CompileError` unless it is at least 1."""
    if not isinstance(jobs, int) or isinstance(jobs, bool) or jobs < 1:
        raise CompileError(f"jobs must be an integer of at least 1, but got {jobs!r}")
    return jobs


def available_jobs() -> int:
    """The number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def active_jobs() -> int:
    """The number for the current compilation: that of `using_jobs`, at most one for each CPU of this process."""
    return min(_jobs.get() or available_jobs(), available_jobs())


@contextmanager
def using_jobs(jobs: int | None) -> Generator[None]:
    """Compile inside on `jobs` threads, by default one for each CPU; raises `CompileError` as `checked_jobs` does."""
    token = _jobs.set(None if jobs is None else checked_jobs(jobs))
    try:
        yield
    finally:
        _jobs.reset(token)
