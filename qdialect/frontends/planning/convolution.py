"""Convolutions over rows, images and volumes, plain and transposed, as convolutions over images NHWC."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby
from typing import Any, Self, TypeVar

import numpy as np

from qdialect.dialect import Conv2DOp, ConvTranspose2DOp, F32Conv2DOp, I16Conv2DOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import Array, Budget, Shape, UnsupportedError, require
from qdialect.frontends.building.op_builder import OpBuilder
from qdialect.frontends.building.slices import Slice, check_indices, framed, gather, take_slices
from qdialect.frontends.building.windows import Window
from qdialect.frontends.planning.contraction import (
    Accumulate,
    Contraction,
    Finish,
    RunTimeWeight,
    Weight,
    WordContraction,
    accumulator_attributes,
    check_terms_of_words,
    signed_word,
    signed_words,
    word_sums,
)
from qdialect.frontends.planning.emitter import Emitter, Value
from qdialect.frontends.planning.movement import Movement, move
from qdialect.frontends.planning.tensors import SIXTEEN_BIT, Plan, Quantized, QuantizedTensorType
from qdialect.ir._mlir import ir

# Windows over volumes as windows over images: their taps along the depth become channels, or rows, of an image.

RANK = 5
"""Of volumes, [N, C, D, H, W]."""


@dataclass(frozen=True)
class DepthTaps(Movement):
    """The elements of each window along the depth as channels of an image: [N * OD, groups * KD * C / groups, H, W]."""

    window: Window
    groups: int

    @classmethod
    def of(cls, before: Shape, window: Window, groups: int, budget: Budget) -> Self:
        """Of volumes of shape `before`; raises `UnsupportedError` where there are too many taps to be listed."""
        check_indices(window.output[0] * window.kernel[0], budget)
        batch, channels, _, *size = before
        return cls((batch * window.output[0], window.kernel[0] * channels, *size), window, groups)

    @property
    def wants_channels_last(self) -> bool:
        return True

    @property
    def is_known(self) -> bool:
        return False

    def array(self, array: Array) -> Array:
        raise UnsupportedError("volumes must not be known when the model is read")

    def emit(self, emitter: OpBuilder, value: ir.Value, to: QuantizedTensorType | None) -> ir.Value:
        taps = _slices(emitter, value, self.window, 1, to)
        batch, count, kernel, height, width, channels = shape_of(taps.type)
        by_group = emitter.reshape(taps, (batch, count, kernel, height, width, self.groups, channels // self.groups))
        merged = by_group if kernel == 1 else emitter.transpose(by_group, (0, 1, 3, 4, 5, 2, 6))
        return emitter.reshape(merged, (batch * count, height, width, kernel * channels))


def taps_of_depth(weight: Array) -> Array:
    """Weights [O, KD, KH, KW, C / groups] as those of the images: [O, KH, KW, KD * C / groups]."""
    last = np.moveaxis(weight, 1, 3)
    return np.ascontiguousarray(last.reshape(*last.shape[:3], -1))


def rows_of_windows(emitter: OpBuilder, value: ir.Value, window: Window) -> tuple[ir.Value, Window]:
    """f32 images [N * OD, OH * KD * KH, W, C] of volumes NDHWC, and windows over them that read in the same order."""
    slices = _slices(emitter, value, window, 3, None)
    batch, depth, taps, _, width, channels = shape_of(slices.type)
    rows = gather(emitter, slices, 3, _positions(window, 1))
    height, lines = window.output[1], window.kernel[1]
    by_line = emitter.reshape(rows, (batch, depth, taps, height, lines, width, channels))
    by_row = emitter.transpose(by_line, (0, 1, 3, 2, 4, 5, 6)) if taps > 1 else by_line
    image = emitter.reshape(by_row, (batch * depth, height * taps * lines, width, channels))
    kernel, strides = (taps * lines, window.kernel[2]), (taps * lines, window.strides[2])
    return image, Window(kernel, strides, (1, window.dilation[2]), (0, 0), (0, 0), window.output[1:])


def _slices(
    emitter: OpBuilder, value: ir.Value, window: Window, padded: int, to: QuantizedTensorType | None
) -> ir.Value:
    """NDHWC data with the slices of each window as [N, windows, KD, H, W, C]; `padded` dimensions have its padding."""
    low, high = ((0, *ends[:padded], *(0,) * (4 - padded)) for ends in (window.before, window.after))
    whole = framed(emitter, value, low, high, fill=0 if to is None else to.quantize_scalar(0.0))
    batch, _, *rest = shape_of(whole.type)
    found = gather(emitter, whole, 1, _positions(window, 0))
    return emitter.reshape(found, (batch, window.output[0], window.kernel[0], *rest))


def _positions(window: Window, dimension: int) -> list[int]:
    """Where each tap of each window stands along a padded dimension."""
    stride, dilation = window.strides[dimension], window.dilation[dimension]
    windows, taps = range(window.output[dimension]), range(window.kernel[dimension])
    return [index * stride + tap * dilation for index in windows for tap in taps]


# Convolutions over images NCHW, rows NCL as images of height 1, and volumes NCDHW as images of their slices.


@dataclass(frozen=True)
class Layer:
    """A convolution of either direction; the weights are [O, ..., C / groups]."""

    op_class: type[Conv2DOp | ConvTranspose2DOp]
    data: Quantized
    weight: Weight | RunTimeWeight
    attributes: dict[str, Any]

    def contraction(self, shape: Shape, bias: Array | None, name: str | None = None) -> Contraction:
        """The f32 values of the result, which has the model's `shape`."""
        kind, accumulate = Contraction, self._accumulate
        if self.data.values.element in SIXTEEN_BIT:
            kind, accumulate = WordContraction, self._sums_of_words()
        return kind(shape, self.data, self.weight.scales, bias, accumulate, from_image(shape), name=name)

    def over_volumes(self, plan: Plan, name: str, window: Window) -> Layer:
        """The same layer of images where its data and weights are volumes, `window` being that of the model.

        Raises `UnsupportedError` where the weights of several slices are known at run time only.
        """
        if len(window.kernel) < 3:
            return self
        if (window.kernel[0], window.strides[0], window.before[0], window.after[0]) == (1, 1, 0, 0):
            return self
        weight = self.weight
        require(isinstance(weight, Weight), "weight must be constant where a window reads several slices of a volume")
        assert isinstance(weight, Weight)
        movement = DepthTaps.of(self.data.shape, window, self.attributes["groups"], plan.budget)
        moved = move(plan, name, self.data, movement)
        assert isinstance(moved, Quantized)
        return replace(self, data=moved, weight=replace(weight, values=taps_of_depth(weight.values)))

    def _sums_of_words(self) -> Accumulate:
        """Raises `UnsupportedError` where no op sums up words."""
        holds = self.op_class is Conv2DOp and isinstance(self.weight, Weight)
        require(holds, "weight of 16-bit data must be a constant one of a convolution")
        assert isinstance(self.weight, Weight)
        check_terms_of_words(math.prod(self.weight.shape[1:]))
        weight, values = kernels(self.weight.centered()), self.data.values
        parameters = values.element, self.data.zero_points[0]
        top, left, bottom, right = self.attributes["padding"]
        attributes = {**self.attributes, "padding": (0, 0, 0, 0)}

        def accumulate(emitter: Emitter, bias: Array | None) -> ir.Value:
            words = signed_words(emitter, values, lambda held: image(emitter, held))
            fill = signed_word(*parameters)
            padded = framed(emitter, words, (0, top, left, 0), (0, bottom, right, 0), fill=fill)
            return word_sums(emitter, I16Conv2DOp, padded, weight, parameters, bias, **attributes)

        return accumulate

    def _accumulate(self, emitter: Emitter, bias: Array | None) -> ir.Value:
        data, how = image(emitter, self.data.values), accumulator_attributes(self.data, self.weight)
        taps = self.weight.emit(emitter, kernel_shape(self.weight.shape))
        start = None if bias is None else emitter.constant(bias)
        return emitter.build(self.op_class, data, taps, start, element="i32", **how, **self.attributes)


def check_groups(channels: int, weight: Shape, groups: int) -> None:
    """Raise `UnsupportedError` where weights [O, ..., C / groups] do not fit the `channels`."""
    holds = groups >= 1 and channels == groups * weight[-1]
    require(holds, f"input must have {groups} * {weight[-1]} channels, but got {channels}")
    require(weight[0] % groups == 0, f"output channels must be a multiple of {groups}, but got {weight[0]}")


def attributes_of(window: Window, groups: int) -> dict[str, Any]:
    """Those of `Conv2DOp` for a window over at most two dimensions."""
    flat = window.two_dimensional()
    return {"strides": flat.strides, "padding": flat.padding, "dilation": flat.dilation, "groups": groups}


def image(emitter: Emitter, value: Value) -> ir.Value:
    """The data as images NHWC."""
    batch, channels, *size = value.shape
    height, width = (1, *size)[-2:]
    return emitter.reshape(emitter.last(value), (batch * math.prod(size[:-2]), height, width, channels))


def kernels(weight: Array) -> Array:
    """The weights of images."""
    return weight.reshape(kernel_shape(weight.shape))


def kernel_shape(weight: Shape) -> Shape:
    """That of weights of images, from [O, ..., C / groups]."""
    return weight[0], *(1, *weight[1:-1])[-2:], weight[-1]


def f32_convolution(
    budget: Budget, before: Shape, weight: Array, window: Window, groups: int
) -> Callable[[Emitter, Value], ir.Value]:
    """Builds the sums over f32 data of shape `before`, as images NHWC; weights are [O, ..., C / groups].

    Raises `UnsupportedError` where there are too many taps to be listed.
    """
    depth = DepthTaps.of(before, window, groups, budget) if len(before) == RANK else None
    flat, taps = window.two_dimensional(), taps_of_depth(weight) if depth else kernels(weight)
    steps: dict[str, Any] = {"strides": flat.strides, "dilation": flat.dilation, "groups": groups}

    def build(emitter: Emitter, value: Value) -> ir.Value:
        images = depth.emit(emitter, emitter.last(value), None) if depth else image(emitter, value)
        padded = framed(emitter, images, *flat.border)
        return emitter.build(F32Conv2DOp, padded, emitter.constant(taps), element="f32", **steps)

    return build


def from_image(shape: Shape) -> Finish:
    """Brings images NHWC to the model's `shape`."""
    last = (shape[0], *shape[2:], shape[1])
    return lambda emitter, value: (emitter.reshape(value, last), True)


# Transposed convolutions of quantized numbers; those over volumes become some over images.
#
# Slice ``s * q + r`` of the full extent along the depth, with a stride of s, is
# ``sum over j of data[q - j] * weight[s * j + r]``: the taps j are those of windows without a stride, which become
# channels of an image, and each remainder r has output channels of its own.  Its transposed convolution over images
# gives all remainders next to each other, and they are interleaved.

_Entry = TypeVar("_Entry")


@dataclass(frozen=True)
class TransposedWindow:
    """Of the full extent `before` and `after` are cropped, `extra` elements follow it, and `output` ones are left."""

    strides: Shape
    dilation: Shape
    before: Shape
    output: Shape
    groups: int = 1
    after: Shape = ()
    extra: Shape = ()

    def of_images(self) -> TransposedWindow:
        """The same over images of height 1 instead of rows."""
        flat = 2 - len(self.strides)
        ones, zeros = (1,) * flat, (0,) * flat
        steps = ones + self.strides, ones + self.dilation
        ends = zeros + self.before, ones + self.output, self.groups, zeros + self.after, zeros + self.extra
        return TransposedWindow(*steps, *ends)

    def contraction(
        self, plan: Plan, data: Quantized, weight: Weight, bias: Array | None, name: str | None = None
    ) -> Contraction:
        """The f32 values of the result; weights are [O, ..., C / groups].

        Raises `UnsupportedError` where there are too many taps.
        """
        if len(self.output) < RANK - 2:
            layer = Layer(ConvTranspose2DOp, data, weight, self.of_images()._attributes())
            return layer.contraction((data.shape[0], len(weight.values), *self.output), bias, name)
        taps = self._remainders(weight)
        moved = move(plan, name or "volumes", data, self._movement(plan, data.shape, taps.shape[1]))
        assert isinstance(moved, Quantized)
        shape = (data.shape[0], len(weight.values), *self.output)

        def accumulate(emitter: Emitter, bias: Array | None) -> ir.Value:
            return self._accumulate(emitter, moved, Weight(taps, weight.scales, weight.zero_points), bias, shape)

        return Contraction(shape, data, weight.scales, bias, accumulate, from_image(shape), name=name)

    def _attributes(self) -> dict[str, Any]:
        """Those over images, of which volumes have one for each window along the depth."""
        return {
            "strides": self.strides[-2:],
            "padding": (*self.before[-2:], *self.after[-2:]),
            "output_padding": self.extra[-2:],
            "dilation": self.dilation[-2:],
            "groups": self.groups,
        }

    def _movement(self, plan: Plan, shape: Shape, taps: int) -> DepthTaps:
        """Windows of `taps` slices, the first of which ends on the first slice of the data."""
        depth = shape[2]
        windows = math.ceil((self.before[0] + self.output[0]) / self.strides[0])
        after, ones = max(windows - depth, 0), (1, 1)
        window = Window((taps, *ones), (1, 1, 1), (1, 1, 1), (taps - 1, 0, 0), (after, 0, 0), (windows, *shape[3:]))
        return DepthTaps.of(shape, window, self.groups, plan.budget)

    def _remainders(self, weight: Weight) -> Array:
        """The taps of all remainders: [groups * s * O / groups, J, KH, KW, C / groups], reversed along the depth.

        Those that a remainder lacks are zero points.
        """
        outputs, kernel, *rest = weight.shape
        stride, dilation = self.strides[0], self.dilation[0]
        extent = (kernel - 1) * dilation + 1
        taps = math.ceil(extent / stride)
        zeros = np.array(weight.zero_points, weight.values.dtype).reshape(-1, 1, 1, 1, 1)
        spread = np.broadcast_to(zeros, (outputs, taps * stride, *rest)).copy()
        spread[:, :extent:dilation] = weight.values
        apart = spread.reshape(self.groups, outputs // self.groups, taps, stride, *rest)
        return apart[:, :, ::-1].transpose(0, 3, 1, 2, 4, 5, 6).reshape(-1, taps, *rest)

    def _accumulate(
        self, emitter: Emitter, data: Quantized, weight: Weight, bias: Array | None, shape: Shape
    ) -> ir.Value:
        channels = shape[1]
        scales, points = self._repeated(weight.scales, channels), self._repeated(weight.zero_points, channels)
        how = {**accumulator_attributes(data, Weight(weight.values, scales, points)), **self._attributes()}
        images, taps = emitter.last(data.values), emitter.constant(taps_of_depth(weight.values))
        start = None if bias is None else emitter.constant(np.array(self._repeated(tuple(bias), channels), np.int32))
        sums = emitter.build(ConvTranspose2DOp, images, taps, start, element="i32", **how)
        return self._interleaved(emitter, sums, shape)

    def _repeated(self, entries: tuple[_Entry, ...], channels: int) -> tuple[_Entry, ...]:
        """Those of output channels for the channels of all remainders; one for the tensor stays alone."""
        if len(entries) != channels:
            return entries
        share = channels // self.groups
        each = [entries[group * share : (group + 1) * share] for group in range(self.groups)]
        return tuple(entry for one in each for entry in one * self.strides[0])

    def _interleaved(self, emitter: Emitter, sums: ir.Value, shape: Shape) -> ir.Value:
        """[N * Q, OH, OW, groups * s * O / groups] as images [N * OD, OH, OW, O]."""
        (batch, channels, depth, *size), stride = shape, self.strides[0]
        windows = shape_of(sums.type)[0] // batch
        split = emitter.reshape(sums, (batch, windows, *size, self.groups, stride, channels // self.groups))
        moved = split if stride == 1 else emitter.transpose(split, (0, 1, 5, 2, 3, 4, 6))
        whole = emitter.reshape(moved, (batch, windows * stride, *size, channels))
        slices = (Slice(0, 1, batch), Slice(self.before[0], 1, depth), *(Slice(0, 1, one) for one in (*size, channels)))
        return emitter.reshape(take_slices(emitter, whole, slices), (batch * depth, *size, channels))


# Transposed convolutions in float32.
#
# Output element ``s * q + r`` of a dimension with stride s and dilation d, counted from the start of the full extent,
# is ``sum over k of data[q - (k * d - r) / s] * weight[k]`` over the taps k with ``k * d mod s = r``: for each
# remainder r a convolution without a stride.  Remainders whose taps have the same distances are one convolution, whose
# output channels are theirs side by side; no tap is filled up with zeros, whose product with infinity would be NaN.
# Then all are interleaved.


@dataclass(frozen=True)
class _Remainders:
    """Neighbouring remainders of a dimension, and the distances of their taps: `first`, and `step` more each."""

    taps: Array
    """[remainder, tap]"""
    first: int
    step: int

    @property
    def reach(self) -> int:
        """The distance of the last tap."""
        return self.first + (self.taps.shape[1] - 1) * self.step


def _remainders(kernel: int, stride: int, dilation: int) -> list[_Remainders]:
    common = math.gcd(stride, dilation)
    own = [[k for k in range(kernel) if k * dilation % stride == r] for r in range(stride)]
    firsts = [(taps[0] * dilation - r) // stride if taps else 0 for r, taps in enumerate(own)]
    alike = groupby(zip(own, firsts, strict=True), lambda one: (len(one[0]), one[1]))
    return [
        _Remainders(np.array([taps for taps, _ in found], np.intp), first, dilation // common)
        for (_, first), found in alike
    ]


Convolve = Callable[[OpBuilder, ir.Value, Array, Shape, Array | None], ir.Value]
"""The sums over images or volumes without a border, with their taps, their dilation and what they start from."""


def f32_transposed_convolution(
    budget: Budget, shape: Shape, weight: Array, window: TransposedWindow
) -> Callable[[Emitter, Value], ir.Value]:
    """Builds the sums over f32 data NCL to NCDHW of `shape` as [N, ..., O]; weights are [C, O / groups, ...].

    Raises `UnsupportedError` where there are too many taps to be listed.
    """
    window = window.of_images()

    def convolve(emitter: OpBuilder, data: ir.Value, taps: Array, steps: Shape, _: Array | None) -> ir.Value:
        return _convolved(emitter, data, taps, steps, window.groups)

    weight = weight.reshape(*weight.shape[:2], *(1,) * (4 - len(shape)), *weight.shape[2:])
    if len(shape) == RANK:
        check_indices(weight.shape[2] * (shape[2] + window.output[0]), budget)
    pairs = zip(weight.shape[2:], window.strides, window.dilation, strict=True)
    are_alike = all(len(_remainders(*pair)) == 1 for pair in pairs)
    is_few = window.groups == 1 and weight.ndim == 4 and weight[0].size <= _FEW_PRODUCTS and len(weight) >= _MANY_INPUTS
    if is_few and not are_alike:
        return lambda emitter, value: _added_products(emitter, image(emitter, value), weight, window)
    build = transposed_sums(weight, window, convolve)
    return lambda emitter, value: build(emitter, emitter.last(value) if len(shape) == RANK else image(emitter, value))


_FEW_PRODUCTS, _MANY_INPUTS = 32, 16
"""Sums of products of an element with all taps that fill two vectors, where each remainder's would fill a part of one;
and how many terms of each sum outweigh that the sums are moved."""


def _added_products(emitter: OpBuilder, data: ir.Value, weight: Array, window: TransposedWindow) -> ir.Value:
    """The sums over channels for all taps, added up for each element of the result, as ONNX Runtime does."""
    inputs, outputs, kernel = *weight.shape[:2], weight.shape[2:]
    taps = np.moveaxis(weight, 1, -1).reshape(inputs, 1, 1, -1).T
    products = emitter.build(F32Conv2DOp, data, emitter.constant(np.ascontiguousarray(taps)), element="f32")

    def add(emitter: OpBuilder, framed: ir.Value, channels: Array, steps: Shape, start: Array | None) -> ir.Value:
        batch, *extents, _ = shape_of(framed.type)
        reach = [(k - 1) * step for k, step in zip(channels.shape[1:-1], steps, strict=True)]
        terms: list[ir.Value] = []
        for tap in reversed([*np.ndindex(*channels.shape[1:-1])]):
            inside = [
                Slice(at * step, 1, extent - last)
                for at, step, extent, last in zip(tap, steps, extents, reach, strict=True)
            ]
            firsts = channels[(slice(None, None, outputs), *tap, 0)].tolist()
            parts = [(Slice(0, 1, batch), *inside, Slice(first, 1, outputs)) for first in firsts]
            terms.append(emitter.concatenate([take_slices(emitter, framed, one) for one in parts], len(kernel) + 1))
        return reduce(lambda total, term: emitter.f32("addf", total, term), terms)

    numbers = np.arange(outputs * math.prod(kernel), dtype=np.int64).reshape((*kernel, outputs))
    return transposed_sums(np.moveaxis(numbers, -1, 0)[None], window, add)(emitter, products)


def transposed_sums(
    weight: Array, window: TransposedWindow, convolve: Convolve, start: Array | None = None
) -> Callable[[OpBuilder, ir.Value], ir.Value]:
    """The same over images NHWC or volumes NDHWC, by `convolve`; of one group sums may start from numbers [O]."""
    groups, strides, inner = window.groups, window.strides, list(zip(window.before, window.output, strict=True))
    found = [_remainders(*one) for one in zip(weight.shape[2:], strides, window.dilation, strict=True)]
    ends = [math.ceil((low + size) / stride) for (low, size), stride in zip(inner, strides, strict=True)]

    def build(emitter: OpBuilder, data: ir.Value) -> ir.Value:
        batch = shape_of(data.type)[0]

        def sums(*chosen: _Remainders) -> ir.Value:
            """[N, ..., groups, the remainders of each dimension, O / groups]"""
            if len(chosen) < len(found):
                parts = [sums(*chosen, one) for one in found[len(chosen)]]
                return emitter.concatenate(parts, len(found) + 2 + len(chosen)) if len(parts) > 1 else parts[0]
            after = (batch, *ends, groups, *(len(one.taps) for one in chosen), weight.shape[1])
            starts = None if start is None else np.tile(start, math.prod(after[-1 - len(found) : -1]))
            taps = _taps_of(weight, groups, chosen)
            if not taps.size:
                number = np.float32(0) if starts is None else starts.reshape(after[-1 - len(found) :])
                return emitter.constant(np.ascontiguousarray(np.broadcast_to(number, after)))
            # Elements that no window reaches are left out.
            low = (0, *(one.reach for one in chosen), 0)
            extents = zip(ends, shape_of(data.type)[1:-1], chosen, strict=True)
            high = (0, *(end - size - one.first for end, size, one in extents), 0)
            steps = tuple(one.step for one in chosen)
            return emitter.reshape(convolve(emitter, framed(emitter, data, low, high), taps, steps, starts), after)

        whole = _interleaved(emitter, sums(), strides)
        inside = [Slice(low, 1, size) for low, size in inner]
        return take_slices(emitter, whole, (Slice(0, 1, batch), *inside, Slice(0, 1, shape_of(whole.type)[-1])))

    return build


def _taps_of(weight: Array, groups: int, chosen: Sequence[_Remainders]) -> Array:
    """The taps [groups * remainders * O / groups, ..., C / groups], reversed, as a convolution goes forwards."""
    inputs, outputs, rank = *weight.shape[:2], len(chosen)
    lists: list[Array] = [np.arange(inputs), np.arange(outputs), *(one.taps[:, ::-1].reshape(-1) for one in chosen)]
    sizes = (extent for one in chosen for extent in one.taps.shape)
    apart = weight[np.ix_(*lists)].reshape(groups, inputs // groups, outputs, *sizes)
    remainders, taps = range(3, 3 + 2 * rank, 2), range(4, 4 + 2 * rank, 2)
    kernel = (one.taps.shape[1] for one in chosen)
    ordered = apart.transpose(0, *remainders, 2, *taps, 1)
    return np.ascontiguousarray(ordered.reshape(math.prod(ordered.shape[: 2 + rank]), *kernel, inputs // groups))


def _convolved(emitter: OpBuilder, data: ir.Value, taps: Array, steps: Shape, groups: int) -> ir.Value:
    """Sums over images or volumes without padding and strides."""
    how: dict[str, Any] = {"groups": groups, "dilation": steps[-2:]}
    if taps.ndim == 4:
        return emitter.build(F32Conv2DOp, data, emitter.constant(taps), element="f32", **how)
    batch, *extents, _ = shape_of(data.type)
    kernel, ones, zeros = taps.shape[1:-1], (1, 1, 1), (0, 0, 0)
    output = tuple(e - (k - 1) * step for e, k, step in zip(extents, kernel, steps, strict=True))
    window = Window(kernel, ones, steps, zeros, zeros, output)
    images = DepthTaps((batch * output[0], *extents[1:]), window, groups).emit(emitter, data, None)
    sums = emitter.build(F32Conv2DOp, images, emitter.constant(taps_of_depth(taps)), element="f32", **how)
    return emitter.reshape(sums, (batch, *output, len(taps)))


def _interleaved(emitter: OpBuilder, sums: ir.Value, strides: Shape) -> ir.Value:
    """[N, H, W, groups, s, t, O / groups] as [N, H * s, W * t, O]; volumes have a dimension more."""
    rank = len(strides)
    batch, *extents = shape_of(sums.type)[: 1 + rank]
    interleaved = (axis for i in range(rank) for axis in (1 + i, 2 + rank + i))
    transposed = emitter.transpose(sums, (0, *interleaved, 1 + rank, 2 + 2 * rank))
    spread = (extent * stride for extent, stride in zip(extents, strides, strict=True))
    return emitter.reshape(transposed, (batch, *spread, math.prod(shape_of(transposed.type)[1 + 2 * rank :])))
