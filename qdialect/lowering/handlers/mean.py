"""Sums over axes, requantized; a mean's multiplier has the number of elements in it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from qdialect.diagnostics import CompileError
from qdialect.dialect import MeanOp, SumOp
from qdialect.dialect.type_constraints import range_of, shape_of
from qdialect.lowering.graph import GraphLowering, lowers
from qdialect.lowering.handlers.axes import OverAxes
from qdialect.lowering.kernels.folds import SUM
from qdialect.lowering.kernels.rescaling import Rescaling
from qdialect.lowering.memory.storage import signed_shift
from qdialect.lowering.program import Kernel
from qdialect.lowering.requantization.arithmetic import Requantization, requantization
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.quant_math import FixedMultiplier, folded_count_multiplier, real_multiplier, requantize_parameters

_LANES = 32
"""Two vectors of sums, whose additions overlap."""
_MAX_ELEMENTS = 2**23
_LARGEST_CODE = 255


@lowers(MeanOp, takes_arrays=True)
def _mean(lowering: GraphLowering, op: MeanOp) -> None:
    count = _count(op)
    _lower(lowering, op, count, _multiplier(op, count))


@lowers(SumOp, takes_arrays=True)
def _sum(lowering: GraphLowering, op: SumOp) -> None:
    count = _count(op)
    f32 = real_multiplier(op.input_scale, [1.0], op.output_scale, op.multiplier)
    how = requantization(op.rounding, requantize_parameters(op.rounding, f32), _LARGEST_CODE * count)
    _lower(lowering, op, count, how)


def _count(op: MeanOp | SumOp) -> int:
    shape = shape_of(op.input.type)
    count = prod(shape[axis] for axis in op.axes)
    if count > _MAX_ELEMENTS:
        raise CompileError(f"must reduce at most {_MAX_ELEMENTS} elements to be compiled, but got {count}")
    return count


def _lower(lowering: GraphLowering, op: MeanOp | SumOp, count: int, how: Requantization) -> None:
    kernel = Kernel(lowering.program)
    shift = signed_shift(op.output.type)
    rescaling = Rescaling(how, op.output_zero_point, range_of(op.output.type), shift, "i8")
    rescale, parameters = rescaling.declare(kernel), rescaling.scalars(kernel)
    zero_points = kernel.number("zero_points", count * (op.input_zero_point + signed_shift(op.input.type)), "i32")

    def finish(body: Body, acc: Value, _: Sequence[Value]) -> Value:
        return rescale(body, body.subtract(acc, zero_points), parameters)

    over = OverAxes(op.input, op.output, op.axes, op.keep_dims)
    over.emit(lowering, kernel, SUM, finish, _LANES, op.operation.name)


def _multiplier(op: MeanOp, count: int) -> Requantization:
    """The multiplier with the division by `count` in it, as `qdialect.reference.pool.mean` forms it."""
    f32 = real_multiplier(op.input_scale, [1.0], op.output_scale, op.multiplier)
    if not op.rounding.is_fixed:
        return requantization(op.rounding, requantize_parameters(op.rounding, f32 / count))
    q, e = folded_count_multiplier(float(f32[0]), count)
    pair = FixedMultiplier(np.array([q], dtype=np.int32), np.array([e], dtype=np.int32))
    return requantization(op.rounding, pair, _LARGEST_CODE * count)
