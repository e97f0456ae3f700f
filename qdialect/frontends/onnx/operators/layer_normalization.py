"""Normalizations over a part of each tensor, in float32: layer, root mean square, instance, group, Lp.

All compute ``(x - mean) / sqrt(variance + epsilon) * scale + bias`` over their dimensions, or leave out what they lack.
ONNX Runtime takes the variance of layers as ``mean(x^2) - mean^2``, here it is that of centred numbers.
"""

from __future__ import annotations

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import F32SumOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Shape, require
from qdialect.frontends.onnx.operators.data_movement import normalized_axes
from qdialect.frontends.onnx.operators.f32 import axis_of, computed
from qdialect.frontends.onnx.operators.registry import Call, imports, imports_f32
from qdialect.frontends.planning.broadcasting import broadcast_shape
from qdialect.frontends.planning.emitter import Emitted, Emitter
from qdialect.frontends.planning.f32_builder import F32Builder, reduced
from qdialect.frontends.planning.normalization import affine, centred, group_normalized, mean_of, normalized
from qdialect.frontends.planning.tensors import Computed, Tensor, stored_axis
from qdialect.quant_math import activations
from qdialect.quant_math.expressions import Input

_EPSILON = 1e-5
_SKIP_EPSILON = 1e-12
_BY_CHANNEL = 21
"""From this operator set on GroupNormalization has scales by channel; before, by group."""
_QUOTIENT = Input(1).where_positive(Input(0) / Input(1), Input(1) * 0.0)
"""x / norm; 0 where the norm is 0, which squares that are lost make it too."""


@imports_f32("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
def _layer_normalization(call: Call) -> Computed:
    """Over the dimensions from the axis on."""
    is_centred = call.node.kind == "LayerNormalization"
    call.count(2, 3 if is_centred else 2)
    shape = call.f32(0).shape
    axes = tuple(range(axis_of(call, -1, len(shape)), len(shape)))
    return _scaled_rows(call, shape, axes, (0, *_present(call, 1, 2)), _EPSILON, is_centred)


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
            total = F32Builder(emitter, shape)("addf", total, value)
        return total

    total = computed(call, shape, (0, *addends), add)
    rows = call.with_input(0, total)
    parameters = (2, *_present(call, 3)) if is_centred else (2,)
    normal = _scaled_rows(rows, shape, (len(shape) - 1,), (0, *parameters), _SKIP_EPSILON, is_centred)
    return normal, normal, normal, total


@imports_f32("InstanceNormalization")
def _instance_normalization(call: Call) -> Computed:
    """Each channel of each example."""
    call.count(3)
    channels = _channels(call, 1)
    return _by_groups(call, channels, channels, 1)


@imports_f32("GroupNormalization")
def _group_normalization(call: Call) -> Computed:
    """Each group of channels of each example."""
    call.count(3)
    groups: int = call.attribute("num_groups", 0)
    return _by_groups(call, groups, _channels(call, 1) if call.node.version >= _BY_CHANNEL else groups, 1)


@imports_f32("com.microsoft.GroupNorm")
def _group_norm(call: Call) -> Computed:
    """The channels are last unless an attribute says otherwise; an activation of 1 is x * sigmoid(x)."""
    call.count(3)
    axis = -1 if call.flag("channels_last", 1) else 1
    activation: int = call.attribute("activation", 0)
    require(activation in (0, 1), f"activation must be 0 or 1, but got {activation}")
    return _by_groups(call, call.attribute("groups", 0), _channels(call, axis), axis, activation == 1)


def _channels(call: Call, axis: int) -> int:
    shape = call.f32(0).shape
    require(len(shape) >= 3, f"input must have at least 3 dimensions, but got {len(shape)}")
    return shape[axis]


def _by_groups(call: Call, groups: int, entries: int, axis: int, has_activation: bool = False) -> Computed:
    """Groups of the channels along `axis` of the model, with `entries` scales and biases."""
    shape, channels = call.f32(0).shape, _channels(call, axis)
    holds = groups >= 1 and channels % groups == 0
    require(holds, f"groups must divide {channels} channels, but got {groups}")
    for index in (1, 2):
        found = call.f32(index).shape
        require(found == (entries,), f"input {index} must have the shape [{entries}], but got {list(found)}")
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
    call.count(1)
    shape = call.f32(0).shape
    axes = tuple(sorted(set(normalized_axes(call.attribute("axes", [0, 2, 3]), len(shape)))))
    require(len(axes) > 0, "axes must not be empty")

    def build(emitter: Emitter, values: list[ir.Value]) -> ir.Value:
        s, numbers = F32Builder(emitter, shape), centred(emitter, values[0], axes)
        variance = mean_of(emitter, s("mulf", numbers, numbers), axes)
        row = F32Builder(emitter, shape_of(variance.type))
        return s("divf", numbers, row("sqrt", variance))

    return computed(call, shape, (0,), build)


@imports_f32("LpNormalization")
def _lp_normalization(call: Call) -> Computed:
    """``x / sum(|x|)`` or ``x / sqrt(sum(x^2))`` along an axis; zeros where that is zero."""
    call.count(1)
    shape = call.f32(0).shape
    axis, order = axis_of(call, -1, len(shape)), call.attribute("p", 2)
    require(order in (1, 2), f"p must be 1 or 2, but got {order}")

    def build(emitter: Emitter, values: list[ir.Value]) -> ir.Value:
        s, (value,) = F32Builder(emitter, shape), values
        parts = s("absf", value) if order == 1 else s("mulf", value, value)
        total = reduced(emitter, F32SumOp, parts, (axis,))
        row = F32Builder(emitter, shape_of(total.type))
        norm = total if order == 1 else row("sqrt", total)
        wide = emitter.broadcast(norm, shape)
        return emitter.expression(_QUOTIENT, value, wide)

    return computed(call, shape, (0,), build)
