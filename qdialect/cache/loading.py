"""Machine code of an entry in this process.

A shared library is loaded by the system, which needs no package and lets debuggers and profilers read its symbols.
Where no linker made one, LLVM's linker for running processes loads the objects; the package llvmlite has it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from qdialect.cache.entry import Sections
from qdialect.late_imports import LATE_IMPORTS
from qdialect.runtime import openmp
from qdialect.runtime.shared_object import SharedObject
from qdialect.threads import SYMBOLS

LIBRARY, OBJECT = "library", "object."
"""Sections: a shared library, or objects by their numbers."""

_ENTRY, _TABLE = "_mlir_main", "qdialect_openmp"


class UnloadableError(Exception):
    """The system cannot load the code."""


def can_load_objects() -> bool:
    """Whether objects can be loaded that nobody has linked."""
    return find_spec("llvmlite") is not None


def code_of_entry(path: Path, sections: Sections, *, threads: int, is_divided: bool) -> tuple[int, object]:
    """Load the code of the entry at `path`; where its function is that takes pointers to the arguments of `main`.

    It stays loaded as long as the object that comes with the address.

    Raises `CompileError` where it needs an OpenMP runtime and there is none, and `UnloadableError`
    where it cannot be loaded.
    """
    runtime = openmp.addresses() if threads > 1 else {}
    names = [_ENTRY, *([_TABLE] if is_divided else [])]
    try:
        found, code = _of_library(path, names) if LIBRARY in sections else (_of_objects(sections, names), None)
    except (OSError, AttributeError, RuntimeError, ImportError) as error:
        raise UnloadableError(str(error)) from error
    if is_divided:
        table = (ctypes.c_void_p * len(SYMBOLS)).from_address(found[_TABLE])
        table[:] = [runtime[symbol] for symbol in SYMBOLS]
    return found[_ENTRY], code


def _of_library(path: Path, names: Sequence[str]) -> tuple[Mapping[str, int], SharedObject]:
    library = SharedObject(os.path.abspath(path))
    return {name: library.address(name) for name in names}, library


def _of_objects(sections: Sections, names: Sequence[str]) -> Mapping[str, int]:
    objects = [bytes(content) for name, content in sections.items() if name.startswith(OBJECT)]
    return _loader()(objects, names)


@cache
def _loader() -> Callable[[Sequence[bytes], Sequence[str]], Mapping[str, int]]:
    with LATE_IMPORTS:
        from qdialect.cache.llvm_loader import load_objects

    return load_objects
