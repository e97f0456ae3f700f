"""Shared libraries with networks: what may be loaded, and what a library says of its network."""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

from qdialect.aot import record
from qdialect.aot.network import Network, Version, target_titles
from qdialect.aot.seal import is_damaged
from qdialect.diagnostics import LoadError
from qdialect.files import is_regular
from qdialect.late_dataclass import dataclass
from qdialect.runtime.kept_file import KeptFile

_DESCRIPTION = "qdialect_network_of_file"
_RUN, _RUN_THREADS = "run", "run_threads"
# An ELF header: magic, class and data; where section headers are, their size and count.
_ELF = b"\x7fELF\x02\x01"
_HEADER = struct.Struct("<6s34xQ10x2H2x")
_FILES_OF: dict[str, list[tuple[int, int]]] = {}
"""Device and inode of each file that was loaded, by its path; those of a loaded file are not used again."""


@dataclass(frozen=True)
class Library:
    """A shared library with a network, which this process has loaded."""

    network: Network
    version: Version
    """The one that this CPU executes."""
    run_address: int
    """Where the function is that computes."""
    file: KeptFile


def library_at(path: Path) -> Library:
    """The library at `path`; raises `LoadError` as `qdialect.load` says."""
    _check_file(path)
    _check_seal(path)
    library = _mapped(path)
    file = KeptFile(path)
    network = _network(library, path)
    version = _version(library, network, path)
    kind = _RUN_THREADS if network.threads > 1 else _RUN
    return Library(network, version, _address(library, f"{network.name}_{kind}"), file)


def opened(path: Path) -> ctypes.CDLL:
    """The shared library at `path`, whatever it holds; raises `LoadError` for a file that cannot be loaded."""
    _check_file(path)
    return _mapped(path)


def _mapped(path: Path) -> ctypes.CDLL:
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


def _check_seal(path: Path) -> None:
    """Raise `LoadError` for a file that was damaged since it was written."""
    try:
        is_bad = is_damaged(path)
    except OSError as error:
        raise LoadError(f"cannot load '{path}': {error.strerror}") from error
    if is_bad:
        raise LoadError(f"'{path}' is damaged: its content does not have the checksum that stands at its end")


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
