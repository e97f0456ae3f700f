"""The lock of the working memory of an executable, which one call at a time uses."""

from __future__ import annotations

import os
from threading import RLock
from weakref import WeakSet


class CallLock:
    """A lock that a signal handler may take while its own thread has it, and that is free in a forked process.

    The other threads of a process do not survive a fork, so that a lock of theirs would never be released.
    """

    __slots__ = ("__weakref__", "lock")

    def __init__(self) -> None:
        self.lock = RLock()
        """To be held for each call; read it anew for every one."""
        _ALL.add(self)

    def begin_anew(self) -> None:
        """Forget who holds the lock."""
        self.lock = RLock()


_ALL: WeakSet[CallLock] = WeakSet()


def _begin_all_anew() -> None:
    for lock in list(_ALL):
        lock.begin_anew()


os.register_at_fork(after_in_child=_begin_all_anew)
