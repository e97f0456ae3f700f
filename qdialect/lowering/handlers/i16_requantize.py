"""Accumulators to 16-bit quantized values, per tensor or per channel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect import I16RequantizeOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.graph import GraphLowering, lowers
from qdialect.lowering.handlers.i16_sums import sums_inside
from qdialect.lowering.handlers.maps import AxisArray, Stored, map_stored
from qdialect.lowering.kernels.elementwise import Emit
from qdialect.lowering.program import Kernel
from qdialect.lowering.requantization.arithmetic import emit_scale, requantization
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.lowering.tiling.lanes import TILE_LANES
from qdialect.quant_math import Rounding, real_multiplier, requantize_parameters
from qdialect.quant_math.choices import I16Rounding
from qdialect.quant_math.i16_requantize import reduced_multipliers

EmitScaled = Callable[[Body, Value, Sequence[Value]], Value]
"""(body, accumulator, parameters) -> i32."""


@dataclass(frozen=True)
class I16Scaling:
    """The parameters of a requantization, with one entry or one a channel, and what computes an i32 with them."""

    parameters: Sequence[NDArray[Any]]
    emit: EmitScaled

    @classmethod
    def of(cls, op: I16RequantizeOp) -> I16Scaling:
        """That of `op`."""
        multipliers = real_multiplier(op.input_scale, op.weight_scales, op.output_scale, op.multiplier)
        if op.rounding is I16Rounding.F64_NEAREST:
            # A number of 64 bits has the bits of an i64.
            return cls([multipliers.view(np.int64)], _nearest)
        if op.rounding is I16Rounding.FIXED16_UP:
            return cls(reduced_multipliers(multipliers), _reduced)
        how = requantization(Rounding.FIXED32_DOUBLE, requantize_parameters(Rounding.FIXED32_DOUBLE, multipliers))
        values = [parameter.values for parameter in how.parameters]
        return cls(values, lambda body, acc, given: body.cast("arith.trunci", emit_scale(body, how, acc, given), "i32"))


@lowers(I16RequantizeOp, takes_arrays=True)
def _requantize(lowering: GraphLowering, op: I16RequantizeOp) -> None:
    """Accumulators that nothing else reads are never stored as a whole: their parts are added up here."""
    scaling, sums = I16Scaling.of(op), sums_inside(op.input)
    shape = shape_of(op.output.type)
    stored = [Stored(lowering.slot(op.input), shape)] if sums is None else sums.emit(lowering)

    def declare(kernel: Kernel) -> Emit:
        low, high = (kernel.number(name, bound, "i32") for name, bound in _bounds(op))

        def emit(body: Body, values: Sequence[Value]) -> Value:
            acc = values[0] if sums is None else sums.total(body, values[: len(stored)])
            scaled = scaling.emit(body, acc, values[len(stored) :])
            return body.cast("arith.trunci", body.clamp(scaled, low, high), "i16")

        return emit

    arrays = [AxisArray(values, max(len(shape) - 1, 0)) for values in scaling.parameters]
    target = Stored(lowering.result(op.output), shape)
    map_stored(lowering, target, [*stored, *arrays], declare, op.operation.name, TILE_LANES)


def _bounds(op: I16RequantizeOp) -> list[tuple[str, int]]:
    return [("low", op.output_min), ("high", op.output_max)]


def _reduced(body: Body, acc: Value, parameters: Sequence[Value]) -> Value:
    """``(acc * r + 2^(n - 1)) >> n`` in 64 bits, of which 32 stay."""
    r, n = parameters
    one = body.constant(1, "i64")
    half = body.binary("arith.shli", one, body.subtract(n, one))
    product = body.multiply(body.cast("arith.extsi", acc, "i64"), r)
    shifted = body.binary("arith.shrsi", body.add(product, half), n)
    return body.cast("arith.trunci", shifted, "i32")


def _nearest(body: Body, acc: Value, parameters: Sequence[Value]) -> Value:
    """Half away from zero; what lies beyond int32 is cut before."""
    multiplier = body.cast("arith.bitcast", parameters[0], "f64")
    product = body.multiply(body.cast("arith.sitofp", acc, "f64"), multiplier)
    inside = body.clamp(product, body.constant(-(2.0**31), "f64"), body.constant(2.0**31 - 1, "f64"))
    whole = body.cast("arith.fptosi", inside, "i32")
    rest = body.subtract(inside, body.cast("arith.sitofp", whole, "f64"))
    zero, one, minus = (body.constant(number, "i32") for number in (0, 1, -1))
    up = body.select(body.compare("oge", rest, body.constant(0.5, "f64")), one, zero)
    down = body.select(body.compare("ole", rest, body.constant(-0.5, "f64")), minus, zero)
    return body.add(whole, body.add(up, down))
