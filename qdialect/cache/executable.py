"""A network of the cache: the code of an entry, with its constants and workspaces."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from ctypes import addressof
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from qdialect.aot import record
from qdialect.cache.store import Sections, Store
from qdialect.runtime import memory, openmp
from qdialect.runtime.constants import Constants, placed
from qdialect.runtime.library import SharedObject
from qdialect.runtime.native import (
    BoundCall,
    NativeExecutable,
    NetworkCode,
    allocated,
    describe,
    packed_call,
    starts_of,
)
from qdialect.runtime.openmp import THREAD_LIMIT
from qdialect.support.diagnostics import LoadError
from qdialect.support.late_imports import LATE_IMPORTS
from qdialect.support.limits import SYMBOLS

RECORD, CONSTANTS, MODULE = "record", "constants", "module"
"""Sections other than the code: the description, the constants, and the module at phase `vector` without them."""

DIVIDED = "divided"
"""A section without content, of code that runs on several threads and takes how many it may ask for."""


class CachedExecutable(NativeExecutable):
    """A network as machine code that was compiled before, by this process or another one."""

    def __init__(self, key: str, path: Path, sections: Sections, workspaces: int | None = None) -> None:
        """Load the entry `key` at `path`, which has been read.

        Raises `UnloadableError` where the system does not load it, `LoadError` for a description that this version does
        not read, and `CompileError` where there is no memory or no OpenMP runtime.
        """
        limit = memory.checked(workspaces)
        network = record.read(bytes(sections[RECORD]))
        version = network.versions[0]
        self.key = key
        """The name of its entry."""
        describe(self, network, version)
        self._module = bytes(sections[MODULE])
        self._constants = placed(np.frombuffer(sections[CONSTANTS], np.uint8))
        self.starts = starts_of(network.states, network.outputs, np.frombuffer(sections[CONSTANTS], np.uint8))
        is_divided = DIVIDED in sections
        address, code = code_of_entry(path, sections, threads=network.threads, is_divided=is_divided)
        self._prepare(_Code(address, code, self._constants, version.workspace_bytes, is_divided), limit)

    def library(self, name: str) -> bytes:
        with LATE_IMPORTS:
            from qdialect.runtime.compiler import library

        return library([(self._module, self._constants.content())], name)


class _Code(NetworkCode):
    """The function of an entry, and its constants."""

    def __init__(
        self, address: int, code: object, constants: Constants, workspace_bytes: int, is_divided: bool
    ) -> None:
        self._address, self._code = address, code
        self._constants, self._workspace_bytes = constants, workspace_bytes
        self._limits = [addressof(THREAD_LIMIT)] if is_divided else []

    def workspace(self) -> memory.Block:
        return allocated("working memory", self._workspace_bytes)

    def bind(self, starts: Sequence[int], workspace: memory.Block, keep: Sequence[object] = ()) -> BoundCall:
        blocks = self._constants.block, workspace
        values = [*starts, *(block.ctypes.data for block in blocks), *self._limits]
        kept = self._code, self._constants, *blocks, *keep
        return packed_call(self._address, values, kept, is_short=self.is_short)


# Machine code of an entry in this process.
#
# A shared library is loaded by the system, which needs no package and lets debuggers and profilers read its symbols.
# Where no linker made one, LLVM's linker for running processes loads the objects; the package llvmlite has it.

LIBRARY, OBJECT = "library", "object."
"""Sections: a shared library, or objects by their numbers."""

_ENTRY, _TABLE = "_mlir_main", "qdialect_openmp"


class UnloadableError(Exception):
    """The system cannot load the code."""


def can_load_objects() -> bool:
    """Whether objects can be loaded without linking them."""
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
    """Links objects with each other and with what this process has loaded; gives the addresses of the symbols named.

    They stay loaded. It raises `RuntimeError` where LLVM refuses them.
    """
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    compiler, kept = binding.create_lljit_compiler(), list[object]()

    def load_objects(objects: Sequence[bytes], names: Sequence[str]) -> Mapping[str, int]:
        builder = binding.JITLibraryBuilder().add_current_process()
        for content in objects:
            builder.add_object_img(content)
        for name in names:
            builder.export_symbol(name)
        library = builder.link(compiler, f"network{len(kept)}")
        kept.append(library)
        return {name: library[name] for name in names}

    return load_objects


# An executable from an entry, where the entry is as it was written.


def load_network(store: Store, key: str, workspaces: int | None = None) -> CachedExecutable | None:
    """The network `key`, with `workspaces` workspaces; None if it is not there or cannot be loaded.

    Raises `CompileError` where there is no memory for it, or no OpenMP runtime.
    """
    sections = store.get(key)
    if sections is None:
        return None
    try:
        return CachedExecutable(key, store.path / key, sections, workspaces)
    except (UnloadableError, LoadError, KeyError):
        return None
