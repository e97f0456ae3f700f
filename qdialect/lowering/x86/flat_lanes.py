"""Tiles of unpacked lanes as [..., 4, 16]: four vectors that fill registers.

Around such a tile are only ops that compute each element by itself, so a change of all its types leaves what they mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect._mlir import arith, ir, vector
from qdialect.lowering.x86 import building as b
from qdialect.lowering.x86 import unpacked_lanes
from qdialect.lowering.x86.unpacked_lanes import RANK, TILE, is_tile


def flatten_lanes(module: ir.Module) -> None:
    """Make the tiles flat in each function where dot products are, in place; what is written is cast before."""
    for function in module.body.operations:
        ops = _operations(function.operation)
        if any(op.name == "vector.shape_cast" and is_tile(op.results[0].type) for op in ops):
            for op in ops:
                with op.location:
                    _flatten(op)


def _tile_type(flat: ir.Type) -> ir.VectorType:
    """The tile of a flat vector."""
    type_ = ir.VectorType(flat)
    return ir.VectorType.get([*type_.shape[:-2], *TILE], type_.element_type)


def _flat_type(tile: ir.Type) -> ir.VectorType:
    type_ = ir.VectorType(tile)
    return ir.VectorType.get([*type_.shape[:-RANK], 4, 16], type_.element_type)


def _operations(function: ir.Operation) -> list[ir.Operation]:
    """The ops inside, in program order; MLIR's walk is many times as fast as one over regions and blocks."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[1:]


def _flatten(op: ir.Operation) -> None:
    """Make the tiles that `op` gives flat; those it gets are so already."""
    if op.name == "vector.transfer_write":
        _cast_written(op)
    elif not op.results or not is_tile(op.results[0].type):
        return
    elif op.name == "vector.transfer_read":
        _flatten_read(op)
    elif op.name == "arith.constant":
        type_, value = _flat_type(op.results[0].type), ir.DenseElementsAttr(op.attributes["value"])
        with ir.InsertionPoint(op):
            flat = arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, value.get_splat_value()))
        op.results[0].replace_all_uses_with(flat)
    else:
        op.results[0].set_type(_flat_type(op.results[0].type))


def _cast_written(op: ir.Operation) -> None:
    value, rank = op.operands[0], len(ir.ArrayAttr(op.attributes["in_bounds"]))
    if ir.VectorType(value.type).rank == rank:
        return
    with ir.InsertionPoint(op):
        op.operands[0] = vector.shape_cast(_tile_type(value.type), value)


def _flatten_read(op: ir.Operation) -> None:
    """A read of constants lies in the tile's order already; one of bytes is put into it."""
    result, (buffer, *indices, padding) = op.results[0], op.operands
    type_ = _flat_type(result.type)
    with ir.InsertionPoint(op):
        if b.is_innermost_contiguous(buffer, RANK):
            flat = _read_flat(type_, buffer, indices, padding)
        elif unpacked_lanes.holds_tiles(buffer):
            flat = _read_bytes(type_, buffer, indices)
        else:
            return _cast_read(op, type_)
    return result.replace_all_uses_with(flat)


def _read_flat(type_: ir.VectorType, buffer: ir.Value, indices: Sequence[ir.Value], padding: ir.Value) -> ir.Value:
    collapsed = b.collapse_inner(buffer, 2, 3)
    order = ir.AffineMap.get_minor_identity(len(indices) - RANK + 2, type_.rank)
    return vector.transfer_read(type_, collapsed, indices[: 2 - RANK], order, padding, [True] * type_.rank)


def _read_bytes(type_: ir.VectorType, buffer: ir.Value, indices: Sequence[ir.Value]) -> ir.Value:
    result = b.splat(type_, 0)
    outer = [0] * (len(indices) - type_.rank - RANK + 2)
    for position in np.ndindex(*type_.shape[:-2]):
        steps = [*outer, *position, *[0] * RANK]
        tile = unpacked_lanes.permuted(unpacked_lanes.load_tile(buffer, b.shifted(indices, steps)))
        result = b.insert(tile, result, position)
    return result


def _cast_read(op: ir.Operation, type_: ir.VectorType) -> None:
    with ir.InsertionPoint.after(op):
        flat = vector.shape_cast(type_, op.results[0])
    op.results[0].replace_all_uses_except(flat, flat.owner.operation)
