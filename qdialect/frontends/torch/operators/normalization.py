"""Normalizations over a part of each tensor, in float32: layer, root mean square, instance, group, and batch.

All compute ``(x - mean) / sqrt(variance + epsilon) * weight + bias``, or leave out what they lack of it.
A batch normalization has its means and variances from training, so that it is a product and a sum for each channel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Array, Shape, UnsupportedError, require
from qdialect.frontends.planning.computation import Computation
from qdialect.frontends.planning.emitter import Emitter
from qdialect.frontends.planning.f32_builder import F32Builder
from qdialect.frontends.planning.normalization import affine, normalized
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.tensors import F32Tensor
from qdialect.frontends.torch.operators.f32_contraction import f32_weight
from qdialect.frontends.torch.operators.registry import Call, imports

Norm = Callable[[Emitter, ir.Value], ir.Value]


@imports("layer_norm.default", "rms_norm.default")
def _layer_norm(call: Call) -> Result:
    """Over the last dimensions, as many as the shape has."""
    source, extents = call.f32("input"), tuple(call.argument("normalized_shape"))
    rank, count = len(source.shape), len(extents)
    fits = 1 <= count <= rank and source.shape[rank - count :] == extents
    require(fits, f"normalized_shape must be the end of {list(source.shape)}, but is {list(extents)}")
    axes, is_centred = tuple(range(rank - count, rank)), "layer_norm" in call.node.kind
    epsilon = _epsilon(call)
    return _scaled(call, source, lambda emitter, value: normalized(emitter, value, axes, epsilon, is_centred), extents)


def _epsilon(call: Call) -> float:
    value = call.argument("eps")
    return float(np.finfo(np.float32).eps) if value is None else float(value)


@imports("group_norm.default")
def _group_norm(call: Call) -> Result:
    """Each group of channels of each example."""
    (groups,) = call.integers("num_groups", 1)
    return _by_groups(call, call.f32("input"), groups)


@imports("instance_norm.default")
def _instance_norm(call: Call) -> Result:
    """Each channel of each example."""
    require(bool(call.argument("use_input_stats")), "use_input_stats must be true")
    source = call.f32("input")
    return _by_groups(call, source, source.shape[1])


def _by_groups(call: Call, source: F32Tensor, groups: int) -> Computation:
    shape = source.shape
    require(len(shape) >= 2, f"input must have at least 2 dimensions, but got {len(shape)}")
    require(groups >= 1 and shape[1] % groups == 0, f"groups must divide {shape[1]} channels, but got {groups}")
    epsilon = _epsilon(call)

    def norm(emitter: Emitter, value: ir.Value) -> ir.Value:
        grouped = emitter.reshape(value, (shape[0], groups, shape[1] // groups, *shape[2:]))
        axes = tuple(range(2, len(shape) + 1))
        return emitter.reshape(normalized(emitter, grouped, axes, epsilon), shape)

    return _scaled(call, source, norm, (shape[1], *(1 for _ in shape[2:])))


def _scaled(call: Call, source: F32Tensor, norm: Norm, shape: Shape) -> Computation:
    """``norm(x) * weight + bias``; the two, where they are given, with `shape`."""
    given = [name for name in ("weight", "bias") if call.reads(name) is not None]
    parameters = [call.f32(name) for name in given]

    def build(emitter: Emitter, operands: Sequence[ir.Value]) -> ir.Value:
        held = [emitter.reshape(one, shape) for one in operands[1:]]
        by_name = dict(zip(given, held, strict=True))
        return affine(emitter, norm(emitter, operands[0]), by_name.get("weight"), by_name.get("bias"))

    return Computation(source.shape, (source, *parameters), build, name=call.name)


@imports("batch_norm.default", "native_batch_norm.default", "_native_batch_norm_legit_no_training.default")
def _batch_norm(call: Call) -> Result:
    """``x * alpha + beta`` with ``alpha = weight / sqrt(variance + eps)`` and ``beta = bias - mean * alpha``."""
    require(not call.argument("training"), "batch norm must not train")
    source = call.f32("input")
    require(len(source.shape) >= 2, f"input must have at least 2 dimensions, but got {len(source.shape)}")
    deviation = np.sqrt(_channels(call, "running_var", 1, source) + np.float32(_epsilon(call)))
    alpha = (_channels(call, "weight", 1, source) / deviation).astype(np.float32)
    beta = (_channels(call, "bias", 0, source) - _channels(call, "running_mean", 0, source) * alpha).astype(np.float32)

    def build(emitter: Emitter, operands: Sequence[ir.Value]) -> ir.Value:
        s = F32Builder(emitter, shape_of(operands[0].type))
        return s("addf", s("mulf", operands[0], emitter.constant(alpha)), emitter.constant(beta))

    result = Computation(source.shape, (source,), build, is_channels_last=True, name=call.name)
    return result if call.node.kind == "aten.batch_norm.default" else (result,)


def _channels(call: Call, name: str, default: float, source: F32Tensor) -> Array:
    """A number for each channel, known when the program is read."""
    channels = source.shape[1]
    if call.result(name) is None:
        return np.full(channels, default, np.float32)
    found = f32_weight(call, name)
    if found is None:
        raise UnsupportedError(f"argument '{name}' must be constant")
    require(found.shape == (channels,), f"argument '{name}' must have shape [{channels}], but got {list(found.shape)}")
    return found
