"""One op per kernel: a contraction and the stages of its epilogue, 8-bit in and 8-bit out."""

from __future__ import annotations

from qdialect.dialect.contraction_ops import (
    ContractionOp,
    Conv2DOp,
    ConvTranspose2DOp,
    DenseOp,
    MatMulOp,
    conv2d_shape,
    conv_transpose2d_shape,
    dense_shape,
    matmul_shape,
)
from qdialect.dialect.epilogue import EPILOGUE, PlacedStage, check_epilogue, placed_stages
from qdialect.dialect.fields import I64, INTEGERS, SCALE, attribute, operand, optional_operand, result
from qdialect.dialect.op_base import check_zero_points, require
from qdialect.dialect.type_constraints import (
    EIGHT_BIT,
    FUSED_BIAS,
    IMAGE,
    WEIGHT_2D,
    WEIGHT_4D,
    QuantizedType,
    element_of,
    shape_of,
)
from qdialect.ir._mlir import ir


class FusedOp(ContractionOp):
    """A contraction whose accumulators pass through the stages of `epilogue`, one after the other.

    A stage is ``{name = {attributes}}``, as ``{clamp = {min = 0 : i64, max = 127 : i64}}``. Accumulators
    become quantized values at once, by `requantize`, or by way of f32 values: `dequantize`, then `sum` and
    `activation` in any order, then `quantize`. Quantized values may be limited by `clamp`, added to the residual by
    `add`, and looked up in a table by `lut` at the end.

    `output_scale`, `output_zero_point` and the element type are those of the result.  A stage whose quantized values
    have another scale, zero point or type has attributes for them.

    Constraints:
      C7: output_zero_point must lie in the result's range
      C8: every stage must be a known one and have its attributes, no others, each of its kind
      C9: each stage must take what the one before it leaves, the first one accumulators
      C10: the last stage must leave quantized values of the op's output_scale, output_zero_point and element type
      C11: a residual must have the result's shape and be read by one stage, and without it none may
      C12: with an f32 bias the first stage must be dequantize
    """

    output_scale = attribute(SCALE)
    output_zero_point = attribute(I64)
    epilogue = attribute(EPILOGUE)

    @property
    def output_type(self) -> QuantizedType:
        """The quantization of the result."""
        element = element_of(self.operation.results[0].type)
        return QuantizedType(self.output_scale, self.output_zero_point, element)

    def stages(self) -> list[PlacedStage]:
        """The stages in order, with the defaults that the text may leave out."""
        return placed_stages(self.epilogue, self.output_type)

    def check(self) -> None:
        data, weight, bias, *residual = self.operation.operands
        self.check_parameters(data, weight, bias)
        self.check_stages(bias, residual[0] if residual else None)

    def check_stages(self, bias: ir.Value, residual: ir.Value | None) -> None:
        """Constraints C7 to C12 of every fused op, and those of the stages."""
        type_ = self.operation.results[0].type
        check_zero_points("C7", "output_zero_point", (self.output_zero_point,), type_)
        written = self.operation.attributes["epilogue"]
        if residual is not None:
            found, wanted = shape_of(residual.type), shape_of(type_)
            require(found == wanted, "C11", f"residual shape must be {list(wanted)}, but got {list(found)}")
        of_residual = None if residual is None else element_of(residual.type)
        check_epilogue(written, self.output_type, element_of(bias.type), of_residual)


class FusedConv2DOp(FusedOp, name="fused_conv2d", shape=conv2d_shape):
    """A convolution kernel: `qnn.conv2d` and the stages of a fused op, every scale and zero point kept.

    Data, residual and result are 8-bit: no wider tensor ever passes from kernel to kernel.

    Constraints:
      C1 to C3: those of `qnn.conv2d`
    """

    data = operand(IMAGE)
    weight = operand(WEIGHT_4D)
    bias = operand(FUSED_BIAS)
    residual = optional_operand(IMAGE)
    strides = attribute(INTEGERS, (1, 1))
    padding = attribute(INTEGERS, (0, 0, 0, 0))
    dilation = attribute(INTEGERS, (1, 1))
    groups = attribute(I64, 1)
    output = result(IMAGE)


class FusedConvTranspose2DOp(FusedOp, name="fused_conv_transpose2d", shape=conv_transpose2d_shape):
    """A transposed convolution's kernels: `qnn.conv_transpose2d` and the stages of a fused op.

    Constraints:
      C1 to C3: those of `qnn.conv_transpose2d`
    """

    data = operand(IMAGE)
    weight = operand(WEIGHT_4D)
    bias = operand(FUSED_BIAS)
    residual = optional_operand(IMAGE)
    strides = attribute(INTEGERS, (1, 1))
    padding = attribute(INTEGERS, (0, 0, 0, 0))
    output_padding = attribute(INTEGERS, (0, 0))
    dilation = attribute(INTEGERS, (1, 1))
    groups = attribute(I64, 1)
    output = result(IMAGE)


class FusedDenseOp(FusedOp, name="fused_dense", shape=dense_shape):
    """A matrix-product kernel: `qnn.dense` and the stages of a fused op, every scale and zero point kept.

    Constraints:
      C1: that of `qnn.dense`
    """

    data = operand(EIGHT_BIT)
    weight = operand(WEIGHT_2D)
    bias = operand(FUSED_BIAS)
    residual = optional_operand(EIGHT_BIT)
    output = result(EIGHT_BIT)


class FusedMatMulOp(FusedOp, name="fused_matmul", shape=matmul_shape):
    """The kernels of a product of two tensors: `qnn.matmul` and the stages of a fused op.

    Constraints:
      C1 to C3: those of `qnn.matmul`
    """

    data = operand(EIGHT_BIT)
    weight = operand(EIGHT_BIT)
    bias = operand(FUSED_BIAS)
    residual = optional_operand(EIGHT_BIT)
    output = result(EIGHT_BIT)

    def check(self) -> None:
        matmul_shape(self.operand_shapes(), {})
        self.check_parameters(self.data, self.weight, self.bias, axis=-1)
        self.check_stages(self.bias, self.residual)


AnyContraction = Conv2DOp | ConvTranspose2DOp | DenseOp | MatMulOp
"""Every op that makes accumulators."""

AnyFused = FusedConv2DOp | FusedConvTranspose2DOp | FusedDenseOp | FusedMatMulOp
"""Every contraction with the stages after it."""

FUSED_CLASSES: dict[type[AnyContraction], type[AnyFused]] = {
    Conv2DOp: FusedConv2DOp,
    ConvTranspose2DOp: FusedConvTranspose2DOp,
    DenseOp: FusedDenseOp,
    MatMulOp: FusedMatMulOp,
}
"""The fused op of each contraction."""

CONTRACTION_CLASSES: dict[type[AnyFused], type[AnyContraction]] = {
    fused: alone for alone, fused in FUSED_CLASSES.items()
}
"""The contraction in each fused op."""
