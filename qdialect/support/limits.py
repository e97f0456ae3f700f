"""The resources of this machine and of the container around this process: memory, stacks, and threads to use."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from qdialect.support.diagnostics import CompileError, QDialectError

_MEMBERSHIP = Path("/proc/self/cgroup")
_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_MEMORY = Path("/proc/self/statm")
_LITTLE = 1 << 22
_STACK = 1 << 20
_LEAST_FREE = 48 << 20
# More than the attributes of a thread take on any system.
_ATTRIBUTES = 256


def memory_limit() -> int:
    """Bytes of memory that this process may have: the smallest of the limits of machine, container and process."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    process, _ = resource.getrlimit(resource.RLIMIT_AS)
    own = [machine] if process == resource.RLIM_INFINITY else [machine, process]
    return min([*own, *container_limits()])


def exceeded_limit(size: int) -> int | None:
    """The memory limit where `size` bytes are more than that; None where this process may have them."""
    # Small sizes are not checked, because reading the limit takes as long as a small compilation step.
    limit = memory_limit() if size > _LITTLE else size
    return limit if size > limit else None


def check_free_memory() -> None:
    """Raise `QDialectError` where this process may have no memory for MLIR and LLVM: they would end it."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    pages = _text(_MEMORY).partition(" ")[0]
    left = limit - int(pages or 0) * resource.getpagesize()
    if left < _LEAST_FREE:
        needed = f"{_LEAST_FREE} bytes of memory left to compile"
        message = f"a process must have {needed}, but has {max(left, 0)} of {limit}"
        raise QDialectError(f"{message}: ulimit -v sets the limit")


@cache
def can_start_threads(count: int) -> bool:
    """Whether this process may start `count` more threads: LLVM ends it if it does not get its threads."""
    end, started = threading.Event(), list[threading.Thread]()
    try:
        for _ in range(count):
            thread = threading.Thread(target=end.wait, daemon=True)
            thread.start()
            started.append(thread)
    except (RuntimeError, MemoryError):
        return False
    finally:
        end.set()
        for thread in started:
            thread.join()
    return True


def check_stack() -> None:
    """Raise `QDialectError` where this thread has less stack than MLIR and LLVM need: they would end the process."""
    size = stack_bytes()
    if size < _STACK:
        way_out = "threading.stack_size before the thread is made, or ulimit -s, sets it"
        raise QDialectError(f"stack of this thread must have at least {_STACK} bytes, but has {size}: {way_out}")


def stack_bytes() -> int:
    """How much stack this thread may have."""
    if threading.get_ident() == threading.main_thread().ident:
        soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
        return sys.maxsize if soft == resource.RLIM_INFINITY else soft
    library, size = ctypes.CDLL(None), ctypes.c_size_t(sys.maxsize)
    attributes = ctypes.create_string_buffer(_ATTRIBUTES)
    # It is no part of POSIX, and a thread is an integer or a pointer.
    if hasattr(library, "pthread_getattr_np"):
        library.pthread_getattr_np(ctypes.c_void_p(threading.get_ident()), attributes)
        library.pthread_attr_getstacksize(attributes, ctypes.byref(size))
        library.pthread_attr_destroy(attributes)
    return size.value


def container_limits(membership: Path = _MEMBERSHIP, root: Path = _CONTROL_GROUPS) -> list[int]:
    """Bytes of memory that each control group around this process allows; a group without a limit is left out.

    `membership` names the groups as cgroups(7) describes, in version 1 or 2; `root` is where they are mounted. Inside
    of a container the named group may be outside of the mount, whose top is the container's own group then.
    """
    limits = [_number(file) for line in _text(membership).splitlines() for file in _limit_files(line, root)]
    return [limit for limit in limits if limit is not None]


def _limit_files(line: str, root: Path) -> Iterator[Path]:
    """The files with the limit of the group that ``ID:CONTROLLERS:PATH`` names, and of those around it."""
    _, _, controllers_and_path = line.partition(":")
    controllers, _, path = controllers_and_path.partition(":")
    if controllers and "memory" not in controllers.split(","):
        return
    top, file = (root / "memory", "memory.limit_in_bytes") if controllers else (root, "memory.max")
    group = Path(path.removeprefix("/"))
    for folder in (group, *group.parents):
        if ".." not in folder.parts:
            yield top / folder / file


def _number(file: Path) -> int | None:
    """The number in `file`; None if the file is absent or contains ``max``."""
    text = _text(file).strip()
    return int(text) if text.isdecimal() else None


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


MAX = 256
"""Parts beyond this have nothing left to compute."""

SYMBOLS = ("GOMP_parallel", "omp_get_num_threads", "omp_get_thread_num")
"""The symbols of an OpenMP runtime that compiled code for several threads uses."""


def checked(threads: object) -> int:
    """`threads` as a count; raises `CompileError` unless it is at least 1."""
    if not isinstance(threads, int) or isinstance(threads, bool) or not 1 <= threads <= MAX:
        raise CompileError(f"threads must be an integer from 1 to {MAX}, but got {threads!r}")
    return threads


# How many threads a compilation may use at the same time, like ``--jobs`` of a build tool.
#
# Compiled code does not depend on the number.

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
