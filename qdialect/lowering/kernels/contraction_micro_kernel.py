"""The micro-kernel of one block of channels and one segment of pixels: start, contraction, epilogue."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.kernel_text import Buffer, Loops, Operand, Tag, Tensor
from qdialect.lowering.kernels.epilogue import Epilogue, Stages
from qdialect.lowering.kernels.groups import ChannelGroup
from qdialect.lowering.kernels.segments import Segment
from qdialect.lowering.kernels.weight_remainder import remainder_groups
from qdialect.lowering.packing import pack_k_groups
from qdialect.lowering.program import BufferSlot, Kernel
from qdialect.lowering.scalar_body import Body, Value
from qdialect.lowering.strategy import ChannelBlock
from qdialect.lowering.strides import row_major
from qdialect.lowering.views import Axis, View

_TILE = ("nt", "nv", "nl")
"""Loops over the channels of a block: tile, vector, lane."""


class Columns(Protocol):
    """Where a micro-kernel finds the weights and the bias of its channels."""

    def weights(self, micro_kernel: ContractionMicroKernel) -> Tensor:
        """[group, tile, reduction loops but the last, vector, lane, 4], as `pack_k_groups` packs them."""
        ...

    def bias(self, micro_kernel: ContractionMicroKernel) -> Operand:
        """What accumulators start from, by channel."""
        ...

    def remainder(self, micro_kernel: ContractionMicroKernel) -> NDArray[np.int8] | None:
        """The clipped weight remainder, [channels, reduction axes...]; None where every weight fits s8."""
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
    def reduction(self, group: ChannelGroup) -> Reduction:
        """What is summed up for each channel of `group`."""

    @abstractmethod
    def declare_columns(self, kernel: Kernel) -> Columns:
        """Weights and bias, with a parameter of `kernel` for each that is known at run time only."""


@dataclass(frozen=True)
class Reduction:
    """The taps of one channel group: extents of the outer axes and, last, of the contiguous reduction."""

    extents: tuple[int, ...]
    strides: tuple[int, ...]
    """Of the outer axes."""
    spare: int
    """Lanes of each tap beyond its channels; their weights are zero."""
    present: NDArray[np.int8]
    """[channels, KH, KW, IC]: one where a tap belongs to the channel, else zero."""

    def ordered(self, taps: NDArray[np.int8]) -> NDArray[np.int8]:
        """Taps [channels, KH, KW, IC] as [channels, extents...]."""
        spread = np.pad(taps, ((0, 0), (0, 0), (0, 0), (0, self.spare)))
        return spread.reshape(taps.shape[0], *self.extents)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Extents of the outer axes."""
        return self.extents[:-1]

    @property
    def taps(self) -> int:
        """Taps of a channel."""
        return math.prod(self.extents)

    @property
    def k_groups(self) -> int:
        """K groups of the contiguous reduction, four bytes each, the last one padded."""
        return -(-self.extents[-1] // 4)

    @property
    def outer(self) -> tuple[str, ...]:
        """Loops over the outer axes."""
        return tuple(f"k{i}" for i in range(len(self.sizes)))

    @property
    def loops(self) -> tuple[str, ...]:
        """All reduction loops."""
        return (*self.outer, "kk", "k4")

    @property
    def steps(self) -> tuple[int, ...]:
        """Tile sizes of the reduction loops: one K group at a time."""
        return (1,) * (len(self.sizes) + 1) + (0,)


@dataclass(frozen=True)
class _Remainder:
    """A K group that is multiplied once more: where it lies in the window, an index, and by what."""

    offset: Value
    weights: Tensor


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
        reduction: Reduction,
        sums: Buffer | None = None,
    ) -> None:
        self.kernel = kernel
        self.op = op
        self.stages = stages
        self.group = group
        self.block = block
        self.reduction = reduction
        self.sums = sums
        """The sums of the windows, along the pixels' last strides, where they are computed before."""
        # The group loop exists only where there are several.
        self.groups = ("g",) if group.count > 1 else ()
        self.channel_sizes = (*([group.count] if self.groups else []), block.tiles, block.vectors, block.lanes)
        # Absolute output channel of [group, channel of the block].
        blocks = np.arange(group.channel_sets) * group.channels_out
        self.channels = group.start + blocks[:, None] + (block.start + np.arange(block.channels))[None, :]
        # Loops that index what belongs to a channel.
        self.channel_loops = (*(self.groups if group.steps is None else ()), *_TILE)
        self.weights = columns.weights(self)
        self.bias = columns.bias(self)
        self.remainder = self._remainder(columns.remainder(self))
        self.parameters = [self.per_channel(name, values) for name, values in op.epilogue.channel_parameters()]
        self.correction = self._correction()

    def emit(self, buffers: Sequence[Buffer], segment: Segment) -> None:
        """Emit the micro-kernel for one segment of pixels; `buffers` are data, output and perhaps residual."""
        kernel = self.kernel
        micro_kernel = kernel.next_micro_kernel()
        loops = Loops((*self.groups, *segment.loops, *_TILE))
        channel_loops = self.channel_loops
        data = Operand(
            kernel.read(buffers[0], self._input_view(segment)),
            (*self.groups, *segment.loops, *self.reduction.loops),
        )
        inputs = [Operand(self._contract(micro_kernel, segment, buffers[0], data), loops.parallel)]
        inputs += [Operand(parameter, channel_loops) for parameter in self.parameters]
        if self.correction:
            inputs += [Operand(self.correction, channel_loops), self._window_sum(micro_kernel, segment, data)]
        if len(buffers) > 2:
            inputs.append(Operand(kernel.read(buffers[2], self._output_view(segment, 2)), loops.parallel))
        destination, where = kernel.write(buffers[1], self._output_view(segment, 1))
        body = kernel.body(inputs)
        value = self._epilogue(body, with_residual=len(buffers) > 2)
        root = Tag(micro_kernel, "root", (*(1 for _ in self.groups), *segment.tiles, 1, 0, 0))
        kernel.store(kernel.generic(loops, inputs, Operand(destination, loops.parallel), body, value, root), where)

    def _contract(self, micro_kernel: int, segment: Segment, buffer: Buffer, data: Operand) -> Tensor:
        """The accumulators, which start at the bias."""
        kernel = self.kernel
        loops = Loops((*self.groups, *segment.loops, *_TILE), self.reduction.loops)
        sizes = self._spread(segment)
        empty = Operand(kernel.empty(sizes, "i32"), loops.parallel)
        tag = Tag(micro_kernel, "contraction_fill")
        start = kernel.copy(Loops(loops.parallel), self.bias, empty, tag)
        for index, remainder in enumerate(self.remainder):
            start = self._add_remainder(micro_kernel, segment, buffer, remainder, f"excess{index}", start)
        weights = Operand(self.weights, (*self.groups, "nt", *self.reduction.outer, "kk", "nv", "nl", "k4"))
        steps = self.reduction.steps
        return accumulate(self.kernel, Tag(micro_kernel, "contraction", steps), loops, (data, weights), start)

    def _add_remainder(
        self, micro_kernel: int, segment: Segment, buffer: Buffer, remainder: _Remainder, role: str, start: Tensor
    ) -> Tensor:
        """One more K group of products, at an offset into the window that the call passes."""
        kernel, view = self.kernel, self._input_view(segment)
        edge = -2 - len(self.reduction.sizes)
        start_at = kernel.sum(remainder.offset, kernel.constant(view.offset, "index"))
        k_group = View((*view.sizes[:edge], 4), (*view.strides[:edge], 1), view.offset)
        data = Operand(kernel.read(buffer, k_group, start_at), (*self.groups, *segment.loops, "k4"))
        weights = Operand(remainder.weights, (*self.groups, *_TILE, "k4"))
        loops = Loops((*self.groups, *segment.loops, *_TILE), ("k4",))
        return accumulate(self.kernel, Tag(micro_kernel, role, (0,)), loops, (data, weights), start)

    def _window_sum(self, micro_kernel: int, segment: Segment, data: Operand) -> Operand:
        """The sum of each window's data: the same in every channel, unless groups share the block."""
        if self.sums is not None:
            view = View(segment.sizes, segment.strides(-1), segment.offsets[-1])
            return Operand(self.kernel.read(self.sums, view), segment.loops)
        per_channel = self.group.per_block > 1
        own = _TILE if per_channel else ("nl",)
        sizes = self._spread(segment) if per_channel else (*self._spread(segment)[:-3], self.block.lanes)
        columns = ("nt", *self.reduction.outer, "kk", "nv", "nl", "k4")
        columns = (*self.groups, *columns) if per_channel else (*self.reduction.outer, "kk", "nl", "k4")
        loops = Loops((*self.groups, *segment.loops, *own), self.reduction.loops)
        start = self.kernel.filled(sizes, "i32", 0, Tag(micro_kernel, "sum_fill"))
        tag = Tag(micro_kernel, "sum", self.reduction.steps)
        acc = accumulate(self.kernel, tag, loops, (data, Operand(self._ones, columns)), start)
        return Operand(acc, loops.parallel)

    def _epilogue(self, body: Body, with_residual: bool) -> Value:
        """From the accumulator to the stored element; inputs are as `emit` lists them."""
        acc, *rest = body.inputs
        parameters, rest = rest[: len(self.parameters)], rest[len(self.parameters) :]
        if self.correction:
            zero_point, window_sum, *rest = rest
            acc = body.subtract(acc, body.multiply(zero_point, window_sum))
        return self.stages.emit(body, acc, parameters, rest[0] if with_residual else None)

    def _spread(self, segment: Segment) -> tuple[int, ...]:
        """Sizes of a tensor over groups, pixels and the channels of the block."""
        channels = self.channel_sizes
        return (*channels[: len(self.groups)], *segment.sizes, *channels[len(self.groups) :])

    def _input_view(self, segment: Segment) -> View:
        group, reduction = self.group, self.reduction
        start = self.op.start(0) + group.start_in + segment.offsets[0]
        taps = (*reduction.sizes, reduction.k_groups, 4)
        sizes = (*self.channel_sizes[: len(self.groups)], *segment.sizes, *taps)
        groups = (group.step(0),) if self.groups else ()
        return View(sizes, (*groups, *segment.strides(0), *reduction.strides, 4, 1), start)

    def _output_view(self, segment: Segment, operand: int) -> View:
        group, block = self.group, self.block
        offset = self.op.start(operand) + segment.offsets[operand] + group.start + block.start
        groups = (group.step(operand),) if self.groups else ()
        inner = (block.vectors * block.lanes, block.lanes, 1)
        return View(self._spread(segment), (*groups, *segment.strides(operand), *inner), offset)

    def _correction(self) -> Tensor | None:
        """What is left of the zero points of weights; None where the block has none."""
        points = self.op.zero_points
        return self.per_channel("points", points) if self._values(points).any() else None

    def _remainder(self, taps: NDArray[np.int8] | None) -> list[_Remainder]:
        """The K groups where a channel of the block has a clipped weight remainder."""
        if taps is None:
            return []
        block = np.zeros_like(taps)
        own = np.unique((self.channels - self.group.start).clip(max=len(taps) - 1))
        block[own] = taps[own]
        found: list[_Remainder] = []
        for index, k_group in enumerate(remainder_groups(block, self.reduction.strides)):
            offset = self.kernel.number(f"excess{index}_{self.group.start}_{self.block.start}", k_group.offset, "index")
            packed = self._pack(k_group.taps)
            # One K group needs no loop over K groups.
            sizes = (*packed.shape[:-4], *packed.shape[-3:])
            found.append(_Remainder(offset, self._constant(f"beyond{index}", packed, sizes)))
        return found

    def _values(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of this block's channels; a lane beyond the last channel repeats it, for that lane is never read."""
        last = self.op.channels - 1
        return np.broadcast_to(values, (last + 1,))[np.minimum(self.channels, last)]

    def per_channel(self, name: str, values: NDArray[Any]) -> Tensor:
        """Constants of the block's channels."""
        sizes = self.channel_sizes if self.group.steps is None else self.channel_sizes[-3:]
        return self._constant(name, self._values(values), sizes)

    def packed(self, name: str, taps: NDArray[np.int8]) -> Tensor:
        """Taps of the block's channels, packed; lanes beyond the last channel have zeros."""
        packed = self._pack(taps)
        return self._constant(name, packed, packed.shape)

    def _pack(self, taps: NDArray[np.int8]) -> NDArray[np.int8]:
        block, known = self.block, taps.shape[0]
        inside = (self.channels - self.group.start).reshape(-1)
        outside = (inside >= known).reshape(-1, *[1] * (taps.ndim - 1))
        chosen = np.where(outside, np.int8(0), taps[np.minimum(inside, known - 1)])
        grouped = chosen.reshape(self.group.count, block.channels, *taps.shape[1:])
        packed = np.stack([pack_k_groups(part, block.lanes, block.vectors) for part in grouped])
        return packed if self.groups else packed[0]

    @cached_property
    def _ones(self) -> Tensor:
        """The column of ones; groups that share a block see different data, so each channel has a column there."""
        if self.group.per_block > 1:
            return self.packed("ones", self.reduction.ordered(self.reduction.present))
        lanes = self.block.lanes
        packed = pack_k_groups(np.repeat(self.reduction.ordered(self.reduction.present[:1]), lanes, axis=0), lanes, 1)[
            0
        ]
        return self._constant("ones", packed, (*packed.shape[:-3], lanes, 4))

    def _constant(self, name: str, values: NDArray[Any], sizes: tuple[int, ...]) -> Tensor:
        strides = row_major(sizes)
        unique = f"{name}_{self.group.start}_{self.block.start}"
        return self.kernel.read(self.kernel.data(unique, np.ascontiguousarray(values)), View(sizes, strides))


def accumulate(kernel: Kernel, tag: Tag, loops: Loops, operands: tuple[Operand, Operand], start: Tensor) -> Tensor:
    """``acc += u8 * s8`` over the reduction loops, whose tile sizes `tag` has."""
    output = Operand(start, loops.parallel)
    body = kernel.body(operands, output)
    x = body.cast("arith.extui", body.inputs[0], "i32")
    w = body.cast("arith.extsi", body.inputs[1], "i32")
    total = body.add(body.output, body.multiply(x, w))
    tag = replace(tag, tiles=(0,) * len(loops.parallel) + tag.tiles)
    return kernel.generic(loops, operands, output, body, total, tag)
