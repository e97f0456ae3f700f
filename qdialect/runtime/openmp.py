"""The OpenMP runtime whose threads networks run on: found on this machine, never part of this package."""

from __future__ import annotations

import ctypes
import os
from functools import cache

from qdialect.support.diagnostics import CompileError
from qdialect.support.limits import MAX, SYMBOLS

VARIABLE = "QDIALECT_OPENMP"
"""Environment variable that names the runtime's library, by name or path."""

NAMES = ("libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so")
"""Libraries that are tried, in this order."""


@cache
def addresses() -> dict[str, int]:
    """The addresses of the functions that compiled code calls; raises `CompileError` if no runtime is found.

    A library that the process has already loaded, such as PyTorch's, is preferred.
    """
    name, library = _library()
    found: dict[str, int] = {}
    for symbol in SYMBOLS:
        function = getattr(library, symbol, None)
        if function is None:
            raise CompileError(f"OpenMP runtime '{name}' has no function '{symbol}'")
        found[symbol] = ctypes.cast(function, ctypes.c_void_p).value or 0
    return found


@cache
def stays_loaded() -> bool:
    """Keep the loaded runtime until the process ends, because its threads stay; returns whether it is in `NAMES`."""
    kept = [_is_kept(name) for name in NAMES]
    return any(kept)


def _is_kept(name: str) -> bool:
    try:
        # Adds a reference to a loaded library, which is never released; loads none.
        ctypes.CDLL(name, os.RTLD_NOLOAD)
    except OSError:
        return False
    return True


def _library() -> tuple[str, ctypes.CDLL]:
    named = os.environ.get(VARIABLE)
    problems: list[str] = []
    for name in (named,) if named else NAMES:
        try:
            return name, ctypes.CDLL(name)
        except OSError as error:
            problems.append(str(error))
    if named:
        raise CompileError(f"OpenMP runtime that {VARIABLE} names cannot be loaded: {problems[0]}")
    raise CompileError(
        f"more than one thread needs an OpenMP runtime, but none of {', '.join(NAMES)} is installed: install libgomp1 "
        f"(Debian, Ubuntu), libgomp (Fedora) or libomp, or set {VARIABLE} to the path of one"
    )


# The thread limit of calls in this process.

THREAD_LIMIT = ctypes.c_int32(MAX)
"""The most threads that compiled code asks for; it is read at every call."""


def _compute_alone() -> None:
    # Threads do not survive a fork, and libgomp would wait for them for ever. Other users of the runtime keep their
    # settings.
    THREAD_LIMIT.value = 1


os.register_at_fork(after_in_child=_compute_alone)
