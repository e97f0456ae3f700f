"""FULLY_CONNECTED of i8 with weights that are known when the network runs, which TFLite's XNNPACK delegate leaves.

TFLite's own kernel rounds twice (ruy's of x86): the doubling high product with the multiplier ``q * 2^(e - 31)``, then
the shift by -e bits, ties up both times.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import MatMulOp, RequantizeOp
from qdialect.dialect.constants import constant, constant_value
from qdialect.dialect.type_constraints import element_of, range_of, shape_of
from qdialect.frontends.tflite.xnnpack_mean import tensor_of, upstream
from qdialect.passes.pattern import Pattern, Rewriter
from qdialect.quant_math import Rounding, quantize_multiplier

_FRACTION_BITS = 31


class RunTimeDense(Pattern[tuple[int, int]]):
    """The rescale of such a product by integer ops, whose factor is below one."""

    name: ClassVar[str] = "xnnpack-run-time-dense"
    roots: ClassVar[tuple[str, ...]] = ("qnn.requantize",)

    def check(self, op: RequantizeOp) -> tuple[int, int] | None:
        """Multiplier and exponent."""
        producer = op.input.owner
        # BATCH_MATMUL rounds in another way already.
        is_other = op.rounding is not Rounding.FIXED64_NEAREST or element_of(op.output.type) != "i8"
        if is_other or isinstance(producer, ir.Block) or not isinstance(producer.opview, MatMulOp):
            return None
        if constant_value(producer.operands[1]) is not None or len(op.weight_scales) != 1:
            return None
        q, e = quantize_multiplier(op.input_scale * op.weight_scales[0] / op.output_scale)
        return (q, e) if e <= 0 and -e < _FRACTION_BITS else None

    def rewrite(self, op: RequantizeOp, match: tuple[int, int], rewriter: Rewriter) -> None:
        q, e = match
        shape, bounds = shape_of(op.input.type), range_of(op.output.type)
        with rewriter.before(op):
            wide = tensor_of(shape, ir.IntegerType.get_signless(64))

            def of_number(name: str, value: ir.Value, number: int) -> ir.Value:
                return upstream(name, wide, value, constant(np.broadcast_to(np.int64(number), shape)))

            value = of_number("arith.muli", upstream("arith.extsi", wide, op.input), q)
            for count in (_FRACTION_BITS, -e):
                # A shift by no bits has no half to add.
                nudged = of_number("arith.addi", value, (1 << count) >> 1)
                value = of_number("arith.shrsi", nudged, count)
            value = of_number("arith.addi", value, op.output_zero_point)
            value = of_number("arith.minsi", of_number("arith.maxsi", value, bounds[0]), bounds[1])
            narrow = upstream("arith.trunci", tensor_of(shape, ir.IntegerType.get_signless(8)), value)
        rewriter.replace(op, narrow)
