"""One op per kernel: contraction, requantization, clamp, residual sum and table, 8-bit in and 8-bit out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdialect._mlir import ir
from qdialect.dialect.attribute_kinds import F64, I64, INTEGERS, OPTIONAL_TABLE, SCALE, choice, is_scale
from qdialect.dialect.constraints import check_zero_points
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
from qdialect.dialect.fields import attribute, operand, optional_operand, result
from qdialect.dialect.op_base import Shape, require
from qdialect.dialect.type_constraints import (
    EIGHT_BIT,
    FUSED_BIAS,
    IMAGE,
    WEIGHT_2D,
    WEIGHT_4D,
    element_of,
    range_of,
    shape_of,
)
from qdialect.quant_math import Activation, AddArithmetic, Multiplier, RealScaling, ResidualPlace, Rounding

EIGHT_BIT_RANGES = ((-128, 127), (0, 255))
_BIAS, _RESIDUAL = 2, 3
_LARGEST_ALPHA = 2.0**30


class FusedOp(ContractionOp):
    """The stages after the accumulator, in order.

    1. requantize with `rounding` and `multiplier` to `output_scale`, `output_zero_point`, clamp to
       [`output_min`, `output_max`];
    2. with a residual operand: ``add(requantized, residual)`` by `sum_arithmetic`, `sum_rounding` and `sum_multiplier`
       to `sum_scale`, `sum_zero_point`, clamp to [`sum_min`, `sum_max`]; `residual_place` says on which side of the
       sum the residual stands;
    3. with a table: ``table[code mod 256]``, whose entries have `table_scale`, `table_zero_point`.

    Without residual the sum's attributes repeat the output's, without table the table's repeat the sum's, so the last
    pair always says what the result means.

    With `real_scaling` other than ``none`` accumulators become real numbers first, all in float32:
    ``real = float(acc) * float(input_scale * weight_scale)``, plus the bias where that is f32, plus
    ``float(residual - zero_point) * float(residual_scale)`` where `residual_place` is ``before_rounding``; then
    `activation`, with `activation_alpha` for those that have a parameter; then the one rounding, of ``real / scale`` or
    ``real * (1 / scale)``, with the ties and the zero point of `rounding`, a float flavour.  `multiplier` says in which
    precision the product of the scales is formed.  A residual before the rounding is part of stage 1: the sum's
    attributes repeat the output's.
    """

    output_scale = attribute(SCALE)
    output_zero_point = attribute(I64)
    output_min = attribute(I64)
    output_max = attribute(I64)
    rounding = attribute(choice(Rounding))
    multiplier = attribute(choice(Multiplier), Multiplier.F64)
    real_scaling = attribute(choice(RealScaling), RealScaling.NONE)
    activation = attribute(choice(Activation), Activation.NONE)
    activation_alpha = attribute(F64, 0.0)
    residual_place = attribute(choice(ResidualPlace), ResidualPlace.RIGHT)
    residual_scale = attribute(F64, 0.0)
    residual_zero_point = attribute(I64, 0)
    sum_arithmetic = attribute(choice(AddArithmetic), AddArithmetic.REQUANTIZE_EACH)
    sum_rounding = attribute(choice(Rounding), Rounding.FIXED64_UP)
    sum_multiplier = attribute(choice(Multiplier), Multiplier.F64)
    sum_scale = attribute(SCALE)
    sum_zero_point = attribute(I64)
    sum_min = attribute(I64)
    sum_max = attribute(I64)
    table = attribute(OPTIONAL_TABLE)
    table_scale = attribute(SCALE)
    table_zero_point = attribute(I64)

    @property
    def adds_codes(self) -> bool:
        """Whether there is a sum stage: a residual that is added to codes."""
        has_residual = len(self.operation.operands) > _RESIDUAL
        return has_residual and self.residual_place is not ResidualPlace.BEFORE_ROUNDING

    def check_stages(self, residual: ir.Value | None) -> None:
        """Constraints C7 to C11 of every fused op."""
        self._check_real_stage()
        with_residual, with_table = self.adds_codes, self.table is not None
        final = range_of(self.operation.results[0].type)
        ends_here = not with_residual and not with_table
        _check_stage("C7", "output", self.output_min, self.output_max, self.output_zero_point, final, ends_here)
        _check_stage("C8", "sum", self.sum_min, self.sum_max, self.sum_zero_point, final, not with_table)
        if residual is not None:
            found = shape_of(residual.type)
            wanted = shape_of(self.operation.results[0].type)
            require(found == wanted, "C9", f"residual shape must be {list(wanted)}, but got {list(found)}")
            scale = self.residual_scale
            require(is_scale(scale), "C9", f"residual_scale must be {SCALE.description}, but got {scale}")
            check_zero_points("C9", "residual_zero_point", (self.residual_zero_point,), residual.type)
        if not with_residual:
            self._check_repeats("C10", "sum", "output", ("scale", "zero_point", "min", "max"))
        if not with_table:
            self._check_repeats("C10", "table", "sum", ("scale", "zero_point"))
        else:
            check_zero_points("C10", "table_zero_point", (self.table_zero_point,), self.operation.results[0].type)

    def _check_real_stage(self) -> None:
        scaling, rounding = self.real_scaling, self.rounding
        if scaling is RealScaling.NONE:
            self._check_no_real_stage()
        else:
            wanted = f"rounding must be a float flavour where real_scaling is {scaling}"
            require(not rounding.is_fixed, "C11", f"{wanted}, but got {rounding}")
        alpha, activation = self.activation_alpha, self.activation
        holds = activation.has_alpha or alpha == 0
        require(holds, "C11", f"activation_alpha must be 0 for activation {activation}, but got {alpha}")
        require(abs(alpha) <= _LARGEST_ALPHA, "C11", f"activation_alpha must be in [-2^30, 2^30], but got {alpha}")

    def _check_no_real_stage(self) -> None:
        place, activation = self.residual_place, self.activation
        bias = element_of(self.operation.operands[_BIAS].type)
        facts = (
            ("activation", "none", activation, activation is Activation.NONE),
            ("residual_place", "left or right", place, place is not ResidualPlace.BEFORE_ROUNDING),
            ("bias element type", "i32", bias, bias == "i32"),
        )
        for name, wanted, found, holds in facts:
            require(holds, "C11", f"{name} must be {wanted} where real_scaling is none, but got {found}")

    def _check_repeats(self, label: str, stage: str, before: str, names: Sequence[str]) -> None:
        values = self.attribute_values()
        for name in names:
            found, wanted = values[f"{stage}_{name}"], values[f"{before}_{name}"]
            text = f"{stage}_{name} must repeat {before}_{name} ({wanted}) where the stage is absent, but got {found}"
            require(found == wanted, label, text)


def _check_stage(
    label: str, stage: str, low: int, high: int, zero_point: int, final: tuple[int, int], ends_here: bool
) -> None:
    ranges = [final] if ends_here else list(EIGHT_BIT_RANGES)
    fits = any(least <= low <= high <= most and least <= zero_point <= most for least, most in ranges)
    wanted = " or ".join(f"[{least}, {most}]" for least, most in ranges)
    names = f"{stage}_min, {stage}_zero_point and {stage}_max"
    require(fits, label, f"{names} must lie in {wanted} with min <= max, but got {low}, {zero_point} and {high}")


class FusedConv2DOp(FusedOp, name="fused_conv2d"):
    """A convolution kernel: `qnn.conv2d` and the stages of a fused op, every scale and zero point kept.

    Data, residual and result are 8-bit: no wider tensor ever passes from kernel to kernel.

    Constraints:
      C1 to C6: those of `qnn.conv2d`
      C7: the output stage's clamp and zero point must fit one 8-bit type, the result's where it is the last stage
      C8: so must the sum stage's
      C9: the residual must have the result's shape, a scale and a zero point in its range
      C10: the attributes of an absent stage must repeat those of the stage before it
      C11: without real_scaling there must be no activation, no f32 bias and no residual before the rounding, with it
        rounding must be a float flavour; activation_alpha must be 0 where the activation has none, and at most 2^30
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

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        return conv2d_shape(shapes, attributes)

    def check(self) -> None:
        self.check_parameters(self.data, self.weight, self.bias)
        self.check_stages(self.residual)


class FusedConvTranspose2DOp(FusedOp, name="fused_conv_transpose2d"):
    """A transposed convolution's kernels: `qnn.conv_transpose2d` and the stages of a fused op.

    Constraints:
      C1 to C6: those of `qnn.conv_transpose2d`
      C7: the output stage's clamp and zero point must fit one 8-bit type, the result's where it is the last stage
      C8: so must the sum stage's
      C9: the residual must have the result's shape, a scale and a zero point in its range
      C10: the attributes of an absent stage must repeat those of the stage before it
      C11: without real_scaling there must be no activation, no f32 bias and no residual before the rounding, with it
        rounding must be a float flavour; activation_alpha must be 0 where the activation has none, and at most 2^30
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

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        return conv_transpose2d_shape(shapes, attributes)

    def check(self) -> None:
        self.check_parameters(self.data, self.weight, self.bias)
        self.check_stages(self.residual)


class FusedDenseOp(FusedOp, name="fused_dense"):
    """A matrix-product kernel: `qnn.dense` and the stages of a fused op, every scale and zero point kept.

    Constraints:
      C1, C4 to C6: those of `qnn.dense`
      C7: the output stage's clamp and zero point must fit one 8-bit type, the result's where it is the last stage
      C8: so must the sum stage's
      C9: the residual must have the result's shape, a scale and a zero point in its range
      C10: the attributes of an absent stage must repeat those of the stage before it
      C11: without real_scaling there must be no activation, no f32 bias and no residual before the rounding, with it
        rounding must be a float flavour; activation_alpha must be 0 where the activation has none, and at most 2^30
    """

    data = operand(EIGHT_BIT)
    weight = operand(WEIGHT_2D)
    bias = operand(FUSED_BIAS)
    residual = optional_operand(EIGHT_BIT)
    output = result(EIGHT_BIT)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        return dense_shape(shapes, attributes)

    def check(self) -> None:
        self.check_parameters(self.data, self.weight, self.bias)
        self.check_stages(self.residual)


class FusedMatMulOp(FusedOp, name="fused_matmul"):
    """The kernels of a product of two tensors: `qnn.matmul` and the stages of a fused op.

    Constraints:
      C1 to C6: those of `qnn.matmul`
      C7: the output stage's clamp and zero point must fit one 8-bit type, the result's where it is the last stage
      C8: so must the sum stage's
      C9: the residual must have the result's shape, a scale and a zero point in its range
      C10: the attributes of an absent stage must repeat those of the stage before it
      C11: without real_scaling there must be no activation, no f32 bias and no residual before the rounding, with it
        rounding must be a float flavour; activation_alpha must be 0 where the activation has none, and at most 2^30
    """

    data = operand(EIGHT_BIT)
    weight = operand(EIGHT_BIT)
    bias = operand(FUSED_BIAS)
    residual = optional_operand(EIGHT_BIT)
    output = result(EIGHT_BIT)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        return matmul_shape(shapes, attributes)

    def check(self) -> None:
        matmul_shape(self.operand_shapes(), {})
        self.check_parameters(self.data, self.weight, self.bias, axis=-1)
        self.check_stages(self.residual)


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
