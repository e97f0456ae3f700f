"""The scale and the zero point of a range that is computed at run time, from its minimum and maximum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdialect.dialect.fields import operand, result
from qdialect.dialect.op_base import QnnOp, Shape, require
from qdialect.dialect.type_constraints import FLOAT


class RangeOp(QnnOp):
    """For the range [min(minimum, 0), max(maximum, 0)]: its width in float32, the rest in float64, rounded once.

    The arithmetic is that of TFLite's hybrid kernels (tensor_utils AsymmetricQuantizeFloats).

    Constraints:
      C1: minimum and maximum must have the same shape
    """

    minimum = operand(FLOAT)
    maximum = operand(FLOAT)
    output = result(FLOAT)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        first, second = shapes
        require(first == second, "C1", f"maximum must have the shape {list(first)}, but got {list(second)}")
        return first


class RangeScaleOp(RangeOp, name="range_scale"):
    """``(max - min) / 255``; 1 where both are 0."""


class RangeZeroPointOp(RangeOp, name="range_zero_point"):
    """``-128 - min / scale`` or ``127 - max / scale``, whichever has the smaller terms, rounded half away from zero.

    It is clamped to [-128, 127]; 0 where both ends are 0.
    """
