"""LLVM's code generation, without the interpreter lock: other threads of Python go on while it works."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from operator import attrgetter
from threading import Condition, get_ident

from qdialect._mlir import CAPI_LIBRARY, ExecutionEngine

_CAPSULE = attrgetter("_CAPIPtr")


class Forks:
    """Lets a fork wait until no other thread is in LLVM: its locks would stay taken in the child for ever."""

    def __init__(self) -> None:
        self.condition = Condition()
        self.inside: list[int] = []
        """The threads that are in LLVM."""
        after = self.condition.release
        os.register_at_fork(before=self._wait, after_in_parent=after, after_in_child=after)

    @contextmanager
    def held_up(self) -> Generator[None]:
        """No fork happens inside, but one that a signal handler of this thread asks for, after LLVM has returned."""
        with self.condition:
            self.inside.append(get_ident())
        try:
            yield
        finally:
            with self.condition:
                self.inside.remove(get_ident())
                self.condition.notify_all()

    def _wait(self) -> None:
        self.condition.acquire()
        while any(thread != get_ident() for thread in self.inside):
            self.condition.wait()


FORKS = Forks()


class _StringRef(ctypes.Structure):
    _fields_ = (("data", ctypes.c_char_p), ("length", ctypes.c_size_t))


def address_of(engine: ExecutionEngine, name: str) -> int:
    """Where the packed form of the function `name` starts; the first call generates the code of all of the module.

    Raises `RuntimeError` where the module has no such function, and where LLVM refuses the module.
    """
    text = name.encode()
    with FORKS.held_up():
        found = _lookup()(_pointer(engine), _StringRef(text, len(text)))
    if not found:
        raise RuntimeError(f"Unknown function {name}")
    return int(found)


@cache
def _lookup() -> Callable[[int | None, _StringRef], int | None]:
    function = ctypes.CDLL(CAPI_LIBRARY).mlirExecutionEngineLookupPacked
    # A structure of one pointer is passed as a pointer is.
    function.argtypes, function.restype = (ctypes.c_void_p, _StringRef), ctypes.c_void_p
    return function


def _pointer(engine: ExecutionEngine) -> int | None:
    """The engine of the C interface, out of the capsule that the bindings give."""
    capsule: object = _CAPSULE(engine)
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.argtypes, name_of.restype = (ctypes.py_object,), ctypes.c_char_p
    pointer_of.argtypes, pointer_of.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    return pointer_of(capsule, name_of(capsule))
