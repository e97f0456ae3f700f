"""How many threads a network may be divided among, and what its code calls of their runtime."""

from __future__ import annotations

from qdialect.diagnostics import CompileError

MAX = 256
"""Parts beyond this have nothing left to compute."""

SYMBOLS = ("GOMP_parallel", "omp_get_num_threads", "omp_get_thread_num")
"""What compiled code for several threads takes from an OpenMP runtime."""


def checked(threads: object) -> int:
    """`threads` as a count; raises `CompileError` unless it is at least 1."""
    if not isinstance(threads, int) or isinstance(threads, bool) or not 1 <= threads <= MAX:
        raise CompileError(f"threads must be an integer from 1 to {MAX}, but got {threads!r}")
    return threads
