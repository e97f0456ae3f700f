"""MEAN and SUM of TFLite's XNNPACK delegate: the sum of quantized values times one factor, plus one bias, in float32.

With n elements and ``m = (s_x / s_y) * (1 / n)``, or ``s_x / s_y`` for a sum, every operation rounded to float32, it is
``half_even(float32(sum) * m + (-(z_x * n) * m + z_y))`` (XNNPACK's reduce operator of 8-bit tensors).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import IntSumOp, MeanOp, QuantizeOp, SumOp, build
from qdialect.dialect.constants import constant
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.passes.pattern import Pattern, Rewriter
from qdialect.quant_math import FloatRounding

_MAX_COUNT = 2**23
"""Of elements that are added up."""


class Mean(Pattern[tuple[np.float32, np.float32]]):
    """A mean, or a sum, as a sum of integers, a factor and a bias."""

    name: ClassVar[str] = "xnnpack-mean"
    roots: ClassVar[tuple[str, ...]] = ("qnn.mean", "qnn.sum")

    def check(self, op: MeanOp | SumOp) -> tuple[np.float32, np.float32] | None:
        """Factor and bias; None where 32 bits may not hold the sum."""
        count = math.prod(shape_of(op.input.type)[axis] for axis in op.axes)
        if count > _MAX_COUNT:
            return None
        factor = np.float32(op.input_scale) / np.float32(op.output_scale)
        if isinstance(op, MeanOp):
            factor = factor * (np.float32(1) / np.float32(count))
        return factor, np.float32(-op.input_zero_point * count) * factor + np.float32(op.output_zero_point)

    def rewrite(self, op: MeanOp | SumOp, match: tuple[np.float32, np.float32], rewriter: Rewriter) -> None:
        factor, bias = match
        with rewriter.before(op):
            total = build(IntSumOp, _widened(op.input), element="i32", axes=op.axes, keep_dims=op.keep_dims).output
            shape = shape_of(total.type)
            value = upstream("arith.sitofp", tensor_of(shape, ir.F32Type.get()), total)
            for name, number in (("arith.mulf", factor), ("arith.addf", bias)):
                value = upstream(name, value.type, value, constant(np.broadcast_to(number, shape)))
            how: dict[str, Any] = {"scales": (1.0,), "zero_points": (0,), "rounding": FloatRounding.HALF_EVEN}
            quantized = build(QuantizeOp, value, element=element_of(op.output.type), **how)
        rewriter.replace(op, quantized.output)


def _widened(value: ir.Value) -> ir.Value:
    """An 8-bit tensor as i32."""
    shape, is_unsigned = shape_of(value.type), element_of(value.type) == "ui8"
    if is_unsigned:
        value = upstream("tensor.bitcast", tensor_of(shape, ir.IntegerType.get_signless(8)), value)
    widens = "arith.extui" if is_unsigned else "arith.extsi"
    return upstream(widens, tensor_of(shape, ir.IntegerType.get_signless(32)), value)


def tensor_of(shape: tuple[int, ...], element: ir.Type) -> ir.Type:
    """A ranked tensor type."""
    return ir.RankedTensorType.get(list(shape), element)


def upstream(name: str, type_: ir.Type, *operands: ir.Value) -> ir.Value:
    """The result of an upstream op without attributes."""
    return ir.Operation.create(name, results=[type_], operands=list(operands)).results[0]
