"""The memory of an executable's calls: its allocation, the pool of workspaces, the lock of a single one, and states."""

from __future__ import annotations

import contextlib
import mmap
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from queue import Empty, SimpleQueue
from threading import RLock, get_ident
from typing import Any, Generic, Protocol, Self, TypeVar
from weakref import WeakSet, ref

import numpy as np
from numpy.typing import NDArray

from qdialect.support.diagnostics import CompileError
from qdialect.support.interface import Array

# Allocation of a compiled network's memory.

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""

_LARGE = 1 << 21
"""Bytes of a huge page."""

Block = NDArray[np.uint8]
"""Memory as bytes."""

Allocate = Callable[[int], Block]
"""Allocates a writable block of a number of bytes, aligned to `ALIGNMENT`."""


def allocate(size: int) -> Block:
    """A block of `size` bytes with any content; a large one on huge pages where the system has them.

    A stream of weights misses the translation of every page of 4 KiB, and hardware prefetches up to its end only.
    """
    large = size >= _LARGE
    alignment = _LARGE if large else ALIGNMENT
    block = _mapped(size + alignment) if large else np.empty(size + alignment, dtype=np.uint8)
    start = -block.ctypes.data % alignment
    return block[start : start + size]


def _mapped(size: int) -> Block:
    # Whole huge pages: the last one counts only if the mapping covers it. A shared mapping, the default, would be the
    # same memory in a forked process, whose calls would overwrite this one's.
    block = mmap.mmap(-1, -(-size // _LARGE) * _LARGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        # Advice alone: a system without huge pages refuses it.
        with contextlib.suppress(OSError):
            block.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(block, dtype=np.uint8)


# The workspaces of an executable: one for each call at the same time, without a lock around calls.

MAX = 4096
"""Workspaces of one executable at most."""

# A waiting thread polls at this interval in seconds: a signal handler may raise an exception between the return of a
# workspace and its notification.
_PATIENCE = 0.05


class Workspace(Protocol):
    """Memory of a call; with `is_spare` it is freed when it is returned."""

    is_spare: bool


W = TypeVar("W", bound=Workspace)


def checked(workspaces: object) -> int:
    """`workspaces` as a count, by default one for each CPU of this process; raises `CompileError` for other values."""
    if workspaces is None:
        return len(os.sched_getaffinity(0))
    if not isinstance(workspaces, int) or isinstance(workspaces, bool) or not 1 <= workspaces <= MAX:
        raise CompileError(f"workspaces must be an integer from 1 to {MAX}, but got {workspaces!r}")
    return workspaces


class WorkspacePool(Generic[W]):
    """At most `limit` workspaces that `make` makes when they are first needed; the last returned is taken first.

    `take` waits while all are taken. A signal handler that interrupts a call of its own thread would wait for ever: it
    gets a workspace beyond the limit, which is freed when it is returned. A forked process has all workspaces, whatever
    other threads were doing. If a workspace is lost because a signal handler raised an exception before it was
    returned, a new one may be made.
    """

    def __init__(self, make: Callable[[], W], limit: int) -> None:
        self.limit = limit
        self._make = make
        # Appending to a list and taking from it are atomic, and so may be interrupted anywhere.
        self._idle: list[W] = []
        self._made: set[ref[W]] = set()
        self._callers: list[int] = []
        self._begin(limit)
        _ALL.add(self)

    def _begin(self, unmade: int) -> None:
        self._unmade = [None] * unmade
        self._waiting: deque[SimpleQueue[W]] = deque()

    def take(self) -> W:
        """A workspace for this thread alone; exceptions of `make` propagate.

        `give_back` follows in any case, with None where an exception comes first.
        """
        self._callers.append(get_ident())
        try:
            return self._idle.pop()
        except IndexError:
            return self._take_another()

    def give_back(self, workspace: W | None) -> None:
        """Return what `take` gave."""
        try:
            self._return(workspace)
        finally:
            # Until the workspace is back, a signal handler of this thread would wait for it.
            caller = get_ident()
            if caller in self._callers:
                self._callers.remove(caller)

    def _return(self, workspace: W | None) -> None:
        if workspace is None or workspace.is_spare:
            return
        if not self._waiting:
            self._idle.append(workspace)
            return
        try:
            # First come, first served.
            self._waiting.popleft().put(workspace)
        except IndexError:
            self._idle.append(workspace)

    def begin_anew(self) -> None:
        """In a forked process: forget the workspaces of threads that do not exist there."""
        self._callers = [thread for thread in self._callers if thread == get_ident()]
        self._begin(max(self.limit - len(self._idle), 0))

    def _take_another(self) -> W:
        if self._callers.count(get_ident()) > 1:
            return self._free() or self._spare()
        handed: SimpleQueue[W] = SimpleQueue()
        self._waiting.append(handed)
        try:
            while True:
                found = self._free()
                if found is not None:
                    return found
                with contextlib.suppress(Empty):
                    return handed.get(timeout=_PATIENCE)
        finally:
            self._stop_waiting(handed)

    def _stop_waiting(self, handed: SimpleQueue[W]) -> None:
        with contextlib.suppress(ValueError):
            self._waiting.remove(handed)
        # Another workspace may have been returned meanwhile.
        with contextlib.suppress(Empty):
            self._idle.append(handed.get_nowait())

    def _free(self) -> W | None:
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        try:
            self._unmade.pop()
        except IndexError:
            return None
        return self._new()

    def _new(self) -> W:
        """A new workspace of the pool; when it is garbage-collected, another one may be made."""
        made, unmade = self._made, self._unmade
        try:
            found = self._make()
        except BaseException:
            unmade.append(None)
            raise

        def lost(gone: ref[W]) -> None:
            made.discard(gone)
            unmade.append(None)

        made.add(ref(found, lost))
        return found

    def _spare(self) -> W:
        made = self._make()
        made.is_spare = True
        return made


# The lock of a workspace that only one call at a time may use.


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


_ALL: WeakSet[WorkspacePool[Any] | CallLock] = WeakSet()


def _begin_all_anew() -> None:
    for one in list(_ALL):
        one.begin_anew()


os.register_at_fork(after_in_child=_begin_all_anew)


# Arrays that a network keeps.


class States:
    """What a network keeps from call to call, by name; one call after the other reads and writes it."""

    def __init__(self, arrays: Mapping[str, Array], results: Mapping[str, str]) -> None:
        """`results` are the names of what comes in the place of those that are not written where they are."""
        self.arrays = {name: np.array(array) for name, array in arrays.items()}
        self.results, self._lock = results, CallLock()
        self._next = {name: np.empty_like(array) for name, array in self.arrays.items()}

    @classmethod
    def of(cls, states: Mapping[str, tuple[Array, str]]) -> Self:
        """Each array and its result."""
        return cls({name: one[0] for name, one in states.items()}, {name: one[1] for name, one in states.items()})

    def share(self, other: States) -> None:
        """Keep in the same memory as `other`, of the same network for another shape of its inputs."""
        self.arrays, self._next, self._lock = other.arrays, other._next, other._lock

    def call(self) -> AbstractContextManager[object]:
        """Held while a call reads and writes."""
        return self._lock.lock if self.arrays else nullcontext()

    def targets(self) -> dict[str, Array]:
        """Where results are best written to, by their names."""
        return {result: self._next[name] for name, result in self.results.items()}

    def keep(self, values: dict[str, Array], outputs: Sequence[str]) -> None:
        """Take the results of a call; outputs among them, or among what was read, become copies."""
        own = {id(array) for array in (*self.arrays.values(), *self._next.values())}
        for name, result in self.results.items():
            target, array = self._next[name], values[result]
            if array is not target:
                np.copyto(target, array)
            self._next[name], self.arrays[name] = self.arrays[name], target
        values.update({name: np.array(values[name]) for name in outputs if id(values[name]) in own})
