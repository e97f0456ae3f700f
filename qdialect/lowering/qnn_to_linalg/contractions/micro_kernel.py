"""The micro-kernel of one block of channels and one segment of pixels: start, contraction, epilogue."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.cost.strategy import ChannelBlock, Strategy, Swept
from qdialect.lowering.ir.strides import Axis, View, row_major
from qdialect.lowering.qnn_to_linalg.contractions.epilogue import Epilogue, Stages
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import (
    ChannelTiles,
    ContractionWeights,
    GatheredTaps,
    PackedRemainder,
    RemainderGroup,
    ZeroPointCorrection,
    factor_of_ones,
    pack_weights,
    widened_k_groups,
)
from qdialect.lowering.qnn_to_linalg.kernels.geometry import ChannelGroup, ReductionAxes, Segment
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer, Loops, Operand, Tag, Tensor
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value

_TILE = ("nt", "nv", "nl")
"""Loops over the channels of a block: tile, vector, lane."""


@dataclass(frozen=True)
class Remainder:
    """A K group that is multiplied once more: an index, where it lies in the window, and its weights."""

    offset: Value
    weights: Tensor


@dataclass(frozen=True)
class DeclaredColumns:
    """Weights, bias and correction of one block of channels, as parameters of its kernel."""

    weights: Tensor
    """[group, tile, reduction loops but the last, vector, lane, taps], as `pack_k_groups` packs them."""
    bias: Operand
    """What accumulators start from, by channel."""
    correction: ZeroPointCorrection | None
    remainder: Sequence[Remainder] = ()
    """The clipped weight remainder; empty where every weight fits s8."""
    are_words: bool = False
    """Whether weights of bytes are words, as `widened_k_groups` orders them."""


class Columns(Protocol):
    """Where a micro-kernel finds the weights and the bias of its channels."""

    def declare(self, micro_kernel: ContractionMicroKernel) -> DeclaredColumns:
        """Declare what the micro-kernel's channels need."""
        ...


@dataclass(frozen=True)
class SumOfProducts(ABC):
    """What the micro-kernels of a convolution or a matrix product must know."""

    data: BufferSlot
    output: BufferSlot
    epilogue: Epilogue

    @property
    def slots(self) -> list[BufferSlot]:
        """What moves from pixel to pixel: data, output and, where there is one, residual."""
        residual = self.epilogue.residual
        return [self.data, self.output, *([residual] if residual else [])]

    @property
    @abstractmethod
    def channels(self) -> int:
        """Output channels."""

    @property
    def pixel_count(self) -> int:
        """Pixels that the weights are multiplied by."""
        return math.prod(axis.size for axis in self.pixel_axes())

    @property
    @abstractmethod
    def macs(self) -> int:
        """Products that are summed up, those with padding included."""

    @property
    @abstractmethod
    def zero_points(self) -> NDArray[np.int32]:
        """What is left of the zero points of the weights, by channel."""

    @abstractmethod
    def start(self, operand: int) -> int:
        """Offset of the first element of data (0), output (1) or residual (2)."""

    @abstractmethod
    def pixel_axes(self) -> list[Axis]:
        """The output pixels, merged where they are contiguous in every slot; at least one axis."""

    @abstractmethod
    def channel_groups(self) -> list[ChannelGroup]:
        """The blocks of channels that are dense in themselves."""

    @abstractmethod
    def reduction_axes(self, group: ChannelGroup) -> ReductionAxes:
        """What is summed up for each channel of `group`."""

    def factor_of_ones(self, strategy: Strategy) -> int:
        """What the ones are multiplied by whose products with a window are its sum, see `correction_of`.

        Sums in pairs may have no factors but ones.
        """
        return 1 if strategy.multiplies_words else factor_of_ones(self.zero_points)

    def tap_parts(self, group: ChannelGroup) -> list[NDArray[np.int8]]:
        """Known weights of `group`, [channels, KH, KW, IC], whose sum is all that data is multiplied by; or none."""
        del group
        return []

    def sums_pairs(self, strategy: Strategy, group: ChannelGroup) -> bool:
        """Whether the products of `group` are summed in pairs: never, where nothing is known of the weights."""
        del strategy, group
        return False

    @abstractmethod
    def declare_columns(self, kernel: Kernel) -> Columns:
        """Weights and bias, with a parameter of `kernel` for each that is known at run time only."""


class ContractionMicroKernel:
    """One block of channels of one channel group; its constants are declared once and serve every segment."""

    def __init__(
        self,
        kernel: Kernel,
        op: SumOfProducts,
        columns: Columns,
        stages: Stages,
        group: ChannelGroup,
        block: ChannelBlock,
        axes: ReductionAxes,
        sums: Buffer | None = None,
        gathered: tuple[Buffer, GatheredTaps] | None = None,
    ) -> None:
        self.kernel = kernel
        self.op = op
        self.stages = stages
        self.tiles = ChannelTiles(group, block, op.channels)
        self.axes = axes
        self.sums = sums
        """The sums of the windows, along the pixels' last strides, where they are computed before."""
        # The group loop exists only where there are several.
        self.groups = ("g",) if self.tiles.has_group_axis else ()
        # Loops that index what belongs to a channel.
        self.channel_loops = (*(self.groups if self.tiles.has_channels_by_group else ()), *_TILE)
        self.columns = columns.declare(self)
        self.parameters = [
            self.constant(name, self.tiles.per_channel(values)) for name, values in op.epilogue.channel_parameters()
        ]
        correction = self.columns.correction
        self.gathered = gathered
        self.gathered_weights = (
            [self._gathered_weights(*part) for part in enumerate(gathered[1].k_groups)] if gathered else []
        )
        self.has_zero_points = correction is not None
        points = correction.zero_points if correction else None
        self.zero_points = self.constant("zero_points", points) if points is not None else None
        """What sums of windows are multiplied by; None where this is in the sums."""

    def constant(self, name: str, values: NDArray[Any], *, is_weight: bool = False) -> Tensor:
        """A parameter for constants of the block."""
        in_pairs = is_weight and self.tiles.block.in_pairs
        constants = np.ascontiguousarray(values)
        data = self.kernel.data(self.name_of(name), constants, is_weight=is_weight, in_pairs=in_pairs)
        return self.kernel.read(data, View(values.shape, row_major(values.shape)))

    def name_of(self, name: str) -> str:
        """`name` as one of the block: its kernel has one for each."""
        return f"{name}_{self.tiles.group.start}_{self.tiles.block.start}"

    def emit(self, buffers: Sequence[Buffer], segment: Segment) -> None:
        """Emit the micro-kernel for one segment of pixels; `buffers` are data, output and perhaps residual."""
        kernel = self.kernel
        micro_kernel = kernel.next_micro_kernel()
        loops, own = self._root_loops(segment), (*self.groups, *segment.loops, *_TILE)
        channel_loops = self.channel_loops
        data = self._data(segment, buffers[0], self.columns.are_words)
        inputs = [Operand(self._contract(micro_kernel, segment, buffers[0], data), own)]
        inputs += [Operand(parameter, channel_loops) for parameter in self.parameters]
        if self.zero_points:
            inputs.append(Operand(self.zero_points, channel_loops))
        if self.has_zero_points:
            inputs.append(self._window_sum(micro_kernel, segment, buffers[0], data))
        if len(buffers) > 2:
            inputs.append(Operand(kernel.read(buffers[2], self._output_view(segment, 2)), own))
        inputs += self.stages.row_operands(kernel, segment, len(buffers))
        destination, where = kernel.write(buffers[1], self._output_view(segment, 1))
        body = kernel.body(inputs)
        value = self._epilogue(body, with_residual=len(buffers) > 2)
        tiles = dict(zip(segment.loops, segment.tiles, strict=True)) | dict.fromkeys((*self.groups, "nt"), 1)
        root = Tag(micro_kernel, "root", tuple(tiles.get(loop, 0) for loop in loops.parallel))
        kernel.store(kernel.generic(loops, inputs, Operand(destination, own), body, value, root), where)

    def _root_loops(self, segment: Segment) -> Loops:
        """The loops over tiles in the order in which the least comes from afar."""
        pixels, channels = segment.loops, ("nt",)
        if self._sweeps_pixels(segment):
            pixels, channels = channels, pixels
        return Loops((*self.groups, *pixels, *channels, *_TILE[1:]))

    def _sweeps_pixels(self, segment: Segment) -> bool:
        """Whether all pixels meet one tile of channels before the next."""
        share = prod(segment.sizes) / prod(axis.size for axis in self.op.pixel_axes())
        weights = Swept(self.tiles.block.channels * self.axes.taps, self.tiles.block.tiles)
        tiles = prod(-(-size // tile) for size, tile in zip(segment.sizes, segment.tiles, strict=True))
        data = Swept(round(self.op.data.storage.bytes() * share) // self.tiles.group.count, tiles)
        results = prod(segment.sizes) * (2 if self.op.epilogue.residual else 1)
        strategy = self.kernel.program.strategy
        return strategy.sweeps_pixels(weights, data, results)

    def _contract(self, micro_kernel: int, segment: Segment, buffer: Buffer, data: Operand) -> Tensor:
        """The accumulators, which start at the bias."""
        kernel, axes = self.kernel, self.axes
        loops = Loops((*self.groups, *segment.loops, *_TILE), axes.loops)
        sizes = self._spread(segment)
        empty = Operand(kernel.empty(sizes, "i32"), loops.parallel)
        tag = Tag(micro_kernel, "contraction_fill")
        start = kernel.copy(Loops(loops.parallel), self.columns.bias, empty, tag)
        for index, remainder in enumerate(self.columns.remainder):
            start = self._add_remainder(micro_kernel, segment, buffer, remainder, f"remainder{index}", start)
        for index in range(len(self.gathered_weights)):
            start = self._add_gathered(micro_kernel, segment, index, start)
        k_groups = (*self.groups, "nt", *axes.outer, "kk", "nv")
        if not self.columns.are_words:
            weights = Operand(self.columns.weights, (*k_groups, "nl", "k4"))
            tag = Tag(micro_kernel, "contraction", axes.tiles)
            return accumulate(kernel, tag, loops, (data, weights), start, is_signed=self.op.data.signed)
        weights = Operand(self.columns.weights, (*k_groups, "kq", "nl", "kp"))
        tag = Tag(micro_kernel, "contraction", (*axes.tiles, 0))
        loops = Loops(loops.parallel, (*axes.outer, "kk", "kp", "kq"))
        return accumulate(kernel, tag, loops, (data, weights), start, is_signed=self.op.data.signed)

    def _data(self, segment: Segment, buffer: Buffer, in_pairs: bool) -> Operand:
        """The windows, K group by K group; `in_pairs` of taps two apart, as weights that are words are."""
        view, loops = self._input_view(segment), (*self.groups, *segment.loops, *self.axes.loops)
        if not in_pairs:
            return Operand(self.kernel.read(buffer, view), loops)
        pairs = View((*view.sizes[:-1], 2, 2), (*view.strides[:-1], 2, 1), view.offset)
        return Operand(self.kernel.read(buffer, pairs), (*loops[:-1], "kp", "kq"))

    def _add_remainder(
        self, micro_kernel: int, segment: Segment, buffer: Buffer, remainder: Remainder, role: str, start: Tensor
    ) -> Tensor:
        """One more K group of products, at an offset into the window that the call passes."""
        kernel, view = self.kernel, self._input_view(segment)
        edge = -2 - len(self.axes.sizes)
        start_at = kernel.sum(remainder.offset, kernel.constant(view.offset, "index"))
        k_group = View((*view.sizes[:edge], 4), (*view.strides[:edge], 1), view.offset)
        data = Operand(kernel.read(buffer, k_group, start_at), (*self.groups, *segment.loops, "k4"))
        weights = Operand(remainder.weights, (*self.groups, *_TILE, "k4"))
        loops = Loops((*self.groups, *segment.loops, *_TILE), ("k4",))
        tag = Tag(micro_kernel, role, (0,))
        return accumulate(kernel, tag, loops, (data, weights), start, is_signed=self.op.data.signed)

    def _add_gathered(self, micro_kernel: int, segment: Segment, index: int, start: Tensor) -> Tensor:
        """One more K group of products, of gathered taps."""
        assert self.gathered is not None, "it has weights"
        kernel, (buffer, taps) = self.kernel, self.gathered
        strides = (*(4 * stride for stride in segment.strides(-1)), 1)
        offset = taps.k_groups[index].offset + 4 * segment.offsets[-1]
        view = View((*segment.sizes, 4), strides, offset)
        data = Operand(kernel.read(buffer, view), (*segment.loops, "k4"))
        weights = Operand(self.gathered_weights[index], (*_TILE, "k4"))
        tag = Tag(micro_kernel, f"gathered{index}", (0,))
        loops = Loops((*segment.loops, *_TILE), ("k4",))
        return accumulate(kernel, tag, loops, (data, weights), start, is_signed=self.op.data.signed)

    def _gathered_weights(self, index: int, k_group: RemainderGroup) -> Tensor:
        return self.constant(f"gathered{index}", self.tiles.packed(k_group.taps).squeeze(axis=-4), is_weight=True)

    def _window_sum(self, micro_kernel: int, segment: Segment, buffer: Buffer, data: Operand) -> Operand:
        """The sum of each window's data: the same in every channel, unless groups share the block."""
        if self.sums is not None:
            # Groups with sums of their own come one after the other.
            count, rows = (self.tiles.group.count,), (prod(axis.size for axis in self.op.pixel_axes()),)
            groups = (count, rows) if self.groups else ((), ())
            view = View((*groups[0], *segment.sizes), (*groups[1], *segment.strides(-1)), segment.offsets[-1])
            return Operand(self.kernel.read(self.sums, view), (*self.groups, *segment.loops))
        per_channel = self.tiles.group.per_block > 1
        own = _TILE if per_channel else ("nl",)
        sizes = self._spread(segment) if per_channel else (*self._spread(segment)[:-3], self.tiles.block.lanes)
        columns = ("nt", *self.axes.outer, "kk", "nv", "nl", "k4")
        columns = (*self.groups, *columns) if per_channel else (*self.axes.outer, "kk", "nl", "k4")
        loops = Loops((*self.groups, *segment.loops, *own), self.axes.loops)
        start = self.kernel.filled(sizes, "i32", 0, Tag(micro_kernel, "sum_fill"))
        tag = Tag(micro_kernel, "sum", self.axes.tiles)
        bytes_ = self._data(segment, buffer, in_pairs=False) if self.columns.are_words else data
        ones = Operand(self._ones, columns)
        acc = accumulate(self.kernel, tag, loops, (bytes_, ones), start, is_signed=self.op.data.signed)
        return Operand(acc, loops.parallel)

    def _epilogue(self, body: Body, with_residual: bool) -> Value:
        """From the accumulator to the stored element; inputs are as `emit` lists them."""
        acc, *rest = body.inputs
        parameters, rest = rest[: len(self.parameters)], rest[len(self.parameters) :]
        acc, rest = self.less_window_sum(body, acc, rest)
        residual = rest[0] if with_residual else None
        return self.stages.emit(body, acc, parameters, residual, rest[int(with_residual) :])

    def less_window_sum(self, body: Body, acc: Value, rest: Sequence[Value]) -> tuple[Value, Sequence[Value]]:
        """The accumulator less the zero point times the sum, which are the first of `rest`; and the others of these."""
        if not self.has_zero_points:
            return acc, rest
        if not self.zero_points:
            return body.subtract(acc, rest[0]), rest[1:]
        zero_point, window_sum, *others = rest
        return body.subtract(acc, body.multiply(zero_point, window_sum)), others

    def _spread(self, segment: Segment) -> tuple[int, ...]:
        """Sizes of a tensor over groups, pixels and the channels of the block."""
        channels = self.tiles.sizes
        return (*channels[: len(self.groups)], *segment.sizes, *channels[len(self.groups) :])

    def _input_view(self, segment: Segment) -> View:
        group, axes = self.tiles.group, self.axes
        start = self.op.start(0) + group.start_in + segment.offsets[0]
        taps = (*axes.sizes, axes.k_groups, axes.k_group)
        sizes = (*self.tiles.sizes[: len(self.groups)], *segment.sizes, *taps)
        groups = (group.stride(0),) if self.groups else ()
        return View(sizes, (*groups, *segment.strides(0), *axes.strides, axes.k_group, 1), start)

    def _output_view(self, segment: Segment, operand: int) -> View:
        group, block = self.tiles.group, self.tiles.block
        offset = self.op.start(operand) + segment.offsets[operand] + group.start + block.start
        groups = (group.stride(operand),) if self.groups else ()
        inner = (block.vectors * block.lanes, block.lanes, 1)
        return View(self._spread(segment), (*groups, *segment.strides(operand), *inner), offset)

    @cached_property
    def _ones(self) -> Tensor:
        """The column of ones; groups that share a block see different data, so each channel has a column there."""
        correction = self.columns.correction
        assert correction is not None, "zero points are declared with it"
        return self.constant("ones", correction.ones, is_weight=True)


def accumulate(
    kernel: Kernel,
    tag: Tag,
    loops: Loops,
    operands: tuple[Operand, Operand],
    start: Tensor,
    *,
    is_signed: bool = False,
) -> Tensor:
    """``acc += x * w`` over the reduction loops, whose tile sizes `tag` has.

    x is u8 or s16, and s8 where it `is_signed`; w is s8 or s16.
    """
    output = Operand(start, loops.parallel)
    body = kernel.body(operands, output)
    is_unsigned = body.inputs[0].type == "i8" and not is_signed
    x = body.cast("arith.extui" if is_unsigned else "arith.extsi", body.inputs[0], "i32")
    w = body.cast("arith.extsi", body.inputs[1], "i32")
    total = body.add(body.output, body.multiply(x, w))
    tag = replace(tag, tiles=(0,) * len(loops.parallel) + tag.tiles)
    return kernel.generic(loops, operands, output, body, total, tag)


# Weights and bias that are known when a network is compiled.


@dataclass(frozen=True)
class ConstantColumns:
    """Weights and bias that are packed into the constants of each micro-kernel."""

    weights: ContractionWeights

    def declare(self, micro_kernel: ContractionMicroKernel) -> DeclaredColumns:
        """Declare the packed weights of the micro-kernel's channels."""
        strategy, in_pairs = micro_kernel.kernel.program.strategy, micro_kernel.tiles.block.in_pairs
        factor = micro_kernel.op.factor_of_ones(strategy)
        packed = pack_weights(self.weights, micro_kernel.tiles, micro_kernel.axes, factor)
        are_words = not in_pairs and strategy.are_words(micro_kernel.op.pixel_count)
        own = widened_k_groups(packed.weights) if are_words else packed.weights
        weights = micro_kernel.constant("weights", own, is_weight=True)
        bias = Operand(micro_kernel.constant("bias", packed.bias), micro_kernel.channel_loops)
        remainder = [_declare(micro_kernel, index, k_group) for index, k_group in enumerate(packed.remainder)]
        return DeclaredColumns(weights, bias, packed.correction, remainder, are_words)


def _declare(micro_kernel: ContractionMicroKernel, index: int, k_group: PackedRemainder) -> Remainder:
    name = f"remainder{index}"
    offset = micro_kernel.kernel.number(micro_kernel.name_of(f"{name}_offset"), k_group.offset, "index")
    return Remainder(offset, micro_kernel.constant(name, k_group.weights, is_weight=True))
