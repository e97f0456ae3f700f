"""Scale and zero point of run-time ranges, in float64 as `quant_math.range_parameters` has them."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect.dialect import RangeScaleOp, RangeZeroPointOp
from qdialect.lowering.graph import GraphLowering, lowers
from qdialect.lowering.handlers.maps import map_values
from qdialect.lowering.handlers.whole_range import AnyRange, are_ends
from qdialect.lowering.kernels.elementwise import Emit
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.lowering.tiling.lanes import TILE_LANES
from qdialect.quant_math.range_parameters import HIGHEST, LOWEST

_F64 = "f64"


@lowers(RangeScaleOp)
def _scale(lowering: GraphLowering, op: RangeScaleOp) -> None:
    _map(lowering, op, lambda body, values: _scale_of(body, *_ends(body, values, op)))


@lowers(RangeZeroPointOp)
def _zero_point(lowering: GraphLowering, op: RangeZeroPointOp) -> None:
    _map(lowering, op, lambda body, values: _zero_point_of(body, *_ends(body, values, op)))


def _map(lowering: GraphLowering, op: AnyRange, emit: Emit) -> None:
    def declare(_: object) -> Emit:
        return lambda body, values: body.cast("arith.truncf", emit(body, values), "f32")

    map_values(lowering, op.output, [op.minimum, op.maximum], declare, op.operation.name, TILE_LANES)


def _ends(body: Body, values: Sequence[Value], op: AnyRange) -> tuple[Value, Value]:
    """Both ends with 0 between them; a NaN in the tensor makes both 0, even where it shows at one of them alone."""
    (low, high), zero = values, body.constant(0.0, "f32")
    below, above = body.compare("olt", low, zero), body.compare("ogt", high, zero)
    if are_ends(op.minimum, op.maximum):
        is_known = body.compare("ord", low, high)
        below, above = (body.binary("arith.andi", one, is_known) for one in (below, above))
    return body.select(below, low, zero), body.select(above, high, zero)


def _scale_of(body: Body, low: Value, high: Value) -> Value:
    width = body.cast("arith.extf", body.binary("arith.subf", high, low), _F64)
    scale = body.binary("arith.divf", width, body.constant(HIGHEST - LOWEST, _F64))
    return body.select(body.compare("oeq", low, high), body.constant(1.0, _F64), scale)


def _zero_point_of(body: Body, low: Value, high: Value) -> Value:
    minimum, maximum = body.constant(LOWEST, _F64), body.constant(HIGHEST, _F64)
    scale = _scale_of(body, low, high)
    below, above = (body.binary("arith.divf", body.cast("arith.extf", end, _F64), scale) for end in (low, high))
    low_terms = body.binary("arith.subf", body.constant(HIGHEST + 1, _F64), below)
    is_low = body.compare("olt", low_terms, body.binary("arith.addf", maximum, above))
    from_low, from_high = body.binary("arith.subf", minimum, below), body.binary("arith.subf", maximum, above)
    exact = body.select(is_low, from_low, from_high)
    nudged = body.select(body.compare("oge", exact, maximum), maximum, _half_away(body, exact))
    nudged = body.select(body.compare("ole", exact, minimum), minimum, nudged)
    return body.select(body.compare("oeq", low, high), body.constant(0.0, _F64), nudged)


def _half_away(body: Body, value: Value) -> Value:
    size = body.unary("math.absf", value)
    whole = body.unary("math.floor", size)
    rest = body.binary("arith.subf", size, whole)
    is_up = body.compare("oge", rest, body.constant(0.5, _F64))
    rounded = body.select(is_up, body.binary("arith.addf", whole, body.constant(1.0, _F64)), whole)
    return body.binary("math.copysign", rounded, value)
