"""BatchNormalization in inference: a factor and an offset for each channel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Array, require
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import F32Tensor, Plan, Tensor

_DEFAULT_EPSILON = float(np.float32(1e-5))


@dataclass(frozen=True, eq=False)
class Normalized(F32Tensor):
    """``x * factor + offset`` in float32, an entry of each for every index of dimension 1."""

    source: F32Tensor
    factor: Array
    offset: Array

    def _f32(self, plan: Plan, name: str) -> Value:
        source = self.source.f32(plan, name)

        def emit(emitter: Emitter) -> Emitted:
            value, is_channels_last = emitter.either(source)
            shape = shape_of(value.type)
            channels = (-1,) if is_channels_last else (-1, *(1 for _ in shape[2:]))
            for op, entries in (("arith.mulf", self.factor), ("arith.addf", self.offset)):
                spread = emitter.broadcast(emitter.constant(entries.reshape(channels)), shape)
                value = emitter.float_op(op, value, spread)
            return value, is_channels_last

        return plan.compute(name, self.shape, "f32", emit)


@imports("BatchNormalization")
def _batch_normalization(call: Call) -> Tensor:
    """With factor ``1 / sqrt(variance + epsilon) * scale`` and offset ``bias - mean * factor``, each op in float32.

    That is the order in which ONNX Runtime's kernel rounds.
    """
    call.count(5)
    call.ignore("momentum")
    source = call.f32(0)
    require(not call.flag("training_mode", 0), "training_mode must be 0")
    require(len(source.shape) >= 2, f"input must have at least 2 dimensions, but got {len(source.shape)}")
    scale, bias, mean, variance = (_entries(call, index, source.shape[1]) for index in range(1, 5))
    with np.errstate(all="ignore"):
        inverse = np.float32(1) / np.sqrt(variance + np.float32(call.attribute("epsilon", _DEFAULT_EPSILON)))
        factor = inverse * scale
        return Normalized(source.shape, source, factor, bias - mean * factor)


def _entries(call: Call, index: int, channels: int) -> Array:
    array = call.constant(index)
    found = f"input {index} must be {channels} entries of f32, but got {array.size} of {array.dtype}"
    require(array.dtype == np.float32 and array.shape == (channels,), found)
    return array
