"""The micro-kernel of a contraction in matrix tiles: products of tiles into scratch memory, then the epilogue from it.

Sums stand in scratch as [data tile, pixel, vector of channels, lane], as the results do.  One block of them, at most
2 x 2 tiles, is 4 KB and stays in the first-level cache.  K groups beyond the last 16 of a
contiguous reduction are a narrower tile, as are pixels and channels that fill none; a clipped weight remainder is a
product of tiles of one K group.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from qdialect.lowering.kernel_text import Buffer, Loops, Operand, Tag, Tensor
from qdialect.lowering.kernels.columns import ConstantColumns
from qdialect.lowering.kernels.contraction_micro_kernel import (
    Columns,
    ContractionMicroKernel,
    SumOfProducts,
    accumulate,
)
from qdialect.lowering.kernels.groups import ChannelGroup
from qdialect.lowering.matrix_tiles import LANES, ROWS, SIDE, TileBlock
from qdialect.lowering.program import Kernel
from qdialect.lowering.scalar_body import Body, Value
from qdialect.lowering.storage import Storage
from qdialect.lowering.strides import row_major
from qdialect.lowering.views import View

_PIXELS = ("a", "m")
_CHANNELS = ("nv", "nl")
_SUMS = ("a", "nv", "m", "nl")
_TAPS = ("kk", "k4")
# Vectors of a register tile of the epilogue.
_VECTORS = 8


def takes_tiles(op: SumOfProducts, columns: Columns, group: ChannelGroup, sums: Buffer | None) -> bool:
    """Whether weights are constant bytes of one block of channels, and all of the epilogue can follow a tile.

    Zero points of weights need the `sums` of the windows, computed before.
    """
    is_whole = isinstance(columns, ConstantColumns) and group.count == 1 and not op.epilogue.row_parameters()
    return is_whole and (sums is not None or not op.zero_points.any())


def sums_scratch(kernel: Kernel, group: ChannelGroup) -> Buffer:
    """Memory for the sums of a block, of which each thread has its own."""
    length = (SIDE * ROWS) * (SIDE * LANES)
    return kernel.scratch(f"tiles_{group.start}", Storage((1, 1, 1, length), "i32", length))


@dataclass(frozen=True)
class _Iteration:
    """A block of pixels and the indices of the loops around it, `tile` that of the channels."""

    kernel: Kernel
    block: TileBlock
    indices: Sequence[Value]
    tile: Value

    def start(self, operand: int, first: int) -> Value:
        """Where the block begins in an operand's buffer, whose first pixel stands at `first`."""
        total = self.kernel.constant(first + self.block.offsets[operand], "index")
        for axis, index in zip(self.block.axes, self.indices, strict=True):
            total = self.kernel.sum(total, self.kernel.multiple(index, axis.strides[operand]))
        return total

    def steps(self, operand: int) -> tuple[int, int]:
        """Elements from one tile, and from one pixel, to the next."""
        return self.block.tiles.strides[operand], self.block.rows.strides[operand]

    @property
    def pixels(self) -> tuple[int, int]:
        """Tiles, and pixels of each."""
        return self.block.tiles.size, self.block.rows.size

    def own(self, tensor: Tensor, dropped: int = 1) -> Tensor:
        """The part of a tensor by channels that belongs to this tile of them."""
        offsets = (self.tile, *[0] * (len(tensor.sizes) - 1))
        return self.kernel.slice(tensor, offsets, (1, *tensor.sizes[1:]), dropped)


class TileMicroKernel(ContractionMicroKernel):
    """One block of channels in tiles, for any block of pixels."""

    def emit_block(self, buffers: Sequence[Buffer], scratch: Buffer, block: TileBlock) -> None:
        """Emit products and epilogue of `block`; `buffers` are data, output and perhaps residual."""
        kernel, channels = self.kernel, self.tiles.block
        sizes = (block.tiles.size, block.rows.size, channels.vectors, channels.lanes)
        sums = View(sizes, row_major(sizes))
        with ExitStack() as loops:
            indices = [loops.enter_context(kernel.loop(axis.size)) for axis in block.axes]
            iteration = _Iteration(kernel, block, indices, loops.enter_context(kernel.loop(channels.tiles)))
            self._multiply(buffers[0], scratch, sums, iteration)
            self._finish(buffers, scratch, sums, iteration)

    def _multiply(self, data: Buffer, scratch: Buffer, sums: View, iteration: _Iteration) -> None:
        """Products of tiles into scratch."""
        kernel, micro_kernel = self.kernel, self.kernel.next_micro_kernel()
        tiles = View(*((a, nv, m, nl) for a, m, nv, nl in (sums.sizes, sums.strides)))
        total = kernel.filled(tiles.sizes, "i32", 0, Tag(micro_kernel, "sum_fill"))
        first = iteration.start(0, self.op.start(0) + self.tiles.group.start_in)
        for number, remainder in enumerate(self.columns.remainder):
            start, weights = kernel.sum(remainder.offset, first), iteration.own(remainder.weights, 0)
            windows = kernel.read(data, View((*iteration.pixels, 1, 4), (*iteration.steps(0), 4, 1)), start)
            inputs = Operand(windows, (*_PIXELS, *_TAPS)), Operand(weights, ("kk", *_CHANNELS, "k4"))
            tag = Tag(micro_kernel, f"remainder{number}", (0, 0))
            total = accumulate(kernel, tag, Loops(_SUMS, _TAPS), inputs, total)
        for part in _k_parts(self.axes.k_groups):
            total = self._accumulate(micro_kernel, data, first, iteration, part, total)
        destination, where = kernel.write(scratch, tiles)
        root, target = Tag(micro_kernel, "root", (tiles.sizes[0],)), Operand(destination, _SUMS)
        kernel.store(kernel.copy(Loops(_SUMS), Operand(total, _SUMS), target, root), where)

    def _accumulate(
        self, micro_kernel: int, data: Buffer, first: Value, iteration: _Iteration, part: _KPart, total: Tensor
    ) -> Tensor:
        """Add the products of `part` of the contiguous reduction; `first` is where the data's first window is."""
        kernel, axes = self.kernel, self.axes
        start = kernel.sum(first, kernel.constant(part.start * axes.k_group, "index"))
        sizes = (*iteration.pixels, *axes.sizes, part.extent, axes.k_group)
        view = View(sizes, (*iteration.steps(0), *axes.strides, axes.k_group, 1))
        weights = iteration.own(self.columns.weights)
        edge = len(axes.sizes)
        offsets = (*[0] * edge, part.start, 0, 0, 0)
        own = kernel.slice(weights, offsets, (*weights.sizes[:edge], part.extent, *weights.sizes[edge + 1 :]))
        inputs = (
            Operand(kernel.read(data, view, start), (*_PIXELS, *axes.loops)),
            Operand(own, (*axes.outer, "kk", *_CHANNELS, "k4")),
        )
        tag = Tag(micro_kernel, f"contraction{part.start}", (*[1] * edge, part.tile, 0))
        return accumulate(kernel, tag, Loops(_SUMS, axes.loops), inputs, total)

    def _finish(self, buffers: Sequence[Buffer], scratch: Buffer, sums: View, iteration: _Iteration) -> None:
        """The epilogue: sums from scratch plus the bias, to where they are stored."""
        kernel, micro_kernel = self.kernel, self.kernel.next_micro_kernel()
        loops = Loops((*_PIXELS, *_CHANNELS))
        parameters = [self.columns.bias.tensor, *self.parameters, *([self.zero_points] if self.zero_points else [])]
        inputs = [Operand(kernel.read(scratch, sums), loops.parallel)]
        inputs += [Operand(iteration.own(parameter), _CHANNELS) for parameter in parameters]
        if self.zero_points and self.sums:
            view = View(iteration.pixels, iteration.steps(-1))
            inputs.append(Operand(kernel.read(self.sums, view, iteration.start(-1, 0)), _PIXELS))
        if len(buffers) > 2:
            inputs.append(Operand(kernel.read(buffers[2], *self._stored(iteration, 2)), loops.parallel))
        destination, where = kernel.write(buffers[1], *self._stored(iteration, 1))
        body = kernel.body(inputs)
        value = self._value(body, with_residual=len(buffers) > 2)
        _, pixels, vectors, _ = sums.sizes
        rows = next(rows for rows in range(_VECTORS // vectors, 0, -1) if pixels % rows == 0)
        root, output = Tag(micro_kernel, "root", (1, rows)), Operand(destination, loops.parallel)
        kernel.store(kernel.generic(loops, inputs, output, body, value, root), where)

    def _stored(self, iteration: _Iteration, operand: int) -> tuple[View, Value]:
        """The channels of output (1) or residual (2) at the iteration's pixels, and where they start."""
        kernel, block = self.kernel, self.tiles.block
        first = self.op.start(operand) + self.tiles.group.start + block.start
        start = kernel.sum(
            iteration.start(operand, first), kernel.multiple(iteration.tile, block.vectors * block.lanes)
        )
        sizes = (*iteration.pixels, block.vectors, block.lanes)
        return View(sizes, (*iteration.steps(operand), block.lanes, 1)), start

    def _value(self, body: Body, with_residual: bool) -> Value:
        """From sum and bias to the stored element; inputs are as `_finish` lists them."""
        total, bias, *rest = body.inputs
        count = len(self.parameters)
        value, parameters, rest = body.add(total, bias), rest[:count], rest[count:]
        if self.zero_points:
            zero_point, window_sum, *rest = rest
            value = body.subtract(value, body.multiply(zero_point, window_sum))
        return self.stages.emit(body, value, parameters, rest[0] if with_residual else None)


@dataclass(frozen=True)
class _KPart:
    """K groups of a contiguous reduction: the first one, their number, and those of a tile; 0 where it has all."""

    start: int
    extent: int
    tile: int


def _k_parts(k_groups: int) -> list[_KPart]:
    """Whole tiles of K groups, and a narrower one for what is left."""
    whole, rest = divmod(k_groups, LANES)
    parts = [_KPart(0, whole * LANES, LANES if whole > 1 else 0)] if whole else []
    return parts + ([_KPart(whole * LANES, rest, 0)] if rest else [])
