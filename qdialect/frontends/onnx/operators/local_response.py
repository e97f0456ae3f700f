"""LRN: each element divided by a power of the squares of its channel and of those beside it, in float32."""

from __future__ import annotations

import math

import numpy as np

from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.registry import Call, imports_f32
from qdialect.frontends.planning.emitter import Emitted, Emitter
from qdialect.frontends.planning.f32_builder import F32Builder
from qdialect.frontends.planning.f32_pool import Pool
from qdialect.frontends.planning.tensors import Computed
from qdialect.frontends.planning.window import Window

_ALPHA = float(np.float32(1e-4))


@imports_f32("LRN")
def _local_response(call: Call) -> Computed:
    """``x / (bias + alpha / size * sum(x^2))^beta`` with the sum over `size` channels around that of x.

    Source: ONNX, operator LRN; one channel more counts after x than before it where `size` is even.
    """
    call.count(1)
    source, size = call.f32(0), call.attribute("size", 0)
    shape = source.shape
    require(len(shape) >= 2, f"input must have at least 2 dimensions, but got {len(shape)}")
    require(size >= 1, f"size must be at least 1, but got {size}")
    alpha, beta, bias = call.attribute("alpha", _ALPHA), call.attribute("beta", 0.75), call.attribute("bias", 1.0)
    batch, channels, inner = shape[0], shape[1], math.prod(shape[2:])
    before = (size - 1) // 2
    window = Window((size,), (1,), (1,), (before,), (size - 1 - before,), (channels,))
    pool, value = Pool.of(window, (channels,), call.plan.budget), source.f32(call.plan, call.name)

    def emit(emitter: Emitter) -> Emitted:
        # Channels are the dimension that is pooled, whatever lies behind them the one that is not.
        data = emitter.reshape(emitter.to_channels_first(value), (batch, channels, inner))
        s = F32Builder(emitter, shape_of(data.type))
        sums = pool.sums(emitter, s("mulf", data, data))
        scale = s("powf", s("addf", s("mulf", sums, alpha / size), bias), beta)
        return emitter.reshape(s("divf", data, scale), shape), False

    return Computed(shape, call.plan.compute(call.name, shape, "f32", emit))
