"""BATCH_MATMUL of 16-bit activations with 16- or 8-bit ones, summed up in 64 bits."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect import I16MatmulOp, I16RequantizeOp
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import check_rescale, check_scales
from qdialect.frontends.tflite.operators.i16.checks import output_of, sixteen_bit
from qdialect.frontends.tflite.operators.product import sides_of, transposed
from qdialect.frontends.tflite.operators.registry import Emission, imports_i16
from qdialect.quant_math import Multiplier
from qdialect.quant_math.choices import I16Rounding


@imports_i16("BATCH_MATMUL")
def _batch_matmul(operator: Operator) -> Emission:
    """The product of the scales is one of float32 (TFLite GetQuantizedConvolutionMultipler)."""
    lhs, rhs, transpose_lhs, transpose_rhs = sides_of(operator)
    output = output_of(operator)
    sixteen_bit(lhs, "left operand")
    _check_right(rhs)
    check_rescale(lhs.scale, rhs.scales, output.scale, Multiplier.F32_PRODUCT)

    def emit(emitter: Emitter) -> ir.Value:
        data = transposed(emitter, emitter.value(lhs)) if transpose_lhs else emitter.value(lhs)
        weight = transposed(emitter, emitter.value(rhs)) if transpose_rhs else emitter.value(rhs)
        acc = emitter.build(I16MatmulOp, data, weight, element="i64")
        scales = {"input_scale": lhs.scale, "weight_scales": rhs.scales, "output_scale": output.scale}
        how = {"rounding": I16Rounding.FIXED16_UP, "multiplier": Multiplier.F32_PRODUCT}
        return emitter.reshape(emitter.build(I16RequantizeOp, acc, element="i16", **scales, **how), output.shape)

    return emit


def _check_right(rhs: Tensor) -> None:
    require(rhs.element in ("i8", "i16"), f"right operand must be i16 or i8, but got {rhs.element}")
    require(len(rhs.scales) == 1, f"right operand must have one scale, but got {len(rhs.scales)}")
    check_scales(rhs, "right operand")
    require(rhs.zero_point == 0, f"right operand zero point must be 0, but got {rhs.zero_point}")
