"""The members of a `.pt2` archive: a zip file whose members are stored as they are.

PyTorch writes members without compression.  So a member is never larger than the file, and all of them together are
neither, which is checked: no allocation follows a size that the file merely declares.
"""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Iterable
from pathlib import PurePosixPath

from qdialect.diagnostics import ImportModelError
from qdialect.frontends.torch.archive.fields import Field, parse_json, shown

UNLESS_TRUSTED = "unless it is trusted (--trust-pt2, trust=True)"
"""How messages call the way to load what cannot be read safely."""
# The program in the format before this one.
_BEFORE = "serialized_exported_program.json"
_ENCRYPTED = 1


class Members:
    """The members by their names below the archive's one folder; each is read when it is asked for."""

    def __init__(self, content: bytes) -> None:
        """Raises `ImportModelError` for a file that is no zip file, or one that PyTorch does not write."""
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(content))
        except Exception as error:
            # The package raises whatever reading damaged fields raises.
            raise ImportModelError(f"file must be a zip archive: {shown(str(error))}") from error
        _check_format(self._archive.namelist())
        entries = [entry for entry in self._archive.infolist() if not entry.is_dir()]
        _check(entries, len(content))
        self._entries = {_below_root(entry.filename): entry for entry in entries}
        roots = {entry.filename.partition("/")[0] for entry in entries}
        if len(roots) > 1:
            raise ImportModelError(f"archive must have one folder, but got {len(roots)}")

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def read(self, name: str) -> bytes:
        """The content of a member; raises `ImportModelError` where it is missing, compressed or damaged."""
        entry = self._entries.get(name)
        if entry is None:
            raise ImportModelError(f"member '{shown(name)}' is missing")
        _check_stored(entry, name)
        try:
            return self._archive.read(entry)
        except Exception as error:
            # The package raises whatever reading damaged fields raises.
            raise ImportModelError(f"member '{shown(name)}' is damaged: {shown(str(error))}") from error

    def json(self, name: str) -> Field:
        """A member that is JSON."""
        return parse_json(self.read(name), name)


def _check(entries: Iterable[zipfile.ZipInfo], size: int) -> None:
    """Every name is a path below the archive's folder, once, and what is stored lies in the file."""
    names: set[str] = set()
    total = 0
    for entry in entries:
        name = shown(entry.filename)
        parts = PurePosixPath(entry.filename).parts
        if ".." in parts or entry.filename.startswith("/") or "\\" in entry.orig_filename or len(parts) < 2:
            raise ImportModelError(f"member '{name}' must have a path below the archive's folder")
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise ImportModelError(f"member '{name}' must be a file, but is a link")
        if entry.filename in names:
            raise ImportModelError(f"member '{name}' must be there once")
        names.add(entry.filename)
        total += entry.compress_size
    if total > size:
        raise ImportModelError(f"members must lie apart in a file of {size} bytes, but have {total} bytes together")


def _below_root(name: str) -> str:
    return name.partition("/")[2]


def _check_format(names: Iterable[str]) -> None:
    if _BEFORE in names:
        raise ImportModelError(f"archive must be of PyTorch 2.8 or later, {UNLESS_TRUSTED}: those before hold pickles")


def _check_stored(entry: zipfile.ZipInfo, name: str) -> None:
    if entry.flag_bits & _ENCRYPTED:
        raise ImportModelError(f"member '{shown(name)}' must not be encrypted")
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
        raise ImportModelError(f"member '{shown(name)}' must be stored without compression")
