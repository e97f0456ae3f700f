"""Calls of functions of other libraries while a network runs, and what is said where one fails."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from threading import get_ident

from qdialect.diagnostics import Diagnostic, ExternalCallError, InputError, Severity
from qdialect.externals.calls import FIRST_ADDRESS, NUMBER, STATUS, WORD_BYTES
from qdialect.externals.external_call import ExternalCall
from qdialect.runtime.bound_call import BoundCall

_Words = ctypes.c_int64 * FIRST_ADDRESS


class ExternalCalls:
    """The functions of other libraries that a network calls."""

    def __init__(self, calls: Sequence[ExternalCall]) -> None:
        """`calls` are those that the network makes, in their order."""
        self._calls = tuple(calls)
        self._raised: dict[int, BaseException] = {}
        self._running: set[int] = set()

    def checked(self, bound: BoundCall, workspace: int) -> BoundCall:
        """`bound`, which works in the memory that starts at `workspace`, with a call that raises what has failed.

        Raises, when it is called, `ExternalCallError` where a function returned something else than 0 or raised an
        exception, and `InputError` where one of them calls the network that
        has called it, in the same thread.
        """
        if self._calls:
            bound.call = self._checked(bound.call, workspace)
        return bound

    def raised_in(self, lists: int, error: BaseException) -> int:
        """Keep `error`, raised by the function whose lists of arrays start at `lists`; returns the status for it."""
        self._raised[lists - WORD_BYTES * FIRST_ADDRESS] = error
        return 1

    def _checked(self, call: Callable[[], object], workspace: int) -> Callable[[], object]:
        words: ctypes.Array[ctypes.c_int64] = _Words.from_address(workspace)

        def checked_call() -> None:
            thread = get_ident()
            if thread in self._running:
                raise InputError("network must not be called by an external function that it calls itself")
            self._running.add(thread)
            try:
                call()
            finally:
                self._running.discard(thread)
            if words[STATUS]:
                number, status = int(words[NUMBER]), int(words[STATUS])
                _fail(self._calls[number], status, self._raised.pop(workspace, None))

        return checked_call


def _fail(call: ExternalCall, status: int, error: BaseException | None) -> None:
    """Raise what a function has failed with."""
    if error is not None and not isinstance(error, Exception):
        # An interrupt, or the end of the interpreter.
        raise error
    reason = f"it returned {status}" if error is None else f"{type(error).__name__}: {error}"
    message = f"{call.title} failed in '{call.symbol}' of target '{call.target}': {reason}"
    raise ExternalCallError(message, (Diagnostic(Severity.ERROR, message, *call.position),)) from error
