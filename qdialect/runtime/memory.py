"""Where a compiled network's own memory comes from."""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 64
"""Bytes: a cache line, and the widest vector."""

_LARGE = 1 << 21
"""Bytes of a huge page."""

Block = NDArray[np.uint8]
"""Memory as bytes."""

Allocate = Callable[[int], Block]
"""Gives a writable block of so many bytes that starts at a multiple of `ALIGNMENT`."""


def allocate(size: int) -> Block:
    """A block of `size` bytes with any content; a large one on huge pages where the system has them.

    A stream of weights misses the translation of every page of 4 KiB, and hardware prefetches up to its end only.
    """
    large = size >= _LARGE
    alignment = _LARGE if large else ALIGNMENT
    block = _mapped(size + alignment) if large else np.empty(size + alignment, dtype=np.uint8)
    start = -block.ctypes.data % alignment
    return block[start : start + size]


def _mapped(size: int) -> Block:
    # Whole huge pages: the last one counts only if the mapping covers it. A shared mapping, the default, would be the
    # same memory in a forked process, whose calls would overwrite this one's.
    block = mmap.mmap(-1, -(-size // _LARGE) * _LARGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        # Advice alone: a system without huge pages refuses it.
        with contextlib.suppress(OSError):
            block.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(block, dtype=np.uint8)
