"""Where a compiled network's own memory comes from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""

Allocate = Callable[[int], NDArray[np.uint8]]
"""Gives a writable block of so many bytes that starts at a multiple of `ALIGNMENT`."""


def allocate(size: int) -> NDArray[np.uint8]:
    """A block of `size` bytes with any content."""
    block = np.empty(size + ALIGNMENT, dtype=np.uint8)
    start = -block.ctypes.data % ALIGNMENT
    return block[start : start + size]
