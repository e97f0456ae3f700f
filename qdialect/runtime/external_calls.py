"""The implementations of extern functions: symbols of a shared library, or Python functions."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import get_ident
from typing import Any, cast

import numpy as np

from qdialect.runtime.base import Array, check_array
from qdialect.runtime.library import opened
from qdialect.runtime.native import BoundCall
from qdialect.support.diagnostics import CompileError, Diagnostic, ExternalCallError, InputError, LoadError, Severity
from qdialect.support.externals import FIRST_ADDRESS, NUMBER, STATUS, WORD_BYTES, ExternalCall, ExternalFunction
from qdialect.support.files import read_bytes
from qdialect.support.interface import Port

# Calls of extern functions while a network runs, and the errors if one fails.

_Words = ctypes.c_int64 * FIRST_ADDRESS


class ExternalCalls:
    """The extern functions that a network calls."""

    def __init__(self, calls: Sequence[ExternalCall]) -> None:
        """`calls` are those that the network makes, in their order."""
        self._calls = tuple(calls)
        self.count = len(self._calls)
        self._raised: dict[int, BaseException] = {}
        self._running: set[int] = set()

    def checked(self, bound: BoundCall, workspace: int) -> BoundCall:
        """`bound`, whose workspace starts at `workspace`, with a call that raises errors of extern functions.

        The call raises `ExternalCallError` if a function returned something else than 0 or raised an exception, and
        `InputError` if one of them calls the network that has called it, in the same thread.
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
    """Raise the error of an extern function."""
    if error is not None and not isinstance(error, Exception):
        # An interrupt, or the end of the interpreter.
        raise error
    reason = f"it returned {status}" if error is None else f"{type(error).__name__}: {error}"
    message = f"{call.title} failed in '{call.symbol}' of target '{call.target}': {reason}"
    raise ExternalCallError(message, (Diagnostic(Severity.ERROR, message, *call.position),)) from error


External = str | Path | Callable[..., Any]
"""The path of a shared library, or ``f(function, *inputs)``: it gets an `ExternalFunction` and read-only arrays, and
returns the array that the function computes."""

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t)


class ExternalBindings(ExternalCalls):
    """The extern functions that a network calls, and the addresses of their code."""

    def __init__(self, functions: Sequence[ExternalFunction], externals: Mapping[str, External]) -> None:
        """Find every function; raises `CompileError` if one is missing, and `LoadError` for a bad library."""
        super().__init__([function.call for function in functions])
        self._functions = tuple(functions)
        _check_targets(functions, externals)
        self.takes_python = any(callable(external) for external in externals.values())
        """Whether some are Python functions, which cannot be saved to a file."""
        self._by_record: dict[int, ExternalFunction] = {}
        self._libraries = {
            target: opened(Path(external)) for target, external in externals.items() if not callable(external)
        }
        self._trampolines = {
            function.symbol: _FUNCTION(self._trampoline(externals[function.target]))
            for function in functions
            if callable(externals[function.target])
        }
        self.symbols = {function.symbol: self._address(function, externals) for function in functions}
        """The address of each C function."""

    def set_records(self, records: Sequence[int]) -> None:
        """Set the addresses of the functions' records, in their order."""
        self._by_record = dict(zip(records, self._functions, strict=True))

    def _address(self, function: ExternalFunction, externals: Mapping[str, External]) -> int:
        if function.symbol in self._trampolines:
            return ctypes.cast(self._trampolines[function.symbol], ctypes.c_void_p).value or 0
        try:
            return self._libraries[function.target].address(function.symbol)
        except AttributeError as error:
            library = externals[function.target]
            text = f"needs '{function.symbol}' of target '{function.target}', which '{library}' does not export"
            text += f"; of {function.target}_* it exports {', '.join(self._exported(function.target, library))}"
            raise _error(function.call, text) from error

    def _exported(self, target: str, library: External) -> list[str]:
        """The names that begin with that of a target and that its library exports."""
        content = read_bytes(Path(cast("str | Path", library)), LoadError)
        found: list[str] = []
        for name in sorted(set(re.findall(rf"\b{re.escape(target)}_\w+".encode(), content))):
            with suppress(AttributeError):
                self._libraries[target].address(name.decode())
                found.append(name.decode())
        return found or ["nothing"]

    def _trampoline(self, compute: Any) -> Callable[[int, int, int], int]:
        def call(record: int, inputs: int, outputs: int) -> int:
            # An exception must not leave it: nothing of the machine code below could pass it on.
            try:
                self._compute(self._by_record[record], compute, inputs, outputs)
            except BaseException as error:
                return self.raised_in(inputs, error)
            return 0

        return call

    def _compute(self, function: ExternalFunction, compute: Any, inputs: int, outputs: int) -> None:
        arrays = [_array(port, address) for port, address in zip(function.inputs, _list(inputs), strict=False)]
        for array in arrays:
            array.flags.writeable = False
        result = compute(function, *arrays)
        check_array("the returned array", result, function.output.shape, function.output.dtype)
        np.copyto(_array(function.output, _list(outputs)[0]), result)


def _check_targets(functions: Sequence[ExternalFunction], externals: Mapping[str, External]) -> None:
    for function in functions:
        if function.target not in externals:
            given = ", ".join(map(repr, externals)) or "none"
            text = f"goes to target '{function.target}', for which externals must have a library or a function"
            text += f", but got {given}"
            raise _error(function.call, text)
    targets = {function.target for function in functions}
    for target, external in externals.items():
        if target not in targets:
            known = ", ".join(f"'{name}'" for name in sorted(targets)) or "none"
            message = f"externals must be for targets that functions of the module go to, {known}, but got '{target}'"
            raise CompileError(f"{message}; qnn-outline-fused hands ops to a target")
        if not isinstance(cast("object", external), str | Path) and not callable(external):
            wanted = f"external '{target}' must be the path of a library or a function"
            raise CompileError(f"{wanted}, but got {type(external).__name__}")


def _error(call: ExternalCall, text: str) -> CompileError:
    message = f"{call.title} {text}"
    return CompileError(message, (Diagnostic(Severity.ERROR, message, *call.position),))


def _list(address: int) -> Any:
    """The addresses in a list, of any length."""
    return ctypes.cast(address, ctypes.POINTER(ctypes.c_size_t))


def _array(port: Port, address: int) -> Array:
    """The array that stands at `address`, without a copy."""
    memory = (ctypes.c_uint8 * (math.prod(port.shape) * port.dtype.itemsize)).from_address(address)
    # The stubs of Python 3.11 do not know that it is a buffer.
    return np.frombuffer(cast("Any", memory), port.dtype).reshape(port.shape)
