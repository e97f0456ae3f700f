"""`qnn-trim-taps`: removes rows and columns of a kernel that read only padding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect import Conv2DOp, FusedConv2DOp, I16Conv2DOp
from qdialect.dialect.constants import constant, constant_value
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.pattern import GraphPass, MatchFailure, Replacement, rebuilt
from qdialect.passes.registry import register

AnyConv2D = Conv2DOp | FusedConv2DOp | I16Conv2DOp


@dataclass(frozen=True)
class _Axis:
    """The taps of a kernel along the height or the width of an image."""

    extent: int
    outputs: int
    taps: int
    stride: int
    dilation: int
    before: int
    after: int

    def reads_image(self, tap: int) -> bool:
        """Whether any output multiplies `tap` by an element of the image.

        Output o reads position ``o * stride + tap * dilation - before``.  The first o whose position is no longer
        before the image must exist, and its position lie inside.
        """
        start = tap * self.dilation - self.before
        first = max(0, -(start // self.stride))
        return first < self.outputs and first * self.stride + start < self.extent

    def trimmed(self) -> tuple[int, int]:
        """How many taps at the beginning and at the end read only padding, as far as the padding goes.

        Without its first tap a kernel begins one dilation later, so that the padding is that much less.
        """
        met = [tap for tap in range(self.taps) if self.reads_image(tap)]
        if not met:
            return 0, 0
        return min(met[0], self.before // self.dilation), min(self.taps - 1 - met[-1], self.after // self.dilation)


@dataclass(frozen=True)
class _Trimmed:
    """The taps that stay, and the padding around them."""

    weight: NDArray[Any]
    padding: tuple[int, int, int, int]


class TrimTaps(Replacement[_Trimmed]):
    """A padded element is the zero point, so a tap that reads no other adds nothing.

    Dilated kernels whose taps are as far apart as the image is large become small, as 3x3 kernels on an image of one
    pixel do; the border around the image is narrower for the same number.
    """

    roots = ("qnn.conv2d", "qnn.fused_conv2d", "qnn.i16_conv2d")

    def check(self, op: AnyConv2D) -> _Trimmed | None:
        (top, bottom), (left, right) = (axis.trimmed() for axis in _axes(op))
        if not top + bottom + left + right:
            return None
        weight = constant_value(op.weight)
        if weight is None:
            raise MatchFailure("taps that meet padding alone must be constant")
        _, height, width, _ = weight.shape
        (down, along), (above, before, below, behind) = op.dilation, op.padding
        padding = (above - top * down, before - left * along, below - bottom * down, behind - right * along)
        return _Trimmed(weight[:, top : height - bottom, left : width - right], padding)

    def emit(self, op: AnyConv2D, match: _Trimmed) -> ir.Value:
        data, _, *others = op.operation.operands
        weight = constant(np.ascontiguousarray(match.weight))
        return rebuilt(op, data, weight, *others, padding=match.padding).output


def _axes(op: AnyConv2D) -> tuple[_Axis, _Axis]:
    images, taps, results = (shape_of(value.type)[1:3] for value in (op.data, op.weight, op.output))
    ends = (op.padding[:2], op.padding[2:])
    height, width = (
        _Axis(images[i], results[i], taps[i], op.strides[i], op.dilation[i], ends[0][i], ends[1][i]) for i in (0, 1)
    )
    return height, width


@register
class TrimTapsPass(GraphPass):
    """Remove the rows and columns of kernels that read only padding."""

    name: ClassVar[str] = "qnn-trim-taps"
    rewrites = (TrimTaps,)
