"""Plans maxima and means of windows, and means over dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from qdialect.arithmetic import same_scale
from qdialect.arithmetic.expressions import Input
from qdialect.arithmetic.profiles import PYTORCH
from qdialect.dialect import MeanOp, RequantizeOp
from qdialect.frontends.building.checks import Array, Shape, axes_in, require
from qdialect.frontends.building.slices import check_indices
from qdialect.frontends.building.windows import Pool, Positions, Window, effective_kernel_extent
from qdialect.frontends.planning import tensors
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.movement import Reshaping
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.pool import Largest, largest, sums_of_windows, window_sums
from qdialect.frontends.planning.reduction import Reduced, keeps_ties, reduced_shape
from qdialect.frontends.torch.operators.movement import moved
from qdialect.frontends.torch.operators.registry import Call, as_f32, imports
from qdialect.frontends.torch.operators.tensors import Quantized
from qdialect.ir._mlir import ir


def window_of(call: Call, size: Shape, kernel: Shape, *, dilated: bool) -> Window:
    """The window of a node's arguments over an image of `size`, which it fits at least once.

    In ceil mode a last window may begin within the image or before it and end beyond the padding: `after` grows then.
    """
    rank = len(size)
    strides = call.integers("stride", rank) if call.argument("stride") else kernel
    dilation = call.integers("dilation", rank) if dilated else (1,) * rank
    kernel_extent = effective_kernel_extent(kernel, dilation)
    before, after = _padding(call, kernel_extent, strides)
    smallest = min(*kernel, *strides, *dilation, *(amount + 1 for amount in before))
    require(smallest >= 1, "kernel, stride and dilation must be at least 1 and padding at least 0")
    available = [
        extent + low + high - r for extent, low, high, r in zip(size, before, after, kernel_extent, strict=True)
    ]
    fits = f"kernel must fit into the padded input {list(size)}, but is {list(kernel)}"
    require(min(available) >= 0, fits)
    output = tuple(rest // stride + 1 for rest, stride in zip(available, strides, strict=True))
    window = Window(kernel, strides, dilation, before, after, output)
    return _with_last_windows(window, size) if call.argument("ceil_mode") else window


def _with_last_windows(window: Window, size: Shape) -> Window:
    """With the windows that ceil mode adds, which begin at an element or before the first."""
    output: list[int] = []
    after: list[int] = []
    for i, extent in enumerate(size):
        begin = window.output[i] * window.strides[i] - window.before[i]
        covered = begin - window.strides[i] + window.kernel_extent[i] >= extent + window.after[i]
        output.append(window.output[i] + (0 if covered or begin >= extent else 1))
        end = (output[i] - 1) * window.strides[i] - window.before[i] + window.kernel_extent[i]
        after.append(max(window.after[i], end - extent))
    return replace(window, output=tuple(output), after=tuple(after))


def _padding(call: Call, kernel_extent: Shape, strides: Shape) -> tuple[Shape, Shape]:
    padding = call.argument("padding")
    if not isinstance(padding, str):
        amounts = call.integers("padding", len(kernel_extent))
        return amounts, amounts
    if padding == "valid":
        return (0,) * len(kernel_extent), (0,) * len(kernel_extent)
    require(padding == "same" and set(strides) == {1}, f"padding must be same with strides of 1, but is {padding}")
    before = tuple((r - 1) // 2 for r in kernel_extent)
    return before, tuple(r - 1 - low for r, low in zip(kernel_extent, before, strict=True))


# Maxima of windows.


def _data_of(call: Call) -> tensors.F32Tensor:
    """The argument ``self``, volumes, images or one image, which becomes a batch of one."""
    source = call.f32("self")
    rank = len(source.shape)
    if "3d" in call.node.kind:
        require(rank == 5, f"input must have 5 dimensions, but got {rank}")
        return source
    require(rank in (3, 4), f"input must have 3 or 4 dimensions, but got {rank}")
    return source if rank == 4 else as_f32("self", moved(call, source, Reshaping((1, *source.shape))))


def _like_input(call: Call, pooled: tensors.F32Tensor) -> tensors.F32Tensor:
    """`pooled` for images, or for one image without its batch."""
    if len(call.tensor("self").shape) >= 4:
        return pooled
    return as_f32("self", moved(call, pooled, Reshaping(pooled.shape[1:])))


def _window(call: Call, source: tensors.F32Tensor, *, dilated: bool) -> Window:
    """The window of a pool over `source`."""
    size = source.shape[2:]
    return window_of(call, size, call.integers("kernel_size", len(size)), dilated=dilated)


@dataclass(frozen=True, eq=False)
class _Largest(Largest):
    """In float32 too, where a NaN is the largest number of its windows."""

    def _quantized(self, plan: tensors.Plan, name: str, to: tensors.QuantizedTensorType) -> Value:
        if self.may_be_nan(plan):
            return tensors.quantize(plan, name, self.f32(plan, name), to)
        return super()._quantized(plan, name, to)

    def _f32(self, plan: tensors.Plan, name: str) -> Value:
        source = self.source.f32(plan, name)
        pool = Pool.of(self.window, self.source.shape[2:], plan.budget)
        pool.check()
        return plan.compute(name, self.shape, "f32", lambda emitter: (pool.maxima(emitter, emitter.last(source)), True))


@imports(*(f"max_pool{rank}d{form}.default" for rank in (2, 3) for form in ("", "_with_indices")))
def _max_pool(call: Call) -> Result:
    source = _data_of(call)
    window = _window(call, source, dilated=True)
    shape = (*source.shape[:2], *window.output)
    found: tensors.F32Tensor = _Largest(shape, source, window)
    if isinstance(source, Quantized) and source.is_eight_bit:
        found = source.with_values(largest(call.plan, call.name, source.values, window, shape))
    found = _like_input(call, found)
    return (found,) if "with_indices" in call.node.kind else found


@imports("adaptive_max_pool2d.default", "adaptive_max_pool3d.default")
def _adaptive_max_pool(call: Call) -> Result:
    """Windows that divide the data, one for each output element, of different sizes if needed."""
    source = _data_of(call)
    size = source.shape[2:]
    output = call.integers("output_size", len(size))
    require(min(output) >= 1, f"output_size must be at least 1, but got {list(output)}")
    positions = tuple(_divided(extent, count) for extent, count in zip(size, output, strict=True))

    def build(emitter: Emitter, operands: Sequence[ir.Value]) -> ir.Value:
        return Pool(size, positions).maxima(emitter, operands[0])

    shape = (*source.shape[:2], *output)
    return (_like_input(call, tensors.Computation(shape, (source,), build, is_channels_last=True, name=call.name)),)


def _divided(extent: int, count: int) -> Positions:
    """From ``floor(i * extent / count)`` to ``ceil((i + 1) * extent / count)``; smaller windows have a tap twice."""
    windows = [range(i * extent // count, -(-(i + 1) * extent // count)) for i in range(count)]
    taps = max(map(len, windows))
    return tuple(tuple(window) + (window[-1],) * (taps - len(window)) for window in windows)


# Means of windows and over dimensions.
#
# PyTorch averages in float32.  A sum of integers is exact and its quantized values are PyTorch's, but for means that
# lie halfway between two quantized values: there the float32 sum, which rounds at every term, decides.


@dataclass(frozen=True, eq=False)
class Average(tensors.F32Tensor):
    """Means of windows: sums over `counts`, the number that each window is divided by, [..., OH, OW] or of one for all.

    Sums of quantized values are a convolution with ones, scaled by ``s_x / (n * s_y)``.  Where the scales are the same
    and n is even, so that means lie halfway, the sum is PyTorch's: in float32, the elements of a window one after
    another.
    """

    source: tensors.F32Tensor
    window: Window
    counts: Array

    @property
    def _count(self) -> int:
        """The divisor of all windows."""
        return int(self.counts.flat[0])

    def _quantized(self, plan: tensors.Plan, name: str, to: tensors.QuantizedTensorType) -> Value:
        source, share = self.source, 1 / self._count
        if not isinstance(source, Quantized) or not source.is_eight_bit or to.element not in tensors.EIGHT_BIT:
            return super()._quantized(plan, name, to)
        lies_halfway = same_scale(source.scales[0], to.scale) and self._count % 2 == 0
        lies_halfway = lies_halfway or keeps_ties(source.scales[0], to.scale, self._count)
        if lies_halfway or np.any(self.counts != self._count) or len(self.window.kernel) == 3:
            return super()._quantized(plan, name, to)

        def emit(emitter: Emitter) -> Emitted:
            sums = window_sums(emitter, source, self.window, share)
            scales = {"input_scale": source.scales[0], "weight_scales": (share,), "output_scale": to.scale}
            how = {"output_zero_point": to.zero_point, "axis": 3, **scales, **PYTORCH.rescale}
            return emitter.build(RequantizeOp, sums, element=to.element, **how), True

        return tensors.limit(plan, name, plan.compute(name, self.shape, to.element, emit), to)

    def _f32(self, plan: tensors.Plan, name: str) -> Value:
        source = self.source.f32(plan, name)

        def emit(emitter: Emitter) -> Emitted:
            total = sums_of_windows(emitter, emitter.last(source), self.window)
            if self.counts.size == 1:
                return emitter.expression(Input() / self._count, total), True
            return emitter.f32("divf", total, emitter.constant(self.counts[..., np.newaxis].astype(np.float32))), True

        return plan.compute(name, self.shape, "f32", emit)


@imports("avg_pool2d.default", "avg_pool3d.default")
def _average_pool(call: Call) -> Result:
    source = _data_of(call)
    window = _window(call, source, dilated=False)
    return _averages(call, source, window, _counts_of_windows(call, source.shape[2:], window))


def _averages(call: Call, source: tensors.F32Tensor, window: Window, counts: Array) -> tensors.F32Tensor:
    if len(window.kernel) == 3:
        for i in range(2):
            check_indices(window.output[i] * window.kernel[i], call.plan.budget)
        call.plan.budget.spend_constant((source.shape[1], *window.kernel), 4)
    shape = (*source.shape[:2], *window.output)
    return _like_input(call, Average(shape, source, window, counts, name=call.name))


def _counts_of_windows(call: Call, size: Shape, window: Window) -> Array:
    """The divisor of each window: the elements that it has of the image and, perhaps, of the padding."""
    divisor = call.argument("divisor_override")
    call.ignore("count_include_pad")
    if divisor is not None:
        require(divisor != 0, "divisor_override must not be 0")
        return np.array(divisor)
    rank = len(size)
    padding = call.integers("padding", rank) if call.argument("count_include_pad") else (0,) * rank
    call.plan.budget.spend_constant(window.output, 8)
    counts = window.counts(size, padding)
    return counts if np.any(counts != counts.flat[0]) else np.array(counts.flat[0])


def _mean(call: Call, source: tensors.F32Tensor, axes: tuple[int, ...], *, keeps: bool) -> Reduced:
    rank = len(source.shape)
    require(rank >= 1, "input must have at least 1 dimension, but got 0")
    shape = reduced_shape(source.shape, axes, keeps)
    return Reduced(shape, MeanOp, source, tuple(sorted(axes)), keeps, PYTORCH.rescale, name=call.name)


@imports("mean.dim", "mean.default")
def _mean_over(call: Call) -> Result:
    source = call.f32("self")
    rank = len(source.shape)
    axes = tuple(call.argument("dim") or range(rank))
    return _mean(call, source, tuple(axes_in(axes, rank, "dim")), keeps=bool(call.argument("keepdim")))


@imports("adaptive_avg_pool2d.default", "_adaptive_avg_pool3d.default", "adaptive_avg_pool3d.default")
def _adaptive_average_pool(call: Call) -> Result:
    """Windows of one size where the output's extents divide the input's."""
    source = _data_of(call)
    size = source.shape[2:]
    output, ones, zeros = call.integers("output_size", len(size)), (1,) * len(size), (0,) * len(size)
    if output == (1, 1):
        return _like_input(call, _mean(call, source, (2, 3), keeps=True))
    divides = min(output) >= 1 and all(extent % count == 0 for extent, count in zip(size, output, strict=True))
    require(divides, f"output_size must divide {list(size)}, but got {list(output)}")
    kernel = tuple(extent // count for extent, count in zip(size, output, strict=True))
    return _averages(call, source, Window(kernel, kernel, ones, zeros, zeros, output), np.array(math.prod(kernel)))
