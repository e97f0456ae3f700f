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

from qdialect.lowering.cost.matrix_tiles import are_faster, channel_blocks
from qdialect.lowering.cost.strategy import ChannelBlock, Strategy, row_tiles, split
from qdialect.lowering.ir.strides import Axis, View, collapse, row_major
from qdialect.lowering.qnn_to_linalg.contractions.epilogue import Epilogue, Stages, declare_stages
from qdialect.lowering.qnn_to_linalg.contractions.micro_kernel import (
    Columns,
    ConstantColumns,
    ContractionMicroKernel,
    SumOfProducts,
    accumulate,
)
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import (
    MAX_K_GROUPS,
    CenteredWeights,
    ContractionWeights,
    GatheredTaps,
    RemainderGroup,
    clip_outliers,
    remainder_groups,
    remainder_k_groups,
)
from qdialect.lowering.qnn_to_linalg.contractions.tile_contraction import (
    TileMicroKernel,
    pixel_blocks,
    sums_scratch,
    tiled_axes,
)
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand, emit_map, together
from qdialect.lowering.qnn_to_linalg.kernels.geometry import (
    EVERY_PIXEL,
    ChannelGroup,
    Grid,
    ReductionAxes,
    Segment,
    Window,
    group_blocks,
    tile_segments,
)
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer, Loops, Operand, Tag
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, Program
from qdialect.lowering.qnn_to_linalg.program.storage import Storage

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


# The sum of each window's data, computed once for all channels: what the zero points of weights are multiplied by.
#
# Contiguous bytes are summed up a vector at a time: dot products with ones leave a sum in every lane, and the lanes
# are
# added up at the end.  Where all weights have one zero point, it stands in place of the ones.  That is an instruction
# for
# 64 bytes, where a column of ones beside the weights costs one for every K group and every tile of channels.

_K_GROUP = 4
# Cycles beside those for the bytes: what adds up the lanes of a vector, and the sum's way through memory.
_OVERHEAD = 8


def emit_window_sums(program: Program, op: SumOfProducts, axes: Sequence[Axis]) -> BufferSlot | None:
    """Append the kernel call that sums up the windows of the pixels along `axes`: an i32 for each, in their order.

    None where zero points need no sums, where the sums differ from channel to channel, and where a column of ones is
    cheaper.
    """
    rows, groups = program.strategy.sum_rows, op.channel_groups()
    if not rows or not op.zero_points.any() or len(groups) > 1 or groups[0].per_block > 1:
        return None
    if groups[0].has_channels_by_group:
        return None
    reduction = op.reduction_axes(groups[0])
    step, ones = _packed_ones(reduction, program.strategy.lanes, may_read_on=op.data.has_slack)
    blocks = program.strategy.channel_blocks(groups[0].lanes, reduction.taps)
    is_cheap = reduction.taps // _K_GROUP * sum(block.tiles for block in blocks) <= _OVERHEAD
    # Matrix tiles have no column of ones beside the weights.
    is_cheap = is_cheap and program.strategy.matrix_machine is None
    if is_cheap or not step:
        return None
    axes = [*group_axes(groups[0]), *axes]
    pixels = math.prod(axis.size for axis in axes)
    slot = program.buffer(Storage((pixels, 1, 1, 1), "i32", 1))
    kernel = Kernel(program)
    data, sums = kernel.slot("data", op.data), kernel.slot("sums", slot)
    own = op.factor_of_ones(program.strategy)
    ones *= np.int8(own)
    weights = kernel.data("ones", ones, is_weight=True, in_pairs=own == 1 and program.strategy.pair_model is not None)
    columns = kernel.read(weights, View(ones.shape, row_major(ones.shape)))
    outer = [[(0, axis.size, 1)] for axis in axes[:-1]]
    for segment in tile_segments(with_sums(axes), [*outer, split(axes[-1].size, min(rows, axes[-1].size))]):
        micro_kernel = kernel.next_micro_kernel()
        loops, source = (
            Loops((*segment.loops, "nl"), reduction.loops),
            _windows(op, reduction, segment, ones.shape, step),
        )
        inputs = (
            Operand(kernel.read(data, source), (*segment.loops, *reduction.outer, "kk", "nl", "k4")),
            Operand(columns, (*reduction.outer, "kk", "nl", "k4")),
        )
        start = kernel.filled((*segment.sizes, ones.shape[-2]), "i32", 0, Tag(micro_kernel, "sum_fill"))
        tag = Tag(micro_kernel, "sum", reduction.tiles)
        lanes = accumulate(kernel, tag, loops, inputs, start, is_signed=op.data.signed)
        terms = [Operand(lanes, loops.parallel)]
        start = Operand(kernel.filled(segment.sizes, "i32", 0, Tag(micro_kernel, "total_fill")), segment.loops)
        body = kernel.body(terms, start)
        total = body.add(body.output, body.inputs[0])
        over = Loops(segment.loops, ("nl",))
        added = kernel.generic(over, terms, start, body, total, Tag(micro_kernel, "total"))
        destination, where = kernel.write(sums, View(segment.sizes, segment.strides(-1), segment.offsets[-1]))
        root, target = Tag(micro_kernel, "root", segment.tiles), Operand(destination, segment.loops)
        kernel.store(kernel.copy(Loops(segment.loops), Operand(added, segment.loops), target, root), where)
    program.call(kernel, "window sums")
    return slot


def group_axes(group: ChannelGroup) -> list[Axis]:
    """The groups as an axis before those of the pixels, where they are products of their own; else none."""
    return [] if group.strides is None or group.count == 1 else [Axis(group.count, group.strides)]


def with_sums(axes: Sequence[Axis]) -> list[Axis]:
    """`axes` with the sums as one more operand, the last."""
    strides = row_major([axis.size for axis in axes])
    return [Axis(axis.size, (*axis.strides, own)) for axis, own in zip(axes, strides, strict=True)]


def _windows(op: SumOfProducts, reduction: ReductionAxes, segment: Segment, ones: Sequence[int], step: int) -> View:
    """The windows as vectors of K groups, `step` bytes apart, which may end beyond the contiguous reduction."""
    *_, chunks, lanes, k_group = ones
    sizes = (*segment.sizes, *reduction.sizes, chunks, lanes, k_group)
    return View(
        sizes,
        (*segment.strides(0), *reduction.strides, step, k_group, 1),
        op.start(0) + op.channel_groups()[0].start_in + segment.offsets[0],
    )


def _packed_ones(reduction: ReductionAxes, widest: int, *, may_read_on: bool) -> tuple[int, NDArray[np.int8]]:
    """The bytes from one vector of the contiguous reduction to the next, and the ones of each vector.

    These are [outer axes, vectors, lanes, 4]: one where a channel has a tap that no vector before has.  Vectors end
    beyond the last tap where they `may_read_on`; elsewhere they overlap, or the step is 0, as nothing fits.
    """
    taps = reduction.ordered(reduction.present[:1])[0]
    lanes = next((lanes for lanes in (4, 8) if reduction.k_groups <= lanes <= widest), widest)
    count = -(-taps.shape[-1] // (lanes * _K_GROUP))
    step = lanes * _K_GROUP
    if not may_read_on and count * step > taps.shape[-1]:
        lanes, count, step = overlapping(taps.shape[-1], widest)
    size = lanes * _K_GROUP
    padded = np.pad(taps, [*[(0, 0)] * (taps.ndim - 1), (0, max(0, (count - 1) * step + size - taps.shape[-1]))])
    vectors = [padded[..., i * step : i * step + size].copy() for i in range(count)]
    for vector in vectors[1:]:
        vector[..., : size - step] = 0
    return step, np.stack(vectors, axis=-2).reshape(*taps.shape[:-1], count, lanes, _K_GROUP)


def overlapping(taps: int, widest: int) -> tuple[int, int, int]:
    """Lanes of the fewest vectors that end with the last tap, how many, and the bytes from one to the next, or 0."""
    for lanes in (lanes for lanes in (16, 8, 4) if lanes <= widest and lanes * _K_GROUP < taps):
        size = lanes * _K_GROUP
        least = -(-taps // size)
        for count in range(least, 2 * least):
            if (taps - size) % (count - 1) == 0:
                return lanes, count, (taps - size) // (count - 1)
    return widest, 1, 0


# Taps that fill no K group, put together from all rows of a kernel before the products.
#
# A row of c contiguous taps is ceil(c / 4) K groups.  Where c is no multiple of 4, the last of them has r = c mod 4
# taps,
# and R rows have as many of these: 3x3 taps of 3 channels are three rows of 9, so nine K groups for 27 taps.  A kernel
# of its own gathers the R r taps of each pixel into ceil(R r / 4) K groups, and the rows end with their last whole
# one:
#
#     R ceil(c / 4)  ->  R floor(c / 4) + ceil(R r / 4)        9 -> 7 of 3x3x3, 42 -> 37 of 7x7x3
#
# A vector of 16 pixels takes for each gathered tap two loads, a permute, an extension, a shift and an `or`; a K group
# that is saved is a dot product for each pixel and vector of channels, and half of one for half of a vector.

_PIXELS = 16
"""Pixels that are gathered at a time."""
_STEP = 8
"""Bytes from pixel to pixel at most: 16 pixels then lie in two vectors."""
_INSTRUCTIONS = 6
"""Of each gathered tap, for a vector of pixels."""
_LANES = 16


def gather_taps(program: Program, op: SumOfProducts, axes: Sequence[Axis]) -> GatheredTaps | None:
    """Append the kernel call that gathers the taps of the pixels along `axes`; None where that saves nothing."""
    groups = op.channel_groups()
    if not program.strategy.gathers_bytes or op.data.storage.element != "i8":
        return None
    if len(groups) > 1 or groups[0].count > 1:
        return None
    parts, reduction = op.tap_parts(groups[0]), op.reduction_axes(groups[0])
    if not parts or not _is_cheaper(reduction, axes, groups[0].lanes) or not 0 < axes[-1].strides[0] <= _STEP:
        return None
    per_row = reduction.extents[-1] % _K_GROUP
    pixels = math.prod(axis.size for axis in axes)
    offsets = _offsets(op, reduction, per_row)
    length = _K_GROUP * pixels * -(-len(offsets) // _K_GROUP)
    slot = program.buffer(Storage((1, 1, 1, length), "i8", length))
    _emit(program, op, axes, offsets, slot)
    k_groups = [found for part in parts for found in _k_groups(reduction.ordered(part)[..., -per_row:], pixels)]
    return GatheredTaps(slot, per_row, tuple(k_groups))


def _k_groups(ends: NDArray[np.int8], pixels: int) -> list[RemainderGroup]:
    """The K groups of the last taps of all rows, [channels, rows..., taps], that are not zero."""
    found = remainder_groups(ends.reshape(ends.shape[0], -1), ())
    return [replace(k_group, offset=k_group.offset * pixels) for k_group in found]


def _is_cheaper(reduction: ReductionAxes, axes: Sequence[Axis], channels: int) -> bool:
    """Whether the dot products that are saved are more than the instructions that gather."""
    rows, (whole, rest) = math.prod(reduction.sizes), divmod(reduction.extents[-1], _K_GROUP)
    if not whole or not rest:
        return False
    saved = (rows - -(-rows * rest // _K_GROUP)) * axes[-1].size * channels / _LANES
    return saved > _INSTRUCTIONS * rows * rest * -(-axes[-1].size // _PIXELS)


def _offsets(op: SumOfProducts, reduction: ReductionAxes, per_row: int) -> list[int]:
    """Where each gathered tap of the first pixel lies in the data."""
    start = op.start(0) + op.channel_groups()[0].start_in + reduction.extents[-1] - per_row
    rows = [sum(map(int.__mul__, row, reduction.strides)) for row in np.ndindex(*reduction.sizes)]
    return [start + row + tap for row in rows for tap in range(per_row)]


def _emit(program: Program, op: SumOfProducts, axes: Sequence[Axis], offsets: Sequence[int], slot: BufferSlot) -> None:
    kernel = Kernel(program)
    k_groups = slot.storage.length // _K_GROUP
    numbers = replace(slot, storage=Storage((1, 1, 1, k_groups), "i32", k_groups))
    data, gathered = kernel.slot("data", op.data), kernel.slot("gathered", numbers)
    shape = [axis.size for axis in axes]
    steps = tuple(axis.strides[0] for axis in axes)
    for index, first in enumerate(range(0, len(offsets), _K_GROUP)):
        sources = [MapOperand(data, steps, offset) for offset in offsets[first : first + _K_GROUP]]
        target = MapOperand(gathered, row_major(shape), index * math.prod(shape))
        emit_map(kernel, shape, sources, target, together, _PIXELS, step=_STEP)
    program.call(kernel, "gathered taps")
