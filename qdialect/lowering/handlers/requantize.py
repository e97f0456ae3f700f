"""From one quantization to another, between any integer types, per tensor or per channel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.dialect import RequantizeOp
from qdialect.dialect.type_constraints import EIGHT_BIT, dtype_of, element_of, range_of
from qdialect.lowering.graph import GraphLowering, lowers
from qdialect.lowering.handlers.maps import AxisArray, Declare, map_values, stored_points
from qdialect.lowering.handlers.tables import lower_table
from qdialect.lowering.kernels.elementwise import Emit
from qdialect.lowering.kernels.rescaling import Rescaling
from qdialect.lowering.memory.storage import STORAGE_ELEMENTS, signed_shift, widening
from qdialect.lowering.program import Kernel
from qdialect.lowering.requantization.arithmetic import Requantization, requantization
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.lowering.tiling.lanes import TILE_LANES
from qdialect.quant_math import Table, real_multiplier, requantize, requantize_parameters, table_values


@lowers(RequantizeOp, takes_arrays=True)
def _requantize(lowering: GraphLowering, op: RequantizeOp) -> None:
    per_tensor = len(op.weight_scales) == 1 and len(op.input_zero_points) == 1
    if per_tensor and not EIGHT_BIT.problem(op.input.type) and not EIGHT_BIT.problem(op.output.type):
        lower_table(lowering, op, _table(op))
        return
    zero_points = AxisArray(stored_points(op.input_zero_points, op.input.type), op.axis)
    f32 = real_multiplier(op.input_scale, op.weight_scales, op.output_scale, op.multiplier)
    how = requantization(op.rounding, requantize_parameters(op.rounding, f32), _bound(op))
    arrays = [zero_points, *(AxisArray(p.values, op.axis) for p in how.parameters)]
    map_values(lowering, op.output, [op.input, *arrays], _declare(op, how), op.operation.name, TILE_LANES)


def _table(op: RequantizeOp) -> Table:
    f32 = real_multiplier(op.input_scale, op.weight_scales, op.output_scale, op.multiplier)
    offsets = table_values(dtype_of(op.input.type)) - op.input_zero_points[0]
    parameters, bounds = requantize_parameters(op.rounding, f32), range_of(op.output.type)
    quantized = requantize(offsets, parameters, op.output_zero_point, *bounds, op.rounding)
    return quantized.astype(dtype_of(op.output.type)).view(np.uint8)


def _bound(op: RequantizeOp) -> int:
    """What no offset's magnitude exceeds."""
    low, high = range_of(op.input.type)
    return max(high - min(op.input_zero_points), max(op.input_zero_points) - low)


def _declare(op: RequantizeOp, how: Requantization) -> Declare:
    target = STORAGE_ELEMENTS[element_of(op.output.type)]
    # A difference of 32-bit numbers needs one bit more.
    offset_type = "i32" if _bound(op) < 2**31 else "i64"
    rescaling = Rescaling(how, op.output_zero_point, range_of(op.output.type), signed_shift(op.output.type), target)

    def declare(kernel: Kernel) -> Emit:
        rescale = rescaling.declare(kernel)

        def emit(body: Body, values: Sequence[Value]) -> Value:
            quantized = body.cast(widening(op.input.type), values[0], offset_type)
            zero_point = body.cast("arith.extsi", values[1], offset_type)
            offset = body.subtract(quantized, zero_point)
            return rescale(body, offset, values[2:])

        return emit

    return declare
