"""MaxPool, AveragePool, LpPool, their global forms and their QLinear forms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from qdialect.arithmetic import Multiplier, real_multiplier
from qdialect.arithmetic.profiles import ORT
from qdialect.dialect import F32MaxOp, MeanOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import Array, Shape, require
from qdialect.frontends.building.op_builder import Arithmetic, blocked_sum, reduced
from qdialect.frontends.building.windows import Pool, Window
from qdialect.frontends.onnx.operators.quantization import dequantized, parameters_of
from qdialect.frontends.onnx.operators.registry import Call, Quantized, imports, imports_f32
from qdialect.frontends.onnx.operators.window import declared_window, pool_window
from qdialect.frontends.onnx.qdq_groups import GroupKernel
from qdialect.frontends.planning import tensors
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.movement import Transposition
from qdialect.frontends.planning.pool import Largest, largest, sums_of_windows
from qdialect.ir._mlir import ir

# MaxPool and GlobalMaxPool: the largest quantized value is that of the largest number.


def _largest_of_windows(call: Call, window: Window, shape: Shape) -> tensors.Tensor:
    source = call.tensor(0)
    if isinstance(source, Quantized):
        require(len(source.scales) == 1, f"tensor must have one scale, but got {len(source.scales)}")
        return source.with_values(largest(call.plan, call.name, source.values, window, shape))
    if isinstance(source, tensors.F32Tensor):
        return Largest(shape, source, window)
    return largest(call.plan, call.name, call.value(0), window, shape)


@imports("MaxPool")
def _max_pool(call: Call) -> tensors.Tensor:
    """Of quantized values too, that no DequantizeLinear turned into f32 values."""
    require(not call.flag("storage_order", 0), "storage_order must be 0")
    shape = call.tensor(0).shape
    window = pool_window(call, shape)
    _check_padding(window)
    pool_of(call, shape)
    return _largest_of_windows(call, window, (*shape[:2], *window.output))


def _check_padding(window: Window) -> None:
    """A window in the padding alone has nothing to compare or to count."""
    for pad, extent in zip(window.padding, window.kernel_extent * 2, strict=True):
        require(pad < extent, f"pads must be less than the kernel's {extent}, but got {pad}")


@imports("GlobalMaxPool")
def _global_max_pool(call: Call) -> tensors.Tensor:
    shape = call.tensor(0).shape
    require(len(shape) >= 3, f"input must have at least 3 dimensions, but got {len(shape)}")
    kernel = shape[2:] if len(shape) == 4 else (math.prod(shape[2:]),)
    ones, zeros = (1,) * len(kernel), (0,) * len(kernel)
    window = Window(kernel, ones, ones, zeros, zeros, ones)
    return _largest_of_windows(call, window, (*shape[:2], *(1 for _ in shape[2:])))


# AveragePool, GlobalAveragePool and their QLinear forms.

_COUNT_BYTES = np.dtype(np.int64).itemsize
# From i8 to the ui8 that stand for the same.
_OFFSET = 128


@dataclass(frozen=True, eq=False)
class Average(tensors.F32Tensor):
    """Means of windows of dequantized values: sums in row-major order, divided by the number of elements that count.

    Quantized as QLinearAveragePool does: ``half_even(mean / s_y + z_y)``, every operation in float32.  Where i8 becomes
    ui8 for that, it is ``half_even(mean / s_y + (z_y + 128)) - 128``: the sum is rounded elsewhere.
    """

    source: Quantized
    window: Window
    counts_padding: bool
    kernel: GroupKernel

    def _quantized(self, plan: tensors.Plan, name: str, to: tensors.QuantizedTensorType) -> Value:
        require(to.element in tensors.EIGHT_BIT, f"output must be i8 or ui8, but got {to.element}")
        offset = _OFFSET if self.kernel is GroupKernel.UNSIGNED and to.element == "i8" else 0
        whole = tensors.QuantizedTensorType.full_range(ORT, to.element, 1.0, -offset)

        def ratio(emitter: Emitter, mean: ir.Value) -> ir.Value:
            s = Arithmetic(emitter)
            return s.op("arith.addf", s.op("arith.divf", mean, to.scale), to.zero_point + offset)

        return tensors.quantize(plan, name, plan.pointwise(name, self.f32(plan, name), "f32", ratio), whole)

    def _f32(self, plan: tensors.Plan, name: str) -> Value:
        window, channels_last = self.window, (self.shape[0], *self.shape[2:], self.shape[1])
        inside = window.counts(self.source.shape[2:])
        counted = np.full(window.output, math.prod(window.kernel)) if self.counts_padding else inside
        counts = np.broadcast_to(counted.astype(np.float32)[..., np.newaxis], channels_last)
        values = self.source.f32(plan, name)

        def emit(emitter: Emitter) -> Emitted:
            total = sums_of_windows(emitter, emitter.last(values), window)
            return emitter.upstream("arith.divf", total, emitter.constant(counts)), True

        return plan.compute(name, self.shape, "f32", emit)


def _eight_bit(source: Quantized) -> Quantized:
    element = source.parameters.element
    require(element in tensors.EIGHT_BIT, f"input must be i8 or ui8, but got {element}")
    return source


def _average(call: Call, source: Quantized) -> Average:
    window = pool_window(call, _eight_bit(source).shape)
    require(set(window.dilation) == {1}, f"dilations must be 1, but got {list(window.dilation)}")
    _check_padding(window)
    counts = call.flag("count_include_pad", 0)
    call.plan.budget.spend_constant(window.output, _COUNT_BYTES)
    return Average((*source.shape[:2], *window.output), source, window, counts, call.kernel)


@imports("AveragePool")
def _average_pool(call: Call) -> tensors.Tensor:
    return _average(call, call.quantized(0))


@imports("com.microsoft.QLinearAveragePool")
def _qlinear_average_pool(call: Call) -> tensors.Tensor:
    source = _qlinear_source(call)
    return _qlinear_result(call, _average(call, source), source)


@dataclass(frozen=True, eq=False)
class GlobalAverage(tensors.F32Tensor):
    """Means of whole images: i32 sums times ``s_x / (s_y * n)`` in float32, rounded to even, zero point last."""

    source: Quantized

    def _quantized(self, plan: tensors.Plan, name: str, to: tensors.QuantizedTensorType) -> Value:
        require(to.element in tensors.EIGHT_BIT, f"output must be i8 or ui8, but got {to.element}")
        before = self.source.parameters
        parameters = {**tensors.mapping(before, to), "rounding": ORT.rounding}
        parameters |= _multiplier(before.scale, to.scale, math.prod(self.source.shape[2:]))

        def emit(emitter: Emitter) -> Emitted:
            axes = tuple(range(1, len(self.shape) - 1))
            data = emitter.last(self.source.values)
            return emitter.build(MeanOp, data, element=to.element, axes=axes, keep_dims=True, **parameters), True

        return plan.compute(name, self.shape, to.element, emit)


def _multiplier(input_scale: float, output_scale: float, count: int) -> dict[str, Any]:
    """The way to form the multiplier that meets ONNX Runtime's ``s_x / (s_y * n)``, of float32 product and quotient.

    Where no way does, the input's scale is the one next to it whose exact quotient is that number.
    """
    wanted = np.float32(input_scale) / (np.float32(output_scale) * np.float32(count))
    for way in (Multiplier.F32, Multiplier.F64):
        if np.float32(real_multiplier(input_scale, [1.0], output_scale, way)[0] / count) == wanted:
            return {"multiplier": way}
    return {"multiplier": Multiplier.F64, "input_scale": float(wanted) * count * output_scale}


@imports("GlobalAveragePool")
def _global_average_pool(call: Call) -> tensors.Tensor:
    return _global(call.quantized(0))


@imports("com.microsoft.QLinearGlobalAveragePool")
def _qlinear_global_average_pool(call: Call) -> tensors.Tensor:
    source = _qlinear_source(call)
    return _qlinear_result(call, _global(source), source)


def _global(source: Quantized) -> GlobalAverage:
    _eight_bit(source)
    require(len(source.shape) >= 3, f"input must have at least 3 dimensions, but got {len(source.shape)}")
    return GlobalAverage((*source.shape[:2], *(1 for _ in source.shape[2:])), source)


def _qlinear_source(call: Call) -> Quantized:
    """Inputs 0 to 2, the channels moved to dimension 1 if `channels_last` is set."""
    call.count(4, 5)
    source = dequantized(call, 0, 1, 0)
    rank = len(source.shape)
    require(rank >= 3, f"input must have at least 3 dimensions, but got {rank}")
    if not call.flag("channels_last", 0):
        return source
    order = (0, rank - 1, *range(1, rank - 1))
    return source.with_values(_transposed(call, source.values, order))


def _qlinear_result(call: Call, qdq_group: tensors.F32Tensor, source: Quantized) -> Value:
    values = qdq_group.quantized(call.plan, call.name, parameters_of(call, 3, source.values.element))
    rank = len(values.shape)
    return _transposed(call, values, (0, *range(2, rank), 1)) if call.flag("channels_last", 0) else values


def _transposed(call: Call, values: Value, order: tuple[int, ...]) -> Value:
    movement = Transposition(tuple(values.shape[axis] for axis in order), order)
    return call.moved(values, movement)


# Pools of f32 values: MaxPool, AveragePool and their global forms.

_F32_BYTES = np.dtype(np.float32).itemsize
# The operator set whose AveragePool is another kernel of ONNX Runtime, which takes dilated windows.
_DILATED = 19
# Of channels, in ONNX Runtime's own layout of images on CPUs with AVX-512.
_F32_BLOCK = 16


@imports_f32("MaxPool")
def _f32_max_pool(call: Call) -> tensors.Computed:
    return _pooled(call, lambda emitter, pool, data: pool.maxima(emitter, data))


@imports_f32("AveragePool")
def _f32_average_pool(call: Call) -> tensors.Computed:
    """Sums divided by how many elements of the image, or of the padded image, each window has.

    ONNX Runtime adds the terms in row-major order, but for small strides in old operator sets and its plain layout:
    then each column's sum comes first.
    """
    shape = call.f32(0).shape
    window, pool = pool_window(call, shape), pool_of(call, shape)
    call.plan.budget.spend_constant(tuple(map(len, pool.positions)), _F32_BYTES)
    counts = _counts(call, pool)
    is_in_blocks = len(shape) == 4 and shape[1] % _F32_BLOCK == 0
    is_in_rows = call.node.version >= _DILATED or is_in_blocks or window.strides[-1] > 2

    def mean(emitter: Emitter, pool: Pool, data: ir.Value) -> ir.Value:
        sums = sums_of_windows(emitter, data, window) if is_in_rows else pool.sums(emitter, data)
        return emitter.f32("divf", sums, emitter.constant(counts))

    return _pooled(call, mean)


def _pooled(call: Call, fold: Callable[[Emitter, Pool, ir.Value], ir.Value]) -> tensors.Computed:
    """What `fold` makes of the windows over input 0, whose channels it takes and gives last."""
    source = call.f32(0)
    pool, value = pool_of(call, source.shape), source.f32(call.plan, call.name)
    shape = (*source.shape[:2], *map(len, pool.positions))

    def emit(emitter: Emitter) -> Emitted:
        return fold(emitter, pool, emitter.last(value)), True

    return tensors.Computed(shape, call.plan.compute(call.name, shape, "f32", emit))


def pool_of(call: Call, shape: Shape) -> Pool:
    """The windows of a pool over data of `shape`, each with an element of the image at least."""
    pool = Pool.of(pool_window(call, shape), shape[2:], call.plan.budget)
    pool.check()
    return pool


def _counts(call: Call, pool: Pool) -> Array:
    """How many taps count, of each window: f32 of shape [..., 1]."""
    low, high = (0,) * len(pool.size), pool.size
    if call.flag("count_include_pad", 0):
        # Not what `ceil_mode` adds to the padding.
        window = declared_window(call, pool.size, tuple(call.attribute("kernel_shape", [0])))
        low = tuple(-before for before in window.before)
        high = tuple(extent + after for extent, after in zip(pool.size, window.after, strict=True))
    by_dimension = [
        np.array([sum(first <= tap < end for tap in taps) for taps in windows], dtype=np.float32)
        for first, end, windows in zip(low, high, pool.positions, strict=True)
    ]
    return np.asarray(reduce(np.multiply.outer, by_dimension))[..., np.newaxis]


def global_pool(call: Call, pooled: Callable[[Emitter, ir.Value, Shape], ir.Value]) -> tensors.Computed:
    """The result of `pooled` for the data along the axes of the image, with one element of each channel."""
    source = call.f32(0)
    rank = len(source.shape)
    require(rank >= 3, f"input must have at least 3 dimensions, but got {rank}")
    value = source.f32(call.plan, call.name)
    shape = (*source.shape[:2], *(1 for _ in source.shape[2:]))

    def emit(emitter: Emitter) -> Emitted:
        data, is_channels_last = emitter.either(value)
        axes = tuple(range(1, rank - 1)) if is_channels_last else tuple(range(2, rank))
        return pooled(emitter, data, axes), is_channels_last

    return tensors.Computed(shape, call.plan.compute(call.name, shape, "f32", emit))


@imports_f32("GlobalMaxPool")
def _f32_global_max_pool(call: Call) -> tensors.Computed:
    return global_pool(call, lambda emitter, data, axes: reduced(emitter, F32MaxOp, data, axes))


@imports_f32("GlobalAveragePool")
def _f32_global_average_pool(call: Call) -> tensors.Computed:
    def mean(emitter: Emitter, data: ir.Value, axes: Shape) -> ir.Value:
        total, shape = blocked_sum(emitter, data, axes), shape_of(data.type)
        return emitter.f32("divf", total, float(math.prod(shape[axis] for axis in axes)))

    return global_pool(call, mean)


# LpPool and GlobalLpPool: the Lp norm of each window, ``(sum |x|^p)^(1/p)``, in float32.


def _order(call: Call) -> int:
    order: int = call.attribute("p", 2)
    require(order >= 1, f"p must be at least 1, but got {order}")
    return order


def _powers(emitter: Emitter, value: ir.Value, order: int) -> ir.Value:
    """``|x|^p``."""
    s = emitter.f32
    if order == 2:
        return s("mulf", value, value)
    return s("absf", value) if order == 1 else s("powf", s("absf", value), float(order))


def _root(emitter: Emitter, total: ir.Value, order: int) -> ir.Value:
    s = emitter.f32
    if order == 1:
        return total
    return s("sqrt", total) if order == 2 else s("powf", total, 1 / order)


@imports_f32("LpPool")
def _lp_pool(call: Call) -> tensors.Computed:
    """Over one to three dimensions of channels-first data; what lies outside of the image counts as 0."""
    order = _order(call)

    def norm(emitter: Emitter, pool: Pool, data: ir.Value) -> ir.Value:
        return _root(emitter, pool.sums(emitter, _powers(emitter, data, order)), order)

    return _pooled(call, norm)


@imports_f32("GlobalLpPool")
def _global_lp_pool(call: Call) -> tensors.Computed:
    order = _order(call)

    def norm(emitter: Emitter, data: ir.Value, axes: Shape) -> ir.Value:
        return _root(emitter, blocked_sum(emitter, _powers(emitter, data, order), axes), order)

    return global_pool(call, norm)
