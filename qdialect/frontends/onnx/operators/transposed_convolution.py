"""ConvTranspose: data NCL, NCHW or NCDHW, weights [C, O / group, ...]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect.dialect import ConvTranspose2DOp
from qdialect.frontends.common import Shape, require
from qdialect.frontends.onnx.operators.contraction import bias_of, data_of
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.operators.window import NOTSET, SAME_UPPER, VALID, explicit_padding, padding_mode, steps_of
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.contraction import Contraction
from qdialect.frontends.planning.convolution import Layer
from qdialect.frontends.planning.transposed_volumes import TransposedVolumes
from qdialect.frontends.planning.volumes import RANK
from qdialect.frontends.planning.weight import Weight, ordered_weight


@imports("ConvTranspose")
def _conv_transpose(call: Call) -> Contraction:
    """Exact sums; ONNX Runtime adds them up in float32, so its quantized values may differ by one step."""
    call.count(2, 3)
    rank = len(call.tensor(0).shape)
    require(rank in (3, 4, RANK), f"input must have 3 to 5 dimensions, but got {rank}")
    data, weights = data_of(call.quantized(0)), call.quantized(1)
    groups: int = call.attribute("group", 1)
    weight = _channels_first(weights, rank, groups, data.shape[1])
    size = data.shape[2:]
    strides, dilation, kernel_extent = steps_of(call, rank - 2, weight.values.shape[1:-1])
    full = tuple((extent - 1) * stride + r for extent, stride, r in zip(size, strides, kernel_extent, strict=True))
    before, output = cropping(call, size, strides, full)
    # What of the full extent lies behind the output is cropped; what lies behind it in the output holds the bias.
    rests = [whole - low - kept for whole, low, kept in zip(full, before, output, strict=True)]
    cropped, extra = tuple(max(rest, 0) for rest in rests), tuple(max(-rest, 0) for rest in rests)
    channels = weight.values.shape[0]
    bias = bias_of(call, 2, data, weight.scales, channels)
    if rank == RANK:
        volumes = TransposedVolumes(strides, dilation, before, cropped, extra, groups, output)
        return volumes.contraction(call.plan, data, weight, bias, call.name)
    flat = 4 - rank
    attributes = {
        "strides": (1,) * flat + strides,
        "padding": (0,) * flat + before + (0,) * flat + cropped,
        "output_padding": (0,) * flat + extra,
        "dilation": (1,) * flat + dilation,
        "groups": groups,
    }
    return Layer(ConvTranspose2DOp, data, weight, attributes).contraction((data.shape[0], channels, *output), bias)


def cropping(call: Call, size: Shape, strides: Shape, full: Shape) -> tuple[Shape, Shape]:
    """The elements cropped before the output, and its extents, as ONNX Runtime finds them.

    `output_shape`, and ``size * stride`` with a mode SAME, say what is left of the full extent; of an odd number of
    cropped elements, the larger half lies before the output, behind it with SAME_UPPER.
    """
    rank, mode = len(size), padding_mode(call)
    extra: Sequence[int] = call.attribute("output_padding", [0] * rank)
    fits = len(extra) == rank and min(extra) >= 0
    require(fits, f"output_padding must be {rank} integers of at least 0, but got {list(extra)}")
    whole = tuple(extent + more for extent, more in zip(full, extra, strict=True))
    wanted: Sequence[int] = call.attribute("output_shape", [])
    if not wanted and mode in (NOTSET, VALID):
        before, after = explicit_padding(call, rank) if mode == NOTSET else ((0,) * rank, (0,) * rank)
        output = tuple(extent - low - high for extent, low, high in zip(whole, before, after, strict=True))
    else:
        call.ignore("pads")
        spread = tuple(extent * stride for extent, stride in zip(size, strides, strict=True))
        target = tuple(wanted[-rank:]) if wanted else spread
        require(len(target) == rank, f"output_shape must have {rank} extents, but got {len(target)}")
        cropped = [max(extent - kept, 0) for extent, kept in zip(whole, target, strict=True)]
        before = tuple(total // 2 if mode == SAME_UPPER else total - total // 2 for total in cropped)
        smallest = tuple(extent - total for extent, total in zip(whole, cropped, strict=True))
        output = target if wanted else smallest
    require(min(output) >= 1, f"output shape must not be empty, but got {list(output)}")
    return before, output


def _channels_first(weights: Quantized, rank: int, groups: int, channels: int) -> Weight:
    """[C, O / g, KH, KW] as [O, KH, KW, C / g]; every group has the scales of the O / g channels."""
    weight = ordered_weight(weights, tuple(range(rank)), 1)
    require(weight.values.shape[0] == channels, f"weight must have {channels} inputs, but got {weight.values.shape[0]}")
    require(groups >= 1 and channels % groups == 0, f"group must divide {channels} channels, but got {groups}")
    kernel = weight.values.shape[2:]
    apart = weight.values.reshape(groups, channels // groups, -1, *kernel)
    last = np.moveaxis(apart, 1, -1).reshape(-1, *kernel, channels // groups)
    scales = weight.scales * groups if len(weight.scales) > 1 else weight.scales
    zero_points = weight.zero_points * groups if len(weight.zero_points) > 1 else weight.zero_points
    return Weight(np.ascontiguousarray(last), scales, zero_points)
