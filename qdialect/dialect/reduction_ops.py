"""Reductions over axes: sums, extremes, indices of extremes; running sums and the largest elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdialect.arithmetic import Multiplier, Rounding
from qdialect.arithmetic.choices import Order
from qdialect.dialect.fields import BOOL, I64, SCALE, attribute, choice, operand, params, result
from qdialect.dialect.op_base import QnnOp, ReduceOp, Shape, check_axis, check_element, check_zero_points, require
from qdialect.dialect.type_constraints import EIGHT_BIT, INDEX, TypeConstraint, element_of


class ArgOp(QnnOp):
    """The index along `axis` of an extreme; quantized values are in the order of their f32 values.

    Constraints:
      C1: axis must name a dimension of the input
    """

    input = operand(EIGHT_BIT)
    axis = attribute(I64)
    keep_dims = attribute(BOOL, False)
    last = attribute(BOOL, False)
    output = result(INDEX)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        axis: int = attributes["axis"]
        check_axis("C1", axis, shapes[0])
        kept = (1,) if attributes["keep_dims"] else ()
        return (*shapes[0][:axis], *kept, *shapes[0][axis + 1 :])


class ArgMaxOp(ArgOp, name="arg_max"):
    """Index along `axis` of the largest element; of equal ones the first, or the last with `last`."""


class ArgMinOp(ArgOp, name="arg_min"):
    """Index along `axis` of the smallest element; of equal ones the first, or the last with `last`."""


class RescaledReductionOp(ReduceOp):
    """A reduction over `axes` whose result has a scale and a zero point of its own.

    Constraints:
      C1: axes must be distinct, ascending and name dimensions of the input
      C2: zero points must lie in the range of their tensor
    """

    input = operand(EIGHT_BIT)
    input_scale = attribute(SCALE)
    input_zero_point = attribute(I64)
    output_scale = attribute(SCALE)
    output_zero_point = attribute(I64)
    input_params = params()
    output_params = params()
    rounding = attribute(choice(Rounding))
    multiplier = attribute(choice(Multiplier), Multiplier.F64)
    output = result(EIGHT_BIT)

    def check(self) -> None:
        check_zero_points("C2", "input_zero_point", (self.input_zero_point,), self.input.type)
        check_zero_points("C2", "output_zero_point", (self.output_zero_point,), self.output.type)


class SumOp(RescaledReductionOp, name="sum"):
    """Sum over `axes`, requantized: ``sum(input - z_i)`` times ``s_i / s_o``, plus ``z_o``."""


class SameTypeReduceOp(ReduceOp):
    """A reduction over `axes` to the input's type and, where it is quantized, to its parameters.

    Constraints:
      C1: axes must be distinct, ascending and name dimensions of the input
      C2: input and result must have the same element type; a sum of 8-bit integers is i32
    """

    input = operand(EIGHT_BIT)
    output = result(EIGHT_BIT)

    def check(self) -> None:
        check_element("C2", self.output, self.input)


class ReduceMaxOp(SameTypeReduceOp, name="reduce_max"):
    """Largest quantized value over `axes`."""


class ReduceMinOp(SameTypeReduceOp, name="reduce_min"):
    """Smallest quantized value over `axes`."""


_LONGEST_ROW = (2**31 - 1) // 255**2


class L2NormalizeOp(QnnOp, name="l2_normalize"):
    """Each row along the last dimension divided by its Euclidean length, in the fixed point of TFLite's kernel.

    The input's scale cancels. The result has the scale 1/128 and the zero point 0 for `i8`, 128 for `ui8`.

    Constraints:
      C1: the input must have a last dimension, of at most 33025 elements: sums of squares take 31 bits
      C2: input and result must have the same element type
      C3: input_zero_point must lie in the tensor's range
    """

    input = operand(EIGHT_BIT)
    input_zero_point = attribute(I64)
    output = result(EIGHT_BIT)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        extent = shapes[0][-1] if shapes[0] else 0
        wanted = f"last dimension must be in [1, {_LONGEST_ROW}]"
        require(1 <= extent <= _LONGEST_ROW, "C1", f"{wanted}, but got {extent}")
        return shapes[0]

    def check(self) -> None:
        check_element("C2", self.output, self.input)
        check_zero_points("C3", "input_zero_point", (self.input_zero_point,), self.input.type)


_REDUCED = TypeConstraint(("i16", "i32", "i64"))


class IntegerReduceOp(SameTypeReduceOp):
    """A reduction of integers without scale and zero point."""

    input = operand(_REDUCED)
    output = result(_REDUCED)


class IntSumOp(IntegerReduceOp, name="int_sum"):
    """Sum over `axes`, which wraps around; of 8-bit integers a sum of 32 bits."""

    input = operand(TypeConstraint((*EIGHT_BIT.elements, *_REDUCED.elements)))

    def check(self) -> None:
        if element_of(self.input.type) not in EIGHT_BIT.elements:
            super().check()
            return
        found = element_of(self.output.type)
        require(found == "i32", "C2", f"result element type must be i32, but got {found}")


class IntProdOp(IntegerReduceOp, name="int_prod"):
    """Product over `axes`, which wraps around."""


class IntMaxOp(IntegerReduceOp, name="int_max"):
    """Largest integer over `axes`."""


class IntMinOp(IntegerReduceOp, name="int_min"):
    """Smallest integer over `axes`."""


_NUMBERS = TypeConstraint(("i32", "i64", "f32"))


class CumSumOp(QnnOp, name="cumsum"):
    """Cumulative sum along `axis`; with `exclusive` without the element itself, with `reverse` from the end.

    Terms are added one after another; integers wrap around.

    Constraints:
      C1: input and result must have the same element type
      C2: axis must be a dimension of the input
    """

    input = operand(_NUMBERS)
    axis = attribute(I64)
    exclusive = attribute(BOOL, False)
    reverse = attribute(BOOL, False)
    output = result(_NUMBERS)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        check_axis("C2", attributes["axis"], shapes[0])
        return shapes[0]

    def check(self) -> None:
        check_element("C1", self.output, self.input)


class TopKOp(QnnOp, name="top_k"):
    """Indices along `axis` of the `count` largest elements, the largest first, and equal ones in an `order`.

    With as many as there are, it is an order of all elements.

    Constraints:
      C1: axis must be a dimension of the input
      C2: count must be at least 1 and at most the extent of the axis
    """

    input = operand(INDEX)
    axis = attribute(I64)
    count = attribute(I64)
    order = attribute(choice(Order), Order.STABLE)
    output = result(INDEX)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        axis: int = attributes["axis"]
        count: int = attributes["count"]
        check_axis("C1", axis, shapes[0])
        extent = shapes[0][axis]
        require(1 <= count <= extent, "C2", f"count must be in [1, {extent}], but got {count}")
        return (*shapes[0][:axis], count, *shapes[0][axis + 1 :])
