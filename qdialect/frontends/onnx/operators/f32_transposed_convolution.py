"""ConvTranspose in float32: data NCL, NCHW or NCDHW, constant weights [C, O / group, ...].

Output element ``s * q + r`` of a dimension with stride s, counted from the start of the full extent, is
``sum over j of data[q - j] * weight[s * j + r]``: for each remainder r a convolution without a stride.  All of them are
one convolution, whose output channels are the remainders' beside each other; then they are interleaved.
"""

from __future__ import annotations

import math

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import F32Conv2DOp, PadOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Array, Shape, require
from qdialect.frontends.onnx.operators.f32 import computed
from qdialect.frontends.onnx.operators.f32_convolution import check_bias, f32_weight, finished, image_of, volumes_of
from qdialect.frontends.onnx.operators.registry import Call, imports_f32
from qdialect.frontends.onnx.operators.transposed_convolution import cropping
from qdialect.frontends.onnx.operators.window import steps_of
from qdialect.frontends.planning.emitter import Emitter
from qdialect.frontends.planning.tensors import Computed
from qdialect.frontends.planning.volumes import RANK, DepthTaps, taps_of_depth
from qdialect.frontends.planning.window import Window
from qdialect.frontends.slices import Slice, check_indices, take_slices


@imports_f32("ConvTranspose")
def _conv_transpose(call: Call) -> Computed:
    call.count(2, 3)
    shape, weight, groups = call.f32(0).shape, f32_weight(call), call.attribute("group", 1)
    require(weight.shape[0] == shape[1], f"weight must have {shape[1]} inputs, but got {weight.shape[0]}")
    require(groups >= 1 and shape[1] % groups == 0, f"group must divide {shape[1]} channels, but got {groups}")
    strides, dilation, extent = steps_of(call, len(shape) - 2, weight.shape[2:])
    full = tuple((size - 1) * stride + r for size, stride, r in zip(shape[2:], strides, extent, strict=True))
    before, output = cropping(call, shape[2:], strides, full)
    channels = groups * weight.shape[1]
    after, has_bias = (shape[0], channels, *output), check_bias(call, channels)
    flat = (1,) * (4 - len(shape))
    strides, before, output = flat + strides, (0,) * len(flat) + before, flat + output
    taps = _taps(_dilated(weight, dilation).reshape(*weight.shape[:2], *flat, *extent), groups, strides)
    if len(shape) == RANK:
        check_indices(taps.shape[1] * (shape[2] + output[0]), call.plan.budget)

    def build(emitter: Emitter, values: list[ir.Value]) -> ir.Value:
        ends = tuple(math.ceil((low + size) / s) for low, size, s in zip(before, output, strides, strict=True))
        image = volumes_of(emitter, values[0]) if len(shape) == RANK else image_of(emitter, values[0])
        data = _framed(emitter, image, taps.shape[1:-1], ends)
        whole = _interleaved(emitter, _convolved(emitter, data, taps, groups), groups, strides)
        inside = (Slice(low, 1, size) for low, size in zip(before, output, strict=True))
        kept = take_slices(emitter, whole, (Slice(0, 1, shape[0]), *inside, Slice(0, 1, channels)))
        return finished(emitter, kept, values[1] if has_bias else None, after)

    return computed(call, after, (0, 2) if has_bias else (0,), build)


def _dilated(weight: Array, dilation: Shape) -> Array:
    """The kernel with zeros between its elements."""
    extents = [(extent - 1) * rate + 1 for extent, rate in zip(weight.shape[2:], dilation, strict=True)]
    spread = np.zeros((*weight.shape[:2], *extents), np.float32)
    spread[(slice(None), slice(None), *(slice(None, None, rate) for rate in dilation))] = weight
    return spread


def _taps(weight: Array, groups: int, strides: Shape) -> Array:
    """[C, O / g, KH, KW] as the [g * s * t * O / g, ceil(KH / s), ceil(KW / t), C / g] of all remainders.

    Kernels are reversed, as a convolution goes forwards; volumes have a dimension more.
    """
    inputs, outputs, *kernel = weight.shape
    rank = len(kernel)
    counts = [math.ceil(extent / stride) for extent, stride in zip(kernel, strides, strict=True)]
    missing = [count * stride - extent for count, stride, extent in zip(counts, strides, kernel, strict=True)]
    whole = np.pad(weight, ((0, 0), (0, 0), *((0, one) for one in missing)))
    pairs = (extent for pair in zip(counts, strides, strict=True) for extent in pair)
    apart = np.flip(whole.reshape(groups, inputs // groups, outputs, *pairs), tuple(range(3, 3 + 2 * rank, 2)))
    remainders, taps = range(4, 4 + 2 * rank, 2), range(3, 3 + 2 * rank, 2)
    return np.ascontiguousarray(apart.transpose(0, *remainders, 2, *taps, 1).reshape(-1, *counts, inputs // groups))


def _framed(emitter: Emitter, image: ir.Value, kernel: Shape, ends: Shape) -> ir.Value:
    """Channels-last data with as many zeros before that `kernel` ends on the first element, and `ends` windows.

    Elements that no window reaches are left out.
    """
    batch, *extents, channels = shape_of(image.type)
    sizes = [min(extent, end) for extent, end in zip(extents, ends, strict=True)]
    inside = (Slice(0, 1, size) for size in sizes)
    reached = take_slices(emitter, image, (Slice(0, 1, batch), *inside, Slice(0, 1, channels)))
    low = (0, *(extent - 1 for extent in kernel), 0)
    high = (0, *(end - size for end, size in zip(ends, sizes, strict=True)), 0)
    if not any(low) and not any(high):
        return reached
    return emitter.build(PadOp, reached, element="f32", low=low, high=high, value=0)


def _convolved(emitter: Emitter, data: ir.Value, taps: Array, groups: int) -> ir.Value:
    """Sums over images or volumes without padding and strides."""
    if taps.ndim == 4:
        return emitter.build(F32Conv2DOp, data, emitter.constant(taps), element="f32", groups=groups)
    batch, *extents, _ = shape_of(data.type)
    kernel, ones, zeros = taps.shape[1:-1], (1, 1, 1), (0, 0, 0)
    output = tuple(extent - taken + 1 for extent, taken in zip(extents, kernel, strict=True))
    window = Window(kernel, ones, ones, zeros, zeros, output)
    images = DepthTaps((batch * output[0], *extents[1:]), window, groups).emit(emitter, data, None)
    sums = emitter.build(F32Conv2DOp, images, emitter.constant(taps_of_depth(taps)), element="f32", groups=groups)
    return emitter.reshape(sums, (batch, *output, len(taps)))


def _interleaved(emitter: Emitter, sums: ir.Value, groups: int, strides: Shape) -> ir.Value:
    """[N, H, W, g * s * t * O / g] as [N, H * s, W * t, O]; volumes have a dimension more."""
    batch, *extents, count = shape_of(sums.type)
    rank, factor = len(strides), math.prod(strides)
    apart = emitter.reshape(sums, (batch, *extents, groups, *strides, count // (groups * factor)))
    interleaved = (axis for i in range(rank) for axis in (1 + i, 2 + rank + i))
    transposed = emitter.transpose(apart, (0, *interleaved, 1 + rank, 2 + 2 * rank))
    spread = (extent * stride for extent, stride in zip(extents, strides, strict=True))
    return emitter.reshape(transposed, (batch, *spread, count // factor))
