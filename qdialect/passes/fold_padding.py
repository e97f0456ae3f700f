"""`qnn-fold-padding`: an explicit pad with the f32 zero becomes the convolution's own padding."""

from __future__ import annotations

from typing import ClassVar

from qdialect.dialect import Conv2DOp, FusedConv2DOp, I16Conv2DOp, PadOp
from qdialect.ir._mlir import ir
from qdialect.passes import pattern
from qdialect.passes.pattern import GraphPass, MatchFailure, Replacement, produced_by, rebuilt, refuse
from qdialect.passes.registry import register

AnyConv2D = Conv2DOp | FusedConv2DOp | I16Conv2DOp


class FoldPadding(Replacement[PadOp]):
    """``conv(pad(x))`` is ``conv(x)`` with more padding where the pad's value is the conv's input zero point.

    That of 16-bit data is 0. Other users of the padded tensor keep the pad.
    """

    roots = ("qnn.conv2d", "qnn.fused_conv2d", "qnn.i16_conv2d")

    def check(self, op: AnyConv2D) -> PadOp | None:
        pad = produced_by(op.data, PadOp)
        if pad is None:
            return None
        grown = [i for i in (0, 3) if pad.low[i] or pad.high[i]]
        if grown:
            raise MatchFailure(f"pad must grow height and width alone, but it grows dimension {grown[0]}")
        zero_point = 0 if isinstance(op, I16Conv2DOp) else op.input_zero_point
        refuse(pattern.differences(**{"pad value": (zero_point, pad.value)}))
        return pad

    def emit(self, op: AnyConv2D, match: PadOp) -> ir.Value:
        top, left, bottom, right = op.padding
        (_, low_y, low_x, _), (_, high_y, high_x, _) = match.low, match.high
        padding = (top + low_y, left + low_x, bottom + high_y, right + high_x)
        operands: list[ir.Value] = [match.input, *list(op.operation.operands)[1:]]
        return rebuilt(op, *operands, padding=padding).output


@register
class FoldPaddingPass(GraphPass):
    """Fold explicit zero-point padding into the convolution that reads it."""

    name: ClassVar[str] = "qnn-fold-padding"
    rewrites = (FoldPadding,)
