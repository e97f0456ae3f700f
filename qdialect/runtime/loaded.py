"""A network from a file that was compiled before: the compiler and its bindings are not needed."""

from __future__ import annotations

import ctypes
import os
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path

from qdialect.aot import record
from qdialect.aot.network import Network, Version, target_titles
from qdialect.diagnostics import LoadError
from qdialect.files import is_regular
from qdialect.runtime import memory, workspace_pool
from qdialect.runtime.bound_call import BoundCall, run_call
from qdialect.runtime.kept_file import KeptFile
from qdialect.runtime.native import NativeExecutable, NetworkCode, allocated, compiled_region
from qdialect.runtime.team_limit import TEAM_LIMIT

_DESCRIPTION = "qdialect_network_of_file"
_RUN, _RUN_THREADS = "run", "run_threads"
# An ELF header: magic, class and data; where section headers are, their size and count.
_ELF = b"\x7fELF\x02\x01"
_HEADER = struct.Struct("<6s34xQ10x2H2x")
_FILES_OF: dict[str, list[tuple[int, int]]] = {}
"""Device and inode of each file that was loaded, by its path; those of a loaded file are not used again."""


class LoadedExecutable(NativeExecutable):
    """A network of a shared library, with its workspaces."""

    def __init__(self, path: Path, workspaces: int | None = None) -> None:
        """Load the file at `path`; raises `LoadError` as `qdialect.load` says."""
        limit = workspace_pool.checked(workspaces)
        library = _library(path)
        self._file = KeptFile(path)
        network = _network(library, path)
        version = _version(library, network, path)
        self.inputs, self.outputs, self.threads = network.inputs, network.outputs, network.threads
        self.calls = version.calls
        self.kernels = len({call.kernel for call in version.calls})
        self.constants_bytes = version.constants_bytes
        self.working_memory = version.workspace_bytes
        self.regions = (compiled_region(self),)
        self._prepare(_Code(library, network), limit)

    def library(self, name: str) -> bytes:
        return self._file.content()


class _Code(NetworkCode):
    """A function of a library. An error that it could return was met when the library was loaded."""

    def __init__(self, library: ctypes.CDLL, network: Network) -> None:
        kind = _RUN_THREADS if network.threads > 1 else _RUN
        self._address = _address(library, f"{network.name}_{kind}")
        self._limits = [TEAM_LIMIT] if network.threads > 1 else []
        self._workspace_bytes = network.workspace_bytes
        self._inputs = len(network.inputs)

    def workspace(self) -> memory.Block:
        return allocated("working memory", self._workspace_bytes)

    def bind(self, starts: Sequence[int], workspace: memory.Block, keep: Sequence[object] = ()) -> BoundCall:
        lists = starts[: self._inputs], starts[self._inputs :]
        return run_call(self._address, *lists, workspace.ctypes.data, self._limits, (workspace, *keep))


def load_content(content: bytes, workspaces: int | None = None) -> LoadedExecutable:
    """The network of a library that is no file; raises `LoadError` as `LoadedExecutable` does."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.so"
        path.write_bytes(content)
        return LoadedExecutable(path, workspaces)


def _library(path: Path) -> ctypes.CDLL:
    _check_file(path)
    try:
        return ctypes.CDLL(_own_path(path))
    except OSError as error:
        raise LoadError(f"cannot load '{path}': {error}") from error


def _own_path(path: Path) -> str:
    """A path of the file as no other file was loaded by: the system's loader knows libraries by their paths.

    A file that replaced another one has a path of more parts. The folder is named: a name alone is looked for in the
    system's folders.
    """
    folder, name = os.path.split(os.path.abspath(path))
    status = path.stat()
    identity = status.st_dev, status.st_ino
    files = _FILES_OF.setdefault(os.path.join(folder, name), [])
    if identity not in files:
        files.append(identity)
    return os.path.join(folder, *["."] * files.index(identity), name)


def _check_file(path: Path) -> None:
    """Raise `LoadError` for what the system's loader must not map: a file that was cut off ends the process."""
    if not is_regular(path):
        reason = "it must be a regular file" if path.exists() else "no such file"
        raise LoadError(f"cannot load '{path}': {reason}")
    try:
        with path.open("rb") as file:
            start, size = file.read(_HEADER.size), os.fstat(file.fileno()).st_size
    except OSError as error:
        raise LoadError(f"cannot load '{path}': {error.strerror}") from error
    if len(start) < _HEADER.size or not start.startswith(_ELF):
        raise LoadError(f"'{path}' must be a shared library of 64 bits, but begins with {start[:4]!r}")
    _, table, entry, count = _HEADER.unpack(start)
    if table + entry * count > size:
        raise LoadError(f"'{path}' must have {table + entry * count} bytes, but has {size}: it was cut off")


def _network(library: ctypes.CDLL, path: Path) -> Network:
    try:
        describe = library[_DESCRIPTION]
    except AttributeError as error:
        raise LoadError(f"'{path}' must export '{_DESCRIPTION}', as libraries of qdialect-compile do") from error
    describe.restype = ctypes.c_void_p
    address = describe()
    try:
        size = record.size_of(ctypes.string_at(address, record.START_SIZE))
        return record.read(ctypes.string_at(address, size))
    except LoadError as error:
        raise LoadError(f"cannot load '{path}': {error.message}") from error


def _version(library: ctypes.CDLL, network: Network, path: Path) -> Version:
    """The version that this CPU executes."""
    index: int = ctypes.CFUNCTYPE(ctypes.c_int32)(_address(library, f"{network.name}_version"))()
    if index < 0:
        titles = target_titles(network.versions)
        raise LoadError(f"cannot load '{path}': this CPU can execute none of its versions: {titles}")
    return network.versions[index]


def _address(library: ctypes.CDLL, symbol: str) -> int:
    function = library[symbol]
    return ctypes.cast(function, ctypes.c_void_p).value or 0
