"""What was compiled for shapes of inputs: a bounded number, each compiled by one thread while the others go on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from qdialect.runtime.call_lock import CallLock

T = TypeVar("T")
Shapes = tuple[tuple[int, ...], ...]

KEPT = 8
"""So many shapes are kept; the one that was not used for the longest time goes."""


class KeptShapes(Generic[T]):
    """Compiled networks by the shapes of their inputs.

    Two threads that want a shape compile it once. A thread that wants a known one waits for nobody, a signal handler
    may call what it interrupts, and a forked process has all that was compiled before.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[Shapes, T] = OrderedDict()
        self._making: dict[Shapes, CallLock] = {}
        self._lock = CallLock()

    def of(self, shapes: Shapes, make: Callable[[], T]) -> T:
        """What is known for `shapes`, else what `make` gives; what that raises is raised, and nothing is kept."""
        found = self._find(shapes)
        if found is not None:
            return found
        with self._lock.lock:
            making = self._making.setdefault(shapes, CallLock())
        try:
            with making.lock:
                return self._find(shapes) or self._keep(shapes, make())
        finally:
            with self._lock.lock:
                self._making.pop(shapes, None)

    def items(self) -> Sequence[tuple[Shapes, T]]:
        """All that is known, what was used last at the end."""
        with self._lock.lock:
            return tuple(self._known.items())

    def _find(self, shapes: Shapes) -> T | None:
        with self._lock.lock:
            if shapes in self._known:
                self._known.move_to_end(shapes)
            return self._known.get(shapes)

    def _keep(self, shapes: Shapes, made: T) -> T:
        with self._lock.lock:
            self._known[shapes] = made
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return made
