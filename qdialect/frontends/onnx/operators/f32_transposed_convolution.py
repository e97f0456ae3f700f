"""ConvTranspose in float32: data NCL or NCHW, constant weights [C, O / group, ...].

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
from qdialect.frontends.onnx.operators.f32_convolution import check_bias, f32_weight, finished, image_of
from qdialect.frontends.onnx.operators.registry import Call, imports_f32
from qdialect.frontends.onnx.operators.transposed_convolution import cropping
from qdialect.frontends.onnx.operators.window import steps_of
from qdialect.frontends.planning.emitter import Emitter
from qdialect.frontends.planning.tensors import Computed
from qdialect.frontends.slices import Slice, take_slices


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

    def build(emitter: Emitter, values: list[ir.Value]) -> ir.Value:
        ends = tuple(math.ceil((low + size) / s) for low, size, s in zip(before, output, strides, strict=True))
        data = _framed(emitter, image_of(emitter, values[0]), taps.shape[1:3], ends)
        sums = emitter.build(F32Conv2DOp, data, emitter.constant(taps), element="f32", groups=groups)
        whole = _interleaved(emitter, sums, groups, strides)
        rows, columns = (Slice(low, 1, size) for low, size in zip(before, output, strict=True))
        kept = take_slices(emitter, whole, (Slice(0, 1, shape[0]), rows, columns, Slice(0, 1, channels)))
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

    Kernels are reversed, as a convolution goes forwards.
    """
    inputs, outputs, *kernel = weight.shape
    counts = [math.ceil(extent / stride) for extent, stride in zip(kernel, strides, strict=True)]
    missing = [count * stride - extent for count, stride, extent in zip(counts, strides, kernel, strict=True)]
    whole = np.pad(weight, ((0, 0), (0, 0), (0, missing[0]), (0, missing[1])))
    apart = whole.reshape(groups, inputs // groups, outputs, counts[0], strides[0], counts[1], strides[1])
    reversed_ = apart[:, :, :, ::-1, :, ::-1, :].transpose(0, 4, 6, 2, 3, 5, 1)
    return np.ascontiguousarray(reversed_.reshape(-1, *counts, inputs // groups))


def _framed(emitter: Emitter, image: ir.Value, kernel: Shape, ends: Shape) -> ir.Value:
    """NHWC data with as many zeros before that `kernel` ends on the first element, and that there are `ends` windows.

    Elements that no window reaches are left out.
    """
    batch, height, width, channels = shape_of(image.type)
    sizes = [min(extent, end) for extent, end in zip((height, width), ends, strict=True)]
    rows, columns = (Slice(0, 1, size) for size in sizes)
    reached = take_slices(emitter, image, (Slice(0, 1, batch), rows, columns, Slice(0, 1, channels)))
    low = (0, *(extent - 1 for extent in kernel), 0)
    high = (0, *(end - size for end, size in zip(ends, sizes, strict=True)), 0)
    if not any(low) and not any(high):
        return reached
    return emitter.build(PadOp, reached, element="f32", low=low, high=high, value=0)


def _interleaved(emitter: Emitter, sums: ir.Value, groups: int, strides: Shape) -> ir.Value:
    """[N, H, W, g * s * t * O / g] as [N, H * s, W * t, O]."""
    batch, height, width, count = shape_of(sums.type)
    s, t = strides
    apart = emitter.reshape(sums, (batch, height, width, groups, s, t, count // (groups * s * t)))
    transposed = emitter.transpose(apart, (0, 1, 4, 2, 5, 3, 6))
    return emitter.reshape(transposed, (batch, height * s, width * t, count // (s * t)))
