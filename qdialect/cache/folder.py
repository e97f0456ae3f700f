"""Where the cache is, how large it may grow, and whether the folder is one that nobody else can write."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from qdialect.diagnostics import InputError

VARIABLE = "QDIALECT_CACHE"
"""Environment variable that names the folder, or says ``off``."""
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
    """Whether the environment says that nothing is kept."""
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
