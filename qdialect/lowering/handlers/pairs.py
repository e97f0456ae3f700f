"""Functions of two quantized tensors beside sum and product."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.dialect import DivOp, MaximumOp, MinimumOp, PreluOp, SquaredDifferenceOp, SubOp
from qdialect.dialect.elementwise_ops import BinaryOp
from qdialect.lowering.graph import GraphLowering, lowers
from qdialect.lowering.handlers.binary import add_or_subtract, stored_quantizations
from qdialect.lowering.handlers.maps import Declare, map_values
from qdialect.lowering.kernels.addition import Rescale
from qdialect.lowering.kernels.elementwise import Emit, byte_literal
from qdialect.lowering.kernels.f32_pair import (
    EmitF32,
    F32Pair,
    difference,
    larger,
    quotient,
    smaller,
    with_slope,
)
from qdialect.lowering.memory.storage import signed_shift
from qdialect.lowering.program import Kernel
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.lowering.tiling.lanes import TILE_LANES
from qdialect.quant_math import PairArithmetic, pairs
from qdialect.quant_math.common_scale import scale_of_squared_difference

_BYTES = 64


@lowers(SubOp, takes_arrays=True)
def _sub(lowering: GraphLowering, op: SubOp) -> None:
    if op.arithmetic.addition is None:
        _lower_f32(lowering, op, difference)
        return
    add_or_subtract(lowering, op, op.arithmetic.addition)


@lowers(MaximumOp, takes_arrays=True)
def _maximum(lowering: GraphLowering, op: MaximumOp) -> None:
    _extreme(lowering, op, "arith.maxui", larger)


@lowers(MinimumOp, takes_arrays=True)
def _minimum(lowering: GraphLowering, op: MinimumOp) -> None:
    _extreme(lowering, op, "arith.minui", smaller)


def _extreme(lowering: GraphLowering, op: MaximumOp | MinimumOp, of_bytes: str, of_f32: EmitF32) -> None:
    shifts = {signed_shift(value.type) for value in (op.lhs, op.rhs, op.output)}
    lhs, rhs, output = op.quantization.params
    low, high = op.quantization.bounds
    if not lhs == rhs == output or len(shifts) > 1:
        _lower_f32(lowering, op, of_f32)
        return
    (shift,) = shifts

    def declare(kernel: Kernel) -> Emit:
        minimum, maximum = (kernel.number(n, byte_literal(b + shift), "i8") for n, b in (("low", low), ("high", high)))

        def emit(body: Body, values: Sequence[Value]) -> Value:
            found = body.binary(of_bytes, values[0], values[1])
            return body.binary("arith.minui", body.binary("arith.maxui", found, minimum), maximum)

        return emit

    _lower(lowering, op, declare, _BYTES)


@lowers(PreluOp, takes_arrays=True)
def _prelu(lowering: GraphLowering, op: PreluOp) -> None:
    if op.arithmetic is PairArithmetic.FLOAT:
        _lower_f32(lowering, op, with_slope)
        return

    def declare(kernel: Kernel) -> Emit:
        lhs, rhs, output = op.quantization.params
        rescales = [
            Rescale.fixed(kernel, name, pairs.prelu_multiplier(slope, lhs, output))
            for name, slope in (("positive", 1.0), ("negative", rhs.scale))
        ]
        stored = _StoredPair(kernel, op)

        def emit(body: Body, values: Sequence[Value]) -> Value:
            data, slope = stored.offsets(body, values)
            is_positive = body.compare("sge", data, body.constant(0, "i64"))
            product = body.multiply(data, slope)
            above, below = (r.emit(body, v) for r, v in zip(rescales, (data, product), strict=True))
            return stored.quantized(body, body.select(is_positive, above, below))

        return emit

    _lower(lowering, op, declare)


@lowers(SquaredDifferenceOp, takes_arrays=True)
def _squared_difference(lowering: GraphLowering, op: SquaredDifferenceOp) -> None:
    common = scale_of_squared_difference(*op.quantization.params)

    def declare(kernel: Kernel) -> Emit:
        multipliers = {"lhs": common.lhs, "rhs": common.rhs, "square": common.output}
        *sides, square = (Rescale.fixed(kernel, name, multiplier) for name, multiplier in multipliers.items())
        stored = _StoredPair(kernel, op)

        def shifted_up(body: Body, value: Value, rescale: Rescale) -> Value:
            shifted = body.binary("arith.shli", value, body.constant(common.shift, "i64"))
            return rescale.emit(body, shifted)

        def emit(body: Body, values: Sequence[Value]) -> Value:
            left, right = (shifted_up(body, v, r) for v, r in zip(stored.offsets(body, values), sides, strict=True))
            apart = body.subtract(left, right)
            return stored.quantized(body, square.emit(body, body.multiply(apart, apart)))

        return emit

    _lower(lowering, op, declare)


@lowers(DivOp, takes_arrays=True)
def _div(lowering: GraphLowering, op: DivOp) -> None:
    """The fixed-point quotient is a table of all pairs: its reciprocals are irregular from divisor to divisor."""
    if op.arithmetic is PairArithmetic.FLOAT:
        _lower_f32(lowering, op, quotient)
        return
    shifts = [signed_shift(value.type) for value in (op.lhs, op.rhs, op.output)]
    stored = np.arange(256)
    operands = (stored[:, None] - shifts[0], stored[None, :] - shifts[1])
    quantized = pairs.div_fixed(*operands, op.quantization)
    table = (quantized + shifts[2]).astype(np.uint8).reshape(-1)

    def declare(kernel: Kernel) -> Emit:
        name = kernel.flat_tensor(kernel.data("table", table))

        def emit(body: Body, values: Sequence[Value]) -> Value:
            left, right = (body.cast("arith.extui", value, "i32") for value in values)
            row = body.binary("arith.shli", left, body.constant(8, "i32"))
            index = body.cast("arith.index_castui", body.binary("arith.ori", row, right), "index")
            return body.extract(name, index)

        return emit

    _lower(lowering, op, declare)


class _StoredPair:
    """How stored quantized values become 64-bit offsets from their zero points, and a 64-bit result a stored value."""

    def __init__(self, kernel: Kernel, op: BinaryOp) -> None:
        lhs, rhs, output = stored_quantizations(op)
        sides = {"lhs_zero_point": lhs, "rhs_zero_point": rhs}
        self._zero_points = [kernel.number(name, own.stored_zero_point, "i64") for name, own in sides.items()]
        self._output = kernel.number("output_zero_point", output.stored_zero_point, "i64")
        self._low = kernel.number("low", op.output_min + output.shift, "i64")
        self._high = kernel.number("high", op.output_max + output.shift, "i64")

    def offsets(self, body: Body, values: Sequence[Value]) -> list[Value]:
        own = zip(values, self._zero_points, strict=True)
        return [body.subtract(body.cast("arith.extui", value, "i64"), z) for value, z in own]

    def quantized(self, body: Body, value: Value) -> Value:
        quantized = body.clamp(body.add(value, self._output), self._low, self._high)
        return body.narrow(quantized)


def _lower_f32(lowering: GraphLowering, op: BinaryOp, function: EmitF32) -> None:
    pair = F32Pair(*stored_quantizations(op), op.quantization.bounds, function)
    _lower(lowering, op, pair.declare)


def _lower(lowering: GraphLowering, op: BinaryOp, declare: Declare, width: int = TILE_LANES) -> None:
    map_values(lowering, op.output, [op.lhs, op.rhs], declare, op.operation.name, width)
