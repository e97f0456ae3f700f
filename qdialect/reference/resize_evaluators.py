"""Evaluators of the ops that resize images."""

from __future__ import annotations

from qdialect.dialect import ResizeBilinearOp, ResizeNearestOp
from qdialect.quant_math.choices import Interpolation
from qdialect.reference import resize
from qdialect.reference.evaluators import Array, Arrays, evaluates


@evaluates(ResizeNearestOp)
def _nearest(op: ResizeNearestOp, operands: Arrays) -> Array:
    return resize.resize_nearest(operands[0], *op.nearest_indices)


@evaluates(ResizeBilinearOp)
def _bilinear(op: ResizeBilinearOp, operands: Arrays) -> Array:
    return resize.resize_bilinear(operands[0], *op.taps, Interpolation(op.arithmetic))
