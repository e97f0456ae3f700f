"""Memory of the process that is free and that the C library keeps."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache


def return_free_memory() -> None:
    """Give whole pages back that are free between others in use; does nothing without glibc.

    Much of what reading a model and packing weights take is free afterwards, in pieces: large arrays that come next do
    not fit into them, and would lie beside them.
    """
    _trim()(0)


@cache
def _trim() -> Callable[[int], object]:
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    return getattr(library, "malloc_trim", id)
