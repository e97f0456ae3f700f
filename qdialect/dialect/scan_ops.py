"""Ops along an axis whose results depend on the order of the elements: cumulative sums, and the largest ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdialect.dialect.attribute_kinds import BOOL, I64
from qdialect.dialect.constraints import check_axis
from qdialect.dialect.fields import attribute, operand, result
from qdialect.dialect.op_base import QnnOp, Shape, require
from qdialect.dialect.type_constraints import INDEX, TypeConstraint, element_of

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
        found, wanted = element_of(self.output.type), element_of(self.input.type)
        require(found == wanted, "C1", f"result element type must be {wanted}, but got {found}")


class TopKOp(QnnOp, name="top_k"):
    """Indices along `axis` of the `count` largest elements in descending order; of equal ones the first comes first.

    With as many as there are, it is a stable order of all elements.

    Constraints:
      C1: axis must be a dimension of the input
      C2: count must be at least 1 and at most the extent of the axis
    """

    input = operand(INDEX)
    axis = attribute(I64)
    count = attribute(I64)
    output = result(INDEX)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        axis: int = attributes["axis"]
        count: int = attributes["count"]
        check_axis("C1", axis, shapes[0])
        extent = shapes[0][axis]
        require(1 <= count <= extent, "C2", f"count must be in [1, {extent}], but got {count}")
        return (*shapes[0][:axis], count, *shapes[0][axis + 1 :])
