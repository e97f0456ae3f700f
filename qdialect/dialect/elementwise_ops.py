"""Element-wise ops on two or more tensors, and the clamp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdialect.arithmetic import AddArithmetic, BinaryQuantization, Multiplier, PairArithmetic, Rounding, SubArithmetic
from qdialect.dialect.fields import (
    I64,
    INTEGERS,
    SCALE,
    SCALES,
    attribute,
    choice,
    operand,
    params,
    result,
    variadic_operand,
)
from qdialect.dialect.op_base import QnnOp, Shape, broadcast_shape, check_axis, check_bounds, check_zero_points, require
from qdialect.dialect.type_constraints import EIGHT_BIT, INTEGER, element_of


class ClipOp(QnnOp, name="clip"):
    """Clamp quantized values to [`min`, `max`].

    Constraints:
      C1: min and max must be ordered and lie in the tensor's range
      C2: input and result must have the same element type
    """

    input = operand(INTEGER)
    min = attribute(I64)
    max = attribute(I64)
    output = result(INTEGER)

    def check(self) -> None:
        check_bounds("C1", ("min", "max"), self.min, self.max, self.input.type)
        found, wanted = element_of(self.output.type), element_of(self.input.type)
        require(found == wanted, "C2", f"result element type must be {wanted}, but got {found}")


class BinaryOp(QnnOp):
    """Two tensors that broadcast against each other, each with its own parameters, to one output quantization.

    Constraints:
      C1: the operands' shapes must broadcast against each other
      C2: zero points must lie in the range of their tensor
      C3: output_min and output_max must be ordered and lie in the result's range
    """

    lhs = operand(EIGHT_BIT)
    rhs = operand(EIGHT_BIT)
    lhs_scale = attribute(SCALE)
    lhs_zero_point = attribute(I64)
    rhs_scale = attribute(SCALE)
    rhs_zero_point = attribute(I64)
    output_scale = attribute(SCALE)
    output_zero_point = attribute(I64)
    output_min = attribute(I64)
    output_max = attribute(I64)
    output = result(EIGHT_BIT)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        return broadcast_shape("C1", "operand shapes", shapes[0], shapes[1])

    def check(self) -> None:
        check_zero_points("C2", "lhs_zero_point", (self.lhs_zero_point,), self.lhs.type)
        check_zero_points("C2", "rhs_zero_point", (self.rhs_zero_point,), self.rhs.type)
        check_zero_points("C2", "output_zero_point", (self.output_zero_point,), self.output.type)
        check_bounds("C3", ("output_min", "output_max"), self.output_min, self.output_max, self.output.type)

    lhs_params = params()
    rhs_params = params()
    output_params = params()

    @property
    def quantization(self) -> BinaryQuantization:
        """All of that."""
        bounds = (self.output_min, self.output_max)
        return BinaryQuantization(self.lhs_params, self.rhs_params, self.output_params, bounds)


class AddOp(BinaryOp, name="add"):
    """Quantized sum, clamped to [`output_min`, `output_max`]; `arithmetic` states how it is formed.

    `rounding` and `multiplier` apply to ``requantize_each`` only; the other arithmetics define their own.
    """

    arithmetic = attribute(choice(AddArithmetic), AddArithmetic.REQUANTIZE_EACH)
    rounding = attribute(choice(Rounding), Rounding.FIXED64_UP)
    multiplier = attribute(choice(Multiplier), Multiplier.F64)


class MulOp(BinaryOp, name="mul"):
    """Quantized product: ``(lhs - z_l) * (rhs - z_r)`` requantized from ``lhs_scale * rhs_scale``, clamped."""

    rounding = attribute(choice(Rounding))
    multiplier = attribute(choice(Multiplier), Multiplier.F64)


class SubOp(BinaryOp, name="sub"):
    """Quantized difference, clamped to [`output_min`, `output_max`]; `arithmetic` states how it is formed.

    `rounding` and `multiplier` apply to ``requantize_each`` only; the other arithmetics define their own.
    """

    arithmetic = attribute(choice(SubArithmetic))
    rounding = attribute(choice(Rounding), Rounding.FIXED64_UP)
    multiplier = attribute(choice(Multiplier), Multiplier.F64)


class DivOp(BinaryOp, name="div"):
    """Quantized quotient, clamped to [`output_min`, `output_max`]; `arithmetic` states how it is formed.

    Division by zero gives `output_max` for a positive dividend and `output_min` for a negative one.  Zero divided by
    zero gives the zero point, clamped, in ``tflite_fixed``, and `output_min` in ``float``, as NaN does in ONNX Runtime.
    """

    arithmetic = attribute(choice(PairArithmetic))


class MaximumOp(BinaryOp, name="maximum"):
    """Maximum of two tensors, clamped; of the quantized values if all three tensors have equal parameters.

    Otherwise f32 values are compared, and the larger one is divided by the output scale and rounded, ties to even.
    """


class MinimumOp(BinaryOp, name="minimum"):
    """Minimum of two tensors, clamped; of the quantized values if all three tensors have equal parameters.

    Otherwise f32 values are compared, and the smaller one is divided by the output scale and rounded, ties to even.
    """


class SquaredDifferenceOp(BinaryOp, name="squared_difference"):
    """``(lhs - rhs)^2``, clamped, in the fixed point of TFLite's reference kernel.

    Both operands are rescaled to twice the larger input scale with 7 more bits; the square of their difference is
    rescaled.
    """


class PreluOp(BinaryOp, name="prelu"):
    """``lhs`` where it is positive, ``lhs * rhs`` elsewhere, clamped; `arithmetic` states how it is formed.

    The slopes `rhs` are quantized like any tensor, often with one for each channel.
    """

    arithmetic = attribute(choice(PairArithmetic))


class ConcatOp(QnnOp, name="concat"):
    """Join tensors along `axis`; an input whose parameters differ from the output's is requantized.

    Constraints:
      C1: axis must name a dimension
      C2: inputs must have the same shape but for the axis
      C3: input_scales and input_zero_points must have one entry for each input
      C4: zero points must lie in the range of their tensor
    """

    inputs = variadic_operand(EIGHT_BIT)
    axis = attribute(I64)
    input_scales = attribute(SCALES)
    input_zero_points = attribute(INTEGERS)
    output_scale = attribute(SCALE)
    output_zero_point = attribute(I64)
    output_params = params()
    rounding = attribute(choice(Rounding), Rounding.FIXED64_UP)
    multiplier = attribute(choice(Multiplier), Multiplier.F64)
    output = result(EIGHT_BIT)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        axis: int = attributes["axis"]
        check_axis("C1", axis, shapes[0])
        first = _without(shapes[0], axis)
        for shape in shapes[1:]:
            same = len(shape) == len(shapes[0]) and _without(shape, axis) == first
            wanted = f"inputs must agree with {list(shapes[0])} but for axis {axis}"
            require(same, "C2", f"{wanted}, but got {list(shape)}")
        extent = sum(shape[axis] for shape in shapes)
        return (*shapes[0][:axis], extent, *shapes[0][axis + 1 :])

    def check(self) -> None:
        count = len(self.inputs)
        for name, values in (("input_scales", self.input_scales), ("input_zero_points", self.input_zero_points)):
            require(len(values) == count, "C3", f"{name} must have {count} entries, but got {len(values)}")
        for value, zero_point in zip(self.inputs, self.input_zero_points, strict=True):
            check_zero_points("C4", "input_zero_points", (zero_point,), value.type)
        check_zero_points("C4", "output_zero_point", (self.output_zero_point,), self.output.type)


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


def binary_attributes(quantization: BinaryQuantization) -> dict[str, Any]:
    """The attributes of a `BinaryOp` of this quantization, by name."""
    attributes = {"output_min": quantization.bounds[0], "output_max": quantization.bounds[1]}
    for name, own in zip(("lhs", "rhs", "output"), quantization.params, strict=True):
        attributes |= {f"{name}_scale": own.scale, f"{name}_zero_point": own.zero_point}
    return attributes
