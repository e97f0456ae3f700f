"""Functions of fixed-point numbers, by integer arithmetic alone: the gates of integer recurrent cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qdialect.dialect.attribute_kinds import I64, SCALE, choice
from qdialect.dialect.fields import attribute, operand, result
from qdialect.dialect.op_base import QnnOp, Shape, require
from qdialect.dialect.type_constraints import BIAS, TypeConstraint
from qdialect.quant_math.fixed_point_functions import MAX_INTEGER_BITS, FixedPointFunction

_WORDS = TypeConstraint(("i16",))
_WORD_VECTOR = TypeConstraint(("i16",), rank=1)
_LARGEST_GUARD = 2**29 - 1


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


class I16LayerNormOp(QnnOp, name="i16_layer_norm"):
    """Each row of 16-bit numbers normalized, times weights, plus biases: gates of Q3.12, as TFLite's kernel has them.

    The mean has 10 fractional bits and the variance none; a variance below one counts as `variance_guard`.  With the
    fixed-point inverse root r of the variance, a result is ``((x - mean) * r * weight + bias) * scale`` in steps of
    2^-12, saturated; every product is rounded by itself, the one with the weight to 10 bits fewer.  The input's scale
    cancels.

    Constraints:
      C1: the input must have a last dimension of at least 1 element
      C2: weight and bias must have one entry for each element of the last dimension
      C3: variance_guard must be in [1, 536870911]
    """

    input = operand(_WORDS)
    weight = operand(_WORD_VECTOR)
    bias = operand(BIAS)
    scale = attribute(SCALE)
    variance_guard = attribute(I64)
    output = result(_WORDS)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        data, weight, bias = shapes
        require(len(data) >= 1, "C1", "input must have a last dimension, but got 0 dimensions")
        wanted, found = [data[-1]] * 2, [*weight, *bias]
        require(
            wanted == found, "C2", f"weight and bias must have {data[-1]} entries, but got {found[0]} and {found[1]}"
        )
        return data

    def check(self) -> None:
        found = self.variance_guard
        holds = 1 <= found <= _LARGEST_GUARD
        require(holds, "C3", f"variance_guard must be in [1, {_LARGEST_GUARD}], but got {found}")
