"""Normalizations: batch, layer, root mean square, instance, group, Lp, local response, and of embeddings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from qdialect.arithmetic import activations
from qdialect.arithmetic.expressions import Input
from qdialect.dialect import F32SumOp, IntSumOp
from qdialect.frontends.building.checks import Array, Shape, axes_in, axis_in, require
from qdialect.frontends.building.op_builder import reduced
from qdialect.frontends.building.windows import Pool, Window
from qdialect.frontends.onnx.model import F32
from qdialect.frontends.onnx.operators.elementwise import binary_tensor
from qdialect.frontends.onnx.operators.indexing import indices_of
from qdialect.frontends.onnx.operators.registry import Call, computed, imports, imports_f32, value_of
from qdialect.frontends.onnx.qdq_groups import GroupKernel
from qdialect.frontends.planning.elementwise import broadcast_shape, constant_of
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.movement import gathered
from qdialect.frontends.planning.reduction import (
    affine,
    centred,
    group_normalized,
    mean_of,
    normalized,
    reduced_shape,
    variance_of,
)
from qdialect.frontends.planning.tensors import Computed, F32Tensor, Plan, Tensor, stored_axis
from qdialect.ir._mlir import ir

# BatchNormalization in inference: a factor and an offset for each channel.


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
            channels = (-1,) if is_channels_last else (-1, *(1 for _ in self.shape[2:]))
            factor, offset = (emitter.constant(entries.reshape(channels)) for entries in (self.factor, self.offset))
            return emitter.f32("addf", emitter.f32("mulf", value, factor), offset), is_channels_last

        return plan.compute(name, self.shape, "f32", emit)


@imports("BatchNormalization")
def _batch_normalization(call: Call) -> Tensor:
    """With factor ``1 / sqrt(variance + epsilon) * scale`` and offset ``bias - mean * factor``, each op in float32.

    That is the order in which ONNX Runtime's kernel rounds.
    """
    call.ignore("momentum")
    source = call.f32(0)
    require(not call.flag("training_mode", 0), "training_mode must be 0")
    require(len(source.shape) >= 2, f"input must have at least 2 dimensions, but got {len(source.shape)}")
    scale, bias, mean, variance = (_entries(call, index, source.shape[1]) for index in range(1, 5))
    with np.errstate(all="ignore"):
        inverse = np.float32(1) / np.sqrt(variance + np.float32(_epsilon(call, _EPSILON)))
        factor = inverse * scale
        return Normalized(source.shape, source, factor, bias - mean * factor)


def _entries(call: Call, index: int, channels: int) -> Array:
    array = call.constant(index)
    found = f"input {index} must be {channels} entries of f32, but got {array.size} of {array.dtype}"
    require(array.dtype == np.float32 and array.shape == (channels,), found)
    return array


# Normalizations over a part of each tensor, in float32: layer, root mean square, instance, group, Lp.
#
# All compute ``(x - mean) / sqrt(variance + epsilon) * scale + bias`` over their dimensions, or leave out what they
# lack; those of channels multiply by one factor. ONNX Runtime takes the variance of layers as ``mean(x^2) - mean^2``,
# here it is that of centred numbers.

_EPSILON = 1e-5
_SKIP_EPSILON = 1e-12
_BY_CHANNEL = 21
"""From this operator set on GroupNormalization has scales by channel; before, by group."""
_QUOTIENT = Input(1).where_positive(Input(0) / Input(1), Input(1) * 0.0)
"""x / norm; 0 where the norm is 0, which squares that are lost make it too."""


@imports("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
def _layer_normalization(call: Call) -> tuple[Tensor, ...]:
    """Over the dimensions from the axis on; other outputs are the mean and the inverse of the deviation."""
    is_centred = call.node.kind == "LayerNormalization"
    call.count(2, 3 if is_centred else 2)
    stash: int = call.attribute("stash_type", F32)
    require(stash == F32, f"stash_type must be {F32}, that of f32, but got {stash}")
    shape = call.f32(0).shape
    axes = tuple(range(axis_in(call.attribute("axis", -1), len(shape)), len(shape)))
    rows = _scaled_rows(call, shape, axes, (0, *_present(call, 1, 2)), _EPSILON, is_centred)
    if not is_centred or not any(call.node.outputs[1:]):
        return (rows,)
    epsilon = _epsilon(call, _EPSILON)

    def inverse(emitter: Emitter, values: list[ir.Value]) -> ir.Value:
        s = emitter.f32
        return s("divf", 1.0, s("sqrt", s("addf", variance_of(emitter, values[0], axes), epsilon)))

    kept = reduced_shape(shape, axes, keep_dims=True)
    mean = computed(call, kept, (0,), lambda emitter, values: mean_of(emitter, values[0], axes))
    return rows, mean, computed(call, kept, (0,), inverse)


def _scaled_rows(
    call: Call, shape: Shape, axes: Shape, operands: tuple[int, ...], default: float, is_centred: bool
) -> Computed:
    """The first operand normalized over `axes`, times the second, plus the third."""
    _check_broadcast(call, shape, operands[1:])
    epsilon = _epsilon(call, default)

    def build(emitter: Emitter, values: list[ir.Value]) -> ir.Value:
        value, scale, *bias = values
        return affine(emitter, normalized(emitter, value, axes, epsilon, is_centred), scale, next(iter(bias), None))

    return computed(call, shape, operands, build)


def _present(call: Call, *indices: int) -> tuple[int, ...]:
    return tuple(index for index in indices if call.optional(index) is not None)


def _epsilon(call: Call, default: float) -> float:
    return call.attribute("epsilon", float(np.float32(default)))


def _check_broadcast(call: Call, shape: Shape, operands: tuple[int, ...]) -> None:
    for index in operands:
        found = call.f32(index).shape
        holds = broadcast_shape(found, shape) == shape
        require(holds, f"input {index} must broadcast to {list(shape)}, but got {list(found)}")


@imports("com.microsoft.SkipLayerNormalization", "com.microsoft.SkipSimplifiedLayerNormalization")
def _skip_layer_normalization(call: Call) -> tuple[Tensor, ...]:
    """Of the sum of input, skip and bias over the last dimension; the sum is the fourth output."""
    is_centred = call.node.kind == "com.microsoft.SkipLayerNormalization"
    call.count(3, 5 if is_centred else 4)
    require(not any(call.node.outputs[1:3]), "outputs 1 and 2, mean and deviation, must be omitted")
    shape = call.f32(0).shape
    require(len(shape) >= 1, "input must have at least 1 dimension, but got 0")
    addends = (1, *_present(call, 4 if is_centred else 3))
    _check_broadcast(call, shape, addends)

    def add(emitter: Emitter, values: list[ir.Value]) -> ir.Value:
        total = values[0]
        for value in values[1:]:
            total = emitter.f32("addf", total, value)
        return total

    total = computed(call, shape, (0, *addends), add)
    rows = call.with_input(0, total)
    parameters = (2, *_present(call, 3)) if is_centred else (2,)
    normal = _scaled_rows(rows, shape, (len(shape) - 1,), (0, *parameters), _SKIP_EPSILON, is_centred)
    return normal, normal, normal, total


@imports_f32("InstanceNormalization")
def _instance_normalization(call: Call) -> Computed:
    """Each channel of each example."""
    channels = _channels(call, 1)
    return _by_groups(call, channels, channels, 1)


@imports_f32("GroupNormalization")
def _group_normalization(call: Call) -> Computed:
    """Each group of channels of each example."""
    groups: int = call.attribute("num_groups", 0)
    return _by_groups(call, groups, _channels(call, 1) if call.node.version >= _BY_CHANNEL else groups, 1)


@imports_f32("com.microsoft.GroupNorm")
def _group_norm(call: Call) -> Computed:
    """The channels are last unless an attribute moves them; an activation of 1 is x * sigmoid(x)."""
    call.count(3)
    axis = -1 if call.flag("channels_last", 1) else 1
    activation: int = call.attribute("activation", 0)
    require(activation in (0, 1), f"activation must be 0 or 1, but got {activation}")
    return _by_groups(call, call.attribute("groups", 0), _channels(call, axis), axis, activation == 1)


def _channels(call: Call, axis: int) -> int:
    shape = call.f32(0).shape
    require(len(shape) >= 3, f"input must have at least 3 dimensions, but got {len(shape)}")
    return shape[axis]


def _check_entries(call: Call, index: int, count: int) -> None:
    found = call.f32(index).shape
    require(found == (count,), f"input {index} must have the shape [{count}], but got {list(found)}")


def _by_groups(call: Call, groups: int, entries: int, axis: int, has_activation: bool = False) -> Computed:
    """Groups of the channels along `axis` of the model, with `entries` scales and biases."""
    shape, channels = call.f32(0).shape, _channels(call, axis)
    holds = groups >= 1 and channels % groups == 0
    require(holds, f"groups must divide {channels} channels, but got {groups}")
    for index in (1, 2):
        _check_entries(call, index, entries)
    epsilon = _epsilon(call, _EPSILON)
    source, *parameters = (call.f32(index).f32(call.plan, call.name) for index in range(3))

    def emit(emitter: Emitter) -> Emitted:
        value, is_channels_last = emitter.either(source)
        along = stored_axis(axis % len(shape), len(shape), is_channels_last)
        scale, bias = (emitter.to_channels_first(one) for one in parameters)
        normal = group_normalized(emitter, value, groups, along, epsilon, (scale, bias))
        if not has_activation:
            return normal, is_channels_last
        return emitter.expression(activations.silu, normal), is_channels_last

    return Computed(shape, call.plan.compute(call.name, shape, "f32", emit))


@imports_f32("MeanVarianceNormalization")
def _mean_variance_normalization(call: Call) -> Computed:
    """``(x - mean) / deviation``; ONNX Runtime adds nothing to a deviation of 0."""
    shape = call.f32(0).shape
    axes = tuple(sorted(set(axes_in(call.attribute("axes", [0, 2, 3]), len(shape)))))
    require(len(axes) > 0, "axes must not be empty")

    def build(emitter: Emitter, values: list[ir.Value]) -> ir.Value:
        s, numbers = emitter.f32, centred(emitter, values[0], axes)
        variance = mean_of(emitter, s("mulf", numbers, numbers), axes)
        return s("divf", numbers, s("sqrt", variance))

    return computed(call, shape, (0,), build)


@imports_f32("LpNormalization")
def _lp_normalization(call: Call) -> Computed:
    """``x / sum(|x|)`` or ``x / sqrt(sum(x^2))`` along an axis; zeros where that is zero."""
    shape = call.f32(0).shape
    axis, order = axis_in(call.attribute("axis", -1), len(shape)), call.attribute("p", 2)
    require(order in (1, 2), f"p must be 1 or 2, but got {order}")

    def build(emitter: Emitter, values: list[ir.Value]) -> ir.Value:
        s, (value,) = emitter.f32, values
        parts = s("absf", value) if order == 1 else s("mulf", value, value)
        total = reduced(emitter, F32SumOp, parts, (axis,))
        norm = total if order == 1 else s("sqrt", total)
        return emitter.expression(_QUOTIENT, value, emitter.broadcast(norm, shape))

    return computed(call, shape, (0,), build)


# LRN: each element divided by a power of the sum of squares of its channel and the adjacent ones, in float32.

_ALPHA = float(np.float32(1e-4))


@imports_f32("LRN")
def _local_response(call: Call) -> Computed:
    """``x / (bias + alpha / size * sum(x^2))^beta`` with the sum over `size` channels around that of x.

    Source: ONNX, operator LRN; one channel more counts after x than before it where `size` is even.
    """
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
        # The pool is over channels; the dimensions behind them are merged to one that is not pooled.
        data = emitter.reshape(emitter.to_channels_first(value), (batch, channels, inner))
        s = emitter.f32
        sums = pool.sums(emitter, s("mulf", data, data))
        scale = s("powf", s("addf", s("mulf", sums, alpha / size), bias), beta)
        return emitter.reshape(s("divf", data, scale), shape), False

    return Computed(shape, call.plan.compute(call.name, shape, "f32", emit))


# EmbedLayerNormalization of com.microsoft: rows of tables for words, positions and kinds, added and normalized.


@imports("com.microsoft.EmbedLayerNormalization")
def _embedding(call: Call) -> tuple[Tensor, ...]:
    """Normalized rows [B, S, H], how many tokens the mask shows of each sequence, and the sum before."""
    call.count(7, 9)
    call.ignore("mask_index_type")
    words = indices_of(call, 0)
    require(len(words.shape) == 2, f"input_ids must have 2 dimensions, but got {len(words.shape)}")
    total = _rows(call, 2, words)
    along = np.arange(words.shape[1], dtype=np.int64).reshape(1, -1)
    positions = constant_of(call, along) if call.optional(8) is None else indices_of(call, 8)
    given = [call.optional(index) is not None for index in (1, 4)]
    require(given[0] == given[1], "segment_ids and segment_embedding must both be given or omitted")
    for table, indices in ((3, positions), (4, indices_of(call, 1) if all(given) else None)):
        if indices is not None:
            total = binary_tensor("Add", total, _rows(call, table, indices), GroupKernel.F32)
    require(len(total.shape) == 3, f"rows must broadcast to 3 dimensions, but got {list(total.shape)}")
    return _normalized(call, total), _counts(call, words.shape), total


def _rows(call: Call, table: int, indices: Value) -> F32Tensor:
    source = call.f32(table)
    require(len(source.shape) == 2, f"input {table} must have 2 dimensions, but got {len(source.shape)}")
    found = gathered(call.plan, call.name, source, indices, 0)
    return call.with_input(table, found).f32(table)


def _normalized(call: Call, total: F32Tensor) -> Tensor:
    for index in (5, 6):
        _check_entries(call, index, total.shape[-1])
    return _scaled_rows(call.with_input(0, total), total.shape, (2,), (0, 5, 6), _SKIP_EPSILON, True)


def _counts(call: Call, shape: Shape) -> Tensor:
    """[B] of i32: the sum of each row of the mask, 0 without one."""
    if call.optional(7) is None:
        return constant_of(call, np.zeros(shape[:1], np.int32))
    mask = value_of(call, 7)
    holds = mask.element == "i32" and mask.shape == shape
    require(holds, f"mask must be i32 of {list(shape)}, but got {list(mask.shape)} of {mask.element}")

    def emit(emitter: Emitter) -> Emitted:
        sums = emitter.build(IntSumOp, emitter.to_channels_first(mask), element="i32", axes=(1,), keep_dims=False)
        return sums, False

    return call.plan.compute(call.name, shape[:1], "i32", emit)
