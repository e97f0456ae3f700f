"""Sums of f32 values in blocks: a row becomes partial sums side by side, and these are added last.

The error of a sum grows with the number of terms that are added one after another: n for a row, and n / b + b in blocks
(N. Higham, Accuracy and Stability of Numerical Algorithms, 4.2).  Partial sums are vectors, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from qdialect._mlir import ir
from qdialect.dialect import F32SumOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.op_builder import OpBuilder
from qdialect.frontends.planning.f32_builder import reduced

_LANES = 16
_FEW = 32


def blocked_sum(emitter: OpBuilder, value: ir.Value, axes: Sequence[int], keep_dims: bool = True) -> ir.Value:
    """The sum of an f32 value over `axes`, which are ascending and with `keep_dims` stay as extents of 1."""
    for run in reversed(_runs(axes)):
        value = _sum_of_run(emitter, value, run, keep_dims)
    return value


def _runs(axes: Sequence[int]) -> list[list[int]]:
    """Axes that follow each other."""
    runs: list[list[int]] = []
    for axis in axes:
        if runs and runs[-1][-1] == axis - 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    return runs


def _sum_of_run(emitter: OpBuilder, value: ir.Value, run: Sequence[int], keep_dims: bool) -> ir.Value:
    shape, first = shape_of(value.type), run[0]
    before, after = shape[:first], shape[run[-1] + 1 :]
    count = math.prod(shape[axis] for axis in run)
    block = _block(count)
    if block == 1:
        return reduced(emitter, F32SumOp, value, tuple(run), keep_dims)
    blocks = emitter.reshape(value, (*before, count // block, block, *after))
    partial = reduced(emitter, F32SumOp, blocks, (first,), keep_dims=False)
    total = reduced(emitter, F32SumOp, partial, (first,), keep_dims=False)
    return emitter.reshape(total, (*before, *(1 for _ in run), *after)) if keep_dims else total


def _block(count: int) -> int:
    """How many partial sums a row of `count` numbers has: those of a vector, else the divisor nearest to the root."""
    if count <= _FEW:
        return 1
    if count % _LANES == 0:
        return _LANES
    return max(divisor for divisor in range(1, math.isqrt(count) + 1) if count % divisor == 0)
