"""Between float32 and quantized values, per tensor or per channel: the leaves and the roots of islands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect import DequantizeOp, QuantizeOp
from qdialect.dialect.type_constraints import element_of, range_of
from qdialect.lowering.handlers.maps import AxisArray, stored_points
from qdialect.lowering.kernels.elementwise import Emit
from qdialect.lowering.memory.storage import STORAGE_ELEMENTS, signed_shift, widening
from qdialect.lowering.requantization.arithmetic import ROUND_HALF_AWAY, ROUND_HALF_EVEN, ROUND_HALF_UP
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.quant_math import FloatArray, FloatRounding, NanPolicy, Scaling, nan_value, scale_factors

# Beyond int32 minus any zero point, and exact in float32.
_FAR = 2.0**33
# Half of what differences of integers that float32 holds may reach.
_NARROW = 2**23
# Of a power of two whose reciprocal is a normal number.
_LARGEST_EXPONENT = 126
_ROUND = {
    FloatRounding.HALF_EVEN: ROUND_HALF_EVEN,
    FloatRounding.HALF_AWAY: ROUND_HALF_AWAY,
    FloatRounding.HALF_UP: ROUND_HALF_UP,
}


def quantization(op: QuantizeOp) -> tuple[list[AxisArray], Emit]:
    """``emit(f32 value, *arrays)`` gives the stored value."""
    points, (low, high) = np.array(op.zero_points, dtype=np.int32), range_of(op.output.type)
    nan = np.atleast_1d(nan_value(NanPolicy(op.nan), points, low, high))
    nan_values = (nan + signed_shift(op.output.type)).astype(np.int32)
    is_narrow = max(-low, high, *np.abs(points.astype(np.int64))) <= _NARROW
    arrays, quantized_of = _narrow_value(op, points) if is_narrow else _wide_value(op, points)
    factors, ratio_of = _ratio(op)
    target = STORAGE_ELEMENTS[element_of(op.output.type)]

    def emit(body: Body, values: Sequence[Value]) -> Value:
        f32, at_nan, *rest = values
        ratio = ratio_of(body, f32, rest[len(arrays) :])
        is_nan = body.compare("uno", ratio, ratio)
        quantized = body.select(is_nan, at_nan, quantized_of(body, ratio, is_nan, rest[: len(arrays)]))
        return body.narrow(quantized) if target == "i8" else body.cast("arith.trunci", quantized, target)

    return [AxisArray(array, op.axis) for array in (nan_values, *arrays, *factors)], emit


def _ratio(op: QuantizeOp) -> tuple[list[FloatArray], Callable[[Body, Value, Sequence[Value]], Value]]:
    """``ratio(body, f32 value, arrays)``: the value in units of the scale.

    A quotient by a power of two is the product with its reciprocal, and by 1 it is the value.
    """
    factors, divides = scale_factors(op.scales, op.scaling), op.scaling is Scaling.DIVIDE
    if divides and _are_powers_of_two(factors):
        factors, divides = 1 / factors, False
    if np.all(factors == 1):
        return [], lambda _, f32, __: f32
    name = "arith.divf" if divides else "arith.mulf"
    return [factors], lambda body, f32, arrays: body.binary(name, f32, arrays[0])


def _are_powers_of_two(factors: FloatArray) -> bool:
    """Whether all are, and their reciprocals are normal numbers too."""
    mantissas, exponents = np.frexp(factors)
    return bool(np.all((mantissas == 0.5) & (abs(exponents) <= _LARGEST_EXPONENT)))


_QuantizedOf = Callable[[Body, Value, Value, Sequence[Value]], Value]
"""(body, ratio, whether it is NaN, arrays) -> stored value (i32); for NaN any number."""


def _narrow_value(op: QuantizeOp, points: NDArray[np.int32]) -> tuple[list[NDArray[Any]], _QuantizedOf]:
    """Bounds of the ratio are integers that float32 holds: within them, it is rounded and converted safely."""
    bounds = [(bound - points.astype(np.int64)).astype(np.float32) for bound in range_of(op.output.type)]
    round_f32 = _ROUND[FloatRounding(op.rounding)]

    def quantized(body: Body, ratio: Value, _: Value, arrays: Sequence[Value]) -> Value:
        low, high, point = arrays
        # A comparison with NaN is false: it becomes a bound here.
        rounded = round_f32(body, body.clamp(ratio, low, high))
        return body.add(body.cast("arith.fptosi", rounded, "i32"), point)

    return [*bounds, points + np.int32(signed_shift(op.output.type))], quantized


def _wide_value(op: QuantizeOp, points: NDArray[np.int32]) -> tuple[list[NDArray[Any]], _QuantizedOf]:
    """Quantized values whose bounds float32 does not hold are clamped as 64-bit integers."""
    low, high = range_of(op.output.type)
    shift, round_f32 = signed_shift(op.output.type), _ROUND[FloatRounding(op.rounding)]

    def quantized(body: Body, ratio: Value, is_nan: Value, arrays: Sequence[Value]) -> Value:
        # Saturate as float32 first: a conversion out of range is undefined.
        limited = body.clamp(round_f32(body, ratio), body.constant(-_FAR, "f32"), body.constant(_FAR, "f32"))
        known = body.select(is_nan, body.constant(0, "f32"), limited)
        wide = body.cast("arith.extsi", arrays[0], "i64")
        quantized = body.add(body.cast("arith.fptosi", known, "i64"), wide)
        quantized = body.clamp(quantized, body.constant(low, "i64"), body.constant(high, "i64"))
        return body.add(body.cast("arith.trunci", quantized, "i32"), body.constant(shift, "i32"))

    return [points], quantized


def dequantization(op: DequantizeOp) -> tuple[list[AxisArray], Emit]:
    """``emit(stored value, *arrays)`` gives the f32 value."""
    low, high = range_of(op.input.type)
    fits = max(high - min(op.zero_points), max(op.zero_points) - low) < 2**31
    # A difference of 32-bit numbers needs one bit more.
    offset_type = "i32" if fits else "i64"

    def emit(body: Body, values: Sequence[Value]) -> Value:
        quantized = body.cast(widening(op.input.type), values[0], offset_type)
        zero_point = body.cast("arith.extsi", values[1], offset_type)
        offset = body.subtract(quantized, zero_point)
        return body.multiply(body.cast("arith.sitofp", offset, "f32"), values[2])

    points = stored_points(op.zero_points, op.input.type)
    return [AxisArray(points, op.axis), AxisArray(np.array(op.scales, dtype=np.float32), op.axis)], emit
