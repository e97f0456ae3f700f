"""conv3d and avg_pool3d in float32: data NCDHW, weights OIDHW.

The slices of a window along the depth become channels of an image, so that one convolution over images sums them up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import F32Conv2DOp, PadOp, TransposeOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Array, Shape, require
from qdialect.frontends.planning.convolution import check_groups, from_image
from qdialect.frontends.planning.emitter import Emitter, Value
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.window import Window
from qdialect.frontends.slices import check_indices, gather
from qdialect.frontends.torch.operators.averages import elements_of_windows
from qdialect.frontends.torch.operators.contraction import bias_of
from qdialect.frontends.torch.operators.f32_contraction import F32Contraction, f32_weight
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.operators.windows import window_of

_RANK = 5


@dataclass(frozen=True)
class _Volume:
    """Windows over [N, C, D, H, W], in groups of channels."""

    window: Window
    groups: int

    def images(self, emitter: Emitter, value: Value) -> ir.Value:
        """[N * OD, H, W, groups * KD * C / groups]: what each window along the depth reads."""
        window, groups = self.window, self.groups
        data = emitter.last(value)
        if any((*window.before, *window.after)):
            low, high = ((0, *sides, 0) for sides in (window.before, window.after))
            data = emitter.build(PadOp, data, element="f32", low=low, high=high, value=0)
        taps, (begin, dilation) = range(window.kernel[0]), (window.strides[0], window.dilation[0])
        slices = [index * begin + tap * dilation for index in range(window.output[0]) for tap in taps]
        batch, _, height, width, channels = shape_of(data.type)
        apart = (batch, window.output[0], len(taps), height, width, groups, channels // groups)
        beside = emitter.reshape(gather(emitter, data, 1, slices), apart)
        order = (0, 1, 3, 4, 5, 2, 6)
        transposed = emitter.build(TransposeOp, beside, element="f32", permutation=order)
        return emitter.reshape(transposed, (batch * window.output[0], height, width, len(taps) * channels))

    def contract(self, emitter: Emitter, value: Value, weight: Array) -> ir.Value:
        """Sums of products with weights [O, KD, KH, KW, C / groups]."""
        flat = np.moveaxis(weight, 1, 3)
        taps = emitter.constant(np.ascontiguousarray(flat.reshape(*flat.shape[:3], -1)))
        how = {"strides": self.window.strides[1:], "dilation": self.window.dilation[1:], "groups": self.groups}
        return emitter.build(F32Conv2DOp, self.images(emitter, value), taps, element="f32", **how)


def _volume(call: Call, window: Window, groups: int) -> _Volume:
    check_indices(window.output[0] * window.kernel[0], call.plan.budget)
    return _Volume(window, groups)


@imports("conv3d.default", "conv3d.padding")
def convolution_of_volumes(call: Call) -> Result:
    """Of weights that are quantized too, as float32."""
    data, weight = call.f32("input"), f32_weight(call, "weight")
    require(weight is not None, "argument 'weight' must be constant")
    assert weight is not None
    ranks = len(data.shape), weight.ndim
    require(ranks == (_RANK, _RANK), f"input and weight must have 5 dimensions, but got {ranks[0]} and {ranks[1]}")
    last = np.moveaxis(weight, 1, -1)
    (groups,) = call.integers("groups", 1)
    check_groups(data.shape[1], last.shape, groups)
    volume = _volume(call, window_of(call, data.shape[2:], last.shape[1:-1], dilated=True), groups)
    shape = (data.shape[0], len(last), *volume.window.output)

    def contract(emitter: Emitter, values: tuple[Value, ...]) -> ir.Value:
        return volume.contract(emitter, values[0], last)

    return F32Contraction(shape, (data,), bias_of(call, "bias", len(last)), contract, from_image(shape), name=call.name)


@imports("avg_pool3d.default")
def _average_of_volumes(call: Call) -> Result:
    """Sums of windows, each divided by its number of elements."""
    data = call.f32("self")
    require(len(data.shape) == _RANK, f"input must have 5 dimensions, but got {len(data.shape)}")
    window = window_of(call, data.shape[2:], call.integers("kernel_size", 3), dilated=False)
    channels = data.shape[1]
    volume, counts = _volume(call, window, channels), _counts(call, data.shape[2:], window)
    call.plan.budget.spend_constant((channels, *window.kernel), 4)

    def contract(emitter: Emitter, values: tuple[Value, ...]) -> ir.Value:
        total = volume.contract(emitter, values[0], np.ones((channels, *window.kernel, 1), np.float32))
        volumes = emitter.reshape(total, (data.shape[0], *window.output, channels))
        divisors = emitter.broadcast(emitter.constant(counts[..., np.newaxis]), shape_of(volumes.type))
        return emitter.float_op("arith.divf", volumes, divisors)

    shape = (*data.shape[:2], *window.output)
    return F32Contraction(shape, (data,), None, contract, from_image(shape), name=call.name)


def _counts(call: Call, size: Shape, window: Window) -> Array:
    """What each window is divided by, [OD, OH, OW]."""
    divisor = call.argument("divisor_override")
    require(divisor != 0, "divisor_override must not be 0")
    call.plan.budget.spend_constant(window.output, 8)
    if divisor is not None:
        return np.full(window.output, divisor, np.float32)
    padding = call.integers("padding", 3) if call.argument("count_include_pad") else (0, 0, 0)
    along = zip(size, window.output, window.strides, window.kernel, window.before, padding, strict=True)
    return reduce(np.multiply.outer, (elements_of_windows(*one) for one in along)).astype(np.float32)
