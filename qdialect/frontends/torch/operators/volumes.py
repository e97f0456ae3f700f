"""conv3d and pools over three dimensions: data NCDHW, weights OIDHW.

The slices of a window along the depth become channels of an image, so that one convolution over images sums them up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import Conv2DOp, F32Conv2DOp, PadOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Array, Shape, require
from qdialect.frontends.planning.computation import Computation
from qdialect.frontends.planning.convolution import Layer, attributes_of, check_groups, from_image
from qdialect.frontends.planning.emitter import Emitter, Value
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.tensors import F32Tensor
from qdialect.frontends.planning.volumes import RANK, DepthTaps, rows_of_windows, taps_of_depth
from qdialect.frontends.planning.window import Window
from qdialect.frontends.slices import check_indices
from qdialect.frontends.torch.operators.averages import elements_of_windows
from qdialect.frontends.torch.operators.contraction import bias_of, data_of, weight_of
from qdialect.frontends.torch.operators.f32_contraction import F32Contraction, f32_weight, is_integer
from qdialect.frontends.torch.operators.pool import largest_of, largest_of_parts
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.operators.windows import window_of


@imports("conv3d.default", "conv3d.padding")
def convolution_of_volumes(call: Call) -> Result:
    """Of integers where data and weights are quantized, else of float32."""
    if not is_integer(call, "input", "weight"):
        return _f32_convolution(call)
    data, weight = data_of(call, "input"), weight_of(call, "weight", (0, 2, 3, 4, 1), 0)
    window, groups = _window(call, data.shape, weight.values.shape)
    channels = len(weight.values)
    layer = Layer(Conv2DOp, data, weight, attributes_of(window, groups)).over_volumes(call.plan, call.name, window)
    bias = bias_of(call, "bias", channels)
    return layer.contraction((data.shape[0], channels, *window.output), bias, call.name)


def _f32_convolution(call: Call) -> Result:
    data, weight = call.f32("input"), f32_weight(call, "weight")
    require(weight is not None, "argument 'weight' must be constant")
    assert weight is not None
    require(weight.ndim == RANK, f"weight must have 5 dimensions, but got {weight.ndim}")
    last = np.moveaxis(weight, 1, -1)
    window, groups = _window(call, data.shape, last.shape)
    depth, flat = DepthTaps.of(data.shape, window, groups, call.plan.budget), window.two_dimensional()
    shape = (data.shape[0], len(last), *window.output)

    def contract(emitter: Emitter, values: tuple[Value, ...]) -> ir.Value:
        images = depth.emit(emitter, emitter.last(values[0]), None)
        if any(flat.padding):
            low, high = ((0, *sides, 0) for sides in (flat.before, flat.after))
            images = emitter.build(PadOp, images, element="f32", low=low, high=high, value=0)
        taps = emitter.constant(taps_of_depth(last))
        how = {"strides": flat.strides, "dilation": flat.dilation, "groups": groups}
        return emitter.build(F32Conv2DOp, images, taps, element="f32", **how)

    return F32Contraction(shape, (data,), bias_of(call, "bias", len(last)), contract, from_image(shape), name=call.name)


def _window(call: Call, data: Shape, weight: Shape) -> tuple[Window, int]:
    """The window of weights [O, KD, KH, KW, C / groups] over the data, and the number of groups."""
    require(len(data) == RANK, f"input must have 5 dimensions, but got {len(data)}")
    (groups,) = call.integers("groups", 1)
    check_groups(data[1], weight, groups)
    return window_of(call, data[2:], weight[1:-1], dilated=True), groups


def _volumes_of(call: Call) -> F32Tensor:
    """The argument ``self``."""
    data = call.f32("self")
    require(len(data.shape) == RANK, f"input must have 5 dimensions, but got {len(data.shape)}")
    return data


@imports("avg_pool3d.default")
def _average_of_volumes(call: Call) -> Result:
    """Sums of windows, one element added after another, each divided by its number of elements."""
    data = _volumes_of(call)
    window = window_of(call, data.shape[2:], call.integers("kernel_size", 3), dilated=False)
    return _averages(call, data, window, _counts(call, data.shape[2:], window))


@imports("_adaptive_avg_pool3d.default", "adaptive_avg_pool3d.default")
def _average_of_parts(call: Call) -> Result:
    """Windows of one size, which divide the volume."""
    data = _volumes_of(call)
    size, output = data.shape[2:], call.integers("output_size", 3)
    divides = min(output) >= 1 and all(extent % count == 0 for extent, count in zip(size, output, strict=True))
    require(divides, f"output_size must divide {list(size)}, but got {list(output)}")
    kernel = tuple(extent // count for extent, count in zip(size, output, strict=True))
    call.plan.budget.spend_constant(output, 8)
    window = Window(kernel, kernel, (1, 1, 1), (0, 0, 0), (0, 0, 0), output)
    return _averages(call, data, window, np.full(output, math.prod(kernel), np.float32))


def _averages(call: Call, data: F32Tensor, window: Window, counts: Array) -> F32Tensor:
    """Sums of windows, each divided by its entry of `counts`, [OD, OH, OW]."""
    channels = data.shape[1]
    for i in range(2):
        check_indices(window.output[i] * window.kernel[i], call.plan.budget)
    call.plan.budget.spend_constant((channels, *window.kernel), 4)
    shape = (*data.shape[:2], *window.output)

    def build(emitter: Emitter, values: Sequence[ir.Value]) -> ir.Value:
        rows, flat = rows_of_windows(emitter, values[0], window)
        ones = emitter.constant(np.ones((channels, *flat.kernel, 1), np.float32))
        total = emitter.build(F32Conv2DOp, rows, ones, element="f32", strides=flat.strides, groups=channels)
        volumes = emitter.reshape(total, (data.shape[0], *window.output, channels))
        divisors = emitter.broadcast(emitter.constant(counts[..., np.newaxis]), shape_of(volumes.type))
        return emitter.float_op("arith.divf", volumes, divisors)

    return Computation(shape, (data,), build, is_channels_last=True, name=call.name)


def _counts(call: Call, size: Shape, window: Window) -> Array:
    """What each window is divided by, [OD, OH, OW]."""
    divisor = call.argument("divisor_override")
    call.ignore("count_include_pad")
    require(divisor != 0, "divisor_override must not be 0")
    call.plan.budget.spend_constant(window.output, 8)
    if divisor is not None:
        return np.full(window.output, divisor, np.float32)
    padding = call.integers("padding", 3) if call.argument("count_include_pad") else (0, 0, 0)
    along = zip(size, window.output, window.strides, window.kernel, window.before, padding, strict=True)
    return reduce(np.multiply.outer, (elements_of_windows(*one) for one in along)).astype(np.float32)


@imports("max_pool3d.default", "max_pool3d_with_indices.default")
def _largest_of_volumes(call: Call) -> Result:
    data = _volumes_of(call)
    found = largest_of(call, data, window_of(call, data.shape[2:], call.integers("kernel_size", 3), dilated=True))
    return found if call.node.kind.startswith("aten.max_pool3d.") else (found,)


@imports("adaptive_max_pool3d.default")
def _largest_of_parts(call: Call) -> Result:
    return (largest_of_parts(call, _volumes_of(call)),)
