"""Imports at first use, which a fork waits for and no signal interrupts, and when the first one was."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from importlib import import_module
from types import FrameType

IMPORTED = time.time()
"""When the package was imported, in seconds since the epoch: a module that changed since may not be what runs."""

# Those for which programs have handlers that raise. Ctrl-C comes first.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)


class _Uninterrupted:
    """A context in which no signal handler runs; signals that arrived are handled when it is left.

    A module that registers what it defines, as those of the bindings do, cannot be imported again where an exception of
    a handler, such as that of Ctrl-C, left it half done.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._handlers: dict[int, Callable[[int, FrameType | None], object]] = {}
        self._arrived: list[int] = []

    def __enter__(self) -> None:
        # Handlers of Python run in the main thread alone.
        if not _is_main_thread():
            return
        if self._depth == 0:
            try:
                self._defer()
            except BaseException:
                self._restore()
                raise
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        if not _is_main_thread():
            return
        self._depth -= 1
        if self._depth == 0:
            self._restore()
            arrived, self._arrived = self._arrived, []
            for number in dict.fromkeys(arrived):
                signal.raise_signal(number)

    def _defer(self) -> None:
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            # The others do not run in Python.
            if callable(handler):
                self._handlers[number] = handler
                signal.signal(number, self._note)

    def _note(self, number: int, _: object) -> None:
        self._arrived.append(number)

    def _restore(self) -> None:
        try:
            while self._handlers:
                number, handler = self._handlers.popitem()
                # An imported module may have set another one.
                if signal.getsignal(number) == self._note:
                    signal.signal(number, handler)
        finally:
            if self._handlers:
                self._restore()


class _LateImports:
    """A context in which one thread imports, as often as it likes.

    Python has a lock for every module that is being imported.  The thread that imports does not survive a fork, and the
    child would wait for that lock for ever.
    """

    def __init__(self) -> None:
        lock = self._lock = threading.RLock()
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)

    def __enter__(self) -> None:
        # First: an exception of a handler, before the body is entered, would leave the lock taken.
        UNINTERRUPTED.__enter__()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        UNINTERRUPTED.__exit__()


def _is_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


UNINTERRUPTED = _Uninterrupted()
"""Entered while a module imports what registers itself."""

# What is imported takes the lock of `logging` while it has the one below.  A fork has to take them in the same order,
# which is the reverse of that in which they were registered, and `logging` registers its own when it is imported.
import_module("logging")

LATE_IMPORTS = _LateImports()
"""Entered while a function that users call imports what it runs; never by a module while it is imported itself.

What is imported is not interrupted.
"""
