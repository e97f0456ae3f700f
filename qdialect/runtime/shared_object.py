"""Shared libraries in this process, which go when nobody holds them."""

from __future__ import annotations

import _ctypes
import ctypes
from itertools import count
from weakref import finalize


class SharedObject:
    """A shared library as the system's loader knows it, unmapped with this object: who calls its code must hold it."""

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
"""Of what is loaded."""
