"""The memory of networks' constants, of which a process holds large ones of equal content once."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from qdialect.runtime import memory
from qdialect.runtime.native import allocated
from qdialect.support.large_constants import table_of


@dataclass(frozen=True, eq=False)
class _Held:
    """A large constant in memory that it keeps."""

    content: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Constants:
    """A network's constants; as long as this lives, its code may run."""

    block: memory.Block
    """The constants for the code; large ones are elsewhere."""
    size: int
    _held: tuple[tuple[int, _Held], ...] = ()

    def content(self) -> NDArray[np.uint8]:
        """All of them where they were compiled to be."""
        if not self._held:
            return self.block[: self.size]
        whole = self.block[: self.size].copy()
        for row, (offset, held) in zip(table_of(whole), self._held, strict=True):
            whole[offset : offset + len(held.content)] = held.content
            row["offset"] = offset
        return whole


_HELD: WeakValueDictionary[bytes, _Held] = WeakValueDictionary()
_LOCK = memory.CallLock()
# Bytes that may be read behind a constant.
_BEHIND = 256


def placed(content: NDArray[np.uint8], allocate: memory.Allocate = memory.allocate) -> Constants:
    """A copy of compiled constants; raises `CompileError` if there is not enough memory.

    In memory of a user's own `allocate` all lie together.
    """
    rows = table_of(content) if allocate is memory.allocate else table_of(content)[:0]
    if not len(rows):
        block = allocated("constants", content.size, allocate)
        block[: content.size] = content
        return Constants(block, content.size)
    # Pages that nobody writes take no memory.
    block = allocated("constants", content.size, _untouched)
    start = 0
    for row in (*rows, None):
        end = content.size if row is None else int(row["offset"])
        block[start:end] = content[start:end]
        start = content.size if row is None else end + int(row["size"])
    with _LOCK.lock:
        held = _held(content, rows)
    for row, one in zip(table_of(block[: content.size]), held, strict=True):
        row["offset"] = one.content.ctypes.data - block.ctypes.data
    return Constants(block, content.size, tuple((int(row["offset"]), one) for row, one in zip(rows, held, strict=True)))


def _held(content: NDArray[np.uint8], rows: NDArray[np.void]) -> list[_Held]:
    keys = [row["size"].tobytes() + row["digest"].tobytes() for row in rows]
    found = {key: one for key in keys if (one := _HELD.get(key)) is not None}
    missing = {key: row for key, row in zip(keys, rows, strict=True) if key not in found}
    ends = np.cumsum([0, *(-(-int(row["size"]) // memory.ALIGNMENT) * memory.ALIGNMENT for row in missing.values())])
    memory_of_all = allocated("constants", int(ends[-1]) + _BEHIND) if missing else np.empty(0, np.uint8)
    for (key, row), start in zip(missing.items(), ends[:-1].tolist(), strict=True):
        offset, size = int(row["offset"]), int(row["size"])
        own = memory_of_all[start : start + size]
        own[:] = content[offset : offset + size]
        found[key] = _HELD[key] = _Held(own)
    return [found[key] for key in keys]


def _untouched(size: int) -> memory.Block:
    return np.frombuffer(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)
