"""What the element-wise ops of the dialects `arith`, `math` and `tensor` compute, as NumPy functions of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math import float32, real_functions
from qdialect.quant_math.affine import round_f32
from qdialect.quant_math.choices import FloatRounding
from qdialect.quant_math.float32.numpy_machine import multiply_add

Array = NDArray[Any]
ArrayFunction = Callable[..., Array]


def _multiply_add(x: Array, y: Array, z: Array) -> Array:
    """x * y + z, of float32 rounded once."""
    return multiply_add(x, y, z) if x.dtype == np.float32 else x * y + z


def _larger(x: Array, y: Array) -> Array:
    """IEEE 754 maximum: NaN where an operand is, and plus zero is larger than minus zero."""
    return np.where((x == 0) & (y == 0), x + y, np.maximum(x, y))


def _smaller(x: Array, y: Array) -> Array:
    return -_larger(-x, -y)


def _larger_number(x: Array, y: Array) -> Array:
    """As `_larger`, but the other operand where one is NaN."""
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, _larger(x, y)))


def _smaller_number(x: Array, y: Array) -> Array:
    return -_larger_number(-x, -y)


def _half_away(x: Array) -> Array:
    return round_f32(x, FloatRounding.HALF_AWAY)


def _truncated_quotient(x: Array, y: Array) -> Array:
    """x / y rounded towards zero, where NumPy's rounds down."""
    return x // y + ((x % y != 0) & ((x < 0) != (y < 0)))


def _raised_quotient(x: Array, y: Array) -> Array:
    return x // y + (x % y != 0)


def _shifted_left(x: Array, count: Array) -> Array:
    """Nothing is left of an integer that is shifted by its width or more."""
    bits = 8 * x.itemsize
    distance = count.view(f"u{count.itemsize}")
    return np.where(distance < bits, x << np.minimum(distance, bits - 1).astype(x.dtype), 0).astype(x.dtype)


def _shifted_right(x: Array, count: Array) -> Array:
    """The sign is all that is left of an integer that is shifted by its width or more."""
    distance = np.minimum(count.view(f"u{count.itemsize}"), 8 * x.itemsize - 1)
    return x >> distance.astype(x.dtype)


def _as_unsigned_integer(x: Array) -> Array:
    """The whole part of a float, whose low bits the interpreter's conversion to the result's type keeps."""
    return np.where(x < 2.0**63, np.trunc(x).astype(np.int64).view(np.uint64), np.trunc(x).astype(np.uint64))


def _leading_zeros(x: Array) -> Array:
    """Zero bits before the first one: the width less the bits from there on."""
    if x.dtype == np.bool_:
        return ~x
    bits = x.view(f"u{x.itemsize}")
    width = x.itemsize * 8
    for shift in (1, 2, 4, 8, 16, 32):
        bits = bits | (bits >> bits.dtype.type(shift))
    return width - np.bitwise_count(bits).astype(x.dtype)


FLOAT_FUNCTIONS: Mapping[str, ArrayFunction] = {
    "arith.addf": np.add,
    "arith.andi": np.bitwise_and,
    "arith.divf": np.divide,
    "arith.fptosi": np.trunc,
    "arith.fptoui": _as_unsigned_integer,
    "arith.maximumf": _larger,
    "arith.maxnumf": _larger_number,
    "arith.minimumf": _smaller,
    "arith.minnumf": _smaller_number,
    "arith.mulf": np.multiply,
    "arith.negf": np.negative,
    "arith.ori": np.bitwise_or,
    # Exact, and so the same on every machine.
    "arith.remf": np.fmod,
    "arith.select": np.where,
    "arith.subf": np.subtract,
    "arith.xori": np.bitwise_xor,
    "math.absf": np.abs,
    "math.absi": np.abs,
    "math.ceil": np.ceil,
    "math.copysign": np.copysign,
    "math.cos": real_functions.cos,
    "math.ctlz": _leading_zeros,
    "math.erfc": real_functions.erfc,
    "math.floor": np.floor,
    "math.fma": _multiply_add,
    "math.log10": real_functions.log10,
    "math.log2": real_functions.log2,
    "math.powf": real_functions.power,
    "math.round": _half_away,
    "math.roundeven": np.rint,
    "math.rsqrt": real_functions.rsqrt,
    "math.sin": real_functions.sin,
    "math.sqrt": real_functions.sqrt,
    "math.trunc": np.trunc,
    "tensor.bitcast": np.asarray,
    **{op: partial(float32.evaluate, op) for op in float32.ALGORITHMS},
}
"""Of floats, and of bits whatever their sign: what a kernel computes."""
TABLE_FUNCTIONS: Mapping[str, ArrayFunction] = {
    **FLOAT_FUNCTIONS,
    "math.erf": real_functions.erf,
    "math.exp": real_functions.exp,
    "math.exp2": real_functions.exp2,
    "math.expm1": real_functions.expm1,
    "math.log": real_functions.log,
    "math.log1p": real_functions.log1p,
    "math.tanh": real_functions.tanh,
}
"""The same with transcendental functions that are rounded from float64: what tables are built from."""
SIGNED_FUNCTIONS: Mapping[str, ArrayFunction] = {
    "arith.addi": np.add,
    "arith.ceildivsi": _raised_quotient,
    "arith.divsi": _truncated_quotient,
    "arith.floordivsi": np.floor_divide,
    "arith.extsi": np.asarray,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.muli": np.multiply,
    "arith.remsi": np.fmod,
    "arith.shli": _shifted_left,
    "arith.shrsi": _shifted_right,
    "arith.sitofp": np.asarray,
    "arith.subi": np.subtract,
    # The interpreter's conversion to the result's type keeps the low bits.
    "arith.trunci": np.asarray,
}
"""Of integers that are read as signed."""
UNSIGNED_FUNCTIONS: Mapping[str, ArrayFunction] = {
    "arith.ceildivui": _raised_quotient,
    "arith.divui": np.floor_divide,
    "arith.extui": np.asarray,
    "arith.maxui": np.maximum,
    "arith.minui": np.minimum,
    "arith.remui": np.remainder,
    "arith.shrui": np.right_shift,
    "arith.uitofp": np.asarray,
}
"""Of integers that are read as unsigned."""
