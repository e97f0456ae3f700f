"""Conv in float32: data NCL, NCHW or NCDHW, constant weights OIL, OIHW or OIDHW."""

from __future__ import annotations

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import F32Conv2DOp, PadOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Array, Shape, require
from qdialect.frontends.onnx.operators.f32 import computed
from qdialect.frontends.onnx.operators.registry import Call, imports_f32
from qdialect.frontends.onnx.operators.window import window_of
from qdialect.frontends.planning.emitter import Emitter, channels_first, channels_last
from qdialect.frontends.planning.tensors import Computed
from qdialect.frontends.planning.volumes import RANK, DepthTaps, taps_of_depth


@imports_f32("Conv")
def _conv(call: Call) -> Computed:
    call.count(2, 3)
    shape, weight = call.f32(0).shape, f32_weight(call)
    kernel, groups = weight.shape, call.attribute("group", 1)
    require(groups >= 1 and shape[1] == groups * kernel[1] and kernel[0] % groups == 0, f"group {groups} does not fit")
    declared = window_of(call, shape[2:], kernel[2:])
    window, after = declared.two_dimensional(), (shape[0], kernel[0], *declared.output)
    has_bias = check_bias(call, kernel[0])
    is_volume = len(shape) == RANK
    depth = DepthTaps.of(shape, declared, groups, call.plan.budget) if is_volume else None
    last = weight if is_volume else weight.reshape(*kernel[:2], *window.kernel)
    ordered = np.ascontiguousarray(last.transpose(channels_last(last.ndim)))
    taps = taps_of_depth(ordered) if is_volume else ordered

    def build(emitter: Emitter, values: list[ir.Value]) -> ir.Value:
        source = values[0]
        data = depth.emit(emitter, volumes_of(emitter, source), None) if depth else image_of(emitter, source)
        if any(window.padding):
            low, high = (0, *window.before, 0), (0, *window.after, 0)
            data = emitter.build(PadOp, data, element="f32", low=low, high=high, value=0)
        attributes = {"strides": window.strides, "dilation": window.dilation, "groups": groups}
        total = emitter.build(F32Conv2DOp, data, emitter.constant(taps), element="f32", **attributes)
        return finished(emitter, total, values[1] if has_bias else None, after)

    return computed(call, after, (0, 2) if has_bias else (0,), build)


def f32_weight(call: Call) -> Array:
    """Input 1, constant f32 weights of the rank of the data, which is 3 to 5."""
    rank, weight = len(call.f32(0).shape), call.constant(1)
    require(rank in (3, 4, RANK), f"input must have 3 to 5 dimensions, but got {rank}")
    require(weight.dtype == np.float32, f"weight must be f32, but got {weight.dtype}")
    require(weight.ndim == rank, f"weight must have {rank} dimensions, but got {weight.ndim}")
    return weight


def check_bias(call: Call, channels: int) -> bool:
    """Whether there is a bias, which must have an entry for each of `channels`."""
    if call.optional(2) is None:
        return False
    shape = call.f32(2).shape
    require(shape == (channels,), f"bias must have the shape [{channels}], but got {list(shape)}")
    return True


def image_of(emitter: Emitter, value: ir.Value) -> ir.Value:
    """NCHW, or NCL of images with one row, as NHWC."""
    shape = shape_of(value.type)
    image = value if len(shape) == 4 else emitter.reshape(value, (*shape[:2], 1, *shape[2:]))
    return emitter.transpose(image, channels_last(4))


def volumes_of(emitter: Emitter, value: ir.Value) -> ir.Value:
    """NCDHW as NDHWC."""
    return emitter.transpose(value, channels_last(RANK))


def finished(emitter: Emitter, total: ir.Value, bias: ir.Value | None, shape: Shape) -> ir.Value:
    """NHWC or NDHWC with the bias added, as the model has it; images may be the slices of volumes."""
    if bias is not None:
        total = emitter.float_op("arith.addf", total, emitter.broadcast(bias, shape_of(total.type)))
    rank = max(len(shape), 4)
    last = total if rank == 4 else emitter.reshape(total, (shape[0], *shape[2:], shape[1]))
    return emitter.reshape(emitter.transpose(last, channels_first(rank)), shape)
