"""Evaluators of convolution and matrix product: the accumulators of an op, alone or fused."""

from __future__ import annotations

from qdialect.dialect import (
    AnyContraction,
    AnyFused,
    Conv2DOp,
    ConvTranspose2DOp,
    DenseOp,
    FusedConv2DOp,
    FusedConvTranspose2DOp,
    FusedMatMulOp,
    MatMulOp,
)
from qdialect.quant_math.convolution import conv2d_accumulate
from qdialect.reference.dense import dense_accumulate, matmul_accumulate
from qdialect.reference.evaluators import Array, Arrays, evaluates
from qdialect.reference.transposed_convolution import conv_transpose2d_accumulate


@evaluates(Conv2DOp, ConvTranspose2DOp, DenseOp, MatMulOp)
def _contraction(op: AnyContraction, operands: Arrays) -> Array:
    return accumulators(op, *operands)


def accumulators(op: AnyContraction | AnyFused, data: Array, weight: Array, bias: Array | None = None) -> Array:
    """The int32 accumulators of a contraction, that of a fused op before its stages."""
    zero_points = (op.input_zero_point, op.weight_zero_points)
    if isinstance(op, MatMulOp | FusedMatMulOp):
        return matmul_accumulate(data, weight, *zero_points, bias)
    if not isinstance(op, Conv2DOp | FusedConv2DOp | ConvTranspose2DOp | FusedConvTranspose2DOp):
        return dense_accumulate(data, weight, *zero_points, bias)
    strides, dilation = (op.strides[0], op.strides[1]), (op.dilation[0], op.dilation[1])
    padding = (op.padding[0], op.padding[1], op.padding[2], op.padding[3])
    if isinstance(op, Conv2DOp | FusedConv2DOp):
        return conv2d_accumulate(data, weight, *zero_points, strides, padding, dilation, op.groups, bias)
    extra = (op.output_padding[0], op.output_padding[1])
    return conv_transpose2d_accumulate(data, weight, *zero_points, strides, padding, extra, dilation, op.groups, bias)
