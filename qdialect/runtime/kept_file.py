"""Content as a file of this process alone."""

from __future__ import annotations

import os
from weakref import finalize

from qdialect.diagnostics import LoadError


class KeptFile:
    """A file without a name: nobody else can write to it, and it goes with this object.

    Threads and forked processes may read it.
    """

    def __init__(self, name: str, content: bytes) -> None:
        """`name` is what the system's tools show; raises `OSError` where there is no memory."""
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
