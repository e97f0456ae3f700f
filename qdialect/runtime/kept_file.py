"""A file that may be removed or replaced while its content is still wanted."""

from __future__ import annotations

import os
from pathlib import Path
from weakref import finalize

from qdialect.diagnostics import LoadError


class KeptFile:
    """The file that was at a path, whatever is there later; threads and forked processes may read it."""

    def __init__(self, path: Path) -> None:
        """Raises `LoadError` for a file that cannot be opened."""
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise LoadError(f"cannot load '{path}': {error.strerror}") from error
        finalize(self, os.close, self._descriptor)

    def content(self) -> bytes:
        """All of it; raises `LoadError` where it cannot be read."""
        found = bytearray()
        try:
            while part := os.pread(self._descriptor, os.fstat(self._descriptor).st_size, len(found)):
                found += part
        except OSError as error:
            raise LoadError(f"cannot read a loaded network again: {error.strerror}") from error
        return bytes(found)
