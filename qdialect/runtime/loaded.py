"""Loads a compiled network from a file, without the compiler and its bindings."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qdialect.aot.record import Batch
from qdialect.runtime import memory, native
from qdialect.runtime.base import Array, Executable
from qdialect.runtime.batched import BatchedExecutable
from qdialect.runtime.branched import ARCHIVE, from_archive
from qdialect.runtime.external_calls import ExternalCalls
from qdialect.runtime.library import Library, content_at, library_at, library_of
from qdialect.runtime.native import Binding, BoundCall, NativeExecutable, NetworkCode, allocated, run_call
from qdialect.runtime.openmp import THREAD_LIMIT
from qdialect.runtime.states import with_states


class _OfLibrary(Executable):
    """A network of a shared library, whose content it has."""

    _library: Library

    def library(self, name: str) -> bytes:
        return self._library.file.content()

    def _portable(self) -> bytes:
        return self._library.file.content()


class LoadedExecutable(_OfLibrary, NativeExecutable):
    """A network of one shape of a shared library."""

    def __init__(self, library: Library, limit: int) -> None:
        """Raises `CompileError` where there is no memory for a workspace."""
        native.describe(self, library.network, library.version)
        self._library = library
        self.starts = _starts(library)
        self._prepare(_Code(library), limit)

    def bind_clocked(
        self, inputs: Sequence[object], outputs: Sequence[object]
    ) -> tuple[Binding, NDArray[np.int64]] | None:
        """As `bind`, and the readings of the clock in the last call, as `Lowered` has them; None without a clock."""
        clock = self._library.version.clock
        if clock is None:
            return None
        workspace = self._code.workspace()
        start, count = clock
        readings = workspace[start : start + count * np.dtype(np.int64).itemsize].view(np.int64)
        return self._bind_in(workspace, inputs, outputs), readings


class LoadedBatchedExecutable(_OfLibrary, BatchedExecutable):
    """A network of any batch of a shared library."""

    def __init__(self, library: Library, batch: Batch, limit: int) -> None:
        """Raises `CompileError` where there is no memory for a workspace."""
        native.describe(self, library.network, library.version)
        self.batch = batch
        self._library = library
        self._prepare(partial(_BatchCaller, library, ExternalCalls(library.network.external_calls)), limit)


def load(path: Path, workspaces: int | None = None) -> Executable:
    """The network of the file at `path`; raises `LoadError` as `qdialect.load` documents."""
    limit = memory.checked(workspaces)
    content = content_at(path)
    if content.startswith(ARCHIVE):
        return load_content(content, workspaces)
    return _executable(library_at(path, content), limit)


def load_content(content: bytes, workspaces: int | None = None) -> Executable:
    """The network of a library that is no file; raises `LoadError` as `load` does."""
    limit = memory.checked(workspaces)
    if content.startswith(ARCHIVE):
        return from_archive(content, lambda part: load_content(part, workspaces))
    return _executable(library_of(content), limit)


def _executable(found: Library, limit: int) -> Executable:
    batch = found.network.batch
    return LoadedBatchedExecutable(found, batch, limit) if batch else with_states(LoadedExecutable(found, limit))


def _starts(library: Library) -> dict[int, Array]:
    """What the states hold before the first call, which the library tells."""
    network = library.network
    ports = {one.output: network.outputs[one.output] for one in network.states}
    found: dict[int, Array] = {index: np.empty(port.shape, port.dtype) for index, port in ports.items()}
    if found:
        addresses = [found[index].ctypes.data if index in found else None for index in range(len(network.outputs))]
        reset = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(library.code.address(f"{network.name}_reset"))
        reset((ctypes.c_void_p * len(addresses))(*addresses))
    return found


class _Code(NetworkCode):
    """A function of a library. An error that it could return was met when the library was loaded."""

    def __init__(self, library: Library) -> None:
        self._library, self._address, network = library, library.run_address, library.network
        self._limits = [THREAD_LIMIT] if network.threads > 1 else []
        self._workspace_bytes = network.workspace_bytes
        self._inputs = len(network.inputs)
        self._externals = ExternalCalls(network.external_calls)

    def workspace(self) -> memory.Block:
        return allocated("working memory", self._workspace_bytes)

    def bind(self, starts: Sequence[int], workspace: memory.Block, keep: Sequence[object] = ()) -> BoundCall:
        lists = starts[: self._inputs], starts[self._inputs :]
        kept = self._library, workspace, *keep
        is_short = self.is_short and not self._externals.count
        bound = run_call(self._address, *lists, workspace.ctypes.data, self._limits, kept, is_short=is_short)
        return self._externals.checked(bound, workspace.ctypes.data)


class _BatchCaller:
    """A workspace, and a call of a function of any batch in it."""

    def __init__(self, library: Library, externals: ExternalCalls) -> None:
        self.is_spare = False
        network = library.network
        workspace = allocated("working memory", network.workspace_bytes)
        self._batch = ctypes.c_int64()
        limits = [self._batch, *([THREAD_LIMIT] if network.threads > 1 else [])]
        counts = len(network.inputs), len(network.outputs)
        bound = run_call(
            library.run_address, [0] * counts[0], [0] * counts[1], workspace.ctypes.data, limits, (library, workspace)
        )
        bound = externals.checked(bound, workspace.ctypes.data)
        self._call, self._point_to = bound.call, bound.writer(sum(counts))

    def call(self, starts: Sequence[int], batch: int) -> None:
        self._point_to(*starts)
        self._batch.value = batch
        self._call()
