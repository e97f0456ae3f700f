"""The memory of constants: networks' own, and tensors of PyTorch, of which code has copies."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter, is_, itemgetter
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from qdialect.runtime import memory
from qdialect.runtime.native import allocated
from qdialect.support.large_constants import table_of

# A network's constants: a process holds large ones of equal content once.


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


# Parameters and buffers of a captured graph: whether they are as they were.  PyTorch tells of no write, so that each
# call asks all of them.

_WORD = 8
"""In bytes."""


class ConstantState:
    """Constants as they were when a graph was compiled: the same tensors, their memory, and what was written there.

    Writes are those that PyTorch counts.  It counts none through ``tensor.data`` and arrays that share the memory, so
    the bytes in the middle of each tensor are compared too: they tell where all of it is new, and of others not.
    """

    def __init__(self, positions: Sequence[int], tensors: Sequence[Any]) -> None:
        """`tensors` are the arguments at `positions`."""
        # The first one twice, since one position alone gives no tuple.
        positions, tensors = (*positions, *positions[:1]), (*tensors, *tensors[:1])
        self._given: Callable[[Any], Any] | None = itemgetter(*positions) if positions else None
        self._tensors = tensors
        # Memory that is kept is not that of another tensor later, even if these are given other memory.
        self._memory = [one.detach() for one in tensors]
        self._address: Callable[[Any], int] = import_module("torch").Tensor.data_ptr
        self._counted = [one for one in tensors if not one.is_inference()]
        samples = [_sample(one) for one in tensors]
        self._words = [ctypes.c_uint64.from_address(address) for address, mask in samples if mask]
        self._masks = [mask for _, mask in samples if mask]
        self._found = self._addresses(), self._written()

    def is_current(self, plain: list[Any]) -> bool:
        """Whether the constants among the arguments are as they were."""
        if self._given is None:
            return True
        addresses, written = self._found
        # A tensor at another address may have no memory.
        is_there = all(map(is_, self._given(plain), self._tensors)) and self._addresses() == addresses
        return is_there and self._written() == written

    def _addresses(self) -> list[int]:
        return list(map(self._address, self._tensors))

    def _written(self) -> tuple[list[int], list[int]]:
        words = [word.value & mask for word, mask in zip(self._words, self._masks, strict=True)]
        return list(map(attrgetter("_version"), self._counted)), words


def _sample(tensor: Any) -> tuple[int, int]:
    """The address of the word that has the middle of a tensor, and which bits of it are the tensor's; 0 for none."""
    if not tensor.numel():
        return 0, 0
    size, start = tensor.element_size(), tensor.data_ptr()
    middle = start + size * sum(extent // 2 * by for extent, by in zip(tensor.shape, tensor.stride(), strict=True))
    first, last = (start, start + size * tensor.numel()) if tensor.is_contiguous() else (middle, middle + size)
    word = middle - middle % _WORD
    first, last = max(first, word), min(last, word + _WORD)
    return word, (1 << 8 * (last - word)) - (1 << 8 * (first - word))
