"""Products of 8-bit data whose scale and zero point are known at run time, with f32 results."""

from __future__ import annotations

from math import prod

from qdialect.arithmetic.activations import Activation
from qdialect.dialect import type_constraints as types
from qdialect.dialect.constants import constant_value
from qdialect.dialect.contraction_ops import conv2d_shape, dense_shape
from qdialect.dialect.fields import (
    BOOL,
    F64,
    I64,
    INTEGERS,
    LARGEST_SCALE,
    SCALES,
    attribute,
    choice,
    operand,
    optional_operand,
    result,
)
from qdialect.dialect.op_base import QnnOp, check_channel_parameters, check_row_parameters, check_zero_points, require
from qdialect.ir._mlir import ir


class DynamicContractionOp(QnnOp):
    """``float32(acc) * (scale * weight_scales[o]) + bias[o]``, every operation rounded to float32.

    ``acc`` is the int32 sum of ``(data - zero_point) * (weight - weight_zero_points[o])``, modulo 2^32.  `scale` and
    `zero_point` are operands, which are usually computed from the range of the data.  Without a bias nothing is
    added.  With `scale_last` it is ``float32(acc) * weight_scales[o] * scale``, from left to right.  `activation` is
    applied to the result; `alpha` is its parameter, if it has one.

    Constraints:
      C4: weight_scales and weight_zero_points must have 1 entry or one for each output channel
      C5: weight_zero_points must lie in the range of the weight
      C6: zero_point must have the element type of the data
      C7: bias must have one entry for each output channel
      C10: alpha must be in [-2^30, 2^30], and 0 if the activation has no parameter
    """

    weight_scales = attribute(SCALES, (1.0,))
    weight_zero_points = attribute(INTEGERS, (0,))
    scale_last = attribute(BOOL, False)
    activation = attribute(choice(Activation), Activation.NONE)
    alpha = attribute(F64, 0.0)

    def check_parameters(self, data: ir.Value, weight: ir.Value, zero_point: ir.Value, bias: ir.Value | None) -> None:
        """Constraints C4 to C7, and C10."""
        channels = types.shape_of(weight.type)[0]
        check_channel_parameters(
            "C4", channels, weight_scales=self.weight_scales, weight_zero_points=self.weight_zero_points
        )
        check_zero_points("C5", "weight_zero_points", self.weight_zero_points, weight.type)
        wanted, found = types.element_of(data.type), types.element_of(zero_point.type)
        require(found == wanted, "C6", f"zero_point element type must be {wanted}, but got {found}")
        entries = channels if bias is None else types.shape_of(bias.type)[0]
        require(entries == channels, "C7", f"bias must have {channels} entries, but got {entries}")
        largest = LARGEST_SCALE if self.activation.has_alpha else 0.0
        bounds = "in [-2^30, 2^30]" if largest else "0"
        found = f"alpha must be {bounds} for activation {self.activation}, but got {self.alpha}"
        require(abs(self.alpha) <= largest, "C10", found)


class DynamicConv2DOp(DynamicContractionOp, name="dynamic_conv2d", shape=conv2d_shape):
    """Convolution of NHWC data with OHWI weights; padding elements are the zero point of the data.

    Constraints:
      C1: strides and dilation must be 2 integers of at least 1, padding 4 (top, left, bottom, right) of at least 0
      C2: groups must divide the channels and the weight's depth must be input channels / groups
      C3: the dilated kernel must fit into the padded data
      C8: scale and zero_point must have 1 element
      C9: with padding zero_point must be constant
    """

    data = operand(types.IMAGE)
    weight = operand(types.WEIGHT_4D)
    scale = operand(types.FLOAT)
    zero_point = operand(types.EIGHT_BIT)
    bias = optional_operand(types.FLOAT_1D)
    strides = attribute(INTEGERS, (1, 1))
    padding = attribute(INTEGERS, (0, 0, 0, 0))
    dilation = attribute(INTEGERS, (1, 1))
    groups = attribute(I64, 1)
    output = result(types.FLOAT_4D)

    def check(self) -> None:
        self.check_parameters(self.data, self.weight, self.zero_point, self.bias)
        for name, value in (("scale", self.scale), ("zero_point", self.zero_point)):
            count = prod(types.shape_of(value.type))
            require(count == 1, "C8", f"{name} must have 1 element, but got {count}")
        is_known = not any(self.padding) or constant_value(self.zero_point) is not None
        require(is_known, "C9", f"with padding {list(self.padding)} zero_point must be constant")


class DynamicDenseOp(DynamicContractionOp, name="dynamic_dense", shape=dense_shape):
    """Matrix product ``[..., K] x [N, K] -> [..., N]``; scale and zero point belong to the data or to each row.

    Constraints:
      C1: the weight's depth must be the data's last dimension
      C8: scale and zero_point must have 1 element, or the data's shape with a last dimension of 1
    """

    data = operand(types.EIGHT_BIT)
    weight = operand(types.WEIGHT_2D)
    scale = operand(types.FLOAT)
    zero_point = operand(types.EIGHT_BIT)
    bias = optional_operand(types.FLOAT_1D)
    output = result(types.FLOAT)

    def check(self) -> None:
        self.check_parameters(self.data, self.weight, self.zero_point, self.bias)
        check_row_parameters("C8", self.data, scale=self.scale, zero_point=self.zero_point)


AnyDynamic = DynamicConv2DOp | DynamicDenseOp
"""Every product with parameters that are known at run time."""
