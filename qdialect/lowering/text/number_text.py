"""Numbers as MLIR reads them."""

from __future__ import annotations

import math
import struct

# Of a number in scientific notation, after the first digit.
_DIGITS = {"f32": 9, "f64": 17}
_PACKED = {"f32": ">f", "f64": ">d"}


def number_text(value: float, type_: str) -> str:
    """A number as MLIR reads it: floats with as many digits as tell them apart, infinities and NaN as bits."""
    if not type_.startswith("f"):
        return str(int(value))
    if not math.isfinite(value):
        return f"0x{struct.pack(_PACKED[type_], value).hex().upper()}"
    return f"{value:.{_DIGITS[type_]}e}"
