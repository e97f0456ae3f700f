"""Tiles of unpacked lanes as [..., 4, lanes]: four vectors that fill registers.

Dot products of interleaved bytes end in a cast from four vectors to a tile.  An op that computes each element by itself
means the same on either shape, so the cast goes down through such ops, to where the tile is written; their other
operands are cast the other way, or are read flat at once where they lie so.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul

import numpy as np

from qdialect._mlir import arith, ir, vector, walk
from qdialect.lowering.functions import function_of, ops_named
from qdialect.lowering.memory.strides import static_strides
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86.flat_address import flat_address
from qdialect.lowering.x86.memory import transfer_problem
from qdialect.lowering.x86.unpacked_lanes import Tile

_CAST = "vector.shape_cast"
_ELEMENT_WISE = ("arith.", "math.")
# They stay next to what they widen: a cast between the two would hide a product of extended words.
_WIDENINGS = ("arith.extsi", "arith.extui")


def flatten_lanes(module: ir.Module, tile: Tile) -> None:
    """Make the tiles behind casts from flat vectors flat, in place; what is written is cast before."""
    casts = [cast for cast in ops_named(module, _CAST) if tile.matches(cast.results[0].type)]
    for function in dict.fromkeys(map(function_of, casts)):
        for op in _operations(function):
            if _is_by_element(op, tile) and any(_flat_source(operand, tile) for operand in op.operands):
                _flatten(op, tile)


def _operations(function: ir.Operation) -> list[ir.Operation]:
    """The ops inside, in program order; MLIR's walk is many times as fast as one over regions and blocks."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.append(op)
        return ir.WalkResult.ADVANCE

    walk(function, visit)
    return found[1:]


def _is_by_element(op: ir.Operation, tile: Tile) -> bool:
    """Whether `op` computes each element of a tile from the elements at its position, or from scalars."""
    # Most ops are told by their name.
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
    """Let `op` compute on flat vectors, and cast what it gives."""
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
    """What `op` reads as flat vectors: constants lie in the tile's order already, bytes are put into it."""
    buffer, *indices, padding = op.operands
    if not isinstance(buffer.type, ir.MemRefType) or transfer_problem(op, buffer, others=2):
        return None
    if b.shape_of(buffer)[-tile.rank :] != tile.shape:
        return None
    if b.is_innermost_contiguous(buffer, tile.rank):
        return _read_flat(type_, buffer, indices, padding, tile)
    return _read_bytes(type_, buffer, indices, tile) if tile.is_in(buffer) else None


def _read_flat(
    type_: ir.VectorType, buffer: ir.Value, indices: Sequence[ir.Value], padding: ir.Value, tile: Tile
) -> ir.Value:
    collapsed = b.collapse_inner(buffer, 2, tile.rank - 2)
    order = ir.AffineMap.get_minor_identity(len(indices) - tile.rank + 2, type_.rank)
    return vector.transfer_read(type_, collapsed, indices[: 2 - tile.rank], order, padding, [True] * type_.rank)


def _read_bytes(type_: ir.VectorType, buffer: ir.Value, indices: Sequence[ir.Value], tile: Tile) -> ir.Value:
    result = b.splat(type_, 0)
    address = flat_address(buffer, indices)
    strides = (static_strides(ir.MemRefType(buffer.type)) or ())[: -tile.rank]
    for position in np.ndindex(*list(type_.shape)[:-2]):
        distance = sum(map(mul, reversed(position), reversed(strides)))
        loaded = tile.permuted(tile.load(buffer, address.further(distance)))
        result = b.insert(loaded, result, position)
    return result
