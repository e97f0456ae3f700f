"""The entries of the cache as files: read with distrust, written as a whole, and at most so many bytes.

Processes share it without a lock: a file appears by one rename, and one that goes while it is read stays readable. What
the folder refuses, because it is full or read-only, is not an error: then nothing is found or kept.
"""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from qdialect import log
from qdialect.cache import entry, folder
from qdialect.cache.entry import Sections
from qdialect.cache.folder import UntrustedError
from qdialect.diagnostics import QDialectError
from qdialect.files import write_draft

MAX_ENTRIES = 20_000
"""Files that are kept at most, however small they are."""

_DRAFT = "."
_OFF = "the cache of compiled networks is not used"
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
        return entry.unpacked(key, content)

    def put(self, key: str, sections: Mapping[str, bytes | memoryview]) -> bool:
        """Write the entry `key`, also in the place of another one; whether it is there now."""
        content = entry.packed(key, sections)
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
        """Remove everything; how many files went."""
        return sum(_removed(file.path) for file in self.files())


def open_store(*, create: bool = True) -> Store | None:
    """The store of this user; None where the cache is off, and where its folder cannot be used.

    With `create` the folder is made where it is not there. Raises `InputError` for a size that is no number.
    """
    limit = folder.size_limit()
    root = None if folder.is_off() else folder.location()
    if root is None:
        reason = f"{folder.VARIABLE} says so" if folder.is_off() else "the user has no home folder"
        log.once(logging.INFO, f"{_OFF}: {reason}")
        return None
    try:
        return Store(folder.open_entries(root, create=create), limit)
    except FileNotFoundError as error:
        if create:
            log.once(logging.INFO, f"{_OFF}: '{root}': {error.strerror}")
    except UntrustedError as error:
        log.once(logging.WARNING, f"{_OFF}: {error}")
    except (OSError, ValueError) as error:
        log.once(logging.INFO, f"{_OFF}: '{root}': {getattr(error, 'strerror', None) or error}")
    return None


def opened(root: Path) -> Store | None:
    """The store in `root`; None where nothing was kept there yet.

    Raises `QDialectError` for a folder that another user could have written to, or that cannot be read.
    """
    try:
        return Store(folder.open_entries(root, create=False), folder.size_limit())
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
    # After the clock went back, a time in the future says nothing: such a file goes first.
    used = status.st_mtime if status.st_mtime <= now + 1 else 0
    return KeptFile(Path(found.path), max(status.st_blocks * 512, _BLOCK), used)


def _removed(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True
