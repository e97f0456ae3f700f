"""The micro-kernel of a contraction in matrix tiles: products of tiles into scratch memory, then the epilogue from it.

Sums stand in scratch as [row, vector of channels, lane], as the results do.  One block of them, at most four tiles, is
4 KB and stays in the first-level cache.  All tiles of a contiguous reduction have as many K groups; what is left of
pixels and channels is narrower tiles.  A clipped weight remainder is dot products in the epilogue.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from qdialect.lowering.cost.matrix_tiles import LANES, ROWS, SUMS, TileBlock, k_tile, meets_pixels_first, tile_blocks
from qdialect.lowering.cost.strategy import Strategy, TiledOperand
from qdialect.lowering.ir.views import Axis, View
from qdialect.lowering.qnn_to_linalg.contractions.contraction import K_GROUP, Contraction, accumulate
from qdialect.lowering.qnn_to_linalg.contractions.micro_kernel import ContractionMicroKernel
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import ConstantWeights
from qdialect.lowering.qnn_to_linalg.kernels.geometry import ChannelGroup, ReductionAxes
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer, Loops, Operand, Tag, Tensor
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, Storage
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Value, unchanged

_PIXELS = ("a", "m")
_CHANNELS = ("nv", "nl")
_SUMS = ("a", "nv", "m", "nl")
# Vectors of a register tile of the epilogue.
_VECTORS = 8


def tiled_axes(op: Contraction, group: ChannelGroup, axes: ReductionAxes, *, has_sums: bool) -> ReductionAxes | None:
    """The axes that tiles sum up for each channel of `group`; None where the contraction cannot be in tiles.

    Weights must be constant bytes of one block of channels.  Zero points of weights need the sums of the windows,
    computed before; tiles that reach behind a window, memory.
    """
    if not isinstance(op.weights, ConstantWeights) or op.weights.k_group != K_GROUP or group.count > 1:
        return None
    k_groups = -(-axes.k_groups // k_tile(axes.k_groups)) * k_tile(axes.k_groups)
    if (k_groups > axes.k_groups and not op.data.has_extra_bytes) or (not has_sums and op.zero_points.any()):
        return None
    return replace(axes, padding=k_groups * axes.k_group - axes.extents[-1])


def pixel_blocks(op: Contraction, strategy: Strategy, pixels: Sequence[Axis]) -> list[TileBlock]:
    """The blocks of tiles of `pixels`, the output pixels of `op`."""
    return tile_blocks(pixels, are_far=op.macs // op.pixel_count > strategy.near_bytes)


def sums_scratch(kernel: Kernel, group: ChannelGroup) -> Buffer:
    """Memory for the sums of a block, of which each thread has its own."""
    length = SUMS * ROWS * LANES
    return kernel.scratch(f"tiles_{group.start}", Storage((1, 1, 1, length), "i32", length))


@dataclass(frozen=True)
class _Pixels:
    """A block of pixels and the indices of the loops around it."""

    kernel: Kernel
    block: TileBlock
    indices: Sequence[Value]

    def start(self, operand: int, first: int) -> Value:
        """Where the block begins in an operand's buffer, whose first pixel stands at `first`."""
        total = self.kernel.constant(first + self.block.offsets[operand], "index")
        for axis, index in zip(self.block.axes, self.indices, strict=True):
            total = self.kernel.sum(total, self.kernel.multiple(index, axis.strides[operand]))
        return total

    def steps(self, operand: int) -> tuple[int, int]:
        """Elements from one pixel to the next, along each axis of the block's."""
        column, row = self.block.pixels
        return column.strides[operand], row.strides[operand]

    @property
    def pixels(self) -> tuple[int, int]:
        """The extents of the block's pixels."""
        column, row = self.block.pixels
        return column.size, row.size


@dataclass(frozen=True)
class _Iteration(_Pixels):
    """A block of pixels and the `tile` of channels that it meets; its data may have been copied."""

    tile: Value
    aligned: AlignedData | None = None

    def own(self, tensor: Tensor, dropped: int = 1) -> Tensor:
        """The part of a tensor by channels that belongs to this tile of them."""
        offsets = (self.tile, *[0] * (len(tensor.sizes) - 1))
        return self.kernel.slice(tensor, offsets, (1, *tensor.sizes[1:]), dropped)


@contextmanager
def _pixel_loops(kernel: Kernel, block: TileBlock) -> Generator[list[Value]]:
    """The loops around a block; gives their indices."""
    with ExitStack() as loops:
        yield [loops.enter_context(kernel.loop(axis.size)) for axis in block.axes]


class TileMicroKernel(ContractionMicroKernel):
    """One block of channels in tiles, for any block of pixels."""

    def emit_blocks(self, scratch: Buffer, blocks: Sequence[TileBlock]) -> None:
        """Emit products and epilogue of all pixels, `blocks`."""
        kernel, channels = self.kernel, self.tiles.block
        weights = TiledOperand(channels.tiles * channels.vectors * channels.lanes * self.axes.taps, channels.tiles)
        data = TiledOperand(self.op.data.storage.bytes(), sum(block.iterations for block in blocks))
        results = (
            sum(block.pixel_count for block in blocks) * weights.size // self.axes.taps * len(self.site.buffers[1:])
        )
        if meets_pixels_first(self._near(), weights, data, results):
            with kernel.loop(channels.tiles) as tile:
                for block in blocks:
                    with _pixel_loops(kernel, block) as indices:
                        self._emit_iteration(scratch, _Iteration(kernel, block, indices, tile))
            return
        for block in blocks:
            with _pixel_loops(kernel, block) as indices:
                aligned = aligned_data(kernel, self.op.data, self.axes, block, channels.tiles)
                if aligned:
                    aligned.copy(kernel, self.site.buffers[0], self._first(_Pixels(kernel, block, indices)))
                with kernel.loop(channels.tiles) as tile:
                    self._emit_iteration(scratch, _Iteration(kernel, block, indices, tile, aligned))

    def _near(self) -> tuple[int, int]:
        """Bytes that stay in the second level, and in the first one.

        The first one does not count for the array of a user: its lines are copied where a block meets all channels.
        """
        strategy = self.kernel.program.strategy
        assert strategy.matrix_machine is not None, "tiles are for a core that has them"
        is_users = self.op.data.kind == "input"
        return strategy.near_bytes, strategy.near_bytes if is_users else strategy.matrix_machine.l1_bytes

    def _emit_iteration(self, scratch: Buffer, iteration: _Iteration) -> None:
        """Products of tiles into scratch, and their epilogue."""
        kernel, micro_kernel = self.kernel, self.kernel.next_micro_kernel()
        block, channels = iteration.block, self.tiles.block
        row = channels.vectors * channels.lanes
        sizes = (block.tiles.size, channels.vectors, block.rows.size, channels.lanes)
        tiles = View(sizes, (block.step * row, channels.lanes, row, 1))
        total = kernel.filled(tiles.sizes, "i32", 0, Tag(micro_kernel, "sum_fill"))
        total = self._accumulate(micro_kernel, iteration, total)
        root = Tag(micro_kernel, "root", (tiles.sizes[0],))
        kernel.map(_SUMS, [Operand(total, _SUMS)], kernel.write(scratch, tiles), unchanged, root)
        self._finish(scratch, iteration)

    def _accumulate(self, micro_kernel: int, iteration: _Iteration, total: Tensor) -> Tensor:
        """Add the products of all taps."""
        kernel, axes = self.kernel, self.axes
        tiles, rows = iteration.block.tiles, iteration.block.rows
        sizes = (tiles.size, rows.size, *axes.sizes, axes.k_groups, axes.k_group)
        view = View(sizes, (tiles.strides[0], rows.strides[0], *axes.strides, axes.k_group, 1))
        aligned, first = iteration.aligned, self._first(iteration)
        read = kernel.read(aligned.buffer, view) if aligned else kernel.read(self.site.buffers[0], view, first)
        inputs = (
            Operand(read, (*_PIXELS, *axes.loops)),
            Operand(iteration.own(self.columns.weights), (*axes.outer, "kk", *_CHANNELS, "k4")),
        )
        tag = Tag(micro_kernel, "contraction", (*[1] * len(axes.sizes), k_tile(axes.k_groups), 0))
        return accumulate(kernel, tag, Loops(_SUMS, axes.loops), inputs, total)

    def _first(self, pixels: _Pixels) -> Value:
        """Where the first window begins."""
        return pixels.start(0, self.op.accesses[0].start + self.tiles.group.start_in)

    def _biased(self, micro_kernel: int, sums: Tensor, iteration: _Iteration) -> Tensor:
        """The sums plus bias and the products of the clipped weight remainder."""
        kernel = self.kernel
        loops = Loops((*_PIXELS, *_CHANNELS))
        inputs = Operand(sums, loops.parallel), Operand(iteration.own(self.columns.bias.tensor), _CHANNELS)
        empty = Operand(kernel.empty(sums.sizes, "i32"), loops.parallel)
        body = kernel.body(inputs, empty)
        tag = Tag(micro_kernel, "bias")
        total = kernel.generic(loops, inputs, empty, body, body.add(*body.inputs), tag)
        for number, (offset, remainder) in enumerate(self.columns.remainder):
            start = kernel.sum(offset, self._first(iteration))
            view = View((*iteration.pixels, K_GROUP), (*iteration.steps(0), 1))
            windows = kernel.read(self.site.buffers[0], view, start)
            weights = Operand(iteration.own(remainder), (*_CHANNELS, "k4"))
            operands = Operand(windows, (*_PIXELS, "k4")), weights
            tag = Tag(micro_kernel, f"remainder{number}", (0,))
            total = accumulate(kernel, tag, Loops(loops.parallel, ("k4",)), operands, total)
        return total

    def _finish(self, scratch: Buffer, iteration: _Iteration) -> None:
        """The epilogue: sums from scratch plus the bias, to where they are stored."""
        kernel, micro_kernel, block = self.kernel, self.kernel.next_micro_kernel(), self.tiles.block
        steps = (step * block.vectors * block.lanes for step in iteration.block.steps)
        sums = View((*iteration.pixels, block.vectors, block.lanes), (*steps, block.lanes, 1))
        loops, stages, buffers = Loops((*_PIXELS, *_CHANNELS)), self.site.stages, self.site.buffers
        acc = Operand(self._biased(micro_kernel, kernel.read(scratch, sums), iteration), loops.parallel)
        most, pixels = _VECTORS // block.vectors, iteration.pixels[1]
        rows = next(rows for rows in range(most, 0, -1) if pixels % rows == 0)
        stages.store(
            kernel,
            loops,
            acc,
            [Operand(iteration.own(parameter), _CHANNELS) for parameter in self.parameters],
            self._tile_correction(iteration),
            Operand(kernel.read(buffers[2], *self._stored(iteration, 2)), loops.parallel) if buffers[2:] else None,
            stages.row_operands(kernel, len(buffers), iteration.block.pixels, _PIXELS, iteration.start),
            kernel.write(buffers[1], *self._stored(iteration, 1)),
            Tag(micro_kernel, "root", (1, rows)),
        )

    def _tile_correction(self, iteration: _Iteration) -> list[Operand]:
        """Zero points, unless in the sums, and sums of windows."""
        if self.columns.correction is None:
            return []
        assert self.site.sums is not None, "tiles have sums of their windows"
        points = [Operand(iteration.own(self.zero_points), _CHANNELS)] if self.zero_points else []
        view = View(iteration.pixels, iteration.steps(-1))
        return [*points, Operand(self.kernel.read(self.site.sums, view, iteration.start(-1, 0)), _PIXELS)]

    def _stored(self, iteration: _Iteration, operand: int) -> tuple[View, Value]:
        """The channels of output (1) or residual (2) at the iteration's pixels, and where they start."""
        kernel, block = self.kernel, self.tiles.block
        first = self.op.accesses[operand].start + self.tiles.group.start + block.start
        start = kernel.sum(
            iteration.start(operand, first), kernel.multiple(iteration.tile, block.vectors * block.lanes)
        )
        sizes = (*iteration.pixels, block.vectors, block.lanes)
        return View(sizes, (*iteration.steps(operand), block.lanes, 1)), start


# The data of a block of pixels, copied to where its rows fill whole cache lines.
#
# A tile is 16 loads of 64 bytes.  Rows that lie in two cache lines each take it four times as long as others, 31 cycles
# in place of 8, so that four loads outlast the four products that they feed.  A user's array begins anywhere.  Copying
# takes some two cycles a line, once for all columns of channels that the block meets.

_LINE = 64
# Cycles to copy a line, and those that a load of a line costs more where it lies in two.
_COPY_CYCLES, _SPLIT_CYCLES = 2, 1.5
# A small part of the second-level cache.
_MOST_BYTES = 128 << 10
_LOOPS = ("line", "byte")


@dataclass(frozen=True)
class AlignedData:
    """Memory for the lines of one block of pixels, from the first byte that its windows read to the last."""

    buffer: Buffer
    lines: int

    def copy(self, kernel: Kernel, data: Buffer, start: Value) -> None:
        """Emit the copy of the lines from `start` on."""
        view = View((self.lines, _LINE), (_LINE, 1))
        source = Operand(kernel.read(data, view, start), _LOOPS)
        tag = Tag(kernel.next_micro_kernel(), "root", (1, 0))
        kernel.map(_LOOPS, [source], kernel.write(self.buffer, view), unchanged, tag)


def aligned_data(
    kernel: Kernel, data: BufferSlot, axes: ReductionAxes, block: TileBlock, columns: int
) -> AlignedData | None:
    """Memory of each thread for the data of `block`, which meets `columns` of channels; None where it is read in place.

    That is where rows begin in a line anyway or would not after a copy either, and where copying costs more.
    """
    steps = (block.tiles.strides[0], block.rows.strides[0], *axes.strides)
    if data.kind != "input" or any(step % _LINE for step in steps):
        return None
    extents = (block.tiles.size, block.rows.size, *axes.sizes)
    span = sum(step * (size - 1) for step, size in zip(steps, extents, strict=True)) + axes.k_groups * axes.k_group
    loaded = math.prod(extents) * axes.k_groups * axes.k_group / _LINE * columns
    lines = span // _LINE
    if span % _LINE or span > _MOST_BYTES or lines * _COPY_CYCLES > loaded * _SPLIT_CYCLES:
        return None
    scratch = kernel.scratch(f"lines_{block.offsets[0]}", Storage((1, 1, 1, span), "i8", span))
    return AlignedData(scratch, lines)
