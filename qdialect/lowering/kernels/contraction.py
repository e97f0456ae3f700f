"""Convolution and matrix product as one strided matrix product per block of channels.

The stored input is seen through overlapping strides, ``[group, pixels..., taps..., K groups, 4]``: stride, dilation and
kernel size become strides of a view, and contiguous bytes (the channels of a tap; all taps of a
kernel row where nothing is dilated; the whole window where the filter is as wide as the input) is one reduction axis.

Channels are cut into blocks of whole vectors, pixels into whole register tiles and smaller tiles for the rest; every
combination is a loop nest of its own (see `contraction_micro_kernel`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.kernels.columns import ConstantColumns
from qdialect.lowering.kernels.contraction_micro_kernel import Columns, ContractionMicroKernel, SumOfProducts
from qdialect.lowering.kernels.epilogue import Epilogue, Stages, declare_stages
from qdialect.lowering.kernels.gathered_taps import gather_taps
from qdialect.lowering.kernels.groups import ChannelGroup, group_blocks
from qdialect.lowering.kernels.packed_weights import MAX_K_GROUPS, ContractionWeights, GatheredTaps, remainder_k_groups
from qdialect.lowering.kernels.reduction_axes import ReductionAxes
from qdialect.lowering.kernels.segments import tile_segments
from qdialect.lowering.kernels.tile_contraction import TileMicroKernel, pixel_blocks, sums_scratch, tiled_axes
from qdialect.lowering.kernels.window import EVERY_PIXEL, Grid, Window
from qdialect.lowering.kernels.window_sums import emit_window_sums, with_sums
from qdialect.lowering.memory.storage import Storage
from qdialect.lowering.memory.views import Axis, collapse
from qdialect.lowering.operands.packing import CenteredWeights, clip_outliers
from qdialect.lowering.program import BufferSlot, Kernel, Program
from qdialect.lowering.text.kernel_text import Buffer
from qdialect.lowering.tiling.matrix_tiles import are_faster, channel_blocks
from qdialect.lowering.tiling.strategy import ChannelBlock, Strategy, row_tiles

_SUMS_OF_FEW = 8
"""Vectors of sums in a tile of few pixels: none waits for the product before it."""


@dataclass(frozen=True)
class Contraction(SumOfProducts):
    """A convolution on stored tensors; `weights` are [OC, KH, KW, IC / groups], `bias` int32[OC] with all folded in."""

    window: Window
    weights: CenteredWeights
    bias: NDArray[np.int32]
    groups: int
    grid: Grid = EVERY_PIXEL
    """The pixels of output and residual."""

    @property
    def channels(self) -> int:
        return self.weights.values.shape[0]

    @property
    def macs(self) -> int:
        return math.prod(self.window.pixels) * self.weights.values.size

    @property
    def zero_points(self) -> NDArray[np.int32]:
        return self._clipped.centered.zero_points

    @cached_property
    def _clipped(self) -> ContractionWeights:
        return ContractionWeights(*clip_outliers(self.weights), self.bias)

    def start(self, operand: int) -> int:
        storage = self.slots[operand].storage
        return self.grid.origin(storage) if operand else self.window.start(storage)

    def pixel_axes(self) -> list[Axis]:
        return window_axes(self, self.window, self.grid)

    def channel_groups(self) -> list[ChannelGroup]:
        return group_blocks(self.groups, self.data.storage.shape[3], self.channels)

    def reduction_axes(self, group: ChannelGroup) -> ReductionAxes:
        axes = _axes(self.data.storage, self.window, group)
        spare = _lanes(self.data.storage, group) - group.channels_in
        strides = tuple(axis.strides[0] for axis in axes[:-1])
        ones = group.taps(np.broadcast_to(np.int8(1), self.weights.values.shape))
        return ReductionAxes(tuple(axis.size for axis in axes), strides, spare, ones)

    def tap_parts(self, group: ChannelGroup) -> list[NDArray[np.int8]]:
        if self.zero_points.any():
            return []
        return [group.taps(part) for part in (self._clipped.centered.values, self._clipped.remainder)]

    def sums_pairs(self, strategy: Strategy, group: ChannelGroup) -> bool:
        if strategy.pair_model is None:
            return False
        remainder = self.pair_remainder(group)
        taps = self.reduction_axes(group).taps
        return remainder is not None and strategy.takes_pairs(group.lanes, taps, self.pixel_count, remainder)

    def pair_remainder(self, group: ChannelGroup) -> float | None:
        """The share of K groups that products in pairs multiply once more; None where they are too many."""
        axes = self.reduction_axes(group)
        k_groups = remainder_k_groups(self._clipped, group, axes)
        return k_groups / (math.prod(axes.sizes) * axes.k_groups) if k_groups <= MAX_K_GROUPS else None

    def declare_columns(self, kernel: Kernel) -> Columns:
        return ConstantColumns(self._clipped)


class Windowed(Protocol):
    """What looks at stored data through windows."""

    @property
    def data(self) -> BufferSlot: ...
    @property
    def output(self) -> BufferSlot: ...
    @property
    def epilogue(self) -> Epilogue: ...
    @property
    def slots(self) -> list[BufferSlot]:
        """What moves from pixel to pixel: data, output and, where there is one, residual."""
        ...


def window_axes(op: Windowed, window: Window, grid: Grid) -> list[Axis]:
    """The output pixels of `window`, merged where they are contiguous in every slot; at least one axis."""
    steps = [window.pixel_strides(op.data.storage)]
    steps += [grid.pixel_strides(slot.storage) for slot in op.slots[1:]]
    steps += [parameter.steps for parameter in op.epilogue.row_parameters()]
    axes = [Axis(extent, tuple(step[i] for step in steps)) for i, extent in enumerate(window.pixels)]
    return collapse(axes) or [Axis(1, tuple(0 for _ in steps))]


def declare_slots(kernel: Kernel, op: Windowed) -> list[Buffer]:
    """A buffer parameter for each of the op's slots."""
    names = ("data", "output", "residual")
    return [kernel.slot(name, slot) for name, slot in zip(names, op.slots, strict=False)]


def emit_contraction(program: Program, op: SumOfProducts, label: str) -> None:
    """Append the kernel call of `op`."""
    pixels = op.pixel_axes()
    sums = emit_window_sums(program, op, pixels)
    taps = gather_taps(program, op, pixels)
    kernel = Kernel(program)
    buffers = declare_slots(kernel, op)
    summed = kernel.slot("sums", sums) if sums else None
    gathered = (kernel.slot("gathered", taps.slot), taps) if taps else None
    columns = op.declare_columns(kernel)
    stages = declare_stages(kernel, op.epilogue)
    tiled = pixel_blocks(op, program.strategy, with_sums(pixels))
    for group in op.channel_groups():
        wide = tiled_axes(op, columns, group, summed)
        if wide and are_faster(program.strategy.matrix_machine, tiled, (*wide.sizes, wide.k_groups), group.lanes):
            scratch = sums_scratch(kernel, group)
            for block in channel_blocks(group.lanes, tiled):
                tiles = TileMicroKernel(kernel, op, columns, stages, group, block, wide, summed)
                tiles.emit_blocks(buffers, scratch, tiled)
            continue
        emit_dot_products(kernel, op, columns, stages, group, buffers, summed, gathered)
    program.call(kernel, label, op.macs)


def emit_dot_products(
    kernel: Kernel,
    op: SumOfProducts,
    columns: Columns,
    stages: Stages,
    group: ChannelGroup,
    buffers: Sequence[Buffer],
    summed: Buffer | None = None,
    gathered: tuple[Buffer, GatheredTaps] | None = None,
) -> None:
    """Emit `op` for one group of channels by dot products; `buffers` are data, output and perhaps residual."""
    axes = op.reduction_axes(group)
    axes = replace(axes, gathered=gathered[1].per_row) if gathered else axes
    for block in _dot_product_blocks(kernel.program.strategy, op, group, axes):
        BlockOfProducts(kernel, op, columns, stages, group, block, axes, summed, gathered).emit(buffers)


def tiles_of_products(
    kernel: Kernel, op: SumOfProducts, columns: Columns, stages: Stages, group: ChannelGroup
) -> list[BlockOfProducts]:
    """`op` for one group of channels by dot products, each tile of channels by itself; wide ones for few pixels."""
    axes, vectors = op.reduction_axes(group), _SUMS_OF_FEW // op.pixel_count
    blocks = _dot_product_blocks(kernel.program.strategy, op, group, axes)
    tiles = [tile for block in blocks for tile in block.cut(max(block.vectors, vectors))]
    return [BlockOfProducts(kernel, op, columns, stages, group, tile, axes) for tile in tiles]


class BlockOfProducts:
    """The dot products of a block of channels: a micro-kernel for each segment of pixels."""

    def __init__(
        self,
        kernel: Kernel,
        op: SumOfProducts,
        columns: Columns,
        stages: Stages,
        group: ChannelGroup,
        block: ChannelBlock,
        axes: ReductionAxes,
        summed: Buffer | None = None,
        gathered: tuple[Buffer, GatheredTaps] | None = None,
    ) -> None:
        pixels = op.pixel_axes()
        least = kernel.program.strategy.least_rows(block, stored_words=_are_stored_words(op))
        parts = row_tiles([axis.size for axis in pixels], block.rows, least)
        self._segments = tile_segments(with_sums(pixels), parts)
        self._micro_kernel = ContractionMicroKernel(kernel, op, columns, stages, group, block, axes, summed, gathered)

    def emit(self, buffers: Sequence[Buffer]) -> None:
        """Emit the loops; `buffers` are data, output and perhaps residual."""
        for segment in self._segments:
            self._micro_kernel.emit(buffers, segment)


def _dot_product_blocks(
    strategy: Strategy, op: SumOfProducts, group: ChannelGroup, axes: ReductionAxes
) -> list[ChannelBlock]:
    return strategy.channel_blocks(
        *(group.lanes, axes.taps),
        in_pairs=op.sums_pairs(strategy, group),
        stored_words=_are_stored_words(op),
        parameters=len(op.epilogue.channel_parameters()),
    )


def _are_stored_words(op: SumOfProducts) -> bool:
    return op.data.storage.element == "i16"


def _lanes(data: Storage, group: ChannelGroup) -> int:
    """Bytes of one tap: lanes beyond the channels join where they let taps merge, their weights are zero."""
    return data.pitch if group.channels_in == data.shape[3] else group.channels_in


def _axes(data: Storage, window: Window, group: ChannelGroup) -> Sequence[Axis]:
    """The reduction axes of a window, merged; the last one is contiguous."""
    row, column = window.tap_strides(data)
    lanes = _lanes(data, group)
    axes = collapse([Axis(window.kernel[0], (row,)), Axis(window.kernel[1], (column,)), Axis(lanes, (1,))])
    return axes if axes and axes[-1].strides == (1,) else [*axes, Axis(1, (1,))]
