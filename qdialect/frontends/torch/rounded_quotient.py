"""Quotients of float32 numbers rounded as if they were known exactly, in float32 operations.

For a number x and a scale s, ``n = round(x / s)`` is the nearest integer or one beside it.  The remainder
``x - n * s`` is a float32 number (as IEEE 754's remainder is), and with s in two parts of 12 bits each operation on the
way to it is exact (T. J. Dekker, A floating-point technique for extending the available precision).  Which integer is
nearest is what the remainder and s / 2 say.
"""

from __future__ import annotations

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.planning.emitter import Emitter
from qdialect.frontends.planning.f32_builder import F32Builder

_HIGH_BITS = np.int32(-1 << 12)
# Beyond it all quotients saturate, within it their products with 12 bits are exact.
_LARGEST = 1024.0
# arith.cmpf's numbers of "ordered and equal" and "ordered and greater than".
_EQUAL, _GREATER = 1, 2


def rounded_quotient(emitter: Emitter, x: ir.Value, scale: ir.Value, offset: ir.Value) -> ir.Value:
    """``half_even(x / scale + offset)`` of f32 tensors that broadcast to x; offsets are whole numbers of 8 bits."""
    shape = shape_of(x.type)
    s = F32Builder(emitter, shape)
    high = _high_part(emitter, scale)
    low = F32Builder(emitter, shape_of(scale.type))("subf", scale, high)
    near = s("roundeven", s("minimumf", s("maximumf", s("divf", x, scale), -_LARGEST), _LARGEST))
    rest = s("subf", s("subf", x, s("mulf", near, high)), s("mulf", near, low))
    size, half = s("absf", rest), s("mulf", scale, 0.5)
    # 1/2 leaves the choice to the sum; 3/4 stands for all that is larger, and the sum holds it.
    beyond = emitter.select(emitter.compare(_EQUAL, size, half), emitter.number(0.5, shape), emitter.number(0.0, shape))
    more = emitter.select(emitter.compare(_GREATER, size, half), emitter.number(0.75, shape), beyond)
    return s("roundeven", s("addf", s("addf", near, offset), s("copysign", more, rest)))


def _high_part(emitter: Emitter, scale: ir.Value) -> ir.Value:
    """The first 12 bits of the significand."""
    bits = emitter.convert("arith.bitcast", scale, "i32")
    mask = emitter.broadcast(emitter.constant(np.array(_HIGH_BITS)), shape_of(scale.type))
    return emitter.convert("arith.bitcast", emitter.upstream("arith.andi", "i32", bits, mask), "f32")
