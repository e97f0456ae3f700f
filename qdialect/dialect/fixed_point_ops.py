"""Functions of fixed-point numbers, by integer arithmetic alone: the gates of integer recurrent cells."""

from __future__ import annotations

from qdialect.dialect.attribute_kinds import I64, choice
from qdialect.dialect.fields import attribute, operand, result
from qdialect.dialect.op_base import QnnOp, require
from qdialect.dialect.type_constraints import TypeConstraint
from qdialect.quant_math.fixed_point_functions import MAX_INTEGER_BITS, FixedPointFunction

_WORDS = TypeConstraint(("i16",))


class FixedPointFunctionOp(QnnOp, name="fixed_point_function"):
    """A function of 16-bit fixed-point numbers with `integer_bits` integer bits, whose results have 15 fractional bits.

    An input x represents ``x * 2^(integer_bits - 15)`` and a result y ``y * 2^-15``; the results equal those of
    gemmlowp.

    Constraints:
      C1: integer_bits must be in [0, 6]
    """

    input = operand(_WORDS)
    function = attribute(choice(FixedPointFunction))
    integer_bits = attribute(I64)
    output = result(_WORDS)

    def check(self) -> None:
        found = self.integer_bits
        holds = 0 <= found <= MAX_INTEGER_BITS
        require(holds, "C1", f"integer_bits must be in [0, {MAX_INTEGER_BITS}], but got {found}")
