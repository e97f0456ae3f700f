"""Shared libraries with networks: which may be loaded, and the description of the network inside."""

from __future__ import annotations

import _ctypes
import ctypes
import os
import struct
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path
from weakref import WeakValueDictionary, finalize

from qdialect.aot import record
from qdialect.aot.record import DESCRIPTION, Network, Version, is_damaged, target_titles
from qdialect.runtime import openmp
from qdialect.runtime.memory import CallLock
from qdialect.support.diagnostics import LoadError
from qdialect.support.files import is_regular

PERF_MAP = "QDIALECT_PERF_MAP"
"""The environment variable with which ``perf`` finds the names of functions of this process."""
_RUN, _RUN_THREADS = "run", "run_threads"
# An ELF header: magic, class and data; where section headers are, their size and count.
_ELF = b"\x7fELF\x02\x01"
_HEADER = struct.Struct("<6s34xQ10x2H2x")
_MAX_PICKLED = 4
_LOCK = CallLock()


@dataclass(frozen=True)
class Library:
    """A shared library with a network, which this process has loaded."""

    network: Network
    version: Version
    """The version that this CPU executes."""
    run_address: int
    """The address of its function."""
    code: SharedObject
    file: KeptFile
    """The content of the library."""
    digest: bytes


_LOADED: WeakValueDictionary[bytes, Library] = WeakValueDictionary()
"""Loaded libraries by the digest of their content."""
PICKLED: OrderedDict[bytes, Library] = OrderedDict()
"""The libraries unpickled last: each task of a pool brings its network again."""
_IN_PLACE: dict[tuple[int, int], tuple[tuple[int, int], SharedObject]] = {}
"""Files that are mapped directly, by device and inode, which stay in use: their size and time at that point."""


def library_at(path: Path, content: bytes) -> Library:
    """The library at `path`, which has this content; raises `LoadError` as `qdialect.load` documents.

    A copy in memory is loaded, so that the file may be overwritten while the network runs; with `PERF_MAP` the file.
    """
    _check(content, f"'{path}'")
    return _library(content, f"'{path}'", path)


def library_of(content: bytes) -> Library:
    """The library with this content, which is no file; raises `LoadError` as `library_at` does."""
    title = "a pickled network"
    _check(content, title)
    found = _library(content, title, None)
    with _LOCK.lock:
        PICKLED[found.digest] = found
        PICKLED.move_to_end(found.digest)
        while len(PICKLED) > _MAX_PICKLED:
            PICKLED.popitem(last=False)
    return found


def opened(path: Path) -> SharedObject:
    """The shared library at `path`, whatever it holds; raises `LoadError` for a file that cannot be loaded."""
    _check(content_at(path), f"'{path}'")
    try:
        return _in_place(path)
    except OSError as error:
        raise LoadError(f"cannot load '{path}': {error}") from error


def _library(content: bytes, title: str, path: Path | None) -> Library:
    """The library with this content, from this process where it has it; `title` is what errors call it."""
    digest = sha256(content).digest()
    with _LOCK.lock:
        found = _LOADED.get(digest)
        if found is None:
            try:
                code, file = _mapped(content, path)
                found = _described(code, file, digest, len(content))
            except (OSError, LoadError) as error:
                raise LoadError(f"cannot load {title}: {error}") from error
            except AttributeError as error:
                # The loader's text ends in the symbol.
                symbol = str(error).rpartition(" ")[2]
                raise LoadError(f"{title} must export '{symbol}', as libraries of qdialect-compile do") from error
            _LOADED[digest] = found
    return found


def _mapped(content: bytes, path: Path | None) -> tuple[SharedObject, KeptFile]:
    file = KeptFile("qdialect-network", content)
    if path is not None and PERF_MAP in os.environ:
        # Debuggers and profilers read symbols and line tables from files.
        return _in_place(path), file
    try:
        return SharedObject(file.path), file
    except OSError:
        # A library may need others in its folder; and a system may forbid executing memory files.
        if path is None:
            raise
        return _in_place(path), file


def _in_place(path: Path) -> SharedObject:
    """The library mapped from its path; raises `OSError` if the file was overwritten since it was last loaded.

    The system's loader would take it for the same library, with the old symbols and the new code.
    """
    status = path.stat()
    identity, version = (status.st_dev, status.st_ino), (status.st_size, status.st_mtime_ns)
    known = _IN_PLACE.get(identity)
    if known is None:
        known = _IN_PLACE[identity] = version, SharedObject(os.path.abspath(path))
        # It may have threads of its own.
        known[1].stay()
    if known[0] != version:
        raise OSError("the file was written to since it was loaded: write another one, and rename it")
    return known[1]


def _described(code: SharedObject, file: KeptFile, digest: bytes, limit: int) -> Library:
    network = _network(code, limit)
    version = _version(code, network)
    kind = _RUN_THREADS if network.threads > 1 else _RUN
    # Threads of an OpenMP runtime, and those of functions of other libraries, outlive the network.
    if network.external_calls or (network.threads > 1 and not openmp.stays_loaded()):
        code.stay()
    return Library(network, version, code.address(f"{network.name}_{kind}"), code, file, digest)


def content_at(path: Path) -> bytes:
    """The bytes of a file; raises `LoadError` for one that cannot be read."""
    if not is_regular(path):
        reason = "it must be a regular file" if os.path.exists(path) else "no such file"
        raise LoadError(f"cannot load '{path}': {reason}")
    try:
        return path.read_bytes()
    except (OSError, MemoryError) as error:
        raise LoadError(f"cannot load '{path}': {getattr(error, 'strerror', None) or 'not enough memory'}") from error


def _check(content: bytes, title: str) -> None:
    """Raise `LoadError` for files that the system's loader must not map: a truncated one would end the process."""
    if len(content) < _HEADER.size or not content.startswith(_ELF):
        raise LoadError(f"{title} must be a shared library of 64 bits, but begins with {content[:4]!r}")
    _, table, entry, count = _HEADER.unpack_from(content)
    size = len(content)
    if table + entry * count > size:
        raise LoadError(f"{title} must have {table + entry * count} bytes, but has {size}: it was cut off")
    if is_damaged(content):
        raise LoadError(f"{title} is damaged: its content does not have the checksum that stands at its end")


def _network(code: SharedObject, limit: int) -> Network:
    """The library's description of itself, of less than `limit` bytes."""
    address = ctypes.CFUNCTYPE(ctypes.c_void_p)(code.address(DESCRIPTION))() or 0
    size = record.size_of(ctypes.string_at(address, record.START_SIZE))
    if size > limit:
        raise LoadError(f"description of the network is damaged: it must be in the file, but has {size} bytes")
    return record.read(ctypes.string_at(address, size))


def _version(code: SharedObject, network: Network) -> Version:
    """The version that this CPU executes."""
    index: int = ctypes.CFUNCTYPE(ctypes.c_int32)(code.address(f"{network.name}_version"))()
    if index < 0:
        raise LoadError(f"this CPU can execute none of its versions: {target_titles(network.versions)}")
    return network.versions[index]


# Shared libraries in this process, unloaded when nothing references them.


class SharedObject:
    """A handle of the system's loader; the library is unloaded with this object: callers of its code must hold it."""

    def __init__(self, path: str) -> None:
        """Load the absolute `path`, whatever was loaded by that path before.

        Raises `OSError` where the loader refuses the file.
        """
        folder, _, name = path.rpartition("/")
        # The loader knows libraries by their paths.
        paths = (f"{folder}/{'./' * dots}{name}" for dots in count())
        own = next(one for one in paths if one not in _PATHS)
        self._library = ctypes.CDLL(own)
        _PATHS.add(own)
        self._unmap = finalize(self, _unmapped, self._library._handle, own)
        # Threads may still call its code when the interpreter ends.
        self._unmap.atexit = False

    def address(self, symbol: str) -> int:
        """Where `symbol` is; raises `AttributeError` where it is not exported."""
        return ctypes.cast(self._library[symbol], ctypes.c_void_p).value or 0

    def stay(self) -> None:
        """Leave the library mapped until the process ends."""
        self._unmap.detach()


def _unmapped(handle: int, path: str) -> None:
    _ctypes.dlclose(handle)
    _PATHS.discard(path)


_PATHS: set[str] = set()
"""The paths of loaded libraries."""


# A memory file of this process.


class KeptFile:
    """An anonymous memory file: no other process can write to it, and it is freed with this object.

    Threads and forked processes may read it.
    """

    def __init__(self, name: str, content: bytes) -> None:
        """`name` is for the system's tools; raises `OSError` if there is not enough memory."""
        self._descriptor = os.memfd_create(name)
        finalize(self, os.close, self._descriptor)
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    @property
    def path(self) -> str:
        """A path of it in this process."""
        return f"/proc/self/fd/{self._descriptor}"

    def content(self) -> bytes:
        """All of it; raises `LoadError` where it cannot be read."""
        found = bytearray()
        try:
            while part := os.pread(self._descriptor, os.fstat(self._descriptor).st_size, len(found)):
                found += part
        except OSError as error:
            raise LoadError(f"cannot read a loaded network again: {error.strerror}") from error
        return bytes(found)
