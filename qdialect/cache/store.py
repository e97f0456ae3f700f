"""The entries of the cache as files: read with distrust, written as a whole, and limited in bytes.

Processes share it without a lock: a file appears by one rename, and one that goes while it is read stays readable. What
the folder refuses, because it is full or read-only, is not an error: then nothing is found or kept.
"""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from qdialect.support import log
from qdialect.support.diagnostics import InputError, QDialectError
from qdialect.support.files import write_draft

MAX_ENTRIES = 20_000
"""Files that are kept at most, however small they are."""

_DRAFT = "."
_NOT_USED = "the cache of compiled networks is not used"
_DRAFT_SECONDS = 3600
_BLOCK = 4096
# A new entry is followed by others: not each one is to make the folder be read again.
_KEPT_SHARE = 0.9
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


@dataclass(frozen=True)
class KeptFile:
    """A file of the folder."""

    path: Path
    size: int
    """Bytes that it takes on the disk."""
    used: float
    """When it was last used, in seconds since the epoch."""

    @property
    def is_draft(self) -> bool:
        """Whether it is still being written, or was when its process ended."""
        return self.path.name.startswith(_DRAFT)


@dataclass(frozen=True)
class Store:
    """The entries in a folder that this user alone can write."""

    path: Path
    limit: int
    """Bytes that the entries may take."""

    def get(self, key: str) -> Sections | None:
        """The entry `key`; None where it is not there or is not as it was written."""
        try:
            content = _read(self.path / key)
        except OSError:
            return None
        return unpacked(key, content)

    def put(self, key: str, sections: Mapping[str, bytes | memoryview]) -> bool:
        """Write the entry `key`, also in the place of another one; whether it is there now."""
        content = packed(key, sections)
        if len(content) > self.limit:
            return False
        try:
            draft = write_draft(self.path, content, 0o600)
        except OSError:
            return False
        try:
            draft.replace(self.path / key)
        except OSError:
            _removed(draft)
            return False
        return True

    def files(self) -> list[KeptFile]:
        """All files, those that were used last come last."""
        now = time.time()
        with suppress(OSError), os.scandir(self.path) as found:
            return sorted((kept for one in found if (kept := _kept(one, now))), key=lambda kept: kept.used)
        return []

    def trim(self, limit: int | None = None) -> int:
        """Remove drafts that nobody finished, and what was not used for longest until the rest fits; how many went."""
        allowed = self.limit if limit is None else limit
        now, files = time.time(), self.files()
        stale = [file for file in files if file.is_draft and abs(now - file.used) > _DRAFT_SECONDS]
        entries = [file for file in files if not file.is_draft]
        total, count = sum(file.size for file in entries), len(entries)
        surplus: list[KeptFile] = []
        if total > allowed or count > MAX_ENTRIES:
            for file in entries:
                if total <= allowed * _KEPT_SHARE and count <= MAX_ENTRIES * _KEPT_SHARE:
                    break
                surplus.append(file)
                total, count = total - file.size, count - 1
        return sum(_removed(file.path) for file in (*stale, *surplus))

    def clear(self) -> int:
        return sum(_removed(file.path) for file in self.files())


def open_store(*, create: bool = True) -> Store | None:
    """The store of this user; None where the cache is off, and where its folder cannot be used.

    With `create` the folder is made where it is not there. Raises `InputError` for a size that is no number.
    """
    limit = size_limit()
    root = None if is_off() else location()
    if root is None:
        reason = f"{VARIABLE} is off" if is_off() else "the user has no home folder"
        log.once(logging.INFO, f"{_NOT_USED}: {reason}")
        return None
    try:
        return Store(open_entries(root, create=create), limit)
    except FileNotFoundError as error:
        if create:
            log.once(logging.INFO, f"{_NOT_USED}: '{root}': {error.strerror}")
    except UntrustedError as error:
        log.once(logging.WARNING, f"{_NOT_USED}: {error}")
    except (OSError, ValueError) as error:
        log.once(logging.INFO, f"{_NOT_USED}: '{root}': {getattr(error, 'strerror', None) or error}")
    return None


def opened(root: Path) -> Store | None:
    """The store in `root`; None where nothing was kept there yet.

    Raises `QDialectError` for a folder that another user could have written to, or that cannot be read.
    """
    try:
        return Store(open_entries(root, create=False), size_limit())
    except FileNotFoundError:
        return None
    except (OSError, UntrustedError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise QDialectError(f"cannot use the cache in '{root}': {reason}") from error


def _read(path: Path) -> bytes:
    """The content of a regular file of this user, which counts as used now; raises `OSError` for another one."""
    descriptor = os.open(path, _READ_FLAGS)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise PermissionError(f"'{path}' must be a file that this user alone can write")
        content = file.read()
        # A folder that cannot be written still serves what it has.
        with suppress(OSError):
            os.utime(descriptor)
    return content


def _kept(found: os.DirEntry[str], now: float) -> KeptFile | None:
    try:
        status = found.stat(follow_symlinks=False)
    except OSError:
        # Another process removed it.
        return None
    # After the clock went back, a time in the future is meaningless: such a file goes first.
    used = status.st_mtime if status.st_mtime <= now + 1 else 0
    return KeptFile(Path(found.path), max(status.st_blocks * 512, _BLOCK), used)


def _removed(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


# Where the cache is, how large it may grow, and whether the folder is one that nobody else can write.

VARIABLE = "QDIALECT_CACHE"
"""Environment variable that names the folder, or is ``off``."""
SIZE_VARIABLE = "QDIALECT_CACHE_SIZE"
"""Environment variable with the bytes that entries may take, such as ``500M``."""

_OFF = "off"
_ENTRIES = "entries"
_DEFAULT_SIZE = 1 << 30
_SIZE = re.compile(r"(\d+)([KMGT]?)", re.ASCII)
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_OTHERS = 0o077
_OTHERS_WRITE = 0o022


class UntrustedError(Exception):
    """The folder is one that another user could have written to."""


def is_off() -> bool:
    """Whether the environment turns the cache off."""
    return os.environ.get(VARIABLE) == _OFF


def location() -> Path | None:
    """The folder of the cache, which need not be there; None where the user has neither named one nor a home.

    It is that of `VARIABLE`, else ``qdialect`` in the user's cache folder as the XDG Base Directory Specification has
    it: ``$XDG_CACHE_HOME`` where that is an absolute path, else ``~/.cache``.
    """
    if named := os.environ.get(VARIABLE):
        return Path(os.path.abspath(named))
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.cache")
    return Path(base, "qdialect") if os.path.isabs(base) else None


def size_limit() -> int:
    """The bytes that entries may take; raises `InputError` where `SIZE_VARIABLE` is no number of bytes."""
    text = os.environ.get(SIZE_VARIABLE, "")
    return parsed_size(text, SIZE_VARIABLE) if text else _DEFAULT_SIZE


def parsed_size(text: str, subject: str) -> int:
    """Bytes such as ``500M``; raises `InputError`, which names `subject`, for another text."""
    found = _SIZE.fullmatch(text)
    if not found:
        raise InputError(f"{subject} must be a number of bytes such as 2000000, 500M or 2G, but got '{text}'")
    return int(found[1]) << _UNITS[found[2]]


def open_entries(root: Path, *, create: bool) -> Path:
    """The folder of the entries in `root`, mode 0700; raises `UntrustedError` where others could write there.

    With `create` it is made where it is not there. Raises `OSError` where it cannot be read or made.
    """
    entries = root / _ENTRIES
    if create:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        entries.mkdir(mode=0o700, exist_ok=True)
    _check_root(root)
    _check_entries(entries)
    return entries


def _check_root(root: Path) -> None:
    found = root.stat()
    if found.st_uid not in (os.geteuid(), 0):
        raise UntrustedError(f"'{root}' must belong to the user {os.geteuid()}, but belongs to {found.st_uid}")
    if found.st_mode & _OTHERS_WRITE and not found.st_mode & stat.S_ISVTX:
        raise UntrustedError(f"'{root}' must not be writable for others, but has mode {found.st_mode & 0o777:o}")


def _check_entries(entries: Path) -> None:
    found = entries.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise UntrustedError(f"'{entries}' must be a folder, and no link to one")
    if found.st_uid != os.geteuid():
        raise UntrustedError(f"'{entries}' must belong to the user {os.geteuid()}, but belongs to {found.st_uid}")
    if found.st_mode & _OTHERS:
        raise UntrustedError(f"'{entries}' must have mode 700, but has {found.st_mode & 0o777:o}")


# The form of an entry: one file that is written as a whole, and read only where all of it is as it was written.
#
# Sections come first, each at a multiple of 64 bytes, so that a file whose first section is a shared library is one
# that loaders take. Their index is JSON. The last bytes give its offset, and have the SHA-256 of the entry's key and of
# all that is before them: an entry under another name is damaged too.

Sections = Mapping[str, memoryview]
"""Parts of an entry by name."""

_MAGIC = b"qdialect cache 1"
_FOOTER = struct.Struct("<QQ32s16s")
_ALIGNMENT = 64


def packed(key: str, sections: Mapping[str, bytes | memoryview]) -> bytes:
    """The entry `key` as the content of a file."""
    content, index = bytearray(), dict[str, tuple[int, int]]()
    for name, data in sections.items():
        content.extend(bytes(-len(content) % _ALIGNMENT))
        index[name] = len(content), len(data)
        content.extend(data)
    text = json.dumps(index, separators=(",", ":")).encode()
    start = len(content)
    content.extend(text)
    return bytes(content) + _FOOTER.pack(start, len(text), _digest(key, content, start, len(text)), _MAGIC)


def unpacked(key: str, content: bytes) -> Sections | None:
    """The sections of the entry `key`; None for a file that is damaged, truncated, not an entry, or another entry."""
    if len(content) < _FOOTER.size or not content.endswith(_MAGIC):
        return None
    body = memoryview(content)[: -_FOOTER.size]
    start, size, digest, _ = _FOOTER.unpack_from(content, len(body))
    if start + size != len(body) or _digest(key, body, start, size) != digest:
        return None
    index: Mapping[str, Any] = json.loads(bytes(body[start:]))
    return {name: body[at : at + length] for name, (at, length) in index.items()}


def _digest(key: str, body: bytearray | memoryview, start: int, size: int) -> bytes:
    found = sha256(struct.pack("<QQ", start, size) + key.encode())
    found.update(body)
    return found.digest()
