"""Reductions of plain integers, which stand for nothing but themselves: sizes, positions, token ids, counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdialect.dialect.attribute_kinds import BOOL, INTEGERS
from qdialect.dialect.constraints import shape_over_axes
from qdialect.dialect.fields import attribute, operand, result
from qdialect.dialect.op_base import QnnOp, Shape, require
from qdialect.dialect.type_constraints import TypeConstraint, element_of

_REDUCED = TypeConstraint(("i16", "i32", "i64"))


class IntegerReduceOp(QnnOp):
    """A reduction over `axes`, which stay as extents of 1 with `keep_dims`.

    Constraints:
      C1: axes must be distinct, ascending dimensions of the input, at least one
      C2: input and result must have the same element type
    """

    input = operand(_REDUCED)
    axes = attribute(INTEGERS)
    keep_dims = attribute(BOOL, False)
    output = result(_REDUCED)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        return shape_over_axes("C1", shapes[0], attributes["axes"], attributes["keep_dims"])

    def check(self) -> None:
        found, wanted = element_of(self.output.type), element_of(self.input.type)
        require(found == wanted, "C2", f"result element type must be {wanted}, but got {found}")


class IntSumOp(IntegerReduceOp, name="int_sum"):
    """Sum over `axes`, which wraps around."""


class IntProdOp(IntegerReduceOp, name="int_prod"):
    """Product over `axes`, which wraps around."""


class IntMaxOp(IntegerReduceOp, name="int_max"):
    """Largest integer over `axes`."""


class IntMinOp(IntegerReduceOp, name="int_min"):
    """Smallest integer over `axes`."""
