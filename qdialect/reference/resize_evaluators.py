"""Evaluators of the ops that resize images."""

from __future__ import annotations

from qdialect.dialect import ResizeBilinearOp, ResizeNearestOp
from qdialect.dialect.enums import Interpolation
from qdialect.dialect.type_constraints import shape_of
from qdialect.reference import resize
from qdialect.reference.evaluators import Array, Arrays, evaluates


def nearest_axes(op: ResizeNearestOp) -> tuple[Array, Array]:
    """The row and the column of the input that each row and column of the result shows."""
    extents = shape_of(op.input.type)[1:3]
    rows, columns = (
        resize.nearest_cells(resize.places(op.coordinates, op.ratio, extent, size), op.nearest, extent)
        for extent, size in zip(extents, op.size, strict=True)
    )
    return rows, columns


def bilinear_axes(op: ResizeBilinearOp) -> tuple[resize.Taps, resize.Taps]:
    """What the rows and the columns of the result are made of."""
    extents = shape_of(op.input.type)[1:3]
    rows, columns = (
        resize.taps(Interpolation(op.arithmetic), op.coordinates, extent, size)
        for extent, size in zip(extents, op.size, strict=True)
    )
    return rows, columns


@evaluates(ResizeNearestOp)
def _nearest(op: ResizeNearestOp, operands: Arrays) -> Array:
    return resize.resize_nearest(operands[0], *nearest_axes(op))


@evaluates(ResizeBilinearOp)
def _bilinear(op: ResizeBilinearOp, operands: Arrays) -> Array:
    return resize.resize_bilinear(operands[0], *bilinear_axes(op), Interpolation(op.arithmetic))
