"""Element-wise functions of one 8-bit tensor, and the table that each of them is."""

from __future__ import annotations

import math

import numpy as np

from qdialect.dialect.attribute_kinds import F64, I64, SCALE, TABLE, choice
from qdialect.dialect.constraints import check_zero_points
from qdialect.dialect.enums import HardswishMode, LeakyMode
from qdialect.dialect.fields import attribute, operand, result
from qdialect.dialect.op_base import QnnOp, require
from qdialect.dialect.type_constraints import EIGHT_BIT
from qdialect.quant_math import Entries, NanPolicy, hard_swish_bound


class EightBitFunction(QnnOp):
    """A function between two 8-bit quantizations.

    Constraints:
      C1: zero points must lie in the range of their tensor
    """

    input = operand(EIGHT_BIT)
    input_scale = attribute(SCALE)
    input_zero_point = attribute(I64)
    output_scale = attribute(SCALE)
    output_zero_point = attribute(I64)
    output = result(EIGHT_BIT)

    def check(self) -> None:
        check_zero_points("C1", "input_zero_point", (self.input_zero_point,), self.input.type)
        check_zero_points("C1", "output_zero_point", (self.output_zero_point,), self.output.type)


class LutOp(EightBitFunction, name="lut"):
    """Table look-up: ``output = table[unsigned bit pattern of input]``.

    Entry 255 belongs to the code 255 of a `ui8` tensor and to the code -1 of an `i8` one; entries are bit patterns of
    the result's element type, which may differ from the input's.  The scales and zero points do not enter the look-up:
    they say what the quantized values mean.
    """

    table = attribute(TABLE)


class UnaryOp(EightBitFunction):
    """A real function between two 8-bit quantizations.

    ``output = sat(round(f((input - z_i) * s_i) / s_o) + z_o)`` in float32; `entries` says how the quotient is formed
    and rounded, `nan` what a result that is not a number becomes.
    """

    entries = attribute(choice(Entries), Entries.HALF_AWAY_DIVIDE)
    nan = attribute(choice(NanPolicy), NanPolicy.MAX)


class ReluOp(UnaryOp, name="relu"):
    """``max(x, 0)``."""


class Relu6Op(UnaryOp, name="relu6"):
    """``min(max(x, 0), 6)``."""


class SiluOp(UnaryOp, name="silu"):
    """``x * sigmoid(x)``, also called swish."""


class SigmoidOp(UnaryOp, name="sigmoid"):
    """``1 / (1 + exp(-x))``."""


class TanhOp(UnaryOp, name="tanh"):
    """``tanh(x)``."""


class GeluOp(UnaryOp, name="gelu"):
    """``x / 2 * (1 + erf(x / sqrt(2)))``."""


class ExpOp(UnaryOp, name="exp"):
    """``exp(x)``."""


class ErfOp(UnaryOp, name="erf"):
    """``erf(x)``."""


class LogOp(UnaryOp, name="log"):
    """``log(x)``."""


class SqrtOp(UnaryOp, name="sqrt"):
    """``sqrt(x)``."""


class RsqrtOp(UnaryOp, name="rsqrt"):
    """``1 / sqrt(x)``."""


class AbsOp(UnaryOp, name="abs"):
    """``|x|``."""


class EluOp(UnaryOp, name="elu"):
    """``x`` where positive, ``alpha * (exp(x) - 1)`` elsewhere."""

    alpha = attribute(F64, 1.0)


class LeakyReluOp(UnaryOp, name="leaky_relu"):
    """``x`` where positive, ``alpha * x`` elsewhere; `mode` says in which arithmetic.

    `entries` governs the mode ``lut`` alone: ``fixed`` and ``tflite`` are integer arithmetics.

    Constraints:
      C2: alpha must lie in [0, 1] in mode ``fixed`` and in [0, 2^30] in mode ``tflite``
    """

    alpha = attribute(F64, 0.01)
    mode = attribute(choice(LeakyMode), LeakyMode.LUT)

    def check(self) -> None:
        super().check()
        maximum = {LeakyMode.LUT: math.inf, LeakyMode.FIXED: 1, LeakyMode.TFLITE: 2**30}[self.mode]
        holds = self.mode is LeakyMode.LUT or 0 <= self.alpha <= maximum
        require(holds, "C2", f'alpha must be in [0, {maximum}] in mode "{self.mode}", but got {self.alpha}')


class HardswishOp(UnaryOp, name="hardswish"):
    """``x * min(max(x + 3, 0), 6) / 6``; `mode` says in which arithmetic.

    `entries` governs the mode ``lut`` alone: ``tflite`` is a fixed-point arithmetic.

    Constraints:
      C2: output_scale must exceed input_scale / 128 in mode ``tflite``, which only ever shifts right
    """

    mode = attribute(choice(HardswishMode), HardswishMode.LUT)

    def check(self) -> None:
        super().check()
        minimum = hard_swish_bound(self.input_scale)
        holds = self.mode is HardswishMode.LUT or float(np.float32(self.output_scale)) > minimum
        require(holds, "C2", f"output_scale must be greater than {minimum}, but got {self.output_scale}")
