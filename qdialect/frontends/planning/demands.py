"""Values that are computed when they are asked for: once each, and without recursion over the graph."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from qdialect.frontends.common import UnsupportedError
from qdialect.frontends.planning.emitter import Value

Compute = Callable[[], Value]


class _WantedError(Exception):
    """A computation asks for a value that is not computed yet; it starts again when that is there."""

    def __init__(self, key: Hashable, compute: Compute) -> None:
        super().__init__()
        self.key = key
        self.compute = compute


@dataclass
class Demands:
    """The answers so far, and the values that computations have appended to `values`.

    A computation that asks for a value which is not known is abandoned, the value is computed, and the computation
    starts again; so the stack is a list, however long the chain of those that ask.  A computation may ask as often as
    it likes before it appends a value of its own; what an abandoned one has appended is taken back.
    """

    values: list[Value]
    _answers: dict[Hashable, Value | str] = field(default_factory=dict[Hashable, "Value | str"])
    _is_running: bool = False

    def ask(self, key: Hashable, compute: Compute) -> Value:
        """What `compute` gives for `key`; raises `UnsupportedError` where it did, the same for everyone who asks."""
        if key not in self._answers:
            if self._is_running:
                raise _WantedError(key, compute)
            self._run(key, compute)
        answer = self._answers[key]
        if isinstance(answer, str):
            raise UnsupportedError(answer)
        return answer

    def _run(self, key: Hashable, compute: Compute) -> None:
        self._is_running = True
        waiting = [(key, compute)]
        try:
            while waiting:
                self._advance(waiting)
        finally:
            self._is_running = False

    def _advance(self, waiting: list[tuple[Hashable, Compute]]) -> None:
        """Compute what was asked for last, or put in front of it what it asks for itself."""
        key, compute = waiting[-1]
        before = len(self.values)
        try:
            self._answers[key] = compute()
        except _WantedError as wanted:
            del self.values[before:]
            waiting.append((wanted.key, wanted.compute))
            return
        except UnsupportedError as error:
            del self.values[before:]
            self._answers[key] = str(error)
        waiting.pop()
