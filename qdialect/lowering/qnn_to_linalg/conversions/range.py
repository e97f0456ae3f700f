"""Ranges of tensors in one pass, and their scale and zero point."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from qdialect.arithmetic.ranges import ends, scale_of, zero_point_of
from qdialect.dialect import F32MaxOp, F32MinOp, F32ReduceOp, RangeScaleOp, RangeZeroPointOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.cost.strategy import TILE_LANES
from qdialect.lowering.qnn_to_linalg.conversions.maps import map_values
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand
from qdialect.lowering.qnn_to_linalg.kernels.reduction import Fold, Reduced, Reduction, emit_reduction
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, Storage
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value
from qdialect.passes.pattern import producer

# Both ends of the range of a tensor in one pass, if they are used only for the scale and zero point.
#
# As integers, the bits of positive floats are in their order, and those of negative ones are less than 0. So the
# largest of 0 and the bits of all x is that of the largest x above 0, and the same of all -x is that of the least x
# below it.  Ends of a range that are on the other side of 0 do not count.  A NaN is above infinity there; it shows at
# one end.

AnyRange = RangeScaleOp | RangeZeroPointOp
_VECTORS = 4
"""Accumulators of each end that hide each other's latency."""
_SIGN = -(2**31)


def are_ends(minimum: ir.Value, maximum: ir.Value) -> bool:
    """Whether these are the extremes of one whole tensor, and all that reads them asks for its range."""
    low, high = (producer(value) for value in (minimum, maximum))
    if not isinstance(low, F32MinOp) or not isinstance(high, F32MaxOp) or low.input != high.input:
        return False
    if any(one.from_zero or one.nan_as_zero for one in (low, high)) or any(
        prod(shape_of(value.type)) != 1 for value in (minimum, maximum)
    ):
        return False
    readers = [use.owner.opview for value in (minimum, maximum) for use in value.uses]
    return all(isinstance(one, AnyRange) and (one.minimum, one.maximum) == (minimum, maximum) for one in readers)


def ends_of(op: F32ReduceOp) -> tuple[ir.Value, ir.Value] | None:
    """The smallest and the largest value of the tensor that `op` reads, one of them its own, where `are_ends`."""
    reader = next((use.owner.opview for use in op.output.uses), None)
    if not isinstance(reader, AnyRange) or not are_ends(reader.minimum, reader.maximum):
        return None
    return reader.minimum, reader.maximum


def lower_ends(lowering: GraphLowering, op: F32ReduceOp, both: tuple[ir.Value, ir.Value], lanes: int) -> None:
    """Append the call that finds `both` ends, and record their slots; nothing if the other end's op has done it."""
    if lowering.is_stored(op.output):
        return
    shape = shape_of(op.input.type)
    data, output = lowering.slot(op.input), lowering.program.buffer(Storage((1, 1, 1, 2), "f32", 2))
    # Two rows of accumulators are in registers.
    most = _VECTORS * lowering.program.strategy.lanes
    signs = np.array([_SIGN, 0], np.int32)
    kernel = Kernel(lowering.program)
    source = MapOperand(data, (0,), data.storage.origin)
    reduction = Reduction(
        (2,),
        shape,
        [Reduced(source, dim_strides(shape, data.storage)), Reduced(MapOperand(signs, (1,)), (0,) * len(shape))],
        [MapOperand(signs, (1,))],
        MapOperand(output, (1,)),
        Fold(
            "i32",
            0,
            _larger,
            lambda body, a, b: body.binary("arith.maxsi", a, b),
            lanes=max(min(lanes, most), 1 << min(shape[-1], TILE_LANES).bit_length() - 1),
        ),
        lambda body, acc, values: body.cast("arith.bitcast", body.binary("arith.xori", acc, values[0]), "f32"),
        TILE_LANES,
        2,
    )
    emit_reduction(kernel, reduction)
    lowering.program.call(kernel, "qnn.f32_range")
    for offset, value in enumerate(both):
        lowering.define(value, BufferSlot(output.kind, output.index, Storage((1, 1, 1, 1), "f32", 1), offset))


def _larger(body: Body, acc: Value, values: Sequence[Value]) -> Value:
    bits, sign = body.cast("arith.bitcast", values[0], "i32"), values[1]
    return body.binary("arith.maxsi", acc, body.binary("arith.xori", bits, sign))


# Scale and zero point of run-time ranges.


@lowers(RangeScaleOp, RangeZeroPointOp)
def _range(lowering: GraphLowering, op: AnyRange) -> None:
    formula = scale_of if isinstance(op, RangeScaleOp) else zero_point_of
    # A NaN in the tensor makes both ends 0, even if only one of them is NaN.
    drops_nan = are_ends(op.minimum, op.maximum)

    def emit(body: Body, values: Sequence[Value]) -> Value:
        return body.cast("arith.truncf", formula(body, *ends(body, *values, drops_nan=drops_nan)), "f32")

    map_values(lowering, op.output, [op.minimum, op.maximum], lambda _: emit, op.operation.name, TILE_LANES)
