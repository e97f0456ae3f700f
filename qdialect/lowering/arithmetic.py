"""Requantization and addition as scalar bodies of `linalg.generic`, in the bits of `qdialect.quant_math`.

Multipliers are data: a kernel is the same for every layer of its shape, and reads them per channel or as scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from qdialect.diagnostics import CompileError
from qdialect.lowering.kernel_text import Body
from qdialect.lowering.parameters import Parameter
from qdialect.quant_math import FixedMultiplier, RequantizeParameters, Rounding

_LARGEST_EXPONENT = 30
_SMALL_BOUND = 2**30
# Largest exponent for which 32 bits suffice: a single rounding needs a place to shift out after the product's own 31.
_SMALL_EXPONENTS = {Rounding.FIXED32_DOUBLE: 0, Rounding.FIXED64_UP: -1, Rounding.FIXED64_DOUBLE: -1}
_SECOND_NUDGE = 2**30


@dataclass(frozen=True)
class Requantization:
    """An accumulator's way to a code: rounding mode, parameter arrays, and the type in which quantized values are formed.

    `wide` is also the type of zero point and bounds: ``i64``, ``f32``, or ``i32`` where the accumulators are known to
    be small (see `requantization`).
    """

    rounding: Rounding
    parameters: tuple[Parameter, ...]
    wide: str


def requantization(rounding: Rounding, params: RequantizeParameters, bound: int = 2**31) -> Requantization:
    """The parameter arrays that `emit_requantize` reads, in its order.

    fixed64:  ``(x * q + half) >> right``, right = 31 - e, half = 2^(right - 1).
    fixed64_double: where right > 31 also + 2^30, or - 2^30 for x < 0.
    fixed32:  ``h = (sat(x << left) * q + 2^30) >> 31``, then ``h / 2^right`` rounded half away, right = max(-e, 0).

    `bound`: no accumulator's magnitude exceeds it.  Up to 2^30, with no multiplier above one, everything after the
    product fits 32 bits.  A single rounding can then drop the product's low 31 bits first: with right = 31 + r, r >= 1,
    ``(p + 2^(right-1)) >> right == ((p >> 31) + 2^(r-1)) >> r``, for floors compose.  Twice the lanes, half the work.
    The second nudge of `fixed64_double` joins p; ``(p - 2^30) >> 31`` is one less than ``(p + 2^30) >> 31``.
    Raises `CompileError` for a fixed-point multiplier of 2^30 or more.
    """
    if not isinstance(params, FixedMultiplier):
        return Requantization(rounding, (Parameter("multiplier", "f32", params.m),), "f32")
    # A multiplier that was flushed to zero is zero at any exponent.
    q, e = params.q, np.where(params.q == 0, -1, params.e).astype(np.int64)
    if e.max() > _LARGEST_EXPONENT:
        raise CompileError(f"a requantize multiplier must be below 2^{_LARGEST_EXPONENT}, but got 2^{e.max() - 1}")
    small = bound <= _SMALL_BOUND and e.max() <= _SMALL_EXPONENTS.get(rounding, -np.inf)
    wide, dtype = ("i32", np.int32) if small else ("i64", np.int64)
    left = np.maximum(e, 0)
    # The shift that follows the product's own by 31 places; without room for it, all 31 - e places at once.
    right = np.maximum(-e, 0) if small or rounding is Rounding.FIXED32_DOUBLE else 31 - e
    half = (np.int64(1) << right) >> 1
    # What negative accumulators lack: twice the second nudge, in the units of the sum it joins.
    correction = 0 if rounding is not Rounding.FIXED64_DOUBLE else 1 if small else 2 * _SECOND_NUDGE
    is_nudged = right > (0 if small else 31)
    half += is_nudged * (correction // 2)
    arrays = [Parameter("multiplier", "i32", q), Parameter("half", wide, half.astype(dtype))]
    arrays.append(Parameter("right", wide, right.astype(dtype)))
    if rounding is Rounding.FIXED64_DOUBLE:
        arrays.append(Parameter("tie", wide, (-correction * is_nudged).astype(dtype)))
    if rounding is Rounding.FIXED32_DOUBLE:
        # A negative tie must not move up; where nothing is shifted there is no tie.
        arrays.append(Parameter("tie", wide, np.where(right > 0, -1, 0).astype(dtype)))
    if rounding is Rounding.FIXED32_DOUBLE and left.any():
        arrays.append(Parameter("left", "i64", left))
    return Requantization(rounding, tuple(arrays), wide)


def emit_scale(body: Body, how: Requantization, acc: str, acc_type: str, parameters: Sequence[str]) -> str:
    """``acc * M`` rounded, without zero point, in `how.wide`; only for rounding modes that add the zero point last."""
    if how.rounding is Rounding.FIXED32_DOUBLE:
        return _double_rounding(body, how, acc, acc_type, parameters)
    if how.rounding is Rounding.FIXED64_DOUBLE:
        return _double_nudge(body, how, acc, acc_type, parameters)
    if how.rounding.is_fixed:
        return _single_rounding(body, how, acc, acc_type, parameters)
    value = body.cast("arith.sitofp", acc, acc_type, "f32")
    return body.op(f"math.roundeven {body.binary('arith.mulf', value, parameters[0], 'f32')} : f32")


def emit_requantize(
    body: Body,
    how: Requantization,
    acc: str,
    acc_type: str,
    parameters: Sequence[str],
    zero_point: str,
    bounds: tuple[str, str],
    *,
    from_zero: bool = False,
) -> str:
    """``clamp(round(acc * M) + z)`` as i32; `zero_point` and `bounds` are values of type `how.wide`.

    `from_zero`: the lower bound is 0 or more, so that the conversion to an integer, which truncates, rounds down.
    """
    wide = how.wide
    if how.rounding.is_fixed:
        scaled = emit_scale(body, how, acc, acc_type, parameters)
        quantized = body.clamp(body.binary("arith.addi", scaled, zero_point, wide), *bounds, wide)
        return body.cast("arith.trunci", quantized, wide, "i32")
    value = body.binary("arith.mulf", body.cast("arith.sitofp", acc, acc_type, "f32"), parameters[0], wide)
    # Bounds are integers and rounding is monotonic: clamping first keeps the conversion in range and the bits equal.
    if how.rounding is Rounding.F32_RNE_ZP_LAST:
        inner = [body.binary("arith.subf", bound, zero_point, wide) for bound in bounds]
        rounded = _half_even(body, body.clamp(value, inner[0], inner[1], wide))
        quantized = body.op(f"arith.fptosi {rounded} : f32 to i32")
        return body.binary("arith.addi", quantized, body.op(f"arith.fptosi {zero_point} : f32 to i32"), "i32")
    value = body.clamp(body.binary("arith.addf", value, zero_point, wide), *bounds, wide)
    if from_zero and how.rounding is Rounding.F32_UP_ZP_FIRST:
        value = body.binary("arith.addf", value, body.constant(0.5, wide), wide)
        return body.op(f"arith.fptosi {value} : f32 to i32")
    return body.op(f"arith.fptosi {ZERO_POINT_FIRST[how.rounding](body, value)} : f32 to i32")


def _product(body: Body, value: str, value_type: str, multiplier: str) -> str:
    wide = body.cast("arith.extsi", value, value_type, "i64")
    return body.binary("arith.muli", wide, body.cast("arith.extsi", multiplier, "i32", "i64"), "i64")


def _high_word(body: Body, how: Requantization, product: str) -> str:
    """``product >> 31`` in the type of what follows."""
    return body.cast(
        "arith.trunci", body.binary("arith.shrsi", product, body.constant(31, "i64"), "i64"), "i64", how.wide
    )


def _single_rounding(body: Body, how: Requantization, acc: str, acc_type: str, parameters: Sequence[str]) -> str:
    multiplier, half, right = parameters
    product = _product(body, acc, acc_type, multiplier)
    if how.rounding is Rounding.FIXED64_NEAREST:
        sign = body.binary("arith.shrsi", product, body.constant(63, "i64"), "i64")
        product = body.binary("arith.addi", product, sign, "i64")
    value = _high_word(body, how, product) if how.wide == "i32" else product
    return body.binary("arith.shrsi", body.binary("arith.addi", value, half, how.wide), right, how.wide)


def _double_rounding(body: Body, how: Requantization, acc: str, acc_type: str, parameters: Sequence[str]) -> str:
    multiplier, half, right, tie, *left = parameters
    wide = how.wide
    if left:
        acc, acc_type = _shifted_left(body, acc, acc_type, left[0]), "i64"
    product = _product(body, acc, acc_type, multiplier)
    high = _high_word(body, how, body.binary("arith.addi", product, body.constant(2**30, "i64"), "i64"))
    sign = body.binary("arith.shrsi", high, body.constant(int(wide[1:]) - 1, wide), wide)
    sign = body.binary("arith.andi", sign, tie, wide)
    nudged = body.binary("arith.addi", body.binary("arith.addi", high, half, wide), sign, wide)
    return body.binary("arith.shrsi", nudged, right, wide)


def _double_nudge(body: Body, how: Requantization, acc: str, acc_type: str, parameters: Sequence[str]) -> str:
    multiplier, half, right, tie = parameters
    value = _product(body, acc, acc_type, multiplier)
    if how.wide == "i32":
        value = _high_word(body, how, body.binary("arith.addi", value, body.constant(_SECOND_NUDGE, "i64"), "i64"))
    sign = body.binary("arith.shrsi", acc, body.constant(int(acc_type[1:]) - 1, acc_type), acc_type)
    if acc_type != how.wide:
        sign = body.cast("arith.extsi" if how.wide == "i64" else "arith.trunci", sign, acc_type, how.wide)
    sign = body.binary("arith.andi", sign, tie, how.wide)
    nudged = body.binary("arith.addi", body.binary("arith.addi", value, half, how.wide), sign, how.wide)
    return body.binary("arith.shrsi", nudged, right, how.wide)


def _shifted_left(body: Body, acc: str, acc_type: str, left: str) -> str:
    value = body.binary("arith.shli", body.cast("arith.extsi", acc, acc_type, "i64"), left, "i64")
    return body.clamp(value, body.constant(-(2**31), "i64"), body.constant(2**31 - 1, "i64"), "i64")


def _half_up(body: Body, value: str) -> str:
    return body.op(f"math.floor {body.binary('arith.addf', value, body.constant(0.5, 'f32'), 'f32')} : f32")


def _half_away(body: Body, value: str) -> str:
    # trunc(v) + (|v - trunc(v)| >= 1/2 ? sign(v) : 0): v + 1/2 itself could round up in float32.
    whole = body.op(f"math.trunc {value} : f32")
    rest = body.binary("arith.subf", value, whole, "f32")
    up = body.op(f"arith.cmpf oge, {rest}, {body.constant(0.5, 'f32')} : f32")
    down = body.op(f"arith.cmpf ole, {rest}, {body.constant(-0.5, 'f32')} : f32")
    zero, one, minus = (body.constant(c, "f32") for c in (0.0, 1.0, -1.0))
    step = body.op(f"arith.select {down}, {minus}, {zero} : f32")
    step = body.op(f"arith.select {up}, {one}, {step} : f32")
    return body.binary("arith.addf", whole, step, "f32")


def _half_even(body: Body, value: str) -> str:
    return body.op(f"math.roundeven {value} : f32")


ZERO_POINT_FIRST: dict[Rounding, Callable[[Body, str], str]] = {
    Rounding.F32_RNE_ZP_FIRST: _half_even,
    Rounding.F32_UP_ZP_FIRST: _half_up,
    Rounding.F32_NEAREST_ZP_FIRST: _half_away,
}
"""How the rounding modes round that add the zero point before."""
ROUND_HALF_EVEN, ROUND_HALF_AWAY, ROUND_HALF_UP = _half_even, _half_away, _half_up
