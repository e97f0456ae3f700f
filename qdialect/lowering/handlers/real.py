"""Between float32 and codes, per tensor or per channel: what islands read at their leaves and write at their roots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.dialect import DequantizeOp, QuantizeOp
from qdialect.dialect.type_constraints import element_of, range_of
from qdialect.lowering.arithmetic import ROUND_HALF_AWAY, ROUND_HALF_EVEN, ROUND_HALF_UP
from qdialect.lowering.handlers.maps import AxisArray, stored_points
from qdialect.lowering.kernel_text import Body
from qdialect.lowering.kernels.elementwise import Emit
from qdialect.lowering.storage import STORAGE_ELEMENTS, signed_shift, widening
from qdialect.quant_math import FloatRounding, NanPolicy, Scaling

# Beyond int32 minus any zero point, and exact in float32.
_FAR = 2.0**33
_ROUND = {
    FloatRounding.HALF_EVEN: ROUND_HALF_EVEN,
    FloatRounding.HALF_AWAY: ROUND_HALF_AWAY,
    FloatRounding.HALF_UP: ROUND_HALF_UP,
}


def quantization(op: QuantizeOp) -> tuple[list[AxisArray], Emit]:
    """``emit(real number, *arrays)`` gives the stored code."""
    scales = np.array(op.scales, dtype=np.float32)
    divides = Scaling(op.scaling) is Scaling.DIVIDE
    with np.errstate(divide="ignore", over="ignore"):
        factors = scales if divides else np.float32(1) / scales
    target, (low, high) = STORAGE_ELEMENTS[element_of(op.output.type)], range_of(op.output.type)
    shift = signed_shift(op.output.type)
    round_real = _ROUND[FloatRounding(op.rounding)]

    def emit(body: Body, values: Sequence[str]) -> str:
        real, factor, zero_point, nan_code = values
        ratio = body.binary("arith.divf" if divides else "arith.mulf", real, factor, "f32")
        is_nan = body.op(f"arith.cmpf uno, {ratio}, {ratio} : f32")
        rounded = round_real(body, ratio)
        # Saturate as float32 first: a conversion out of range is undefined.
        limited = body.clamp(rounded, body.constant(-_FAR, "f32"), body.constant(_FAR, "f32"), "f32")
        known = body.op(f"arith.select {is_nan}, {body.constant(0, 'f32')}, {limited} : f32")
        wide = body.cast("arith.extsi", zero_point, "i32", "i64")
        code = body.binary("arith.addi", body.cast("arith.fptosi", known, "f32", "i64"), wide, "i64")
        code = body.clamp(code, body.constant(low, "i64"), body.constant(high, "i64"), "i64")
        code = body.cast("arith.trunci", code, "i64", "i32")
        code = body.op(f"arith.select {is_nan}, {nan_code}, {code} : i32")
        stored = body.binary("arith.addi", code, body.constant(shift, "i32"), "i32")
        return body.cast("arith.trunci", stored, "i32", target)

    points = np.array(op.zero_points, dtype=np.int32)
    codes = {NanPolicy.ZERO_POINT: points, NanPolicy.MIN: np.array([low]), NanPolicy.MAX: np.array([high])}
    arrays = (factors, points, codes[NanPolicy(op.nan)].astype(np.int32))
    return [AxisArray(array, op.axis) for array in arrays], emit


def dequantization(op: DequantizeOp) -> tuple[list[AxisArray], Emit]:
    """``emit(stored code, *arrays)`` gives the real number."""
    source = STORAGE_ELEMENTS[element_of(op.input.type)]
    low, high = range_of(op.input.type)
    fits = max(high - min(op.zero_points), max(op.zero_points) - low) < 2**31
    # A difference of 32-bit numbers needs one bit more.
    offset_type = "i32" if fits else "i64"

    def emit(body: Body, values: Sequence[str]) -> str:
        code = body.cast(widening(op.input.type), values[0], source, offset_type)
        zero_point = body.cast("arith.extsi", values[1], "i32", offset_type)
        offset = body.binary("arith.subi", code, zero_point, offset_type)
        return body.binary("arith.mulf", body.cast("arith.sitofp", offset, offset_type, "f32"), values[2], "f32")

    points = stored_points(op.zero_points, op.input.type)
    return [AxisArray(points, op.axis), AxisArray(np.array(op.scales, dtype=np.float32), op.axis)], emit
