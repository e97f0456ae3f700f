"""Two operands at one scale: the fixed point of TFLite's sums, differences and squared differences.

With t = 2 * max(s_l, s_r), an operand becomes round((x - z) * 2^shift * s / t).  The factor two keeps both multipliers
at one half or less, so that a sum of 8-bit values stays within int32 with 20 more bits, and a squared difference with
7.  Multipliers are formed in float64.  TOSA rescales x - z by 2^20 * s / t at once: the same number, for with one
rounding 2^20 cancels.
"""

from __future__ import annotations

from dataclasses import dataclass

from qdialect.quant_math.choices import Rounding
from qdialect.quant_math.fixed_point import IntArray, multiply_by_quantized_multiplier
from qdialect.quant_math.multipliers import quantize_multiplier
from qdialect.quant_math.quant_params import QuantParams

_SUM_SHIFT = 20
_SQUARE_SHIFT = 7


@dataclass(frozen=True)
class CommonScale:
    """The multipliers of both operands and of the result, and the bits by which offsets are shifted up before."""

    shift: int
    lhs: float
    rhs: float
    output: float
    """From the result at the common scale to the output's."""

    def of_offsets(self, lhs: IntArray, rhs: IntArray, rounding: Rounding) -> tuple[IntArray, IntArray]:
        """The operands, of which the zero points have been subtracted, at the common scale."""
        left, right = (
            multiply_by_quantized_multiplier(offsets << self.shift, *quantize_multiplier(multiplier), rounding)
            for offsets, multiplier in ((lhs, self.lhs), (rhs, self.rhs))
        )
        return left, right


def scale_of_sum(lhs: QuantParams, rhs: QuantParams, output: QuantParams) -> CommonScale:
    """Of a sum or a difference, which is multiplied by t / (2^20 * s_y)."""
    twice_max = 2 * max(lhs.scale, rhs.scale)
    to_output = twice_max / ((1 << _SUM_SHIFT) * output.scale)
    return CommonScale(_SUM_SHIFT, lhs.scale / twice_max, rhs.scale / twice_max, to_output)


def scale_of_squared_difference(lhs: QuantParams, rhs: QuantParams, output: QuantParams) -> CommonScale:
    """Of a difference whose square is multiplied by t^2 / (2^14 * s_y)."""
    twice_max = 2 * max(lhs.scale, rhs.scale)
    to_output = twice_max * twice_max / ((1 << (2 * _SQUARE_SHIFT)) * output.scale)
    return CommonScale(_SQUARE_SHIFT, lhs.scale / twice_max, rhs.scale / twice_max, to_output)
