"""`qnn-fuse-dequantize`: accumulators that are only dequantized become a product that writes f32 values."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from qdialect.dialect import Conv2DOp, DenseOp, DequantizeOp
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.fuse_dynamic_epilogue import FuseDynamicBias, dynamic_product
from qdialect.passes.pattern import GraphPass, Replacement, not_constant, producer, refuse, require, second_use
from qdialect.passes.registry import register

Contraction = Conv2DOp | DenseOp


class FuseDequantize(Replacement[Contraction]):
    """``dequantize(contraction)`` becomes a product whose scale is 1, its zero point and its scales constant."""

    roots = ("qnn.dequantize",)

    def check(self, op: DequantizeOp) -> Contraction | None:
        contraction = producer(op.input)
        if not isinstance(contraction, Contraction):
            return None
        require(contraction.bias is None, "must dequantize accumulators without bias")
        are_of_channels = len(op.scales) == 1 or op.axis == len(shape_of(op.input.type)) - 1
        wanted = "must dequantize with zero point 0, by one scale or by those of the channels"
        require(not any(op.zero_points) and are_of_channels, wanted)
        refuse(second_use(contraction.output) or not_constant(contraction))
        return contraction

    def emit(self, op: DequantizeOp, match: Contraction) -> ir.Value:
        return dynamic_product(match, op.scales, constant(np.array(1, np.float32)))


@register
class FuseDequantizePass(GraphPass):
    """Fuse the dequantization of accumulators and an f32 bias into the product: one kernel that writes f32 values."""

    name: ClassVar[str] = "qnn-fuse-dequantize"
    rewrites = (FuseDequantize, FuseDynamicBias)
