"""Means of windows and over dimensions.

PyTorch averages in float32.  A sum of integers is exact and its quantized values are PyTorch's, but for means that lie
halfway between two quantized values: there the float32 sum, which rounds at every term, decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from qdialect.dialect import F32Conv2DOp, MeanOp, PadOp, RequantizeOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Array, Shape, require
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.pool import window_sums
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.reduction import Reduced, reduced_shape
from qdialect.frontends.planning.tensors import EIGHT_BIT, F32Tensor, Plan, limit
from qdialect.frontends.planning.window import Window
from qdialect.frontends.torch.operators.pool import image_of, like_input, pooled_window
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.tensors import Quantized
from qdialect.profiles import PYTORCH
from qdialect.quant_math import same_scale
from qdialect.quant_math.expressions import Input


@dataclass(frozen=True, eq=False)
class Average(F32Tensor):
    """Means of windows: sums over `counts`, the number that each window is divided by, [OH, OW] or of one for all.

    Sums of quantized values are a convolution with ones, scaled by ``s_x / (n * s_y)``.  Where the scales are the same
    and n is even, so that means lie halfway, the sum is PyTorch's: in float32, the elements of a window one after
    another.
    """

    source: F32Tensor
    window: Window
    counts: Array

    @property
    def _count(self) -> int:
        """What all windows are divided by."""
        return int(self.counts.flat[0])

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        source, share = self.source, 1 / self._count
        if not isinstance(source, Quantized) or not source.is_eight_bit or to.element not in EIGHT_BIT:
            return super()._quantized(plan, name, to)
        lies_halfway = same_scale(source.scales[0], to.scale) and self._count % 2 == 0
        if lies_halfway or np.any(self.counts != self._count):
            return super()._quantized(plan, name, to)

        def emit(emitter: Emitter) -> Emitted:
            scaled = emitter.build(
                RequantizeOp,
                window_sums(emitter, source, self.window, share),
                element=to.element,
                output_scale=to.scale,
                output_zero_point=to.zero_point,
                axis=3,
                input_scale=source.scales[0],
                weight_scales=(share,),
                **PYTORCH.rescale,
            )
            return scaled, True

        return limit(plan, name, plan.compute(name, self.shape, to.element, emit), to)

    def _f32(self, plan: Plan, name: str) -> Value:
        source, window, channels = self.source.f32(plan, name), self.window, self.shape[1]

        def emit(emitter: Emitter) -> Emitted:
            data = emitter.last(source)
            if any(window.padding):
                low, high = ((0, *sides, 0) for sides in (window.before, window.after))
                data = emitter.build(PadOp, data, element="f32", low=low, high=high, value=0)
            ones = emitter.constant(np.ones((channels, *window.kernel, 1), dtype=np.float32))
            how = {"strides": window.strides, "groups": channels}
            total = emitter.build(F32Conv2DOp, data, ones, element="f32", **how)
            if self.counts.size == 1:
                return emitter.expression(Input() / self._count, total), True
            counts = emitter.constant(self.counts[:, :, np.newaxis].astype(np.float32))
            return emitter.float_op("arith.divf", total, emitter.broadcast(counts, shape_of(total.type))), True

        return plan.compute(name, self.shape, "f32", emit)


@imports("avg_pool2d.default")
def _average_pool(call: Call) -> Result:
    source = image_of(call)
    window = pooled_window(call, source)
    shape = (*source.shape[:2], *window.output)
    return like_input(call, Average(shape, source, window, _counts(call, source.shape[2:], window), name=call.name))


def _counts(call: Call, size: Shape, window: Window) -> Array:
    """What each window is divided by: the elements that it has of the image and, perhaps, of the padding."""
    divisor = call.argument("divisor_override")
    call.ignore("count_include_pad")
    if divisor is not None:
        require(divisor != 0, "divisor_override must not be 0")
        return np.array(divisor)
    padding = call.integers("padding", 2) if call.argument("count_include_pad") else (0, 0)
    call.plan.budget.spend_constant(window.output, 8)
    rows, columns = (
        elements_of_windows(
            size[i], window.output[i], window.strides[i], window.kernel[i], window.before[i], padding[i]
        )
        for i in range(2)
    )
    counts = np.outer(rows, columns)
    return counts if np.any(counts != counts[0, 0]) else counts[0, 0].reshape(())


def elements_of_windows(size: int, output: int, stride: int, kernel: int, before: int, counted: int) -> Array:
    """How many of the taps of each window along a dimension lie in it or among the `counted` elements at its ends."""
    begins = np.arange(output) * stride - before
    return np.minimum(begins + kernel, size + counted) - np.maximum(begins, -counted)


def _mean(call: Call, source: F32Tensor, axes: tuple[int, ...], *, keeps: bool) -> Reduced:
    rank = len(source.shape)
    require(rank >= 1, "input must have at least 1 dimension, but got 0")
    shape = reduced_shape(source.shape, axes, keeps)
    return Reduced(shape, MeanOp, source, tuple(sorted(axes)), keeps, PYTORCH.rescale, name=call.name)


@imports("mean.dim")
def _mean_over(call: Call) -> Result:
    source = call.f32("self")
    rank = len(source.shape)
    given = call.argument("dim")
    axes = tuple(range(rank)) if not given else tuple(given)
    require(all(-rank <= axis < rank for axis in axes), f"dim must be in [-{rank}, {rank}), but got {list(axes)}")
    return _mean(call, source, tuple(axis % rank for axis in axes), keeps=bool(call.argument("keepdim")))


@imports("mean.default")
def _mean_of_all(call: Call) -> Result:
    source = call.f32("self")
    return _mean(call, source, tuple(range(len(source.shape))), keeps=False)


@imports("adaptive_avg_pool2d.default")
def _adaptive_average_pool(call: Call) -> Result:
    """Windows of one size where the output's extents divide the input's."""
    source = image_of(call)
    size, output = source.shape[2:], call.integers("output_size", 2)
    if output == (1, 1):
        return like_input(call, _mean(call, source, (2, 3), keeps=True))
    divides = min(output) >= 1 and all(extent % count == 0 for extent, count in zip(size, output, strict=True))
    require(divides, f"output_size must divide {list(size)}, but got {list(output)}")
    kernel = tuple(extent // count for extent, count in zip(size, output, strict=True))
    window = Window(kernel, kernel, (1, 1), (0, 0), (0, 0), output)
    whole = np.array(math.prod(kernel))
    return like_input(call, Average((*source.shape[:2], *output), source, window, whole, name=call.name))
