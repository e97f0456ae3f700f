"""Means of windows and over dimensions.

PyTorch averages in float32.  A sum of integers is exact and its quantized values are PyTorch's, but for means that lie
halfway between two quantized values: there the float32 sum, which rounds at every term, decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import Conv2DOp, F32Conv2DOp, F32SumOp, MeanOp, PadOp, RequantizeOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Array, Shape, require
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.quantized_tensor_type import QuantizedTensorType
from qdialect.frontends.planning.tensors import EIGHT_BIT, F32Tensor, Plan, limit, mapping, quantize, stored_axis
from qdialect.frontends.planning.window import Window
from qdialect.frontends.torch.operators.elementwise import FloatOps
from qdialect.frontends.torch.operators.pool import image_of, like_input, pooled_window
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.tensors import Quantized
from qdialect.profiles import PYTORCH
from qdialect.quant_math import same_scale


def _divided(emitter: Emitter, total: ir.Value, count: int) -> ir.Value:
    ops = FloatOps(emitter)
    return ops("div", total, ops.number(count, total))


def _quantized_of(source: F32Tensor, to: QuantizedTensorType) -> Quantized | None:
    """`source` where integers give its means."""
    holds = isinstance(source, Quantized) and source.is_eight_bit and to.element in EIGHT_BIT
    return source if isinstance(source, Quantized) and holds else None


@dataclass(frozen=True, eq=False)
class Average(F32Tensor):
    """Means of windows: sums over `counts`, the number that each window is divided by, [OH, OW] or of one for all.

    Sums of quantized values are a convolution with ones, scaled by ``s_x / (n * s_y)``.  Where the scales are the same
    and n is even, so that means lie halfway, the sum is PyTorch's: in float32, the elements of a window one after
    another.
    """

    name: str
    source: F32Tensor
    window: Window
    counts: Array

    @property
    def _count(self) -> int:
        """What all windows are divided by."""
        return int(self.counts.flat[0])

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        source = _quantized_of(self.source, to)
        lies_halfway = source is not None and same_scale(source.scales[0], to.scale) and self._count % 2 == 0
        if source is None or lies_halfway or np.any(self.counts != self._count):
            return quantize(plan, name, self.f32(plan, self.name), to)
        before, window, channels = source.parameters, self.window, self.shape[1]
        share = {"input_scale": before.scale, "weight_scales": (1 / self._count,)}

        def emit(emitter: Emitter) -> Emitted:
            sums = emitter.build(
                Conv2DOp,
                emitter.last(source.values),
                emitter.constant(np.ones((channels, *window.kernel, 1), dtype=np.int8)),
                element="i32",
                strides=window.strides,
                padding=window.padding,
                groups=channels,
                input_zero_point=before.zero_point,
                **share,
            )
            scaled = emitter.build(
                RequantizeOp,
                sums,
                element=to.element,
                output_scale=to.scale,
                output_zero_point=to.zero_point,
                axis=3,
                **PYTORCH.rescale,
                **share,
            )
            return scaled, True

        return limit(plan, name, plan.compute(name, self.shape, to.element, emit), to)

    def _f32(self, plan: Plan, name: str) -> Value:
        source, window, channels = self.source.f32(plan, self.name), self.window, self.shape[1]

        def emit(emitter: Emitter) -> Emitted:
            data = emitter.last(source)
            if any(window.padding):
                low, high = ((0, *sides, 0) for sides in (window.before, window.after))
                data = emitter.build(PadOp, data, element="f32", low=low, high=high, value=0)
            ones = emitter.constant(np.ones((channels, *window.kernel, 1), dtype=np.float32))
            how = {"strides": window.strides, "groups": channels}
            total = emitter.build(F32Conv2DOp, data, ones, element="f32", **how)
            with emitter.location_of(self.name):
                if self.counts.size == 1:
                    return _divided(emitter, total, self._count), True
                counts = emitter.constant(self.counts[:, :, np.newaxis].astype(np.float32))
                return emitter.float_op("arith.divf", total, emitter.broadcast(counts, shape_of(total.type))), True

        return plan.compute(self.name, self.shape, "f32", emit)


@imports("avg_pool2d.default")
def _average_pool(call: Call) -> Result:
    source = image_of(call)
    window = pooled_window(call, source)
    shape = (*source.shape[:2], *window.output)
    return like_input(call, Average(shape, call.name, source, window, _counts(call, source.shape[2:], window)))


def _counts(call: Call, size: Shape, window: Window) -> Array:
    """What each window is divided by: the elements that it has of the image and, perhaps, of the padding."""
    divisor = call.argument("divisor_override")
    if divisor is not None:
        require(divisor != 0, "divisor_override must not be 0")
        return np.array(divisor)
    padding = call.integers("padding", 2) if call.argument("count_include_pad") else (0, 0)
    call.plan.budget.spend_constant(window.output, 8)
    rows, columns = (
        _elements(size[i], window.output[i], window.strides[i], window.kernel[i], window.before[i], padding[i])
        for i in range(2)
    )
    counts = np.outer(rows, columns)
    return counts if np.any(counts != counts[0, 0]) else counts[0, 0].reshape(())


def _elements(size: int, output: int, stride: int, kernel: int, before: int, counted: int) -> Array:
    """How many of the taps of each window along a dimension lie in it or among the `counted` elements at its ends."""
    begins = np.arange(output) * stride - before
    return np.minimum(begins + kernel, size + counted) - np.maximum(begins, -counted)


@dataclass(frozen=True, eq=False)
class Mean(F32Tensor):
    """Means over `axes`: i32 sums times ``s_x / (s_y * n)`` in float32, rounded to even, zero point last.

    PyTorch sums many numbers in an order that depends on the machine, so where a mean lies halfway between two
    quantized values its quantized value may be the other one.
    """

    name: str
    source: F32Tensor
    axes: tuple[int, ...]
    keeps: bool

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        source = _quantized_of(self.source, to)
        if source is None:
            return quantize(plan, name, self.f32(plan, self.name), to)

        def emit(emitter: Emitter) -> Emitted:
            data, axes, is_channels_last = self._placed(emitter, source.values)
            parameters = {**mapping(source.parameters, to), **PYTORCH.rescale, "axes": axes, "keep_dims": self.keeps}
            return emitter.build(MeanOp, data, element=to.element, **parameters), is_channels_last

        return limit(plan, name, plan.compute(name, self.shape, to.element, emit), to)

    def _f32(self, plan: Plan, name: str) -> Value:
        source = self.source.f32(plan, self.name)
        count = math.prod(self.source.shape[axis] for axis in self.axes)

        def emit(emitter: Emitter) -> Emitted:
            data, axes, is_channels_last = self._placed(emitter, source)
            total = emitter.build(F32SumOp, data, element="f32", axes=axes, keep_dims=self.keeps)
            with emitter.location_of(self.name):
                return _divided(emitter, total, count), is_channels_last

        return plan.compute(self.name, self.shape, "f32", emit)

    def _placed(self, emitter: Emitter, value: Value) -> tuple[ir.Value, tuple[int, ...], bool]:
        """The data, its axes, and whether the result's channels come last.

        Without the axes its dimensions must have the model's order, as batch and channels have in any case.
        """
        rank = len(value.shape)
        of_images = self.axes == tuple(range(2, rank))
        data, is_channels_last = (
            emitter.either(value) if self.keeps or of_images else (emitter.to_channels_first(value), False)
        )
        return (
            data,
            tuple(sorted(stored_axis(axis, rank, is_channels_last) for axis in self.axes)),
            is_channels_last and self.keeps,
        )


def _mean(call: Call, source: F32Tensor, axes: tuple[int, ...], *, keeps: bool) -> Mean:
    rank = len(source.shape)
    require(rank >= 1, "input must have at least 1 dimension, but got 0")
    shape = tuple(1 if axis in axes else extent for axis, extent in enumerate(source.shape))
    kept = shape if keeps else tuple(shape[axis] for axis in range(rank) if axis not in axes)
    return Mean(kept, call.name, source, tuple(sorted(axes)), keeps)


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
    return like_input(call, Average((*source.shape[:2], *output), call.name, source, window, whole))
