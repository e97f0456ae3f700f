"""Scale and zero point of a range of f32 values in i8, in float64 (TFLite tensor_utils AsymmetricQuantizeFloats)."""

from __future__ import annotations

import numpy as np

from qdialect.arithmetic.machine import NUMPY, Machine, V
from qdialect.arithmetic.quantization import FloatArray

_LOWEST, _HIGHEST = -128.0, 127.0
_F64 = "f64"


def ends(m: Machine[V], low: V, high: V, *, drops_nan: bool = False) -> tuple[V, V]:
    """Both ends with 0 between them; with `drops_nan` a NaN at one of them makes both 0."""
    zero = m.constant(0.0, "f32")
    below, above = m.compare("olt", low, zero), m.compare("ogt", high, zero)
    if drops_nan:
        is_known = m.compare("ord", low, high)
        below, above = (m.binary("arith.andi", one, is_known) for one in (below, above))
    return m.select(below, low, zero), m.select(above, high, zero)


def scale_of(m: Machine[V], low: V, high: V) -> V:
    """``(high - low) / 255`` of `ends`, with the difference in float32; 1 for a range of nothing but zero."""
    width = m.cast("arith.extf", m.binary("arith.subf", high, low), _F64)
    scale = m.binary("arith.divf", width, m.constant(_HIGHEST - _LOWEST, _F64))
    return m.select(m.compare("oeq", low, high), m.constant(1.0, _F64), scale)


def zero_point_of(m: Machine[V], low: V, high: V) -> V:
    """The whole number in [-128, 127] for zero, computed from the one of the `ends` whose terms are smaller."""
    minimum, maximum = m.constant(_LOWEST, _F64), m.constant(_HIGHEST, _F64)
    scale = scale_of(m, low, high)
    below, above = (m.binary("arith.divf", m.cast("arith.extf", end, _F64), scale) for end in (low, high))
    low_terms = m.binary("arith.subf", m.constant(_HIGHEST + 1, _F64), below)
    is_low = m.compare("olt", low_terms, m.binary("arith.addf", maximum, above))
    from_low, from_high = m.binary("arith.subf", minimum, below), m.binary("arith.subf", maximum, above)
    exact = m.select(is_low, from_low, from_high)
    nudged = m.select(m.compare("oge", exact, maximum), maximum, _half_away(m, exact))
    nudged = m.select(m.compare("ole", exact, minimum), minimum, nudged)
    return m.select(m.compare("oeq", low, high), m.constant(0.0, _F64), nudged)


def _half_away(m: Machine[V], value: V) -> V:
    size = m.unary("math.absf", value)
    whole = m.unary("math.floor", size)
    rest = m.binary("arith.subf", size, whole)
    is_up = m.compare("oge", rest, m.constant(0.5, _F64))
    rounded = m.select(is_up, m.binary("arith.addf", whole, m.constant(1.0, _F64)), whole)
    return m.binary("math.copysign", rounded, value)


def range_scale(minimum: FloatArray, maximum: FloatArray) -> FloatArray:
    """`scale_of` arrays, as float32."""
    with np.errstate(all="ignore"):
        return scale_of(NUMPY, *ends(NUMPY, minimum, maximum)).astype(np.float32)


def range_zero_point(minimum: FloatArray, maximum: FloatArray) -> FloatArray:
    """`zero_point_of` arrays, as float32."""
    with np.errstate(all="ignore"):
        return zero_point_of(NUMPY, *ends(NUMPY, minimum, maximum)).astype(np.float32)
