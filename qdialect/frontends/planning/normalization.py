"""Normalizations in float32, as ops: sums over dimensions, and what is element-wise around them.

Sums are taken in float32 in blocks, and variances from centred numbers; a framework that adds in another order differs
in the last places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Shape
from qdialect.frontends.planning.blocked_sum import blocked_sum
from qdialect.frontends.planning.emitter import Emitter
from qdialect.frontends.planning.f32_builder import F32Builder


def mean_of(emitter: Emitter, value: ir.Value, axes: Shape) -> ir.Value:
    """The means of an f32 value over `axes`, which stay as extents of 1."""
    total = blocked_sum(emitter, value, axes)
    count = math.prod(shape_of(value.type)[axis] for axis in axes)
    return F32Builder(emitter, shape_of(total.type))("divf", total, float(count))


def centred(emitter: Emitter, value: ir.Value, axes: Shape) -> ir.Value:
    """``x - mean(x)`` over `axes`."""
    return F32Builder(emitter, shape_of(value.type))("subf", value, mean_of(emitter, value, axes))


def normalized(emitter: Emitter, value: ir.Value, axes: Shape, epsilon: float, is_centred: bool = True) -> ir.Value:
    """``(x - mean) / sqrt(variance + epsilon)`` over `axes`; not centred ``x / sqrt(mean(x^2) + epsilon)``."""
    source = centred(emitter, value, axes) if is_centred else value
    s = F32Builder(emitter, shape_of(value.type))
    variance = mean_of(emitter, s("mulf", source, source), axes)
    row = F32Builder(emitter, shape_of(variance.type))
    return s("divf", source, row("sqrt", row("addf", variance, epsilon)))


def affine(emitter: Emitter, value: ir.Value, scale: ir.Value | None, bias: ir.Value | None) -> ir.Value:
    """``x * scale + bias``, which broadcast to the value, each where it is given."""
    s = F32Builder(emitter, shape_of(value.type))
    scaled = value if scale is None else s("mulf", value, scale)
    return scaled if bias is None else s("addf", scaled, bias)


def group_normalized(
    emitter: Emitter, value: ir.Value, groups: int, channels_axis: int, epsilon: float, parameters: Sequence[ir.Value]
) -> ir.Value:
    """Each group of channels of each example normalized, then ``* scale + bias``.

    `parameters` are scale and bias, with an entry for each channel or for each group.
    """
    shape = shape_of(value.type)
    before, channels, after = shape[:channels_axis], shape[channels_axis], shape[channels_axis + 1 :]
    grouped = emitter.reshape(value, (*before, groups, channels // groups, *after))
    axes = tuple(axis for axis in range(1, len(shape) + 1) if axis != channels_axis)
    normal = normalized(emitter, grouped, axes, epsilon)
    ones = (1,) * len(after)
    entries = [emitter.reshape(one, (groups, shape_of(one.type)[0] // groups, *ones)) for one in parameters]
    scale, bias = entries
    return emitter.reshape(affine(emitter, normal, scale, bias), shape)
