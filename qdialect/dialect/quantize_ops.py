"""Between f32 and quantized values, between two quantizations, and the parameters of a range known at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdialect.arithmetic import FloatRounding, Multiplier, NanPolicy, QuantParams, Rounding, Scaling
from qdialect.dialect.fields import I64, INTEGERS, SCALE, SCALES, attribute, choice, operand, params, result
from qdialect.dialect.op_base import QnnOp, Shape, channel_count, check_channel_parameters, check_zero_points, require
from qdialect.dialect.type_constraints import FLOAT, INTEGER, shape_of


class QuantizeOp(QnnOp, name="quantize"):
    """f32 values to quantized values: ``sat(round(input / scale) + zero_point)``, per tensor or per channel of `axis`.

    Constraints:
      C1: axis must name a dimension of the input; a scalar has one channel, axis 0
      C2: scales and zero_points must have 1 entry or one for each channel
      C3: zero points must lie in the result's range
    """

    input = operand(FLOAT)
    scales = attribute(SCALES)
    zero_points = attribute(INTEGERS)
    axis = attribute(I64, 0)
    rounding = attribute(choice(FloatRounding), FloatRounding.HALF_EVEN)
    scaling = attribute(choice(Scaling), Scaling.DIVIDE)
    nan = attribute(choice(NanPolicy), NanPolicy.ZERO_POINT)
    output = result(INTEGER)

    def check(self) -> None:
        channels = channel_count("C1", self.axis, shape_of(self.input.type))
        check_channel_parameters("C2", channels, scales=self.scales, zero_points=self.zero_points)
        check_zero_points("C3", "zero_points", self.zero_points, self.output.type)


class DequantizeOp(QnnOp, name="dequantize"):
    """Quantized values to f32 values: ``(input - zero_point) * scale`` in float32, per tensor or per channel of `axis`.

    Constraints:
      C1: axis must name a dimension of the input; a scalar has one channel, axis 0
      C2: scales and zero_points must have 1 entry or one for each channel
    """

    input = operand(INTEGER)
    scales = attribute(SCALES)
    zero_points = attribute(INTEGERS)
    axis = attribute(I64, 0)
    output = result(FLOAT)

    def check(self) -> None:
        channels = channel_count("C1", self.axis, shape_of(self.input.type))
        check_channel_parameters("C2", channels, scales=self.scales, zero_points=self.zero_points)


class RequantizeOp(QnnOp, name="requantize"):
    """Quantized values of one quantization to quantized values of another.

    The multiplier of channel c is ``input_scale * weight_scales[c] / output_scale``.  The two input scales stay
    separate, because their product cannot be factored again: after a convolution they are the scales of its data and of
    its weights, otherwise `weight_scales` is ``[1.0]``.  `multiplier` states in which precision the multiplier is
    formed, `rounding` how the product with it is rounded and when the zero point is added.

    Constraints:
      C1: axis must name a dimension of the input; a scalar has one channel, axis 0
      C2: weight_scales and input_zero_points must have 1 entry or one for each channel
      C3: output_zero_point must lie in the result's range
    """

    input = operand(INTEGER)
    input_scale = attribute(SCALE)
    weight_scales = attribute(SCALES, (1.0,))
    input_zero_points = attribute(INTEGERS, (0,))
    output_scale = attribute(SCALE)
    output_zero_point = attribute(I64)
    axis = attribute(I64, 0)
    rounding = attribute(choice(Rounding))
    multiplier = attribute(choice(Multiplier), Multiplier.F64)
    output = result(INTEGER)

    def check(self) -> None:
        channels = channel_count("C1", self.axis, shape_of(self.input.type))
        check_channel_parameters(
            "C2", channels, weight_scales=self.weight_scales, input_zero_points=self.input_zero_points
        )
        check_zero_points("C3", "output_zero_point", (self.output_zero_point,), self.output.type)

    @property
    def input_params(self) -> QuantParams:
        """The quantization of an input of one zero point and no weights."""
        return QuantParams(self.input_scale, self.input_zero_points[0])

    output_params = params()


class RangeOp(QnnOp):
    """For the range [min(minimum, 0), max(maximum, 0)]: its width in float32, the rest in float64, rounded once.

    The arithmetic is that of TFLite's hybrid kernels (tensor_utils AsymmetricQuantizeFloats).

    Constraints:
      C1: minimum and maximum must have the same shape
    """

    minimum = operand(FLOAT)
    maximum = operand(FLOAT)
    output = result(FLOAT)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        first, second = shapes
        require(first == second, "C1", f"maximum must have the shape {list(first)}, but got {list(second)}")
        return first


class RangeScaleOp(RangeOp, name="range_scale"):
    """``(max - min) / 255``; 1 where both are 0."""


class RangeZeroPointOp(RangeOp, name="range_zero_point"):
    """``-128 - min / scale`` or ``127 - max / scale``, whichever has the smaller terms, rounded half away from zero.

    It is clamped to [-128, 127]; 0 where both ends are 0.
    """
