"""Convolution and matrix product as one strided matrix product per block of channels.

The stored input is seen through overlapping strides, ``[group, pixels..., taps..., run/4, 4]``: stride, dilation and
kernel size become strides of a view, and a run of bytes that lie side by side (the channels of a tap; all taps of a
kernel row where nothing is dilated; the whole window where the filter is as wide as the input) is one reduction axis.

Channels are cut into blocks of whole vectors, pixels into whole register tiles and one smaller tile for the rest; every
combination is a loop nest of its own: fill, contraction, epilogue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.kernel_text import Loops, Operand, Tag, Tensor
from qdialect.lowering.kernels.epilogue import Epilogue, Stages, declare_stages
from qdialect.lowering.kernels.groups import ChannelGroup, group_blocks
from qdialect.lowering.kernels.window import Window
from qdialect.lowering.packing import CenteredWeights, pack_quads
from qdialect.lowering.program import Kernel, Place, Program
from qdialect.lowering.storage import Storage, lanes_for
from qdialect.lowering.strategy import ChannelBlock, channel_blocks, row_segments
from qdialect.lowering.views import Axis, View, collapse


@dataclass(frozen=True)
class Contraction:
    """A convolution on stored tensors; `weights` are [OC, KH, KW, IC / groups], `bias` int32[OC] with all folded in."""

    data: Place
    output: Place
    window: Window
    weights: CenteredWeights
    bias: NDArray[np.int32]
    groups: int
    epilogue: Epilogue


@dataclass(frozen=True)
class _Reduction:
    """The taps of one channel group: axes outside the run, quads of the run, and the taps in that order."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    taps: NDArray[np.int8]
    """[channels, sizes..., run]"""
    ones: NDArray[np.int8]
    """[channels, sizes..., run]: one where a tap belongs to the channel, else zero."""

    @property
    def quads(self) -> int:
        return -(-self.taps.shape[-1] // 4)


def emit_contraction(program: Program, op: Contraction, label: str) -> None:
    """Append the kernel call of `op`."""
    kernel = Kernel(program)
    data = kernel.place("data", op.data)
    output = kernel.place("output", op.output)
    residual = op.epilogue.residual
    extra = kernel.place("residual", residual.place) if residual else None
    stages = declare_stages(kernel, op.epilogue)
    channels = op.data.storage.shape[3], op.weights.codes.shape[0]
    for group in group_blocks(op.groups, *channels):
        reduction = _reduction(op, group)
        total = group.channels_out if group.count > 1 else lanes_for(group.channels_out)
        for block in channel_blocks(total):
            nest = _Nest(kernel, op, stages, group, block, reduction)
            nest.emit(data, output, extra)
    program.call(kernel, label)


def _lanes(data: Storage, group: ChannelGroup) -> int:
    """Bytes of one tap: lanes beyond the channels join where they let taps merge, their weights are zero."""
    return data.pitch if group.channels_in == data.shape[3] else group.channels_in


def _axes(data: Storage, window: Window, group: ChannelGroup) -> list[Axis]:
    """The reduction axes of a window, merged; the last one is the run, its elements side by side."""
    row, column = window.tap_strides(data)
    lanes = _lanes(data, group)
    axes = collapse([Axis(window.kernel[0], (row,)), Axis(window.kernel[1], (column,)), Axis(lanes, (1,))])
    return axes if axes and axes[-1].strides == (1,) else [*axes, Axis(1, (1,))]


def _reduction(op: Contraction, group: ChannelGroup) -> _Reduction:
    axes = _axes(op.data.storage, op.window, group)
    sizes = tuple(axis.size for axis in axes)
    spare = _lanes(op.data.storage, group) - group.channels_in

    def ordered(weights: NDArray[np.int8]) -> NDArray[np.int8]:
        taps = np.pad(group.taps(weights), ((0, 0), (0, 0), (0, 0), (0, spare)))
        return taps.reshape(taps.shape[0], *sizes)

    strides = tuple(axis.strides[0] for axis in axes[:-1])
    return _Reduction(sizes[:-1], strides, ordered(op.weights.codes), ordered(np.ones_like(op.weights.codes)))


class _Nest:
    """The loop nests of one block of channels of one channel group."""

    def __init__(
        self,
        kernel: Kernel,
        op: Contraction,
        stages: Stages,
        group: ChannelGroup,
        block: ChannelBlock,
        reduction: _Reduction,
    ) -> None:
        self.kernel = kernel
        self.op = op
        self.stages = stages
        self.group = group
        self.block = block
        self.reduction = reduction
        self.name = f"{group.start}_{block.start}"
        # Absolute output channel of [group, tile, vector, lane].
        own = np.arange(block.channels) + block.start
        blocks = np.arange(group.count) * group.channels_out
        self.channels = group.start + blocks[:, None] + own[None, :]
        self.weights = self._packed("weights", reduction.taps)
        points = self._per_channel(op.weights.zero_points)
        self.points = self._channel_tensor("points", points) if points.any() else None
        self.ones = self._ones() if self.points else None
        self.bias = self._channel_tensor("bias", self._per_channel(op.bias))
        arrays = op.epilogue.channel_parameters()
        self.parameters = [self._channel_tensor(name, self._per_channel(values)) for name, values in arrays]

    def _groups(self) -> tuple[str, ...]:
        return ("g",) if self.group.count > 1 else ()

    def _group_sizes(self) -> tuple[int, ...]:
        return (self.group.count,) if self.group.count > 1 else ()

    def _per_channel(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of this block's channels; a lane beyond the last channel repeats it, for nobody reads the lane."""
        last = self.op.weights.codes.shape[0] - 1
        return np.broadcast_to(values, (last + 1,))[np.minimum(self.channels, last)]

    def _channel_tensor(self, name: str, values: NDArray[Any]) -> Tensor:
        block = self.block
        sizes = (*self._group_sizes(), block.tiles, block.vectors, block.lanes)
        return self._constant(f"{name}_{self.name}", values, sizes)

    def _constant(self, name: str, values: NDArray[Any], sizes: tuple[int, ...]) -> Tensor:
        strides = tuple(int(np.prod(sizes[i + 1 :], dtype=np.int64)) for i in range(len(sizes)))
        return self.kernel.read(self.kernel.data(name, np.ascontiguousarray(values)), View(sizes, strides))

    def _packed(self, name: str, taps: NDArray[np.int8]) -> Tensor:
        block, known = self.block, taps.shape[0]
        inside = (self.channels - self.group.start).reshape(-1)
        outside = (inside >= known).reshape(-1, *[1] * (taps.ndim - 1))
        chosen = np.where(outside, np.int8(0), taps[np.minimum(inside, known - 1)])
        grouped = chosen.reshape(self.group.count, block.channels, *taps.shape[1:])
        packed = np.stack([pack_quads(part, block.lanes, block.vectors) for part in grouped])
        return self._constant(f"{name}_{self.name}", packed, packed.shape if self.group.count > 1 else packed.shape[1:])

    def _ones(self) -> Tensor:
        """The column of ones; groups that share a block see different data, so each channel has a column there."""
        if self.group.per_block > 1:
            return self._packed("ones", self.reduction.ones)
        lanes = self.block.lanes
        packed = pack_quads(np.repeat(self.reduction.ones[:1], lanes, axis=0), lanes, 1)[0]
        return self._constant(f"ones_{self.name}", packed, (*packed.shape[:-3], lanes, 4))

    def emit(self, data: Any, output: Any, residual: Any) -> None:
        """One nest for the whole register tiles of the pixels, one for the rest."""
        storages = [self.op.data.storage, self.op.output.storage]
        steps = [self.op.window.pixel_strides(storages[0]), storages[1].strides[:3]]
        place = self.op.epilogue.residual.place if self.op.epilogue.residual else None
        if place is not None:
            steps.append(place.storage.strides[:3])
        axes = [Axis(extent, tuple(step[i] for step in steps)) for i, extent in enumerate(self.op.window.pixels)]
        pixels = collapse(axes) or [Axis(1, tuple(0 for _ in steps))]
        *outer, last = pixels
        for start, extent, rows in row_segments(last.size, self.block.vectors):
            segment = [*outer, Axis(extent, last.strides)]
            offsets = [start * stride for stride in last.strides]
            self._emit_segment(segment, offsets, rows, (data, output, residual))

    def _emit_segment(
        self, pixels: Sequence[Axis], offsets: Sequence[int], rows: int, buffers: tuple[Any, ...]
    ) -> None:
        kernel, reduction, block = self.kernel, self.reduction, self.block
        groups, tile = self._groups(), ("nt", "nv", "nl")
        pixel = tuple(f"m{i}" for i in range(len(pixels)))
        outer = tuple(f"k{i}" for i in range(len(reduction.sizes)))
        nest = kernel.next_nest()
        source = kernel.read(buffers[0], self._input_view(pixels, offsets[0]))
        sizes = (*self._group_sizes(), *(a.size for a in pixels), block.tiles, block.vectors, block.lanes)
        parallel, taps = groups + pixel + tile, (*outer, "kk", "k4")
        steps = (1,) * (len(outer) + 1) + (0,)
        x = Operand(source, groups + pixel + taps)
        acc = self._accumulate(
            nest,
            "contraction",
            Loops(parallel, taps),
            (x, Operand(self.weights, (*groups, "nt", *outer, "kk", "nv", "nl", "k4"))),
            sizes,
            (0,) * len(parallel) + steps,
        )
        inputs = [Operand(acc, parallel), Operand(self.bias, groups + tile)]
        inputs += [Operand(parameter, groups + tile) for parameter in self.parameters]
        if self.ones is not None and self.points is not None:
            own = tile if self.group.per_block > 1 else ("nl",)
            spread = {"g": self.group.count, "nt": block.tiles, "nv": block.vectors, "nl": block.lanes}
            rows_of = (*groups, *pixel, *own)
            pixel_sizes = dict(zip(pixel, (a.size for a in pixels), strict=True))
            columns = (*groups, "nt", *outer, "kk", "nv", "nl", "k4") if own == tile else (*outer, "kk", "nl", "k4")
            window = self._accumulate(
                nest,
                "sum",
                Loops(rows_of, taps),
                (x, Operand(self.ones, columns)),
                tuple((spread | pixel_sizes)[loop] for loop in rows_of),
                (0,) * len(rows_of) + steps,
            )
            inputs += [Operand(self.points, groups + tile), Operand(window, rows_of)]
        if buffers[2] is not None:
            place = self.op.epilogue.residual
            origin = place.place.storage.origin if place else 0
            inputs.append(Operand(kernel.read(buffers[2], self._output_view(pixels, 2, origin + offsets[2])), parallel))
        destination, where = kernel.write(
            buffers[1], self._output_view(pixels, 1, self.op.output.storage.origin + offsets[1])
        )
        body = kernel.body()
        value = self._epilogue(body, buffers[2] is not None)
        root = Tag(nest, "root", (1,) * (len(groups) + len(pixel) - 1) + (rows, 1, 0, 0))
        done = kernel.generic(Loops(parallel), inputs, Operand(destination, parallel), body, value, root)
        kernel.store(done, where)

    def _epilogue(self, body: Any, with_residual: bool) -> str:
        count = len(self.parameters)
        acc = body.binary("arith.addi", "%x0", "%x1", "i32")
        position = 2 + count
        if self.points is not None:
            correction = body.binary("arith.muli", f"%x{position}", f"%x{position + 1}", "i32")
            acc = body.binary("arith.subi", acc, correction, "i32")
            position += 2
        residual = f"%x{position}" if with_residual else None
        return self.stages.emit(body, acc, [f"%x{2 + i}" for i in range(count)], residual)

    def _accumulate(
        self,
        nest: int,
        role: str,
        loops: Loops,
        operands: tuple[Operand, Operand],
        sizes: tuple[int, ...],
        tiles: tuple[int, ...],
    ) -> Tensor:
        """``acc += u8 * s8`` over the reduction loops, from zero."""
        kernel = self.kernel
        start = kernel.filled(sizes, "i32", 0, Tag(nest, f"{role}_fill"))
        body = kernel.body()
        x = body.cast("arith.extui", "%x0", "i8", "i32")
        w = body.cast("arith.extsi", "%x1", "i8", "i32")
        total = body.binary("arith.addi", "%o", body.binary("arith.muli", x, w, "i32"), "i32")
        return kernel.generic(loops, operands, Operand(start, loops.parallel), body, total, Tag(nest, role, tiles))

    def _input_view(self, pixels: Sequence[Axis], offset: int) -> View:
        group, reduction = self.group, self.reduction
        start = self.op.window.start(self.op.data.storage) + group.start_in + offset
        sizes = (*self._group_sizes(), *(a.size for a in pixels), *reduction.sizes, reduction.quads, 4)
        groups = (group.channels_in,) if group.count > 1 else ()
        strides = (*groups, *(a.strides[0] for a in pixels), *reduction.strides, 4, 1)
        return View(sizes, strides, start)

    def _output_view(self, pixels: Sequence[Axis], operand: int, offset: int) -> View:
        group, block = self.group, self.block
        sizes = (*self._group_sizes(), *(a.size for a in pixels), block.tiles, block.vectors, block.lanes)
        groups = (group.channels_out,) if group.count > 1 else ()
        inner = (block.vectors * block.lanes, block.lanes, 1)
        strides = (*groups, *(a.strides[operand] for a in pixels), *inner)
        return View(sizes, strides, offset + group.start + block.start)
