"""Convolution and matrix product: 8-bit in, 32-bit accumulators out.

A fused op is one kernel: a contraction and the stages of its epilogue, 8-bit in and 8-bit out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from qdialect.dialect import type_constraints as types
from qdialect.dialect.fields import (
    I64,
    INTEGERS,
    SCALE,
    SCALES,
    AttributeKind,
    attribute,
    operand,
    optional_operand,
    result,
)
from qdialect.dialect.op_base import (
    QnnOp,
    Shape,
    broadcast_shape,
    check_channel_parameters,
    check_positive,
    check_zero_points,
    require,
    window_extent,
)
from qdialect.dialect.stages import stage_base
from qdialect.dialect.stages.builtin_stages import DequantizeStage
from qdialect.dialect.stages.stage_base import Domain, Stage, StagePosition
from qdialect.ir._mlir import ir


def conv2d_shape(shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
    """Result shape of a convolution of NHWC data with OHWI weights; raises `ConstraintError` (C1 to C3)."""
    data, weight = shapes[0], shapes[1]
    strides, padding, dilation = attributes["strides"], attributes["padding"], attributes["dilation"]
    check_window(strides, padding, dilation)
    check_groups(data, weight, attributes["groups"])
    kernel_extent = [(weight[1 + i] - 1) * dilation[i] + 1 for i in range(2)]
    height = window_extent("C3", "input height", data[1], padding[0] + padding[2], kernel_extent[0], strides[0])
    width = window_extent("C3", "input width", data[2], padding[1] + padding[3], kernel_extent[1], strides[1])
    return data[0], height, width, weight[0]


def conv_transpose2d_shape(shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
    """Result shape of a transposed convolution of NHWC data with OHWI weights; raises `ConstraintError` (C1 to C3)."""
    data, weight = shapes[0], shapes[1]
    strides, padding, dilation = attributes["strides"], attributes["padding"], attributes["dilation"]
    check_window(strides, padding, dilation)
    check_positive("C1", "output_padding", attributes["output_padding"], 2, minimum=0)
    check_groups(data, weight, attributes["groups"])
    sizes: list[int] = []
    for i, what in enumerate(("height", "width")):
        kernel_extent = (weight[1 + i] - 1) * dilation[i] + 1
        size = (data[1 + i] - 1) * strides[i] + kernel_extent + attributes["output_padding"][i]
        cropped = size - padding[i] - padding[2 + i]
        require(cropped >= 1, "C3", f"result {what} must be at least 1 after padding is cut off, but got {cropped}")
        sizes.append(cropped)
    return data[0], sizes[0], sizes[1], weight[0]


def check_window(strides: Sequence[int], padding: Sequence[int], dilation: Sequence[int]) -> None:
    """Constraint C1 of convolutions."""
    check_positive("C1", "strides", strides, 2)
    check_positive("C1", "dilation", dilation, 2)
    check_positive("C1", "padding", padding, 4, minimum=0)


def check_groups(data: Shape, weight: Shape, groups: int) -> None:
    """Constraint C2 of convolutions."""
    require(groups >= 1, "C2", f"groups must be at least 1, but got {groups}")
    holds = data[3] % groups == 0 and weight[0] % groups == 0
    require(holds, "C2", f"groups must divide {data[3]} input and {weight[0]} output channels, but got {groups}")
    depth = data[3] // groups
    require(weight[3] == depth, "C2", f"weight depth must be {depth}, but got {weight[3]}")


def dense_shape(shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
    """Result shape of ``[..., K] x [N, K]``; raises `ConstraintError` (C1)."""
    data, weight = shapes[0], shapes[1]
    require(len(data) >= 1, "C1", "data must have at least 1 dimension, but got 0")
    require(data[-1] == weight[1], "C1", f"weight depth must be {data[-1]}, but got {weight[1]}")
    return (*data[:-1], weight[0])


def matmul_shape(shapes: Sequence[Shape], _: Mapping[str, Any]) -> Shape:
    """Result shape of ``[..., M, K] x [..., K, N]``; raises `ConstraintError` (C1, C2, C3)."""
    data, weight = shapes[0], shapes[1]
    for name, shape in (("data", data), ("weight", weight)):
        require(len(shape) >= 2, "C1", f"{name} must have at least 2 dimensions, but got {len(shape)}")
    require(data[-1] == weight[-2], "C2", f"weight depth must be {data[-1]}, but got {weight[-2]}")
    leading = broadcast_shape("C3", "leading dimensions", data[:-2], weight[:-2])
    return (*leading, data[-2], weight[-1])


class ContractionOp(QnnOp):
    """The scales and zero points of data and weights are attributes of the op; the two scales stay separate.

    Constraints:
      C4: weight_scales and weight_zero_points must have 1 entry or one for each output channel
      C5: zero points must lie in the range of their tensor
      C6: bias must have one entry for each output channel
    """

    input_scale = attribute(SCALE)
    input_zero_point = attribute(I64)
    weight_scales = attribute(SCALES)
    weight_zero_points = attribute(INTEGERS, (0,))

    channel_axis: ClassVar[int] = 0
    """The weight's dimension of output channels."""

    def check(self) -> None:
        data, weight, *others = self.operation.operands
        channels = types.shape_of(weight.type)[self.channel_axis]
        check_channel_parameters(
            "C4", channels, weight_scales=self.weight_scales, weight_zero_points=self.weight_zero_points
        )
        check_zero_points("C5", "input_zero_point", (self.input_zero_point,), data.type)
        check_zero_points("C5", "weight_zero_points", self.weight_zero_points, weight.type)
        entries = types.shape_of(others[0].type)[0] if others else channels
        require(entries == channels, "C6", f"bias must have {channels} entries, but got {entries}")


class ConvolutionOp(ContractionOp):
    """Shared fields: NHWC data, OHWI weights, int32 accumulators."""

    data = operand(types.IMAGE)
    weight = operand(types.WEIGHT_4D)
    bias = optional_operand(types.BIAS)
    strides = attribute(INTEGERS, (1, 1))
    padding = attribute(INTEGERS, (0, 0, 0, 0))
    dilation = attribute(INTEGERS, (1, 1))
    groups = attribute(I64, 1)
    output = result(types.ACCUMULATOR)


class Conv2DOp(ConvolutionOp, name="conv2d", shape=conv2d_shape):
    """Convolution of NHWC data with OHWI weights into int32 accumulators.

    ``acc[n,y,x,o] = bias[o] + sum (data[n, y*s+i*d-p, x*s+j*d-p, c] - z_x) * (weight[o,i,j,c] - z_w[o])``; a window
    element outside the data counts as z_x, the f32 zero.  Depthwise is ``groups`` = number of input channels.  The
    result's implied scale is ``input_scale * weight_scales[o]`` with zero point 0.

    Constraints:
      C1: strides and dilation must be 2 integers of at least 1, padding 4 (top, left, bottom, right) of at least 0
      C2: groups must divide the channels and the weight's depth must be input channels / groups
      C3: the dilated kernel must fit into the padded data
    """


class ConvTranspose2DOp(ConvolutionOp, name="conv_transpose2d", shape=conv_transpose2d_shape):
    """Transposed convolution of NHWC data with OHWI weights into int32 accumulators.

    Every element of the data adds to the window that starts at ``strides`` times its index:
    ``acc[n,y,x,o] = bias[o] + sum (data[n,v,u,c] - z_x) * (weight[o,i,j,c] - z_w[o])`` over all v, u, i, j with
    ``v*s + i*d - p = y`` and ``u*s + j*d - p = x``.  `padding` cuts rows and columns off the result, `output_padding`
    adds rows and columns at the bottom and the right.  The extent is
    ``(size - 1)*s + (kernel - 1)*d + 1 - padding + output_padding``.  A group's output channels are adjacent.

    Constraints:
      C1: strides and dilation must be 2 integers of at least 1, padding 4 (top, left, bottom, right) and output_padding
        2 of at least 0
      C2: groups must divide the channels and the weight's depth must be input channels / groups
      C3: padding must leave a result of at least one element
    """

    output_padding = attribute(INTEGERS, (0, 0))


class DenseOp(ContractionOp, name="dense", shape=dense_shape):
    """Matrix product ``[..., K] x [N, K] -> [..., N]`` into int32 accumulators.

    ``acc[..., n] = bias[n] + sum_k (data[..., k] - z_x) * (weight[n, k] - z_w[n])``.

    Constraints:
      C1: the weight's depth must be the data's last dimension
    """

    data = operand(types.EIGHT_BIT)
    weight = operand(types.WEIGHT_2D)
    bias = optional_operand(types.BIAS)
    output = result(types.ACCUMULATOR)


class MatMulOp(ContractionOp, name="matmul", shape=matmul_shape):
    """Matrix products ``[..., M, K] x [..., K, N] -> [..., M, N]`` into int32 accumulators; neither need be constant.

    ``acc[..., m, n] = bias[n] + sum_k (data[..., m, k] - z_x) * (weight[..., k, n] - z_w[n])``; leading dimensions
    broadcast.  The output channels are the columns of the weight.

    Constraints:
      C1: data and weight must have at least 2 dimensions
      C2: the weight's second to last dimension must be the data's last one
      C3: the dimensions before the last two must broadcast against each other
    """

    data = operand(types.EIGHT_BIT)
    weight = operand(types.EIGHT_BIT)
    bias = optional_operand(types.BIAS)
    output = result(types.ACCUMULATOR)

    channel_axis = -1

    def check(self) -> None:
        # Shapes first: the constraints after them ask for the last dimension.
        matmul_shape(self.operand_shapes(), {})
        super().check()


# The epilogue of a fused op: its stages as one attribute, their order, and what the values between them mean.

EPILOGUE: AttributeKind[tuple[Stage, ...]] = AttributeKind(
    "a non-empty array of stages {name} or {name = {attributes}}",
    lambda value: ir.ArrayAttr.get([stage_base.encoded(stage) for stage in value]),
    lambda attribute: tuple(stage_base.decoded(one) for one in ir.ArrayAttr(attribute)),
    lambda one: isinstance(one, ir.ArrayAttr) and len(one) > 0 and all(map(stage_base.is_stage, one)),
)
"""Stages as in their text: `placed_stages` fills in the defaults."""


@dataclass(frozen=True)
class PlacedStage:
    """A resolved stage, and what the values mean before and after it; None where they are not quantized."""

    stage: Stage
    before: types.QuantizedType | None
    after: types.QuantizedType | None


def placed_stages(epilogue: Sequence[Stage], output: types.QuantizedType) -> list[PlacedStage]:
    """The stages in order, with the attributes that `output` implies."""
    placed: list[PlacedStage] = []
    before = None
    for stage in epilogue:
        resolved = stage.resolved(output)
        after = resolved.meaning(before)
        placed.append(PlacedStage(resolved, before, after))
        before = after
    return placed


def shortened(epilogue: Sequence[Stage], output: types.QuantizedType) -> tuple[Stage, ...]:
    """Resolved stages without the fields that `output` implies."""
    return tuple(stage.shortened(output) for stage in epilogue)


def check_epilogue(attribute: ir.Attribute, output: types.QuantizedType, bias: str, residual: str | None) -> None:
    """Constraints C8 to C12 of a fused op, then those of each stage.

    `bias` and `residual` are element types; without a residual the latter is None.
    """
    for index, one in enumerate(ir.ArrayAttr(attribute)):
        violation = next(stage_base.violations(one), None)
        require(violation is None, "C8", f"epilogue[{index}] {violation}")
    placed = placed_stages(EPILOGUE.from_attribute(attribute), output)
    _check_order([one.stage for one in placed])
    _check_residual([one.stage for one in placed], residual)
    first = placed[0].stage
    holds = bias == "i32" or isinstance(first, DequantizeStage)
    require(holds, "C12", f"bias element type must be i32 where the first stage is '{first.name}', but got {bias}")
    for index, one in enumerate(placed):
        path = f"epilogue[{index}] '{one.stage.name}'"
        one.stage.check(StagePosition(path, one.before, residual, index == len(placed) - 1))
    _check_result(placed[-1], output)


def _check_order(stages: Sequence[Stage]) -> None:
    found = Domain.ACCUMULATORS
    for index, stage in enumerate(stages):
        wanted = f"epilogue[{index}] '{stage.name}' must follow {stage.takes}"
        require(stage.takes is found, "C9", f"{wanted}, but got {found}")
        found = stage.leaves
    require(found is Domain.QUANTIZED, "C10", f"epilogue must end with quantized values, but got {found}")


def _check_residual(stages: Sequence[Stage], residual: str | None) -> None:
    readers = [stage.name for stage in stages if stage.reads_residual]
    names = ", ".join(f"'{name}'" for name in readers) or "none"
    if residual is None:
        require(not readers, "C11", f"without a residual no stage must read it, but got {names}")
    else:
        require(len(readers) == 1, "C11", f"residual must be read by one stage, but got {names}")


def _check_result(last: PlacedStage, output: types.QuantizedType) -> None:
    after = last.after
    assert after is not None, "the last stage leaves quantized values"
    for name in ("scale", "zero_point", "element"):
        wanted, found = getattr(output, name), getattr(after, name)
        text = f"epilogue must end with the result's {name} {wanted}, but got {found}"
        require(found == wanted, "C10", text)


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
    def output_type(self) -> types.QuantizedType:
        """The quantization of the result."""
        element = types.element_of(self.operation.results[0].type)
        return types.QuantizedType(self.output_scale, self.output_zero_point, element)

    def stages(self) -> list[PlacedStage]:
        """The stages in order, with the defaults that the text may leave out."""
        return placed_stages(self.epilogue, self.output_type)

    def check(self) -> None:
        super().check()
        _, _, bias, *residuals = self.operation.operands
        type_ = self.operation.results[0].type
        check_zero_points("C7", "output_zero_point", (self.output_zero_point,), type_)
        written, wanted = self.operation.attributes["epilogue"], types.shape_of(type_)
        for residual in residuals:
            found = types.shape_of(residual.type)
            require(found == wanted, "C11", f"residual shape must be {list(wanted)}, but got {list(found)}")
        of_residual = types.element_of(residuals[0].type) if residuals else None
        check_epilogue(written, self.output_type, types.element_of(bias.type), of_residual)


class FusedConvolutionOp(FusedOp):
    """Shared fields: 8-bit NHWC data, residual and result."""

    data = operand(types.IMAGE)
    weight = operand(types.WEIGHT_4D)
    bias = operand(types.FUSED_BIAS)
    residual = optional_operand(types.IMAGE)
    strides = attribute(INTEGERS, (1, 1))
    padding = attribute(INTEGERS, (0, 0, 0, 0))
    dilation = attribute(INTEGERS, (1, 1))
    groups = attribute(I64, 1)
    output = result(types.IMAGE)


class FusedConv2DOp(FusedConvolutionOp, name="fused_conv2d", shape=conv2d_shape):
    """A convolution kernel: `qnn.conv2d` and the stages of a fused op, every scale and zero point kept.

    Data, residual and result are 8-bit: no wider tensor ever passes from kernel to kernel.

    Constraints:
      C1 to C3: those of `qnn.conv2d`
    """


class FusedConvTranspose2DOp(FusedConvolutionOp, name="fused_conv_transpose2d", shape=conv_transpose2d_shape):
    """A transposed convolution's kernels: `qnn.conv_transpose2d` and the stages of a fused op.

    Constraints:
      C1 to C3: those of `qnn.conv_transpose2d`
    """

    output_padding = attribute(INTEGERS, (0, 0))


class FusedDenseOp(FusedOp, name="fused_dense", shape=dense_shape):
    """A matrix-product kernel: `qnn.dense` and the stages of a fused op, every scale and zero point kept.

    Constraints:
      C1: that of `qnn.dense`
    """

    data = operand(types.EIGHT_BIT)
    weight = operand(types.WEIGHT_2D)
    bias = operand(types.FUSED_BIAS)
    residual = optional_operand(types.EIGHT_BIT)
    output = result(types.EIGHT_BIT)


class FusedMatMulOp(FusedOp, name="fused_matmul", shape=matmul_shape):
    """The kernels of a product of two tensors: `qnn.matmul` and the stages of a fused op.

    Constraints:
      C1 to C3: those of `qnn.matmul`
    """

    data = operand(types.EIGHT_BIT)
    weight = operand(types.EIGHT_BIT)
    bias = operand(types.FUSED_BIAS)
    residual = optional_operand(types.EIGHT_BIT)
    output = result(types.EIGHT_BIT)

    channel_axis = -1

    def check(self) -> None:
        matmul_shape(self.operand_shapes(), {})
        super().check()


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
