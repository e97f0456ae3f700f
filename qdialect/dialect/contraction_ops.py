"""Convolution and matrix product: 8-bit in, 32-bit accumulators out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdialect.dialect.fields import I64, INTEGERS, SCALE, SCALES, attribute, operand, optional_operand, result
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
from qdialect.dialect.type_constraints import ACCUMULATOR, BIAS, EIGHT_BIT, IMAGE, WEIGHT_2D, WEIGHT_4D, shape_of
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

    def check(self) -> None:
        data, weight, *bias = self.operation.operands
        self.check_parameters(data, weight, bias[0] if bias else None)

    def check_parameters(self, data: ir.Value, weight: ir.Value, bias: ir.Value | None, axis: int = 0) -> None:
        """Constraints C4 to C6 of every contraction; `axis` is the weight's dimension of output channels."""
        channels = shape_of(weight.type)[axis]
        check_channel_parameters(
            "C4", channels, weight_scales=self.weight_scales, weight_zero_points=self.weight_zero_points
        )
        check_zero_points("C5", "input_zero_point", (self.input_zero_point,), data.type)
        check_zero_points("C5", "weight_zero_points", self.weight_zero_points, weight.type)
        entries = channels if bias is None else shape_of(bias.type)[0]
        require(entries == channels, "C6", f"bias must have {channels} entries, but got {entries}")


class Conv2DOp(ContractionOp, name="conv2d", shape=conv2d_shape):
    """Convolution of NHWC data with OHWI weights into int32 accumulators.

    ``acc[n,y,x,o] = bias[o] + sum (data[n, y*s+i*d-p, x*s+j*d-p, c] - z_x) * (weight[o,i,j,c] - z_w[o])``; a window
    element outside the data counts as z_x, the f32 zero.  Depthwise is ``groups`` = number of input channels.  The
    result's implied scale is ``input_scale * weight_scales[o]`` with zero point 0.

    Constraints:
      C1: strides and dilation must be 2 integers of at least 1, padding 4 (top, left, bottom, right) of at least 0
      C2: groups must divide the channels and the weight's depth must be input channels / groups
      C3: the dilated kernel must fit into the padded data
    """

    data = operand(IMAGE)
    weight = operand(WEIGHT_4D)
    bias = optional_operand(BIAS)
    strides = attribute(INTEGERS, (1, 1))
    padding = attribute(INTEGERS, (0, 0, 0, 0))
    dilation = attribute(INTEGERS, (1, 1))
    groups = attribute(I64, 1)
    output = result(ACCUMULATOR)


class ConvTranspose2DOp(ContractionOp, name="conv_transpose2d", shape=conv_transpose2d_shape):
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

    data = operand(IMAGE)
    weight = operand(WEIGHT_4D)
    bias = optional_operand(BIAS)
    strides = attribute(INTEGERS, (1, 1))
    padding = attribute(INTEGERS, (0, 0, 0, 0))
    output_padding = attribute(INTEGERS, (0, 0))
    dilation = attribute(INTEGERS, (1, 1))
    groups = attribute(I64, 1)
    output = result(ACCUMULATOR)


class DenseOp(ContractionOp, name="dense", shape=dense_shape):
    """Matrix product ``[..., K] x [N, K] -> [..., N]`` into int32 accumulators.

    ``acc[..., n] = bias[n] + sum_k (data[..., k] - z_x) * (weight[n, k] - z_w[n])``.

    Constraints:
      C1: the weight's depth must be the data's last dimension
    """

    data = operand(EIGHT_BIT)
    weight = operand(WEIGHT_2D)
    bias = optional_operand(BIAS)
    output = result(ACCUMULATOR)


class MatMulOp(ContractionOp, name="matmul", shape=matmul_shape):
    """Matrix products ``[..., M, K] x [..., K, N] -> [..., M, N]`` into int32 accumulators; neither need be constant.

    ``acc[..., m, n] = bias[n] + sum_k (data[..., m, k] - z_x) * (weight[..., k, n] - z_w[n])``; leading dimensions
    broadcast.  The output channels are the columns of the weight.

    Constraints:
      C1: data and weight must have at least 2 dimensions
      C2: the weight's second to last dimension must be the data's last one
      C3: the dimensions before the last two must broadcast against each other
    """

    data = operand(EIGHT_BIT)
    weight = operand(EIGHT_BIT)
    bias = optional_operand(BIAS)
    output = result(ACCUMULATOR)

    def check(self) -> None:
        # Shapes first: the constraints after them ask for the last dimension.
        matmul_shape(self.operand_shapes(), {})
        self.check_parameters(self.data, self.weight, self.bias, axis=-1)
