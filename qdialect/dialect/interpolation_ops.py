"""Tables with linear interpolation, for functions of integers that are too wide for a table of all values."""

from __future__ import annotations

from qdialect.dialect.attribute_kinds import I64, INTEGERS
from qdialect.dialect.fields import attribute, operand, result
from qdialect.dialect.op_base import QnnOp, require
from qdialect.dialect.type_constraints import ACCUMULATOR

_LARGEST_FRACTION = 16
_INT32 = (-(2**31), 2**31 - 1)


class InterpolatedLutOp(QnnOp, name="interpolated_lut"):
    """A function that is linear between multiples of ``2^fraction``, with as many fractional bits in its result.

    With x clamped to [0, n * 2^fraction) for n entries, ``i = x >> fraction`` and ``r = x - (i << fraction)``:
    ``output = (bases[i] << fraction) + r * slopes[i]``, modulo 2^32.  If the function is continuous, the slope of an
    entry is the difference to the next base; TFLite's tables of int16 have 513 entries, the last of which only ends a
    segment.

    Constraints:
      C1: fraction must be in [0, 16]
      C2: slopes must have as many entries as bases, at least 1
      C3: bases and slopes must fit 32 bits, and the clamped input 31 bits
    """

    input = operand(ACCUMULATOR)
    bases = attribute(INTEGERS)
    slopes = attribute(INTEGERS)
    fraction = attribute(I64)
    output = result(ACCUMULATOR)

    def check(self) -> None:
        holds = 0 <= self.fraction <= _LARGEST_FRACTION
        require(holds, "C1", f"fraction must be in [0, {_LARGEST_FRACTION}], but got {self.fraction}")
        entries, slopes = len(self.bases), len(self.slopes)
        holds = entries == slopes and entries >= 1
        require(holds, "C2", f"slopes must have as many entries as bases, at least 1, but got {slopes} and {entries}")
        outside = [number for number in (*self.bases, *self.slopes) if not _INT32[0] <= number <= _INT32[1]]
        require(not outside, "C3", f"bases and slopes must fit 32 bits, but got {', '.join(map(str, outside[:1]))}")
        largest = entries << self.fraction
        require(largest <= 2**31, "C3", f"entries must end within 2^31, but got {largest}")
