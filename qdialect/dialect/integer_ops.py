"""Reductions of integers that are not quantized values: sizes, positions, token ids, counts."""

from __future__ import annotations

from qdialect.dialect.fields import operand, result
from qdialect.dialect.reduction_ops import SameTypeReduceOp
from qdialect.dialect.type_constraints import TypeConstraint

_REDUCED = TypeConstraint(("i16", "i32", "i64"))


class IntegerReduceOp(SameTypeReduceOp):
    """A reduction of integers without scale and zero point."""

    input = operand(_REDUCED)
    output = result(_REDUCED)


class IntSumOp(IntegerReduceOp, name="int_sum"):
    """Sum over `axes`, which wraps around."""


class IntProdOp(IntegerReduceOp, name="int_prod"):
    """Product over `axes`, which wraps around."""


class IntMaxOp(IntegerReduceOp, name="int_max"):
    """Largest integer over `axes`."""


class IntMinOp(IntegerReduceOp, name="int_min"):
    """Smallest integer over `axes`."""
