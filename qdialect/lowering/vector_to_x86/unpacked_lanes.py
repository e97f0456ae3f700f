"""Tiles of a vector's bytes in the order that unpacking leaves them in, and as four vectors that fill registers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from operator import mul

import numpy as np

from qdialect.ir._mlir import arith, ir, ops_in, vector
from qdialect.lowering.ir import building as b
from qdialect.lowering.ir.flat_address import FlatAddress, flat_address, transfer_problem
from qdialect.lowering.ir.functions import function_of, ops_named
from qdialect.lowering.ir.views import row_major, static_strides

# Tiles of a vector's bytes whose lanes are in the order that unpacking leaves them in.
#
# Unpacking within 128-bit lanes takes byte 16 l + 4 v + i to vector v, lane 4 l + i.  A tile has a loop for each bit of
# v and l and one for i: [2, 2, 2, 2, 4] of 64 bytes, [2, 2, 2, 4] of 32 and [2, 2, 4] of 16.  In memory its bytes lie
# side by side, or in contiguous parts of 4 bytes or more.

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
        return [*[2] * (_BITS + self._parts.bit_length() - 1), 4]

    @property
    def rank(self) -> int:
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
        """The step of each loop in a lane's position among the bytes."""
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
            # Bytes that lie within those of two vectors: from the first of them and from the last.
            size, last = self.size, max(offsets) + 1 - self.size
            first, second = (address.further(start).load(size) for start in (0, last))
            picked = [position if position < size else position - last + size for position in offsets]
            return b.shuffle(first, second, picked)
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

    def _offsets(self, buffer: ir.Value) -> tuple[int, ...]:
        """How far each of the bytes is from the first one."""
        strides = static_strides(ir.MemRefType(buffer.type)) or ()
        return _distances(self, strides[-self.rank :])

    def digits(self) -> Iterator[list[int]]:
        """The index along each loop of the byte at each position."""
        steps = [*zip(self._weights, self.shape, strict=True)]
        return ([position // weight % size for weight, size in steps] for position in range(self.size))


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


# Tiles of unpacked lanes as [..., 4, lanes]: four vectors that fill registers.
#
# Dot products of interleaved bytes end in a cast from four vectors to a tile.  An op that computes each element by
# itself means the same on either shape, so the cast goes down through such ops, to where the tile is written; their
# other operands are cast the other way, or are read flat at once where they lie so.

_CAST = "vector.shape_cast"
_ELEMENT_WISE = ("arith.", "math.")
# Extensions stay next to their operand: a cast between the two would hide a product of extended words.
_WIDENINGS = ("arith.extsi", "arith.extui")


def flatten_lanes(module: ir.Module, tile: Tile) -> None:
    """Make the tiles behind casts from flat vectors flat, in place; values to store are cast before."""
    casts = [cast for cast in ops_named(module, _CAST) if tile.matches(cast.results[0].type)]
    for function in dict.fromkeys(map(function_of, casts)):
        for op in ops_in(function)[1:]:
            if _is_by_element(op, tile) and any(_flat_source(operand, tile) for operand in op.operands):
                _flatten(op, tile)


def _is_by_element(op: ir.Operation, tile: Tile) -> bool:
    """Whether `op` computes each element of a tile from the elements at its position, or from scalars."""
    # The name decides for most ops.
    if not op.name.startswith(_ELEMENT_WISE) and op.name != "vector.gather":
        return False
    if len(op.results) != 1 or not tile.matches(op.results[0].type):
        return False
    shape = list(ir.VectorType(op.results[0].type).shape)
    vectors = [value for value in op.operands if isinstance(value.type, ir.VectorType)]
    return all(b.shape_of(value) == shape for value in vectors)


def _flat_type(tiles: ir.Type, tile: Tile) -> ir.VectorType:
    type_ = ir.VectorType(tiles)
    return ir.VectorType.get([*list(type_.shape)[: -tile.rank], *tile.flat], type_.element_type)


def _flat_source(value: ir.Value, tile: Tile) -> ir.Value | None:
    """The flat vector that a tile was cast from."""
    cast = b.defining(value, _CAST)
    if cast is None or not tile.matches(value.type) or cast.operands[0].type != _flat_type(value.type, tile):
        return None
    return cast.operands[0]


def _flatten(op: ir.Operation, tile: Tile) -> None:
    """Let `op` compute on flat vectors, and cast its result."""
    result = op.results[0]
    type_ = result.type
    with op.location:
        for index, operand in enumerate(op.operands):
            if tile.matches(operand.type):
                op.operands[index] = flat_value(operand, op, tile)
        result.set_type(_flat_type(type_, tile))
        with ir.InsertionPoint.after(op):
            cast = vector.shape_cast(type_, result)
    result.replace_all_uses_except(cast, cast.owner.operation)


def flat_value(value: ir.Value, user: ir.Operation, tile: Tile) -> ir.Value:
    """A tile as a flat vector, before `user`."""
    source = _flat_source(value, tile)
    if source is not None:
        return source
    type_, owner = _flat_type(value.type, tile), value.owner
    op = None if isinstance(owner, ir.Block) else owner.operation
    with ir.InsertionPoint(op or user):
        if op and op.name == "arith.constant" and ir.DenseElementsAttr(op.attributes["value"]).is_splat:
            splat = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
            return arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, splat))
        if op and op.name == "vector.broadcast" and not isinstance(op.operands[0].type, ir.VectorType):
            return vector.broadcast(type_, op.operands[0])
        if op and _is_spread(op, tile):
            return vector.broadcast(type_, flat_value(op.operands[0], op, tile))
        if op and op.name in _WIDENINGS:
            return ir.Operation.create(op.name, [type_], [flat_value(op.operands[0], op, tile)]).results[0]
        if op and op.name == "vector.transfer_read" and (found := _flat_read(op, type_, tile)):
            return found
    with ir.InsertionPoint(user):
        return vector.shape_cast(type_, value)


def _is_spread(op: ir.Operation, tile: Tile) -> bool:
    """Whether tiles are repeated; a cast that puts unit extents before one tile is the same."""
    if op.name not in ("vector.broadcast", _CAST) or not tile.matches(op.operands[0].type):
        return False
    return op.name != _CAST or set(b.shape_of(op.operands[0])[: -tile.rank]) <= {1}


def _flat_read(op: ir.Operation, type_: ir.VectorType, tile: Tile) -> ir.Value | None:
    """The operand of `op` as flat vectors: constants are in the tile's order already, bytes are permuted into it."""
    buffer, *indices, padding = op.operands
    if not isinstance(buffer.type, ir.MemRefType) or transfer_problem(op, buffer):
        return None
    if b.shape_of(buffer)[-tile.rank :] != tile.shape:
        return None
    if b.is_innermost_contiguous(buffer, tile.rank):
        collapsed = b.collapse_inner(buffer, 2, tile.rank - 2)
        order = ir.AffineMap.get_minor_identity(len(indices) - tile.rank + 2, type_.rank)
        return vector.transfer_read(type_, collapsed, indices[: 2 - tile.rank], order, padding, [True] * type_.rank)
    return _read_bytes(type_, buffer, indices, tile) if tile.is_in(buffer) else None


def _read_bytes(type_: ir.VectorType, buffer: ir.Value, indices: Sequence[ir.Value], tile: Tile) -> ir.Value:
    result = b.splat(type_, 0)
    address = flat_address(buffer, indices)
    strides = (static_strides(ir.MemRefType(buffer.type)) or ())[: -tile.rank]
    for position in np.ndindex(*list(type_.shape)[:-2]):
        distance = sum(map(mul, reversed(position), reversed(strides)))
        loaded = tile.permuted(tile.load(buffer, address.further(distance)))
        result = b.insert(loaded, result, position)
    return result
