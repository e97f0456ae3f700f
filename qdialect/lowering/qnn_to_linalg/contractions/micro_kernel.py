"""The micro-kernel of one block of channels and one segment of pixels: start, contraction, epilogue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.cost.register_tiles import Layout
from qdialect.lowering.cost.strategy import ChannelBlock, TiledOperand, row_tiles
from qdialect.lowering.ir.views import View, row_major
from qdialect.lowering.qnn_to_linalg.contractions import contraction, packed_weights
from qdialect.lowering.qnn_to_linalg.contractions.contraction import Contraction, Stages, StoredWeights
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand, emit_map
from qdialect.lowering.qnn_to_linalg.kernels.geometry import ChannelGroup, ReductionAxes, Segment, tile_segments
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer, Loops, Operand, Tag, Tensor
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, Storage
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Value

_TILE = ("nt", "nv", "nl")
"""Loops over the channels of a block: tile, vector, lane."""
_SUMS_OF_FEW = 8
"""Vectors of sums in a tile of few pixels: none waits for the product before it."""


@dataclass(frozen=True)
class Site:
    """A kernel of a contraction, and what all of its micro-kernels share."""

    kernel: Kernel
    op: Contraction
    buffers: Sequence[Buffer]
    """Data, output and perhaps residual."""
    stored: Sequence[Buffer]
    """Packed matrices and perhaps what accumulators start at, where they are stored tensors."""
    stages: Stages
    sums: Buffer | None = None
    """The sums of the windows, along the pixels' last strides, where they are computed before."""

    @classmethod
    def of(
        cls, kernel: Kernel, op: Contraction, buffers: Sequence[Buffer] | None = None, sums: BufferSlot | None = None
    ) -> Site:
        """Declare what `op` reads and writes, unless there are `buffers` for it."""
        known = op.declare(kernel) if buffers is None else buffers
        summed = kernel.slot("sums", sums) if sums else None
        stored: list[Buffer] = []
        if isinstance(op.weights, StoredWeights):
            stored.append(kernel.slot("packed", op.weights.slot))
            if isinstance(op.weights.start, BufferSlot):
                stored.append(kernel.slot("start", op.weights.start))
        return cls(kernel, op, known, stored, contraction.declare_stages(kernel, op.epilogue), summed)

    @property
    def residual(self) -> Buffer | None:
        return self.buffers[2] if len(self.buffers) > 2 else None

    def emit_dot_products(self, group: ChannelGroup, axes: ReductionAxes) -> None:
        """Emit the micro-kernels of the blocks of channels of `group` by dot products."""
        for block in self._blocks(group, axes):
            micro_kernel = ContractionMicroKernel(self, group, axes, block)
            step = self.kernel.program.strategy.step_of(block, axes.taps, self.op.pixel_count)
            if step and not axes.sizes and group.count == 1:
                micro_kernel.emit_in_steps(step)
            else:
                micro_kernel.emit()

    def single_tiles(self) -> list[ContractionMicroKernel]:
        """Those of all channels, each tile of channels by itself; wide ones for few pixels."""
        vectors = _SUMS_OF_FEW // self.op.pixel_count
        return [
            ContractionMicroKernel(self, group, axes, tile)
            for group, axes in self.op.parts
            for block in self._blocks(group, axes)
            for tile in block.cut(max(block.vectors, vectors))
        ]

    def _blocks(self, group: ChannelGroup, axes: ReductionAxes) -> list[ChannelBlock]:
        strategy, op = self.kernel.program.strategy, self.op
        layout, parameters = op.layout(strategy, group, axes), len(op.epilogue.channel_parameters())
        return strategy.channel_blocks(group.lanes, axes.weight_bytes, layout, parameters, op.tile_rows(layout))


@dataclass(frozen=True)
class _Columns:
    """Weights, bias and correction of one block of channels, as parameters of its kernel."""

    weights: Tensor
    """[group, tile, reduction loops but the last, vector, lane, taps], as `pack_k_groups` packs them."""
    bias: Operand
    """The initial accumulators, by channel."""
    correction: packed_weights.ZeroPointCorrection | None
    remainder: Sequence[tuple[Value, Tensor]] = ()
    """K groups that are multiplied once more: an index, where each lies in the window, and its weights."""


def _own(kernel: Kernel, tensor: Tensor, offsets: Sequence[int | Value], sizes: Sequence[int]) -> Tensor:
    """The part of `tensor` from `offsets` on, along its first axes."""
    rest = tensor.sizes[len(sizes) :]
    return kernel.slice(tensor, (*offsets, *[0] * len(rest)), (*sizes, *rest))


class ContractionMicroKernel:
    """One block of channels of one channel group; its constants are declared once and serve every segment."""

    sums: Buffer | None = None
    """Where sums lie between two steps of the reduction."""
    is_last: bool = True
    """Whether no step follows."""

    def __init__(self, site: Site, group: ChannelGroup, axes: ReductionAxes, block: ChannelBlock) -> None:
        self.site, self.kernel, self.op, self.axes = site, site.kernel, site.op, axes
        self.tiles = packed_weights.ChannelTiles(group, block, site.op.channels)
        # The group loop exists only where there are several.
        self.groups = ("g",) if self.tiles.has_group_axis else ()
        # Loops that index what belongs to a channel.
        self.channel_loops = (*(self.groups if self.tiles.has_channels_by_group else ()), *_TILE)
        self.columns = self._declare()
        self.parameters = [
            self._constant(name, self.tiles.per_channel(values))
            for name, values in self.op.epilogue.channel_parameters()
        ]
        correction = self.columns.correction
        points = correction.zero_points if correction else None
        self.zero_points = self._constant("zero_points", points) if points is not None else None
        """The factors of the windows' sums; None where the sums have them."""

    def _declare(self) -> _Columns:
        """Declare the weights of the micro-kernel's channels."""
        weights, tiles, factor = self.op.weights, self.tiles, self.op.factor_of_ones(self.kernel.program.strategy)
        if not isinstance(weights, packed_weights.ConstantWeights):
            # Every stored value minus 128 fits s8.
            correction = packed_weights.correction_of(self.op.zero_points, tiles, self.axes, factor)
            return _Columns(self._stored_weights(), self._stored_start(), correction)
        packed = packed_weights.pack_weights(weights, tiles, self.axes, factor)
        words = packed_weights.widened_k_groups(packed.weights) if self._are_words else packed.weights
        own = self._constant("weights", words, is_weight=True)
        bias = Operand(self._constant("bias", packed.bias), self.channel_loops)
        remainder: list[tuple[Value, Tensor]] = []
        for index, k_group in enumerate(packed.remainder):
            name = f"remainder{index}"
            offset = self.kernel.number(self._name_of(f"{name}_offset"), k_group.offset, "index")
            remainder.append((offset, self._constant(name, k_group.taps, is_weight=True)))
        return _Columns(own, bias, packed.correction, remainder)

    @property
    def _are_words(self) -> bool:
        """Whether weights of bytes are words, as `widened_k_groups` orders them."""
        return self.tiles.block.layout is Layout.WORDS

    def _stored_weights(self) -> Tensor:
        """The packed channels of the micro-kernel, one group after the other, or one tap."""
        weights, block = self.op.weights, self.tiles.block
        assert isinstance(weights, StoredWeights), "weights are packed or constant"
        matrix = weights.matrices.packed(block)
        tile, *inner = matrix.sizes
        outer, *steps = matrix.strides
        size = weights.matrices.step(block)
        taps = [size * step for step in row_major(weights.window)]
        groups, strides = ((self.op.batch.size,), (self.op.batch.strides[-1] * size,)) if self.groups else ((), ())
        offset = matrix.offset + weights.first * size
        view = View((*groups, tile, *weights.window, *inner), (*strides, outer, *taps, *steps), offset)
        return self.kernel.read(self.site.stored[0], view)

    def _stored_start(self) -> Operand:
        """The start of the micro-kernel's channels, one group after the other where they differ."""
        weights, tiles = self.op.weights, self.tiles
        assert isinstance(weights, StoredWeights), "weights are packed or constant"
        if not isinstance(weights.start, BufferSlot):
            return Operand(self._constant("bias", tiles.per_channel(weights.start)), self.channel_loops)
        lanes, block = weights.matrices.lanes, tiles.block
        strides = (block.vectors * block.lanes, block.lanes, 1)
        strides = (self.op.batch.strides[-1] * lanes, *strides) if self.groups else strides
        view = View(tiles.sizes, strides, weights.first * lanes + block.start)
        return Operand(self.kernel.read(self.site.stored[1], view), (*self.groups, *_TILE))

    def _constant(self, name: str, values: NDArray[Any], *, is_weight: bool = False) -> Tensor:
        """A parameter for constants of the block."""
        in_pairs = is_weight and self.tiles.block.layout is Layout.PAIRS
        constants = np.ascontiguousarray(values)
        data = self.kernel.data(self._name_of(name), constants, is_weight=is_weight, in_pairs=in_pairs)
        return self.kernel.read(data, View(values.shape, row_major(values.shape)))

    def _name_of(self, name: str) -> str:
        """`name` as one of the block: its kernel has one for each."""
        return f"{name}_{self.tiles.group.start}_{self.tiles.block.start}"

    def emit(self) -> None:
        """Emit the micro-kernels of all pixels."""
        pixels, block = self.op.pixels, self.tiles.block
        least = self.kernel.program.strategy.least_rows(block)
        for segment in tile_segments(
            contraction.with_sums(pixels), row_tiles([axis.size for axis in pixels], block.rows, least)
        ):
            self._emit(segment)

    def emit_in_steps(self, step: int) -> None:
        """Emit the micro-kernels of all pixels for a tile of channels after the other, in steps of so many taps.

        All pixels meet the weights of a step, which stay in the second level, before those of the next.  Sums lie in
        memory between two steps, so that they are those of one step, to the last bit.
        """
        kernel, (taps,), length = self.kernel, self.axes.extents, self.op.pixel_count * self._width
        sums = kernel.scratch(self._name_of("sums"), Storage((1, 1, 1, length), "f32", length))
        last = -(-taps // step) - 1
        with kernel.loop(self.tiles.block.tiles) as tile:
            emit_map(kernel, [length], [], MapOperand(sums, (1,)), lambda body, _: body.constant(0.0, "f32"))
            with kernel.loop(last) as index:
                self._step(tile, kernel.multiple(index, step), step, sums, is_last=False).emit()
            first = kernel.constant(last * step, "index")
            self._step(tile, first, taps - last * step, sums, is_last=True).emit()

    @property
    def _width(self) -> int:
        """Channels of a tile."""
        return self.tiles.block.vectors * self.tiles.block.lanes

    def _step(self, tile: Value, first: Value, taps: int, sums: Buffer, *, is_last: bool) -> ContractionMicroKernel:
        """The micro-kernel of one tile of channels and `taps` from the `first` on, whose sums begin as they lie."""
        kernel, found, (data, output, *_) = self.kernel, copy(self), self.site.buffers
        buffers = kernel.moved(data, first), kernel.moved(output, kernel.multiple(tile, self._width))
        found.site, found.axes = replace(self.site, buffers=buffers), replace(self.axes, extents=(taps,))
        found.tiles = replace(self.tiles, block=replace(self.tiles.block, tiles=1))
        found.columns = replace(self.columns, weights=_own(kernel, self.columns.weights, (tile, first), (1, taps)))
        found.parameters = [_own(kernel, one, (tile,), (1,)) for one in self.parameters]
        found.sums, found.is_last = sums, is_last
        return found

    def _emit(self, segment: Segment) -> None:
        kernel, stages = self.kernel, self.site.stages
        micro_kernel = kernel.next_micro_kernel()
        # The loops over tiles in the order in which the fewest bytes come from beyond the first level.
        outer = ("nt", *segment.loops) if self._is_weight_stationary(segment) else (*segment.loops, "nt")
        loops, own = Loops((*self.groups, *outer, *_TILE[1:])), (*self.groups, *segment.loops, *_TILE)
        data = self._data(segment, self._are_words)
        tiles = dict(zip(segment.loops, segment.tiles, strict=True)) | dict.fromkeys((*self.groups, "nt"), 1)
        tag = Tag(micro_kernel, "root", tuple(tiles.get(loop, 0) for loop in loops.parallel))
        if self.sums and not self.is_last:
            target, where = kernel.write(self.sums, self._sums_view(segment))
            total = Operand(self._contract(micro_kernel, segment, data), own)
            kernel.store(kernel.copy(loops, total, Operand(target, own), tag), where)
            return
        residual = self.site.residual
        stages.store(
            kernel,
            loops,
            Operand(self._contract(micro_kernel, segment, data), own),
            [Operand(parameter, self.channel_loops) for parameter in self.parameters],
            self._correction(micro_kernel, segment, data),
            Operand(kernel.read(residual, self._output_view(segment, 2)), own) if residual else None,
            stages.segment_operands(kernel, segment, len(self.site.buffers)),
            kernel.write(self.site.buffers[1], self._output_view(segment, 1)),
            tag,
        )

    def _sums_view(self, segment: Segment) -> View:
        """Where the sums of a tile of channels lie between two steps."""
        steps = (*(step * self._width for step in segment.strides(-1)), self._width, self.tiles.block.lanes, 1)
        return View(self._spread(segment), steps, segment.offsets[-1] * self._width)

    def _is_weight_stationary(self, segment: Segment) -> bool:
        """Whether all pixels meet one tile of channels before the next."""
        share = prod(segment.sizes) / self.op.pixel_count
        weights = TiledOperand(self.tiles.block.channels * self.axes.weight_bytes, self.tiles.block.tiles)
        tiles = prod(-(-size // tile) for size, tile in zip(segment.sizes, segment.tiles, strict=True))
        data = TiledOperand(round(self.op.data.storage.bytes() * share) // self.tiles.group.count, tiles)
        return self.kernel.program.strategy.is_weight_stationary(weights, data)

    def _contract(self, micro_kernel: int, segment: Segment, data: Operand) -> Tensor:
        """The accumulators, which start at the bias."""
        kernel, axes = self.kernel, self.axes
        loops = Loops((*self.groups, *segment.loops, *_TILE), axes.loops)
        sizes = self._spread(segment)
        empty = Operand(kernel.empty(sizes, self.columns.bias.tensor.element), loops.parallel)
        tag = Tag(micro_kernel, "contraction_fill")
        begun = self.columns.bias
        if self.sums:
            begun = Operand(kernel.read(self.sums, self._sums_view(segment)), loops.parallel)
        start = kernel.copy(Loops(loops.parallel), begun, empty, tag)
        once_more = Loops(loops.parallel, ("k4",))
        for role, windows, weights in self._remainder(segment):
            operands = windows, Operand(weights, (*self.groups, *_TILE, "k4"))
            tag = Tag(micro_kernel, role, (0,))
            start = contraction.accumulate(kernel, tag, once_more, operands, start, is_signed=self.op.data.signed)
        taps, tiles = ("nl", "k4"), axes.tiles
        if self._are_words:
            taps, tiles = ("kq", "nl", "kp"), (*tiles, 0)
            loops = replace(loops, reduction=(*axes.loops[:-1], "kp", "kq"))
        weights = Operand(self.columns.weights, (*self.groups, "nt", *axes.outer, "kk", "nv", *taps))
        tag = Tag(micro_kernel, "contraction", tiles)
        how = {"is_signed": self.op.data.signed, "is_rounded": self.op.is_rounded}
        return contraction.accumulate(kernel, tag, loops, (data, weights), start, **how)

    def _data(self, segment: Segment, in_pairs: bool) -> Operand:
        """The windows, K group by K group; `in_pairs` of taps two apart, as weights that are words are."""
        view, loops = self._input_view(segment), (*self.groups, *segment.loops, *self.axes.loops)
        buffer = self.site.buffers[0]
        if not in_pairs:
            return Operand(self.kernel.read(buffer, view), loops)
        pairs = View((*view.sizes[:-1], 2, 2), (*view.strides[:-1], 2, 1), view.offset)
        return Operand(self.kernel.read(buffer, pairs), (*loops[:-1], "kp", "kq"))

    def _remainder(self, segment: Segment) -> Iterator[tuple[str, Operand, Tensor]]:
        """Products of one K group of the remainder each, with their roles."""
        kernel, view, loops = self.kernel, self._input_view(segment), (*self.groups, *segment.loops, "k4")
        edge = -2 - len(self.axes.sizes)
        k_group = View((*view.sizes[:edge], contraction.K_GROUP), (*view.strides[:edge], 1))
        for index, (offset, weights) in enumerate(self.columns.remainder):
            start = kernel.sum(offset, kernel.constant(view.offset, "index"))
            yield f"remainder{index}", Operand(kernel.read(self.site.buffers[0], k_group, start), loops), weights

    def _correction(self, micro_kernel: int, segment: Segment, data: Operand) -> list[Operand]:
        """Taken off the accumulators by `Stages.store`: zero points, unless in the sums, and sums of windows."""
        if self.columns.correction is None:
            return []
        points = [Operand(self.zero_points, self.channel_loops)] if self.zero_points else []
        return [*points, self._window_sum(micro_kernel, segment, data)]

    def _window_sum(self, micro_kernel: int, segment: Segment, data: Operand) -> Operand:
        """The sum of each window's data: the same in every channel, unless groups share the block."""
        if self.site.sums is not None:
            # Groups with sums of their own come one after the other.
            count, rows = (self.tiles.group.count,), (self.op.pixel_count,)
            groups = (count, rows) if self.groups else ((), ())
            view = View((*groups[0], *segment.sizes), (*groups[1], *segment.strides(-1)), segment.offsets[-1])
            return Operand(self.kernel.read(self.site.sums, view), (*self.groups, *segment.loops))
        per_channel = self.tiles.group.per_block > 1
        own = _TILE if per_channel else ("nl",)
        sizes = self._spread(segment) if per_channel else (*self._spread(segment)[:-3], self.tiles.block.lanes)
        columns = ("nt", *self.axes.outer, "kk", "nv", "nl", "k4")
        columns = (*self.groups, *columns) if per_channel else (*self.axes.outer, "kk", "nl", "k4")
        loops = Loops((*self.groups, *segment.loops, *own), self.axes.loops)
        start = self.kernel.filled(sizes, "i32", 0, Tag(micro_kernel, "sum_fill"))
        tag = Tag(micro_kernel, "sum", self.axes.tiles)
        bytes_ = self._data(segment, in_pairs=False) if self._are_words else data
        ones = Operand(self._ones, columns)
        acc = contraction.accumulate(self.kernel, tag, loops, (bytes_, ones), start, is_signed=self.op.data.signed)
        return Operand(acc, loops.parallel)

    def _spread(self, segment: Segment) -> tuple[int, ...]:
        """Sizes of a tensor over groups, pixels and the channels of the block."""
        channels = self.tiles.sizes
        return (*channels[: len(self.groups)], *segment.sizes, *channels[len(self.groups) :])

    def _input_view(self, segment: Segment) -> View:
        group, axes = self.tiles.group, self.axes
        start = self.op.accesses[0].start + group.start_in + segment.offsets[0]
        taps = (*axes.sizes, axes.k_groups, axes.k_group)
        sizes = (*self.tiles.sizes[: len(self.groups)], *segment.sizes, *taps)
        groups = (group.stride(0),) if self.groups else ()
        return View(sizes, (*groups, *segment.strides(0), *axes.strides, axes.k_group, 1), start)

    def _output_view(self, segment: Segment, operand: int) -> View:
        group, block = self.tiles.group, self.tiles.block
        offset = self.op.accesses[operand].start + segment.offsets[operand] + group.start + block.start
        groups = (group.stride(operand),) if self.groups else ()
        inner = (block.vectors * block.lanes, block.lanes, 1)
        return View(self._spread(segment), (*groups, *segment.strides(operand), *inner), offset)

    @cached_property
    def _ones(self) -> Tensor:
        """The column of ones; groups that share a block see different data, so each channel has a column there."""
        correction = self.columns.correction
        assert correction is not None, "zero points are declared with it"
        return self._constant("ones", correction.ones, is_weight=True)
