"""conv1d and conv2d: data NCL or NCHW, weights OIL or OIHW."""

from __future__ import annotations

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import Conv2DOp
from qdialect.frontends.common import require
from qdialect.frontends.onnx.emitter import Emitter, Placed
from qdialect.frontends.torch.model import Array
from qdialect.frontends.torch.operators.contraction import Contraction, bias_of, data_of, weight_of
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.operators.windows import window_of
from qdialect.frontends.torch.tensors import Result


@imports("conv2d.default", "conv2d.padding", "conv1d.default", "conv1d.padding")
def _convolution(call: Call) -> Result:
    data = data_of(call, "input")
    rank = 4 if "conv2d" in call.node.kind else 3
    require(len(data.shape) == rank, f"input must have {rank} dimensions, but got {len(data.shape)}")
    weight = weight_of(call, "weight", (0, *range(2, rank), 1), 0)
    channels, *kernel, depth = weight.codes.shape
    (groups,) = call.integers("groups", 1)
    found = f"input must have {groups} * {depth} channels, but got {data.shape[1]}"
    require(groups >= 1 and data.shape[1] == groups * depth, found)
    require(channels % groups == 0, f"output channels must be a multiple of {groups}, but got {channels}")
    window = window_of(call, data.shape[2:], tuple(kernel), dilated=True)
    batch, _, *size = data.shape
    flat = window.two_dimensional()

    def accumulate(emitter: Emitter, bias: Array | None) -> ir.Value:
        height, width = (1, *size)[-2:]
        codes = weight.codes if rank == 4 else weight.codes[:, np.newaxis]
        return emitter.build(
            Conv2DOp,
            emitter.reshape(emitter.last(data.codes), (batch, height, width, data.shape[1])),
            emitter.constant(codes),
            None if bias is None else emitter.constant(bias),
            element="i32",
            strides=flat.strides,
            padding=flat.padding,
            dilation=flat.dilation,
            groups=groups,
            input_scale=data.scales[0],
            input_zero_point=data.zero_points[0],
            weight_scales=weight.scales,
            weight_zero_points=weight.zero_points,
        )

    def finish(emitter: Emitter, value: ir.Value) -> Placed:
        return emitter.reshape(value, (batch, *window.output, channels)), True

    bias = bias_of(call, "bias", channels)
    return Contraction((batch, channels, *window.output), call.name, data, weight, bias, accumulate, finish)
