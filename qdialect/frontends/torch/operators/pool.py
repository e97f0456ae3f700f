"""Maxima and means of windows, and means over dimensions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from qdialect.dialect import Conv2DOp, MaxPool2DOp, MeanOp, RequantizeOp
from qdialect.dialect.type_constraints import ELEMENT_RANGES
from qdialect.frontends.common import UnsupportedError, require
from qdialect.frontends.onnx.emitter import Emitter, Placed, Value
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.operators.windows import Window, window_of
from qdialect.frontends.torch.tensors import (
    EIGHT_BIT,
    Parameters,
    Plan,
    Quantized,
    Real,
    Result,
    limit,
    mapping,
    place_of,
)
from qdialect.profiles import PYTORCH


def _image(call: Call) -> Real:
    source = call.real("self")
    require(len(source.shape) == 4, f"input must have 4 dimensions, but got {len(source.shape)}")
    return source


def _window(call: Call, source: Real) -> Window:
    return window_of(call, source.shape[2:], call.integers("kernel_size", 2), dilated=False)


@dataclass(frozen=True, eq=False)
class Largest(Real):
    """The largest number of each window: the largest code is the code of the largest number."""

    source: Real
    window: Window

    def quantized(self, plan: Plan, name: str, to: Parameters) -> Value:
        return self.pooled(plan, name, self.source.quantized(plan, name, to))

    def pooled(self, plan: Plan, name: str, codes: Value) -> Value:
        """The largest code of each window."""
        require(codes.element in EIGHT_BIT, f"input must be i8 or ui8, but got {codes.element}")
        window, bounds = self.window, ELEMENT_RANGES[codes.element]

        def emit(emitter: Emitter) -> Placed:
            pooled = emitter.build(
                MaxPool2DOp,
                emitter.last(codes),
                element=codes.element,
                kernel=window.kernel,
                strides=window.strides,
                padding=window.padding,
                output_min=bounds[0],
                output_max=bounds[1],
            )
            return pooled, True

        return plan.compute(name, self.shape, codes.element, emit)

    def computed(self, plan: Plan, name: str) -> Value:
        raise UnsupportedError("maxima of floats must be quantized")


@imports("max_pool2d.default", "max_pool2d_with_indices.default")
def _max_pool(call: Call) -> Result:
    source = _image(call)
    require(set(call.integers("dilation", 2)) == {1}, "dilation must be 1")
    window = _window(call, source)
    largest = Largest((*source.shape[:2], *window.output), source, window)
    if isinstance(source, Quantized) and source.is_whole:
        pooled = source.with_codes(largest.pooled(call.plan, call.name, source.codes))
    else:
        pooled = largest
    return pooled if call.node.kind.startswith("aten.max_pool2d.") else (pooled,)


@dataclass(frozen=True, eq=False)
class Average(Real):
    """Means of windows, the padding among them: sums, which a convolution with ones gives, scaled by s_x / (n * s_y).

    PyTorch averages in float32.  Sums of integers are exact; only where a mean lies halfway between two codes may the
    code differ, by one step.
    """

    source: Quantized
    window: Window

    def quantized(self, plan: Plan, name: str, to: Parameters) -> Value:
        require(to.element in EIGHT_BIT, f"output must be i8 or ui8, but got {to.element}")
        before, window, channels = self.source.parameters, self.window, self.shape[1]
        share = {"input_scale": before.scale, "weight_scales": (1 / math.prod(window.kernel),)}

        def emit(emitter: Emitter) -> Placed:
            sums = emitter.build(
                Conv2DOp,
                emitter.last(self.source.codes),
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

    def computed(self, plan: Plan, name: str) -> Value:
        raise UnsupportedError("means must be quantized")


def _quantized(call: Call) -> Quantized:
    source = call.quantized("self")
    require(source.is_whole, f"input must be i8 or ui8 with one scale, but got {source.codes.element}")
    return source


@imports("avg_pool2d.default")
def _average_pool(call: Call) -> Result:
    _image(call)
    source = _quantized(call)
    window = _window(call, source)
    require(call.argument("divisor_override") is None, "divisor_override is not supported")
    counts = bool(call.argument("count_include_pad"))
    require(counts or not any(window.padding), "count_include_pad must be true where there is padding")
    return Average((*source.shape[:2], *window.output), source, window)


@dataclass(frozen=True, eq=False)
class Mean(Real):
    """Means over `axes`: i32 sums times ``s_x / (s_y * n)`` in float32, rounded to even, zero point last.

    As in `Average`, codes may differ where a mean lies halfway between two.
    """

    source: Quantized
    axes: tuple[int, ...]
    keeps: bool

    def quantized(self, plan: Plan, name: str, to: Parameters) -> Value:
        require(to.element in EIGHT_BIT, f"output must be i8 or ui8, but got {to.element}")
        before = self.source.parameters
        rounding = PYTORCH.rescale

        def emit(emitter: Emitter) -> Placed:
            # Without the reduced dimensions, those that are left keep the model's order.
            plain = not self.keeps
            data, is_last = (emitter.plain(self.source.codes), False) if plain else emitter.either(self.source.codes)
            axes = tuple(sorted(place_of(axis, len(self.source.shape), is_last) for axis in self.axes))
            parameters = {**mapping(before, to), **rounding, "axes": axes, "keep_dims": self.keeps}
            return emitter.build(MeanOp, data, element=to.element, **parameters), is_last

        return limit(plan, name, plan.compute(name, self.shape, to.element, emit), to)

    def computed(self, plan: Plan, name: str) -> Value:
        raise UnsupportedError("means must be quantized")


def _mean(source: Quantized, axes: tuple[int, ...], keeps: bool) -> Mean:
    rank = len(source.shape)
    shape = tuple(1 if axis in axes else extent for axis, extent in enumerate(source.shape))
    kept = shape if keeps else tuple(shape[axis] for axis in range(rank) if axis not in axes)
    return Mean(kept, source, tuple(sorted(axes)), keeps)


@imports("mean.dim")
def _mean_over(call: Call) -> Result:
    source = _quantized(call)
    rank = len(source.shape)
    given = call.argument("dim")
    axes = tuple(range(rank)) if not given else tuple(given)
    require(all(-rank <= axis < rank for axis in axes), f"dim must be in [-{rank}, {rank}), but got {list(axes)}")
    return _mean(source, tuple(axis % rank for axis in axes), bool(call.argument("keepdim")))


@imports("mean.default")
def _mean_of_all(call: Call) -> Result:
    source = _quantized(call)
    return _mean(source, tuple(range(len(source.shape))), keeps=False)


@imports("adaptive_avg_pool2d.default")
def _adaptive_average_pool(call: Call) -> Result:
    """Windows of one size where the output's extents divide the input's."""
    _image(call)
    source = _quantized(call)
    size, output = source.shape[2:], call.integers("output_size", 2)
    if output == (1, 1):
        return _mean(source, (2, 3), keeps=True)
    divides = min(output) >= 1 and all(extent % count == 0 for extent, count in zip(size, output, strict=True))
    require(divides, f"output_size must divide {list(size)}, but got {list(output)}")
    kernel = tuple(extent // count for extent, count in zip(size, output, strict=True))
    window = Window(kernel, kernel, (1, 1), (0, 0), (0, 0), output)
    return Average((*source.shape[:2], *output), source, window)
