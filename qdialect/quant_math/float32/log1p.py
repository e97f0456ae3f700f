"""log(1 + x) in float32."""

from __future__ import annotations

import math

from qdialect.quant_math.float32.log import MIN_FRACTION, joined
from qdialect.quant_math.float32.machine import Machine, V, at_most

_LINEAR = 2.0**-25
"""Below it log(1 + x) rounds to x."""
_LARGE = 2.0**64
"""Above it 1 + x is x, and log(1 + x) that of x made smaller by a power of two, whose exponent has a reciprocal."""
_DOWNWARDS, _STEPS = 2.0**-32, 32.0
_BELOW_THREE_HALVES = 1.5 - 2.0**-23


def log1p(m: Machine[V], x: V) -> V:
    """``k ln 2 + log(1 + f)`` with f = x 2^-k + (2^-k - 1), which loses nothing of a small x."""
    one, minus_one = m.constant(1.0), m.constant(-1.0)
    large = m.constant(_LARGE)
    smaller = m.where_less(large, x, m.multiply(x, m.constant(_DOWNWARDS)), x)
    total = m.add(smaller, one)
    # The number below 1/2 would lose its last bit were it halved: its sum, a tie, is kept below where k becomes 1.
    total = m.where_less(x, m.constant(0.5), at_most(m, total, _BELOW_THREE_HALVES), total)
    k, _, power = m.split(total, MIN_FRACTION)
    fraction = m.multiply_add(smaller, power, m.subtract(power, one))
    value = joined(m, m.where_less(large, x, m.add(k, m.constant(_STEPS)), k), fraction)
    ended = m.where_less(x, minus_one, m.constant(math.nan), m.constant(-math.inf))
    value = m.where_less(minus_one, x, value, ended)
    value = m.where_less(x, m.constant(math.inf), value, x)
    return m.where_less(m.absolute(x), m.constant(_LINEAR), x, value)
