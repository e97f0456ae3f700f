"""The loop nest of one block of channels and one segment of pixels: start, contraction, epilogue."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.kernel_text import Body, Buffer, Loops, Operand, Tag, Tensor
from qdialect.lowering.kernels.epilogue import Stages
from qdialect.lowering.kernels.groups import ChannelGroup
from qdialect.lowering.kernels.segments import Segment
from qdialect.lowering.packing import pack_quads
from qdialect.lowering.program import Kernel
from qdialect.lowering.strategy import ChannelBlock
from qdialect.lowering.views import View

if TYPE_CHECKING:
    from qdialect.lowering.kernels.contraction import Contraction

_TILE = ("nt", "nv", "nl")
"""Loops over the channels of a block: tile, vector, lane."""


@dataclass(frozen=True)
class Reduction:
    """The taps of one channel group: axes outside the run, and the taps in that order."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    taps: NDArray[np.int8]
    """[channels, sizes..., run]"""
    ones: NDArray[np.int8]
    """[channels, sizes..., run]: one where a tap belongs to the channel, else zero."""

    @property
    def quads(self) -> int:
        """Groups of four bytes in the run, the last one filled up."""
        return -(-self.taps.shape[-1] // 4)

    @property
    def outer(self) -> tuple[str, ...]:
        """Loops outside the run."""
        return tuple(f"k{i}" for i in range(len(self.sizes)))

    @property
    def loops(self) -> tuple[str, ...]:
        """All reduction loops."""
        return (*self.outer, "kk", "k4")

    @property
    def steps(self) -> tuple[int, ...]:
        """Tile sizes of the reduction loops: one quad at a time."""
        return (1,) * (len(self.sizes) + 1) + (0,)


@dataclass(frozen=True)
class _Correction:
    """Zero points of weights, and the weights of ones that sum the window's data for them."""

    points: Tensor
    ones: Tensor


class ContractionNest:
    """One block of channels of one channel group; its constants are declared once and serve every segment."""

    def __init__(
        self,
        kernel: Kernel,
        op: Contraction,
        stages: Stages,
        group: ChannelGroup,
        block: ChannelBlock,
        reduction: Reduction,
    ) -> None:
        self.kernel = kernel
        self.op = op
        self.stages = stages
        self.group = group
        self.block = block
        self.reduction = reduction
        # The group loop exists only where there are several.
        self.groups = ("g",) if group.count > 1 else ()
        self.channel_sizes = (*([group.count] if self.groups else []), block.tiles, block.vectors, block.lanes)
        # Absolute output channel of [group, channel of the block].
        blocks = np.arange(group.count) * group.channels_out
        self.channels = group.start + blocks[:, None] + (block.start + np.arange(block.channels))[None, :]
        self.weights = self._packed("weights", reduction.taps)
        self.bias = self._per_channel("bias", op.bias)
        self.parameters = [self._per_channel(name, values) for name, values in op.epilogue.channel_parameters()]
        self.correction = self._correction()

    def emit(self, buffers: Sequence[Buffer], segment: Segment) -> None:
        """Emit the nest for one segment of pixels; `buffers` are data, output and perhaps residual."""
        kernel = self.kernel
        nest = kernel.next_nest()
        loops = Loops((*self.groups, *segment.loops, *_TILE))
        channel_loops = (*self.groups, *_TILE)
        data = Operand(
            kernel.read(buffers[0], self._input_view(segment)),
            (*self.groups, *segment.loops, *self.reduction.loops),
        )
        inputs = [Operand(self._contract(nest, segment, data), loops.parallel)]
        inputs += [Operand(parameter, channel_loops) for parameter in self.parameters]
        if self.correction:
            window_sum = self._window_sum(nest, segment, data, self.correction.ones)
            inputs += [Operand(self.correction.points, channel_loops), window_sum]
        if len(buffers) > 2:
            inputs.append(Operand(kernel.read(buffers[2], self._output_view(segment, 2)), loops.parallel))
        destination, where = kernel.write(buffers[1], self._output_view(segment, 1))
        body = kernel.body()
        value = self._epilogue(body, with_residual=len(buffers) > 2)
        outer = (1,) * (len(self.groups) + len(segment.pixels) - 1)
        root = Tag(nest, "root", (*outer, segment.rows, 1, 0, 0))
        kernel.store(kernel.generic(loops, inputs, Operand(destination, loops.parallel), body, value, root), where)

    def _contract(self, nest: int, segment: Segment, data: Operand) -> Tensor:
        """The accumulators, which start at the bias."""
        kernel, channel_loops = self.kernel, (*self.groups, *_TILE)
        loops = Loops((*self.groups, *segment.loops, *_TILE), self.reduction.loops)
        sizes = self._spread(segment)
        body = kernel.body()
        empty = Operand(kernel.empty(sizes, "i32"), loops.parallel)
        tag = Tag(nest, "contraction_fill")
        start = kernel.generic(Loops(loops.parallel), [Operand(self.bias, channel_loops)], empty, body, "%x0", tag)
        weights = Operand(self.weights, (*self.groups, "nt", *self.reduction.outer, "kk", "nv", "nl", "k4"))
        return self._accumulate(nest, "contraction", loops, (data, weights), start)

    def _window_sum(self, nest: int, segment: Segment, data: Operand, ones: Tensor) -> Operand:
        """The sum of each window's data: the same in every channel, unless groups share the block."""
        per_channel = self.group.per_block > 1
        own = _TILE if per_channel else ("nl",)
        sizes = self._spread(segment) if per_channel else (*self._spread(segment)[:-3], self.block.lanes)
        columns = ("nt", *self.reduction.outer, "kk", "nv", "nl", "k4")
        columns = (*self.groups, *columns) if per_channel else (*self.reduction.outer, "kk", "nl", "k4")
        loops = Loops((*self.groups, *segment.loops, *own), self.reduction.loops)
        start = self.kernel.filled(sizes, "i32", 0, Tag(nest, "sum_fill"))
        acc = self._accumulate(nest, "sum", loops, (data, Operand(ones, columns)), start)
        return Operand(acc, loops.parallel)

    def _accumulate(
        self, nest: int, role: str, loops: Loops, operands: tuple[Operand, Operand], start: Tensor
    ) -> Tensor:
        """``acc += u8 * s8`` over the reduction loops."""
        body = self.kernel.body()
        x = body.cast("arith.extui", "%x0", "i8", "i32")
        w = body.cast("arith.extsi", "%x1", "i8", "i32")
        total = body.binary("arith.addi", "%o", body.binary("arith.muli", x, w, "i32"), "i32")
        tag = Tag(nest, role, (0,) * len(loops.parallel) + self.reduction.steps)
        return self.kernel.generic(loops, operands, Operand(start, loops.parallel), body, total, tag)

    def _epilogue(self, body: Body, with_residual: bool) -> str:
        """From the accumulator ``%x0`` through its parameters, zero points and residual, in the order of the inputs."""
        acc, last = "%x0", len(self.parameters)
        parameters = [f"%x{i}" for i in range(1, last + 1)]
        if self.correction:
            correction = body.binary("arith.muli", f"%x{last + 1}", f"%x{last + 2}", "i32")
            acc, last = body.binary("arith.subi", acc, correction, "i32"), last + 2
        return self.stages.emit(body, acc, parameters, f"%x{last + 1}" if with_residual else None)

    def _spread(self, segment: Segment) -> tuple[int, ...]:
        """Sizes of a tensor over groups, pixels and the channels of the block."""
        channels = self.channel_sizes
        return (*channels[: len(self.groups)], *segment.sizes, *channels[len(self.groups) :])

    def _input_view(self, segment: Segment) -> View:
        group, reduction = self.group, self.reduction
        start = self.op.window.start(self.op.data.storage) + group.start_in + segment.offsets[0]
        taps = (*reduction.sizes, reduction.quads, 4)
        sizes = (*self.channel_sizes[: len(self.groups)], *segment.sizes, *taps)
        groups = (group.channels_in,) if self.groups else ()
        return View(sizes, (*groups, *segment.strides(0), *reduction.strides, 4, 1), start)

    def _output_view(self, segment: Segment, operand: int) -> View:
        group, block = self.group, self.block
        first = self.op.grid.origin(self.op.places[operand].storage)
        offset = first + segment.offsets[operand] + group.start + block.start
        groups = (group.channels_out,) if self.groups else ()
        inner = (block.vectors * block.lanes, block.lanes, 1)
        return View(self._spread(segment), (*groups, *segment.strides(operand), *inner), offset)

    def _correction(self) -> _Correction | None:
        """What zero points of weights need; None where the block has none left."""
        points = self.op.weights.zero_points
        if not self._values(points).any():
            return None
        return _Correction(self._per_channel("points", points), self._ones())

    def _values(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of this block's channels; a lane beyond the last channel repeats it, for nobody reads the lane."""
        last = self.op.weights.codes.shape[0] - 1
        return np.broadcast_to(values, (last + 1,))[np.minimum(self.channels, last)]

    def _per_channel(self, name: str, values: NDArray[Any]) -> Tensor:
        return self._constant(name, self._values(values), self.channel_sizes)

    def _packed(self, name: str, taps: NDArray[np.int8]) -> Tensor:
        """Taps of the block's channels, packed; lanes beyond the last channel have zeros."""
        block, known = self.block, taps.shape[0]
        inside = (self.channels - self.group.start).reshape(-1)
        outside = (inside >= known).reshape(-1, *[1] * (taps.ndim - 1))
        chosen = np.where(outside, np.int8(0), taps[np.minimum(inside, known - 1)])
        grouped = chosen.reshape(self.group.count, block.channels, *taps.shape[1:])
        packed = np.stack([pack_quads(part, block.lanes, block.vectors) for part in grouped])
        return self._constant(name, packed, packed.shape if self.groups else packed.shape[1:])

    def _ones(self) -> Tensor:
        """The column of ones; groups that share a block see different data, so each channel has a column there."""
        if self.group.per_block > 1:
            return self._packed("ones", self.reduction.ones)
        lanes = self.block.lanes
        packed = pack_quads(np.repeat(self.reduction.ones[:1], lanes, axis=0), lanes, 1)[0]
        return self._constant("ones", packed, (*packed.shape[:-3], lanes, 4))

    def _constant(self, name: str, values: NDArray[Any], sizes: tuple[int, ...]) -> Tensor:
        strides = tuple(math.prod(sizes[i + 1 :]) for i in range(len(sizes)))
        unique = f"{name}_{self.group.start}_{self.block.start}"
        return self.kernel.read(self.kernel.data(unique, np.ascontiguousarray(values)), View(sizes, strides))
