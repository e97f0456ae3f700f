"""Tiles of [..., 4, 4, 4] lanes, (v, l, i), as [..., 4, 16]: four vectors that fill registers.

Around such a tile are only ops that compute each element by itself, so a change of all its types leaves what they mean.
"""

from __future__ import annotations

from collections.abc import Iterator

from qdialect._mlir import arith, ir, vector
from qdialect.lowering.x86 import building as b


def flatten_lanes(module: ir.Module) -> None:
    """Make the tiles flat in each function where dot products are, in place; what is written is cast before."""
    for function in module.body.operations:
        ops = list(_walk(function.operation))
        if any(op.name == "vector.shape_cast" and _is_tile(op.results[0].type) for op in ops):
            for op in ops:
                with op.location:
                    _flatten(op)


def _tile_type(flat: ir.Type) -> ir.VectorType:
    """The tile of a flat vector."""
    type_ = ir.VectorType(flat)
    return ir.VectorType.get([*type_.shape[:-2], *b.UNPACKED], type_.element_type)


def _flat_type(tile: ir.Type) -> ir.VectorType:
    type_ = ir.VectorType(tile)
    return ir.VectorType.get([*type_.shape[:-2], 16], type_.element_type)


def _walk(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                yield child.operation
                yield from _walk(child.operation)


def _is_tile(type_: ir.Type) -> bool:
    return isinstance(type_, ir.VectorType) and list(type_.shape)[-3:] == b.UNPACKED


def _flatten(op: ir.Operation) -> None:
    """Make the tiles that `op` gives flat; those it gets are so already."""
    if op.name == "vector.transfer_write":
        _cast_written(op)
    elif not op.results or not _is_tile(op.results[0].type):
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
    """A read of lanes that lie in the tile's order is one of flat vectors; another one is cast."""
    result, (buffer, *indices, padding) = op.results[0], op.operands
    type_ = _flat_type(result.type)
    if not b.is_innermost_contiguous(buffer, 2) or b.shape_of(buffer)[-2:] != b.UNPACKED[-2:]:
        with ir.InsertionPoint.after(op):
            flat = vector.shape_cast(type_, result)
        result.replace_all_uses_except(flat, flat.owner.operation)
        return
    with ir.InsertionPoint(op):
        collapsed = b.collapse_inner(buffer, 2)
        rank = len(indices) - 1
        order = ir.AffineMap.get_minor_identity(rank, type_.rank)
        flat = vector.transfer_read(type_, collapsed, indices[:-1], order, padding, [True] * type_.rank)
    result.replace_all_uses_with(flat)
