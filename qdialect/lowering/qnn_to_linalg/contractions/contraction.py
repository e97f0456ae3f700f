"""A contraction as values: stored tensors as they are walked, and weights as they lie.

The stored input is seen through overlapping strides, ``[group, pixels..., taps..., K groups, 4]``: stride, dilation and
kernel size become strides of a view, and contiguous bytes (the channels of a tap; all taps of a
kernel row where nothing is dilated; the whole window where the filter is as wide as the input) is one reduction axis.
From an accumulator to the stored value go the stages of a fused op, each by its own part of the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import IntArray
from qdialect.dialect import AnyFused
from qdialect.dialect.contraction_ops import PlacedStage
from qdialect.dialect.stages.builtin_stages import ClampStage
from qdialect.lowering.cost.register_tiles import Layout
from qdialect.lowering.cost.strategy import ChannelBlock, RequantizerForms, Strategy
from qdialect.lowering.ir.views import Axis, View, collapse, row_major
from qdialect.lowering.qnn_to_linalg import stages
from qdialect.lowering.qnn_to_linalg.contractions import packed_weights
from qdialect.lowering.qnn_to_linalg.kernels import geometry
from qdialect.lowering.qnn_to_linalg.kernels.geometry import Segment
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer, Loops, Operand, Tag, Tensor
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, lanes_for, signed_shift
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value
from qdialect.lowering.qnn_to_linalg.stages import stage_kernel

# Imported for the kernels that its modules register.
_REGISTERED = stages


@dataclass(frozen=True)
class Epilogue:
    """The stages of a fused op and its residual; without stages the accumulators are the result."""

    stages: tuple[stage_kernel.EpiloguePart, ...] = ()
    residual: BufferSlot | None = None

    def start(self, bias: NDArray[np.int32]) -> NDArray[np.int32]:
        """The initial accumulators, modulo 2^32, that the stages need in place of `bias`."""
        for stage in self.stages:
            bias = bias + stage.offset
        return bias

    def channel_parameters(self) -> list[tuple[str, NDArray[Any]]]:
        """Per-channel arrays other than the bias: name and values."""
        return [parameter for stage in self.stages for parameter in stage.channel_parameters()]

    def row_parameters(self) -> list[stage_kernel.RowParameter]:
        """Parameters of each row, other than the residual."""
        return [parameter for stage in self.stages for parameter in stage.row_parameters()]


@dataclass(frozen=True)
class Stages:
    """An epilogue whose scalars are declared as parameters of one kernel."""

    epilogue: Epilogue
    emitters: tuple[stage_kernel.EmitStage, ...]
    rows: tuple[Buffer, ...] = ()
    """The buffers of the epilogue's parameters by row."""

    @property
    def element(self) -> str:
        return "i8" if self.emitters else "i32"

    def row_operands(
        self,
        kernel: Kernel,
        first: int = 0,
        pixels: Sequence[Axis] = (),
        loops: Sequence[str] = (),
        start: Callable[[int, int], int | Value] = lambda _, offset: offset,
    ) -> list[Operand]:
        """The parameters by row of `pixels` along `loops`, among whose operands they are those from `first` on.

        `start` gives where the pixels begin for an operand whose first element stands at an offset.  Without pixels
        each is one number for all.
        """
        pairs = zip(self.epilogue.row_parameters(), self.rows, strict=True)
        return [
            one.operand(kernel, buffer, pixels, loops, index, start(index, one.slot.storage.origin))
            for index, (one, buffer) in enumerate(pairs, first)
        ]

    def segment_operands(self, kernel: Kernel, segment: Segment, first: int) -> list[Operand]:
        return self.row_operands(
            *(kernel, first, segment.pixels, segment.loops), lambda index, offset: offset + segment.offsets[index]
        )

    def store(
        self,
        kernel: Kernel,
        loops: Loops,
        acc: Operand,
        parameters: Sequence[Operand],
        correction: Sequence[Operand],
        residual: Operand | None,
        rows: Sequence[Operand],
        target: tuple[Tensor, str],
        tag: Tag,
    ) -> None:
        """Store what the stages make of the biased accumulators `acc` at `target`, which `Kernel.write` gave.

        Before, the product of what is in `correction` is taken off.
        """
        destination, where = target
        inputs = [acc, *parameters, *correction, *([residual] if residual else []), *rows]
        body = kernel.body(inputs)
        value, *values = body.inputs
        own, values = values[: len(parameters)], values[len(parameters) :]
        if correction:
            *points, total = values[: len(correction)]
            value = body.subtract(value, body.multiply(points[0], total) if points else total)
            values = values[len(correction) :]
        added = values.pop(0) if residual else None
        value = self.emit(body, value, own, added, values)
        output = Operand(destination, acc.loops)
        kernel.store(kernel.generic(loops, inputs, output, body, value, tag), where)

    def emit(
        self, body: Body, acc: Value, parameters: Sequence[Value], residual: Value | None, rows: Sequence[Value] = ()
    ) -> Value:
        """From the biased accumulator (i32) to the stored element."""
        value, own, by_row = acc, iter(parameters), iter(rows)
        for stage, emit in zip(self.epilogue.stages, self.emitters, strict=True):
            found = [next(own) for _ in stage.channel_parameters()]
            value = emit(body, value, [*found, *(next(by_row) for _ in stage.row_parameters())], residual)
        if value.is_float or not self.epilogue.stages or self.epilogue.stages[-1].leaves_byte:
            return value
        return body.narrow(value)


def declare_stages(kernel: Kernel, epilogue: Epilogue) -> Stages:
    """Declare the scalars and tables of `epilogue` as parameters of `kernel`."""
    emitters = tuple(stage.declare(kernel) for stage in epilogue.stages)
    return Stages(epilogue, emitters, tuple(one.declare(kernel) for one in epilogue.row_parameters()))


def stage_kernels(
    op: AnyFused, accumulator_range: tuple[IntArray, IntArray], forms: RequantizerForms
) -> tuple[stage_kernel.StageKernel, ...]:
    """The kernels of the stages of `op`, for accumulators in `accumulator_range`, by channel.

    `forms` are those of requantizations that the target is fast at.

    Raises `CompileError` where a stage cannot be compiled.
    """
    kept = _with_bounds(op.stages())
    kinds = [stage_kernel.STAGE_KERNELS[type(placed.stage)] for placed, _ in kept]
    last = signed_shift(op.operation.results[0].type)
    shifts = [follower.wanted_shift(own) for (_, own), follower in zip(kept, kinds[1:], strict=False)]
    found: list[stage_kernel.StageKernel] = []
    before_bounds, before_shift = (0, 0), 0
    for index, ((placed, bounds), shift) in enumerate(zip(kept, [*shifts, last], strict=True)):
        around = (placed.before, placed.after, before_bounds, bounds, before_shift, shift)
        follower = kinds[index + 1] if index + 1 < len(kinds) else None
        found.append(
            kinds[index].of(stage_kernel.StageSite(op, placed.stage, *around, accumulator_range, follower, forms))
        )
        before_bounds, before_shift = bounds, shift
    return tuple(found)


def _with_bounds(placed: Sequence[PlacedStage]) -> list[tuple[PlacedStage, stage_kernel.Bounds]]:
    """The stages without clamps, each with the bounds of its values: the clamps that follow it, or its type's range."""
    found: list[tuple[PlacedStage, stage_kernel.Bounds]] = []
    for one in placed:
        if isinstance(one.stage, ClampStage):
            clamped, bounds = found.pop()
            found.append((clamped, one.stage.narrowed(bounds)))
        else:
            found.append((one, one.after.range if one.after else (0, 0)))
    return found


K_GROUP = 4
_LAYOUTS = {"i16": Layout.STORED_WORDS, "f32": Layout.FLOATS}
_ONE = Axis(1, ())


@dataclass(frozen=True)
class Access:
    """A stored tensor as it is walked: its first element, and the elements from one to the next."""

    slot: BufferSlot
    start: int
    pixels: tuple[int, ...]
    """From one pixel to the next, along each axis of the pixels."""
    taps: tuple[int, ...] = ()
    """From one tap of a window to the next, along each axis of the taps."""


@dataclass(frozen=True)
class Matrices:
    """The right operand as it is stored: `leading` axes over matrices, then [depth, channels].

    One of `row_stride` and `channel_stride` is 1; where it is that of the rows, of transposed matrices, the tensor is
    in the arena, and all other strides and the depth are multiples of 4.
    """

    slot: BufferSlot
    leading: tuple[Axis, ...]
    row_stride: int
    depth: int
    channels: int
    channel_stride: int = 1
    are_taps: bool = False
    """Whether they are the taps of one window, so that their products add up."""
    k_group: int = K_GROUP
    """Rows of a K group: four of bytes, one of f32 numbers."""
    in_place: bool = False
    """Whether they are read where they lie, not packed: f32 numbers with one leading axis at most."""

    @property
    def taps(self) -> int:
        """Products of a sum."""
        return self.depth * (self.count if self.are_taps else 1)

    @property
    def count(self) -> int:
        """How many matrices there are."""
        return math.prod(axis.size for axis in self.leading)

    @property
    def lanes(self) -> int:
        """Channels with those that fill up the last vector."""
        return lanes_for(self.channels)

    @property
    def k_groups(self) -> int:
        """Groups of rows, the last one filled up with zeros."""
        return -(-self.depth // self.k_group)

    @property
    def start(self) -> int:
        """Offset of the first element in its buffer."""
        return self.slot.storage.origin

    def packed(self, block: ChannelBlock) -> View:
        """The first matrix of a block's region as [tile, K group, vector, lane, taps]."""
        vector = block.lanes * self.k_group
        tile = block.vectors * vector
        sizes = (block.tiles, self.k_groups, block.vectors, block.lanes, self.k_group)
        if self.in_place:
            return View(sizes, (tile, self.row_stride, vector, 1, 1), self.start + block.start)
        strides = (self.k_groups * tile, tile, vector, self.k_group, 1)
        # Regions lie one after the other, each as long as its channels are many.
        return View(sizes, strides, self.count * block.start * self.k_groups * self.k_group)

    def step(self, block: ChannelBlock) -> int:
        """Elements from one matrix of a block's region to the next."""
        if self.in_place:
            return self.leading[0].strides[0] if self.leading else 0
        return block.channels * self.k_groups * self.k_group


@dataclass(frozen=True)
class StoredWeights:
    """Matrices that are packed when the network runs, one after the other or the taps of a window.

    Accumulators start at int32[channels] or f32[channels], or at a slot with [matrix, lane].
    """

    matrices: Matrices
    slot: BufferSlot
    start: NDArray[Any] | BufferSlot
    zero_points: NDArray[np.int32]
    """The rest of them after clipping, by channel."""
    window: tuple[int, ...] = ()
    """Rows and columns of taps."""
    first: int = 0
    """The first of the matrices."""

    @property
    def channels(self) -> int:
        return self.matrices.channels

    @property
    def size(self) -> int:
        """Weights of all channels that a pixel meets."""
        return self.matrices.taps * self.channels


@dataclass(frozen=True)
class StoredTaps:
    """Depthwise weights less their zero points, words [taps, lanes], and what the accumulators of each lane start at.

    Both are computed when the network runs.
    """

    slot: BufferSlot
    start: NDArray[np.int32] | BufferSlot
    window: tuple[int, ...]
    channels: int

    @property
    def size(self) -> int:
        return math.prod(self.window) * self.channels


@dataclass(frozen=True)
class Contraction:
    """``output[pixel, c] = epilogue(start[c] + sum data[pixel, tap] * weights[c, tap])``."""

    accesses: tuple[Access, ...]
    """The tensors that move from pixel to pixel: data, output and, where there is one, residual."""
    extents: tuple[int, ...]
    """Of the axes of pixels."""
    weights: packed_weights.ConstantWeights | StoredWeights | StoredTaps
    epilogue: Epilogue
    groups: int = 1
    batch: Axis = _ONE
    """Products with a matrix each: steps of data, output, perhaps residual, and of the matrix."""
    is_rounded: bool = False
    """Whether f32 products are rounded before they are added."""

    @property
    def data(self) -> BufferSlot:
        """The tensor of the windows."""
        return self.accesses[0].slot

    @property
    def output(self) -> BufferSlot:
        return self.accesses[1].slot

    @property
    def channels(self) -> int:
        return self.weights.channels

    @property
    def window(self) -> tuple[int, ...]:
        """Rows and columns of taps; none of a product of matrices."""
        return self.weights.window

    @cached_property
    def pixels(self) -> list[Axis]:
        """The output pixels, merged where they are contiguous in every slot; at least one axis."""
        steps = [access.pixels for access in self.accesses]
        steps += [parameter.steps for parameter in self.epilogue.row_parameters()]
        axes = [Axis(extent, tuple(step[i] for step in steps)) for i, extent in enumerate(self.extents)]
        return collapse(axes) or [Axis(1, tuple(0 for _ in steps))]

    @property
    def pixel_count(self) -> int:
        """Pixels that the weights are multiplied by."""
        return math.prod(self.extents)

    @property
    def macs(self) -> int:
        """Products that are summed up, those with padding included."""
        return self.pixel_count * self.batch.size * self.weights.size

    @property
    def zero_points(self) -> NDArray[np.int32]:
        """The rest of the weights' zero points, by channel."""
        return self.product_weights.zero_points

    @property
    def product_weights(self) -> packed_weights.ConstantWeights | StoredWeights:
        """Weights that are no words of single channels."""
        assert not isinstance(self.weights, StoredTaps), "they are of single channels"
        return self.weights

    @cached_property
    def parts(self) -> list[tuple[geometry.ChannelGroup, geometry.ReductionAxes]]:
        """The blocks of channels that are dense in themselves, and what is summed up for each of their channels."""
        weights = self.product_weights
        if isinstance(weights, StoredWeights):
            depth = weights.matrices.depth
            group = geometry.ChannelGroup(self.batch.size, 0, 0, depth, self.channels, 1, self.batch.strides[:-1])
            present = np.ones((1, *(weights.window or (1, 1)), depth), np.int8)
            axes = geometry.ReductionAxes(
                (*weights.window, depth), self.accesses[0].taps, 0, present, weights.matrices.k_group
            )
            return [(group, axes)]
        if self.groups > 1:
            found = geometry.group_blocks(self.groups, self.data.storage.shape[3], self.channels)
        else:
            found = [geometry.ChannelGroup(1, 0, weights.first, weights.values.shape[3], self.channels, 1)]
        return [(group, self._reduction(group, weights)) for group in found]

    def _reduction(
        self, group: geometry.ChannelGroup, weights: packed_weights.ConstantWeights
    ) -> geometry.ReductionAxes:
        """The taps of a window, merged; the last axis is contiguous.

        Lanes beyond the channels join where they let taps merge: their weights are zero, and times zero any integer is.
        """
        data, taps = self.data.storage, self.accesses[0].taps
        has_lanes = group.channels_in == data.shape[3] and data.element != "f32"
        lanes = data.pitch if has_lanes else group.channels_in
        steps = zip((*self.window, lanes), (*taps, 1), strict=True)
        axes = collapse([Axis(extent, (step,)) for extent, step in steps])
        axes = axes if axes and axes[-1].strides == (1,) else [*axes, Axis(1, (1,))]
        strides = tuple(axis.strides[0] for axis in axes[:-1])
        ones = group.taps(np.broadcast_to(np.int8(1), weights.values.shape))
        extents = tuple(axis.size for axis in axes)
        return geometry.ReductionAxes(extents, strides, lanes - group.channels_in, ones, weights.k_group)

    def factor_of_ones(self, strategy: Strategy) -> int:
        """The factor of the ones whose products with a window are its sum, see `correction_of`.

        Sums in pairs may have no factors but ones.
        """
        return 1 if strategy.multiplies_words else packed_weights.factor_of_ones(self.zero_points)

    def layout(self, strategy: Strategy, group: geometry.ChannelGroup, axes: geometry.ReductionAxes) -> Layout:
        """How the K groups of `group` lie: weights that are not known are bytes."""
        if self.data.storage.element in _LAYOUTS:
            return _LAYOUTS[self.data.storage.element]
        if not isinstance(self.weights, packed_weights.ConstantWeights):
            return Layout.BYTES
        if self.sums_pairs(strategy, group, axes):
            return Layout.PAIRS
        return Layout.WORDS if strategy.are_words(self.pixel_count) else Layout.BYTES

    def tile_rows(self, layout: Layout) -> int | None:
        """For how many rows tiles are chosen; None where bytes are packed at run time, for any number of rows."""
        is_known = layout is Layout.FLOATS or not isinstance(self.weights, StoredWeights)
        return self.pixel_count if is_known else None

    def sums_pairs(self, strategy: Strategy, group: geometry.ChannelGroup, axes: geometry.ReductionAxes) -> bool:
        """Whether the products of constant weights of `group` are summed in pairs."""
        if Layout.PAIRS not in strategy.others:
            return False
        remainder = self.pair_remainder(group, axes)
        return remainder is not None and strategy.takes_pairs(group.lanes, axes.taps, self.pixel_count, remainder)

    def pair_remainder(self, group: geometry.ChannelGroup, axes: geometry.ReductionAxes) -> float | None:
        """The share of K groups that products in pairs multiply once more; None where they are too many."""
        assert isinstance(self.weights, packed_weights.ConstantWeights), "pairs are of weights that are known"
        k_groups = packed_weights.remainder_k_groups(self.weights, group, axes)
        return k_groups / (math.prod(axes.sizes) * axes.k_groups) if k_groups <= packed_weights.MAX_K_GROUPS else None

    def declare(self, kernel: Kernel) -> list[Buffer]:
        """A buffer parameter for each tensor that moves from pixel to pixel."""
        names = ("data", "output", "residual")
        return [kernel.slot(name, access.slot) for name, access in zip(names, self.accesses, strict=False)]


def convolution(
    data: BufferSlot,
    output: BufferSlot,
    epilogue: Epilogue,
    window: geometry.Window,
    weights: packed_weights.ConstantWeights | StoredWeights | StoredTaps,
    groups: int = 1,
    grid: geometry.Grid = geometry.EVERY_PIXEL,
) -> Contraction:
    """A convolution of `data` by `window`; the pixels of output and residual are those of `grid`."""
    storage = data.storage
    windows = Access(data, window.start(storage), window.pixel_strides(storage), window.tap_strides(storage))
    slots = [output, *([epilogue.residual] if epilogue.residual else [])]
    stored = [Access(slot, grid.origin(slot.storage), grid.pixel_strides(slot.storage)) for slot in slots]
    return Contraction((windows, *stored), window.pixels, weights, epilogue, groups)


def with_sums(axes: Sequence[Axis]) -> list[Axis]:
    """`axes` with the sums as one more operand, the last."""
    strides = row_major([axis.size for axis in axes])
    return [Axis(axis.size, (*axis.strides, own)) for axis, own in zip(axes, strides, strict=True)]


def accumulate(
    kernel: Kernel,
    tag: Tag,
    loops: Loops,
    operands: tuple[Operand, Operand],
    start: Tensor,
    *,
    is_signed: bool = False,
    is_rounded: bool = False,
) -> Tensor:
    """``acc += x * w`` over the reduction loops, whose tile sizes `tag` has.

    x is u8 or s16, and s8 where it `is_signed`; w is s8 or s16.  Of f32 numbers it is a fused multiply-add, unless the
    product `is_rounded`.
    """
    output = Operand(start, loops.parallel)
    body = kernel.body(operands, output)
    x, w = body.inputs
    if not x.is_float:
        is_unsigned = x.type == "i8" and not is_signed
        x = body.cast("arith.extui" if is_unsigned else "arith.extsi", x, "i32")
        w = body.cast("arith.extsi", w, "i32")
    is_fused = x.is_float and not is_rounded
    total = body.multiply_add(x, w, body.output) if is_fused else body.add(body.output, body.multiply(x, w))
    tag = replace(tag, tiles=(0,) * len(loops.parallel) + tag.tiles)
    return kernel.generic(loops, operands, output, body, total, tag)
