"""Pools of f32 values: MaxPool, AveragePool and their global forms."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import F32MaxOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Array, Shape, require
from qdialect.frontends.onnx.operators.registry import Call, imports_f32
from qdialect.frontends.onnx.operators.window import declared_window, pool_window
from qdialect.frontends.planning.blocked_sum import blocked_sum
from qdialect.frontends.planning.emitter import Emitted, Emitter
from qdialect.frontends.planning.f32_builder import F32Builder, reduced
from qdialect.frontends.planning.f32_pool import Pool
from qdialect.frontends.planning.tensors import Computed
from qdialect.frontends.planning.window_sums import window_sums

_COUNT_BYTES = np.dtype(np.float32).itemsize
# The operator set whose AveragePool is another kernel of ONNX Runtime, which takes dilated windows.
_DILATED = 19
# Of channels, in ONNX Runtime's own layout of images on CPUs with AVX-512.
_BLOCK = 16


@imports_f32("MaxPool")
def _max_pool(call: Call) -> Computed:
    call.count(1)
    return _pooled(call, None)


@imports_f32("AveragePool")
def _average_pool(call: Call) -> Computed:
    """Sums divided by how many elements of the image, or of the padded image, each window has.

    ONNX Runtime adds the terms in row-major order, but for small strides in old operator sets and its plain layout:
    then each column's sum comes first.
    """
    call.count(1)
    shape = call.f32(0).shape
    pool = pool_of(call, shape)
    call.plan.budget.spend_constant(tuple(map(len, pool.positions)), _COUNT_BYTES)
    return _pooled(call, _counts(call, pool))


def _is_row_major(call: Call, shape: Shape, strides: Shape) -> bool:
    is_in_blocks = len(shape) == 4 and shape[1] % _BLOCK == 0
    return call.node.version >= _DILATED or is_in_blocks or strides[-1] > 2


def pool_of(call: Call, shape: Shape) -> Pool:
    """The windows of a pool over data of `shape`, each with an element of the image at least."""
    pool = Pool.of(pool_window(call, shape), shape[2:], call.plan.budget)
    pool.check()
    return pool


def _counts(call: Call, pool: Pool) -> Array:
    """How many taps count, of each window: f32 of shape [..., 1]."""
    low, high = (0,) * len(pool.size), pool.size
    if call.flag("count_include_pad", 0):
        # Not what `ceil_mode` adds to the padding.
        window = declared_window(call, pool.size, tuple(call.attribute("kernel_shape", [0])))
        low = tuple(-before for before in window.before)
        high = tuple(extent + after for extent, after in zip(pool.size, window.after, strict=True))
    by_dimension = [
        np.array([sum(first <= tap < end for tap in taps) for taps in windows], dtype=np.float32)
        for first, end, windows in zip(low, high, pool.positions, strict=True)
    ]
    return np.asarray(reduce(np.multiply.outer, by_dimension))[..., np.newaxis]


def _pooled(call: Call, counts: Array | None) -> Computed:
    """Maxima, or sums divided by `counts`."""
    source = call.f32(0)
    pool, value = pool_of(call, source.shape), source.f32(call.plan, call.name)
    shape, window = (*source.shape[:2], *map(len, pool.positions)), pool_window(call, source.shape)

    def emit(emitter: Emitter) -> Emitted:
        if counts is None:
            return pool.maxima(emitter, emitter.last(value)), True
        if _is_row_major(call, source.shape, window.strides):
            sums = window_sums(emitter, value, window)
        else:
            sums = pool.sums(emitter, emitter.last(value))
        return F32Builder(emitter, shape_of(sums.type))("divf", sums, emitter.constant(counts)), True

    return Computed(shape, call.plan.compute(call.name, shape, "f32", emit))


def global_pool(call: Call, pooled: Callable[[Emitter, ir.Value, Shape], ir.Value]) -> Computed:
    """What `pooled` makes of the data along the axes of the image, with one element of each channel."""
    call.count(1)
    source = call.f32(0)
    rank = len(source.shape)
    require(rank >= 3, f"input must have at least 3 dimensions, but got {rank}")
    value = source.f32(call.plan, call.name)
    shape = (*source.shape[:2], *(1 for _ in source.shape[2:]))

    def emit(emitter: Emitter) -> Emitted:
        data, is_channels_last = emitter.either(value)
        axes = tuple(range(1, rank - 1)) if is_channels_last else tuple(range(2, rank))
        return pooled(emitter, data, axes), is_channels_last

    return Computed(shape, call.plan.compute(call.name, shape, "f32", emit))


@imports_f32("GlobalMaxPool")
def _global_max_pool(call: Call) -> Computed:
    return global_pool(call, lambda emitter, data, axes: reduced(emitter, F32MaxOp, data, axes))


@imports_f32("GlobalAveragePool")
def _global_average_pool(call: Call) -> Computed:
    def mean(emitter: Emitter, data: ir.Value, axes: Shape) -> ir.Value:
        total, shape = blocked_sum(emitter, data, axes), shape_of(data.type)
        return F32Builder(emitter, shape_of(total.type))("divf", total, float(math.prod(shape[axis] for axis in axes)))

    return global_pool(call, mean)
