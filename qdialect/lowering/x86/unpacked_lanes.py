"""Tiles of a vector's bytes whose lanes are in the order that unpacking leaves them in.

Unpacking within 128-bit lanes takes byte 16 l + 4 v + i to vector v, lane 4 l + i.  A tile has a loop for each bit of v
and l and one for i: [2, 2, 2, 2, 4] of 64 bytes, [2, 2, 2, 4] of 32 and [2, 2, 4] of 16.  In memory its bytes lie side
by side, or in contiguous parts of 4 bytes or more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from qdialect._mlir import ir, vector
from qdialect.lowering.memory.strides import row_major, static_strides
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.flat_address import FlatAddress

PART = 16
"""Bytes that are unpacked by themselves."""
_VECTORS = 4
_BITS = 2
"""Loops over the bits of v."""


@dataclass(frozen=True)
class Tile:
    """The tiles of vectors of `size` bytes."""

    size: int

    @cached_property
    def shape(self) -> list[int]:
        """Extents of the loops."""
        return [*[2] * (_BITS + self._parts.bit_length() - 1), 4]

    @property
    def rank(self) -> int:
        """The number of loops."""
        return len(self.shape)

    @property
    def flat(self) -> list[int]:
        """Extents of a tile as four vectors."""
        return [_VECTORS, self.size // _VECTORS]

    @cached_property
    def weight_steps(self) -> tuple[int, ...]:
        """Bytes between neighbours along its loops where each lane has four taps."""
        return tuple(_VECTORS * step for step in row_major(self.shape))

    @property
    def _parts(self) -> int:
        return self.size // PART

    @cached_property
    def _weights(self) -> list[int]:
        """What each loop adds to a lane's position among the bytes."""
        parts = [PART << bit for bit in reversed(range(self._parts.bit_length() - 1))]
        return [8, 4, *parts, 1]

    def matches(self, type_: ir.Type) -> bool:
        """Whether a vector's innermost dimensions are a tile's."""
        return isinstance(type_, ir.VectorType) and list(type_.shape)[-self.rank :] == self.shape

    def is_in(self, buffer: ir.Value) -> bool:
        """Whether the innermost dimensions of a memref of bytes are a tile's, in stretches that can be loaded.

        Bytes may be in several positions of the tile, so that they can be read, though not stored (`is_injective`).
        """
        if not isinstance(buffer.type, ir.MemRefType) or b.shape_of(buffer)[-self.rank :] != self.shape:
            return False
        strides = static_strides(buffer.type)
        if strides is None or min(strides) < 0 or not b.is_integer(buffer.type.element_type, 8):
            return False
        return _contiguous_bytes(self._offsets(buffer)) >= self.shape[-1]

    def is_injective(self, buffer: ir.Value) -> bool:
        """Whether each position of a tile is a byte of its own."""
        return len(set(self._offsets(buffer))) == self.size

    def load(self, buffer: ir.Value, address: FlatAddress) -> ir.Value:
        """The bytes of `buffer` at `address`, each at its position."""
        offsets, size = self._offsets(buffer), self.size
        length = _contiguous_bytes(offsets)
        if length == size:
            return address.load(size)
        if max(offsets) < size:
            near = address.load(max(offsets) + 1)
            return b.shuffle(near, near, offsets)
        if max(offsets) < 2 * size:
            return self._from_two(address, offsets)
        parts = [address.further(offsets[start]).load(length) for start in range(0, size, length)]
        while len(parts) > 1:
            count = b.shape_of(parts[0])[0]
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [b.shuffle(low, high, range(2 * count)) for low, high in pairs]
        return parts[0]

    def store(self, value: ir.Value, buffer: ir.Value, address: FlatAddress) -> None:
        """Store the bytes of a vector in `buffer` at `address`."""
        offsets = self._offsets(buffer)
        length = _contiguous_bytes(offsets)
        for start in range(0, self.size, length):
            part = value if length == self.size else b.shuffle(value, value, range(start, start + length))
            address.further(offsets[start]).store(part)

    def permuted(self, value: ir.Value) -> ir.Value:
        """The bytes of a vector as [4, lanes], vector v and lane 4 l + i."""
        order = np.arange(self.size).reshape(self._parts, 4, 4).transpose(1, 0, 2).ravel()
        shuffled = b.shuffle(value, value, [int(position) for position in order])
        return vector.shape_cast(ir.VectorType.get(self.flat, ir.VectorType(value.type).element_type), shuffled)

    def _from_two(self, address: FlatAddress, offsets: Sequence[int]) -> ir.Value:
        """Bytes that lie within those of two vectors: from the first of them and from the last."""
        size = self.size
        last = max(offsets) + 1 - size
        first, second = (address.further(start).load(size) for start in (0, last))
        return b.shuffle(
            first, second, [position if position < size else position - last + size for position in offsets]
        )

    def _offsets(self, buffer: ir.Value) -> tuple[int, ...]:
        """How far each of the bytes is from the first one."""
        strides = static_strides(ir.MemRefType(buffer.type)) or ()
        return _distances(self, strides[-self.rank :])

    def _digits(self, position: int) -> list[int]:
        return [position // weight % size for weight, size in zip(self._weights, self.shape, strict=True)]

    def digits(self) -> Iterator[list[int]]:
        """The index along each loop of the byte at each position."""
        return (self._digits(position) for position in range(self.size))


@cache
def _distances(tile: Tile, strides: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sum(digit * stride for digit, stride in zip(digits, strides, strict=True)) for digits in tile.digits())


@cache
def _contiguous_bytes(offsets: tuple[int, ...]) -> int:
    """The largest power of two of bytes that lie side by side everywhere."""
    lengths = (length for length in (64, 32, 16, 8, 4, 2) if length <= len(offsets) and _is_contiguous(offsets, length))
    return next(lengths, 1)


def _is_contiguous(offsets: Sequence[int], length: int) -> bool:
    return all(
        offset == offsets[position - position % length] + position % length for position, offset in enumerate(offsets)
    )
