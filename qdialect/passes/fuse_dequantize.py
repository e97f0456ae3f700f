"""`qnn-fuse-dequantize`: accumulators that are only dequantized become a product that writes f32 values."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from qdialect.dialect import Conv2DOp, DenseOp, DequantizeOp, DynamicConv2DOp, DynamicDenseOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import dtype_of, shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.fuse_dynamic_epilogue import FuseDynamicBias
from qdialect.passes.matching import not_constant, producer, second_use
from qdialect.passes.pattern import GraphPass, MatchFailure, Replacement
from qdialect.passes.registry import register

Contraction = Conv2DOp | DenseOp


class FuseDequantize(Replacement[Contraction]):
    """``dequantize(contraction)`` becomes a product whose scale is 1, its zero point and its scales constant."""

    roots = ("qnn.dequantize",)

    def check(self, op: DequantizeOp) -> Contraction | MatchFailure | None:
        contraction = producer(op.input)
        if not isinstance(contraction, Contraction):
            return None
        if contraction.bias is not None:
            return MatchFailure("must dequantize accumulators without bias")
        last = len(shape_of(op.input.type)) - 1
        if any(op.zero_points) or (len(op.scales) > 1 and op.axis != last):
            return MatchFailure("must dequantize with zero point 0, by one scale or by those of the channels")
        reason = second_use(contraction.output) or not_constant(contraction)
        return MatchFailure(reason) if reason else contraction

    def emit(self, op: DequantizeOp, match: Contraction) -> ir.Value:
        point = np.array(match.input_zero_point, dtype_of(match.data.type))
        how: dict[str, Any] = {"weight_scales": op.scales, "weight_zero_points": match.weight_zero_points}
        if isinstance(match, Conv2DOp):
            how |= {name: getattr(match, name) for name in ("strides", "padding", "dilation", "groups")}
        op_class = DynamicDenseOp if isinstance(match, DenseOp) else DynamicConv2DOp
        operands = (match.data, match.weight, constant(np.array(1, np.float32)), constant(point))
        return build(op_class, *operands, element="f32", **how).output


@register
class FuseDequantizePass(GraphPass):
    """Fuse the dequantization of accumulators and an f32 bias into the product: one kernel that writes f32 values."""

    name: ClassVar[str] = "qnn-fuse-dequantize"
    rewrites = (FuseDequantize, FuseDynamicBias)
