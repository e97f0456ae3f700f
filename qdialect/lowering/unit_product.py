"""The factors of products with one term for each element of a tile, spread over the tile."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect._mlir import ir, vector
from qdialect.lowering.indexing_maps import Contraction
from qdialect.lowering.x86 import building as b


def spread(value: ir.Value, walked: Sequence[int], loops: Contraction, tile: Sequence[int]) -> ir.Value:
    """A factor whose axes are the loops `walked`, over the tile of the result.

    It is ordered, reshaped to one extent for each loop of the tile, then broadcast.
    """
    element, order, shape = ir.VectorType(value.type).element_type, _order(walked, loops), _shape(walked, loops)
    if order is not None:
        extents = b.shape_of(value)
        value = vector.transpose(ir.VectorType.get([extents[axis] for axis in order], element), value, order)
    while len(shape) > 1 and shape[0] == 1 and shape != list(tile):
        shape = shape[1:]
    shaped = value if b.shape_of(value) == shape else vector.shape_cast(ir.VectorType.get(shape, element), value)
    return shaped if shape == list(tile) else vector.broadcast(ir.VectorType.get(list(tile), element), shaped)


def _order(walked: Sequence[int], loops: Contraction) -> list[int] | None:
    """The permutation of the axes that brings them into the order of the result; None where they have it."""
    at = [loops.result.index(loop) if loop in loops.result else 0 for loop in walked]
    long = [position for position, loop in zip(at, walked, strict=True) if loops.extents[loop] > 1]
    # Where only axes of one element are elsewhere, the elements have the order already.
    return None if long == sorted(long) else sorted(range(len(at)), key=at.__getitem__)


def _shape(walked: Sequence[int], loops: Contraction) -> list[int]:
    """The extents along the loops of the result."""
    return [loops.extents[loop] if loop in walked else 1 for loop in loops.result]
