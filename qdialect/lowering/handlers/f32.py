"""Between float32 and quantized values, per tensor or per channel: what islands read at their leaves and write at their roots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect import DequantizeOp, QuantizeOp
from qdialect.dialect.type_constraints import element_of, range_of
from qdialect.lowering.arithmetic import ROUND_HALF_AWAY, ROUND_HALF_EVEN, ROUND_HALF_UP
from qdialect.lowering.handlers.maps import AxisArray, stored_points
from qdialect.lowering.kernel_text import Body
from qdialect.lowering.kernels.elementwise import Emit
from qdialect.lowering.storage import STORAGE_ELEMENTS, signed_shift, widening
from qdialect.quant_math import FloatRounding, NanPolicy, Scaling, scale_factors

# Beyond int32 minus any zero point, and exact in float32.
_FAR = 2.0**33
# Half of what differences of integers that float32 holds may reach.
_NARROW = 2**23
_ROUND = {
    FloatRounding.HALF_EVEN: ROUND_HALF_EVEN,
    FloatRounding.HALF_AWAY: ROUND_HALF_AWAY,
    FloatRounding.HALF_UP: ROUND_HALF_UP,
}


def quantization(op: QuantizeOp) -> tuple[list[AxisArray], Emit]:
    """``emit(f32 value, *arrays)`` gives the stored code."""
    factors, divides = scale_factors(op.scales, op.scaling), op.scaling is Scaling.DIVIDE
    points, (low, high) = np.array(op.zero_points, dtype=np.int32), range_of(op.output.type)
    quantized = {NanPolicy.ZERO_POINT: points, NanPolicy.MIN: np.array([low]), NanPolicy.MAX: np.array([high])}
    nan_values = (quantized[NanPolicy(op.nan)].astype(np.int64) + signed_shift(op.output.type)).astype(np.int32)
    is_narrow = max(-low, high, *np.abs(points.astype(np.int64))) <= _NARROW
    arrays, quantized_of = _narrow_value(op, points) if is_narrow else _wide_value(op, points)
    target = STORAGE_ELEMENTS[element_of(op.output.type)]

    def emit(body: Body, values: Sequence[str]) -> str:
        f32, factor, nan_value, *rest = values
        ratio = body.binary("arith.divf" if divides else "arith.mulf", f32, factor, "f32")
        is_nan = body.op(f"arith.cmpf uno, {ratio}, {ratio} : f32")
        quantized = body.op(f"arith.select {is_nan}, {nan_value}, {quantized_of(body, ratio, is_nan, rest)} : i32")
        return body.narrow(quantized, "i32") if target == "i8" else body.cast("arith.trunci", quantized, "i32", target)

    return [AxisArray(array, op.axis) for array in (factors, nan_values, *arrays)], emit


_CodeOf = Callable[[Body, str, str, Sequence[str]], str]
"""(body, ratio, whether it is NaN, arrays) -> stored code (i32); for NaN any number."""


def _narrow_value(op: QuantizeOp, points: NDArray[np.int32]) -> tuple[list[NDArray[Any]], _CodeOf]:
    """Bounds of the ratio are integers that float32 holds: within them, it is rounded and converted safely."""
    bounds = [(bound - points.astype(np.int64)).astype(np.float32) for bound in range_of(op.output.type)]
    round_f32 = _ROUND[FloatRounding(op.rounding)]

    def quantized(body: Body, ratio: str, _: str, arrays: Sequence[str]) -> str:
        low, high, point = arrays
        # A comparison with NaN is false: it becomes a bound here.
        rounded = round_f32(body, body.clamp(ratio, low, high, "f32"))
        return body.binary("arith.addi", body.cast("arith.fptosi", rounded, "f32", "i32"), point, "i32")

    return [*bounds, points + np.int32(signed_shift(op.output.type))], quantized


def _wide_value(op: QuantizeOp, points: NDArray[np.int32]) -> tuple[list[NDArray[Any]], _CodeOf]:
    """Quantized values whose bounds float32 does not hold are clamped as 64-bit integers."""
    low, high = range_of(op.output.type)
    shift, round_f32 = signed_shift(op.output.type), _ROUND[FloatRounding(op.rounding)]

    def quantized(body: Body, ratio: str, is_nan: str, arrays: Sequence[str]) -> str:
        # Saturate as float32 first: a conversion out of range is undefined.
        limited = body.clamp(round_f32(body, ratio), body.constant(-_FAR, "f32"), body.constant(_FAR, "f32"), "f32")
        known = body.op(f"arith.select {is_nan}, {body.constant(0, 'f32')}, {limited} : f32")
        wide = body.cast("arith.extsi", arrays[0], "i32", "i64")
        quantized = body.binary("arith.addi", body.cast("arith.fptosi", known, "f32", "i64"), wide, "i64")
        quantized = body.clamp(quantized, body.constant(low, "i64"), body.constant(high, "i64"), "i64")
        return body.binary(
            "arith.addi", body.cast("arith.trunci", quantized, "i64", "i32"), body.constant(shift, "i32"), "i32"
        )

    return [points], quantized


def dequantization(op: DequantizeOp) -> tuple[list[AxisArray], Emit]:
    """``emit(stored quantized, *arrays)`` gives the f32 value."""
    source = STORAGE_ELEMENTS[element_of(op.input.type)]
    low, high = range_of(op.input.type)
    fits = max(high - min(op.zero_points), max(op.zero_points) - low) < 2**31
    # A difference of 32-bit numbers needs one bit more.
    offset_type = "i32" if fits else "i64"

    def emit(body: Body, values: Sequence[str]) -> str:
        quantized = body.cast(widening(op.input.type), values[0], source, offset_type)
        zero_point = body.cast("arith.extsi", values[1], "i32", offset_type)
        offset = body.binary("arith.subi", quantized, zero_point, offset_type)
        return body.binary("arith.mulf", body.cast("arith.sitofp", offset, offset_type, "f32"), values[2], "f32")

    points = stored_points(op.zero_points, op.input.type)
    return [AxisArray(points, op.axis), AxisArray(np.array(op.scales, dtype=np.float32), op.axis)], emit
