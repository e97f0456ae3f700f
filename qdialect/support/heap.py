"""Returns free memory of the C library's heap to the system, and pauses Python's garbage collector."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from threading import Lock


def return_free_memory() -> None:
    """Give whole pages back that are free between others in use; does nothing without glibc.

    Much of what reading a model and packing weights take is free afterwards, in pieces: large arrays that come next do
    not fit into them, and would take new memory.
    """
    _trim()(0)


@cache
def _trim() -> Callable[[int], object]:
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    return getattr(library, "malloc_trim", id)


@cache
def _age_imports() -> None:
    """Let the collector take all objects for old ones, once: the first compilation leaves modules, which stay.

    The collection of young ones that is due would look at each of them. Of later compilations it finds what is free.
    """
    # Objects that a program has frozen must not be collected at all.
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


class _Collector:
    """Python's collector of cyclic garbage, which stands still while one or more threads want it to."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._count = 0
        self._collects = False
        os.register_at_fork(after_in_child=self._start_again)

    @contextmanager
    def paused(self) -> Generator[None]:
        with self._lock:
            if self._count == 0:
                self._collects = gc.isenabled()
                gc.disable()
            self._count += 1
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1
                self._resume()

    def _resume(self) -> None:
        if self._count <= 0 and self._collects:
            self._collects = False
            _age_imports()
            gc.enable()

    def _start_again(self) -> None:
        # The threads that wanted it do not survive a fork.
        self._lock, self._count = Lock(), 0
        self._resume()


paused_collector = _Collector().paused
"""A context in which Python does not look for cyclic garbage.

Modules and what is compiled stay, so that to look through all of it again and again finds nothing.
"""
