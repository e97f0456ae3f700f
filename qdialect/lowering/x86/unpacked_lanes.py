"""Tiles of 64 bytes whose lanes are in the order that unpacking leaves them in.

Unpacking within 128-bit lanes takes byte 16 l + 4 v + i to vector v, lane 4 l + i.  A tile has a loop for each bit of v
and l and one for i: [2, 2, 2, 2, 4].  In memory its bytes lie side by side, or in contiguous parts of 4 to 32 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from qdialect._mlir import ir, vector
from qdialect.lowering.strides import static_strides
from qdialect.lowering.x86 import building as b

TILE = [2, 2, 2, 2, 4]
"""Extents of the loops."""
RANK = len(TILE)
_BYTES = 64
_WEIGHTS = [8, 4, 32, 16, 1]
"""What each loop adds to a lane's position among the 64 bytes."""


def is_tile(type_: ir.Type) -> bool:
    """Whether a vector's innermost dimensions are a tile's."""
    return isinstance(type_, ir.VectorType) and list(type_.shape)[-RANK:] == TILE


def holds_tiles(buffer: ir.Value) -> bool:
    """Whether the innermost dimensions of a memref of bytes are a tile's, in stretches that can be loaded.

    Bytes may be in several positions of the tile, so that they can be read, though not stored (`is_injective`).
    """
    if not isinstance(buffer.type, ir.MemRefType) or b.shape_of(buffer)[-RANK:] != TILE:
        return False
    strides = static_strides(buffer.type)
    if strides is None or min(strides) < 0 or not b.is_integer(buffer.type.element_type, 8):
        return False
    return _contiguous_bytes(_offsets(buffer)) >= TILE[-1]


def is_injective(buffer: ir.Value) -> bool:
    """Whether each position of a tile is a byte of its own."""
    return len(set(_offsets(buffer))) == _BYTES


def load_tile(buffer: ir.Value, indices: Sequence[ir.Value]) -> ir.Value:
    """The 64 bytes at `indices`, each at its position."""
    offsets = _offsets(buffer)
    length = _contiguous_bytes(offsets)
    if length == _BYTES:
        return b.load(_BYTES, buffer, indices)
    if max(offsets) < _BYTES:
        near = b.load(max(offsets) + 1, buffer, indices)
        return vector.shuffle(near, near, offsets)
    if max(offsets) < 2 * _BYTES:
        return _from_two(buffer, indices, offsets)
    parts = [b.load(length, buffer, _at(indices, start)) for start in range(0, _BYTES, length)]
    while len(parts) > 1:
        count = b.shape_of(parts[0])[0]
        parts = [vector.shuffle(low, high, range(2 * count)) for low, high in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def store_tile(value: ir.Value, buffer: ir.Value, indices: Sequence[ir.Value]) -> None:
    """Store 64 bytes at `indices`."""
    length = _contiguous_bytes(_offsets(buffer))
    for start in range(0, _BYTES, length):
        part = value if length == _BYTES else vector.shuffle(value, value, range(start, start + length))
        vector.store(part, buffer, _at(indices, start))


def permuted(value: ir.Value) -> ir.Value:
    """64 bytes as [4, 16], vector v and lane 4 l + i."""
    order = np.arange(_BYTES).reshape(4, 4, 4).transpose(1, 0, 2).ravel()
    shuffled = vector.shuffle(value, value, [int(position) for position in order])
    return vector.shape_cast(ir.VectorType.get([4, 16], ir.VectorType(value.type).element_type), shuffled)


def _from_two(buffer: ir.Value, indices: Sequence[ir.Value], offsets: list[int]) -> ir.Value:
    """Bytes that lie within 128: from the first 64 of them and from the last."""
    last = max(offsets) + 1 - _BYTES
    # The loop over i walks single bytes.
    ends = [b.load(_BYTES, buffer, b.shifted(indices, [0] * (len(indices) - 1) + [start])) for start in (0, last)]
    return vector.shuffle(*ends, [position if position < _BYTES else position - last + _BYTES for position in offsets])


def _at(indices: Sequence[ir.Value], position: int) -> list[ir.Value]:
    """The indices of the byte at a position."""
    steps = [position // weight % size for weight, size in zip(_WEIGHTS, TILE, strict=True)]
    return b.shifted(indices, [0] * (len(indices) - RANK) + steps)


def _offsets(buffer: ir.Value) -> list[int]:
    """How far each of the 64 bytes is from the first one."""
    strides = static_strides(ir.MemRefType(buffer.type)) or ()
    return list(_distances(strides[-RANK:]))


@cache
def _distances(strides: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sum(digit * stride for digit, stride in zip(digits, strides, strict=True)) for digits in _digits())


def _digits() -> Iterator[list[int]]:
    for position in range(_BYTES):
        yield [position // weight % size for weight, size in zip(_WEIGHTS, TILE, strict=True)]


def _contiguous_bytes(offsets: list[int]) -> int:
    """The largest power of two of bytes that lie side by side everywhere."""
    lengths = (length for length in (64, 32, 16, 8, 4, 2) if _is_contiguous(offsets, length))
    return next(lengths, 1)


def _is_contiguous(offsets: list[int], length: int) -> bool:
    return all(
        offsets[position] == offsets[position - position % length] + position % length for position in range(_BYTES)
    )
