"""Products of two stored tensors: the right operand is packed at run time, then it is a contraction like any other.

The packed form is that of constant weights: signed, in K groups (`pack_k_groups`), one region for each block of
channels, with one matrix after the other.  With stored values x and w, zero points z_x and z_w, w' = w - 128 and
z' = z_w - 128,

  sum (x - z_x)(w - z_w) = sum x w'  -  z' sum x  +  K z_x z_w  -  z_x sum w

The sum over the data is the column of ones as for constant weights; the sums of the columns of w go into what the
accumulators start from, by a kernel of their own unless z_x is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.kernel_text import Buffer, Loops, Operand, Tag, Tensor
from qdialect.lowering.kernels.contraction_micro_kernel import (
    Columns,
    ContractionMicroKernel,
    DeclaredColumns,
    SumOfProducts,
)
from qdialect.lowering.kernels.elementwise import MapOperand, flipped
from qdialect.lowering.kernels.folds import SUM
from qdialect.lowering.kernels.groups import ChannelGroup
from qdialect.lowering.kernels.packed_weights import correction_of
from qdialect.lowering.kernels.reduction import Reduced, Reduction, emit_reduction
from qdialect.lowering.kernels.reduction_axes import ReductionAxes
from qdialect.lowering.packing import pad_channels
from qdialect.lowering.program import BufferSlot, Kernel, Program
from qdialect.lowering.scalar_body import Body, Value
from qdialect.lowering.storage import Storage, lanes_for
from qdialect.lowering.strategy import ChannelBlock, split
from qdialect.lowering.strides import row_major
from qdialect.lowering.views import Axis, View

_LANES = 16
_ROWS = 8
_K_GROUP = 4


@dataclass(frozen=True)
class Matrices:
    """The right operand as it is stored: `leading` axes over matrices, then [depth, channels]."""

    slot: BufferSlot
    leading: tuple[Axis, ...]
    row_stride: int
    depth: int
    channels: int

    @property
    def count(self) -> int:
        """How many matrices there are."""
        return prod(axis.size for axis in self.leading)

    @property
    def lanes(self) -> int:
        """Channels with those that fill up the last vector."""
        return lanes_for(self.channels)

    @property
    def k_groups(self) -> int:
        """Groups of four rows, the last one filled up with zeros."""
        return -(-self.depth // _K_GROUP)


@dataclass(frozen=True)
class PackedMatrices:
    """Matrices where the micro-kernels read them; `start` is int32[channels], or a slot with [matrix, lane]."""

    matrices: Matrices
    slot: BufferSlot
    start: NDArray[np.int32] | BufferSlot


@dataclass(frozen=True)
class Product(SumOfProducts):
    """``output[group, row, n] = sum_k data[group, row, k] * matrix[group][k, n]``."""

    right: PackedMatrices
    points: NDArray[np.int32]
    """What is left of the zero points of the right operand, by channel."""
    groups: Axis
    """Steps of data, output, perhaps residual, and of the matrix."""
    rows: Sequence[Axis]
    """Steps of data, output and perhaps residual."""
    offsets: tuple[int, ...]
    """Of data, output, perhaps residual, and of the matrix."""

    @property
    def channels(self) -> int:
        return self.right.matrices.channels

    @property
    def macs(self) -> int:
        rows = prod(axis.size for axis in self.rows) * self.groups.size
        return rows * self.right.matrices.depth * self.channels

    @property
    def zero_points(self) -> NDArray[np.int32]:
        return self.points

    def start(self, operand: int) -> int:
        return self.slots[operand].storage.origin + self.offsets[operand]

    def pixel_axes(self) -> list[Axis]:
        return list(self.rows)

    def channel_groups(self) -> list[ChannelGroup]:
        matrices = self.right.matrices
        return [ChannelGroup(self.groups.size, 0, 0, matrices.depth, matrices.channels, 1, self.groups.strides[:-1])]

    def reduction_axes(self, group: ChannelGroup) -> ReductionAxes:
        return ReductionAxes((group.channels_in,), (), 0, np.ones((1, 1, 1, group.channels_in), np.int8))

    def declare_columns(self, kernel: Kernel) -> Columns:
        packed, start = kernel.slot("packed", self.right.slot), self.right.start
        sums = kernel.slot("start", start) if isinstance(start, BufferSlot) else start
        return _StoredColumns(self, packed, sums)


@dataclass(frozen=True)
class _StoredColumns:
    """Packed matrices as the columns of a micro-kernel."""

    product: Product
    packed: Buffer
    start: Buffer | NDArray[np.int32]

    def declare(self, micro_kernel: ContractionMicroKernel) -> DeclaredColumns:
        """Declare views of the micro-kernel's channels; every stored value minus 128 fits s8."""
        correction = correction_of(self.product.points, micro_kernel.tiles, micro_kernel.axes)
        return DeclaredColumns(self._weights(micro_kernel), self._bias(micro_kernel), correction)

    def _weights(self, micro_kernel: ContractionMicroKernel) -> Tensor:
        """The packed channels of the micro-kernel, one group after the other."""
        matrices, block = self.product.right.matrices, micro_kernel.tiles.block
        view = packed_view(matrices, block)
        size = block.channels * matrices.k_groups * _K_GROUP
        offset = view.offset + self.product.offsets[-1] * size
        count, stride = self.product.groups.size, self.product.groups.strides[-1]
        if count == 1:
            return micro_kernel.kernel.read(self.packed, View(view.sizes, view.strides, offset))
        return micro_kernel.kernel.read(self.packed, View((count, *view.sizes), (stride * size, *view.strides), offset))

    def _bias(self, micro_kernel: ContractionMicroKernel) -> Operand:
        """The start of the micro-kernel's channels, one group after the other where they differ."""
        tiles = micro_kernel.tiles
        if not isinstance(self.start, Buffer):
            return Operand(micro_kernel.constant("bias", tiles.per_channel(self.start)), micro_kernel.channel_loops)
        lanes, block = self.product.right.matrices.lanes, tiles.block
        offset = self.product.offsets[-1] * lanes + block.start
        strides = (block.vectors * block.lanes, block.lanes, 1)
        if micro_kernel.groups:
            strides = (self.product.groups.strides[-1] * lanes, *strides)
        view = View(tiles.sizes, strides, offset)
        return Operand(micro_kernel.kernel.read(self.start, view), (*micro_kernel.groups, "nt", "nv", "nl"))


def packed_view(matrices: Matrices, block: ChannelBlock) -> View:
    """The first matrix of a block's region as [tile, K group, vector, lane, 4]."""
    vector = block.lanes * _K_GROUP
    tile = block.vectors * vector
    strides = (matrices.k_groups * tile, tile, vector, _K_GROUP, 1)
    sizes = (block.tiles, matrices.k_groups, block.vectors, block.lanes, _K_GROUP)
    # Regions lie one after the other, each as long as its channels are many.
    return View(sizes, strides, matrices.count * block.start * matrices.k_groups * _K_GROUP)


def emit_packing(program: Program, matrices: Matrices) -> BufferSlot:
    """Append the kernel call that packs `matrices`; returns the slot of the result."""
    length = matrices.count * matrices.lanes * matrices.k_groups * _K_GROUP
    slot = program.buffer(Storage((1, 1, 1, length), "i8", length))
    kernel = Kernel(program)
    source, target = kernel.slot("matrices", matrices.slot), kernel.slot("packed", slot)
    whole, rest = divmod(matrices.depth, _K_GROUP)
    for block in program.strategy.channel_blocks(matrices.lanes, matrices.depth):
        if rest:
            _emit_rows(kernel, (None, target), matrices, block, (whole, 1, _K_GROUP))
            _emit_rows(kernel, (source, target), matrices, block, (whole, 1, rest))
        if whole:
            _emit_rows(kernel, (source, target), matrices, block, (0, whole, _K_GROUP))
    program.call(kernel, "pack")
    return slot


def _emit_rows(
    kernel: Kernel,
    buffers: tuple[Buffer | None, Buffer],
    matrices: Matrices,
    block: ChannelBlock,
    k_groups: tuple[int, int, int],
) -> None:
    """Pack `k_groups`, (first, count, rows of each): vectors are read along the channels and written in K groups.

    Without a source buffer the K groups are filled with zeros.
    """
    first, count, rows = k_groups
    packed = packed_view(matrices, block)
    channels = block.vectors * block.lanes
    size = block.channels * matrices.k_groups * _K_GROUP
    leading = tuple(axis.size for axis in matrices.leading)
    outer = tuple(f"b{i}" for i in range(len(leading)))
    for start, extent, tile in split(channels, min(_LANES, channels)):
        micro_kernel = kernel.next_micro_kernel()
        loops = (*outer, "nt", "kk", "nl", "k4")
        steps = tuple(size * stride for stride in row_major(leading))
        view = View(
            (*leading, block.tiles, count, extent, rows),
            (*steps, packed.strides[0], packed.strides[1], _K_GROUP, 1),
            packed.offset + first * packed.strides[1] + start * _K_GROUP,
        )
        inputs: list[Operand] = []
        if buffers[0] is not None:
            row = matrices.row_stride
            source = View(
                (*leading, block.tiles, count, rows, extent),
                (*(axis.strides[0] for axis in matrices.leading), channels, _K_GROUP * row, row, 1),
                matrices.slot.storage.origin + first * _K_GROUP * row + block.start + start,
            )
            inputs.append(Operand(kernel.read(buffers[0], source), (*outer, "nt", "kk", "k4", "nl")))
        destination, where = kernel.write(buffers[1], view)
        body = kernel.body(inputs)
        value = flipped(body, body.inputs[0]) if inputs else body.constant(0, "i8")
        root = Tag(micro_kernel, "root", (*(1,) * len(leading), 1, 1, tile, rows))
        kernel.store(kernel.generic(Loops(loops), inputs, Operand(destination, loops), body, value, root), where)


def emit_start(
    program: Program,
    matrices: Matrices,
    bias: NDArray[np.int32],
    data_zero_point: int,
    zero_points: NDArray[np.int32],
) -> NDArray[np.int32] | BufferSlot:
    """What accumulators start from, ``bias + K z_x z_w - z_x sum w``; appends the kernel call that sums the columns.

    Zero points are those of stored quantized values; `zero_points` has one or `channels` entries.
    """
    if data_zero_point == 0:
        return bias
    lanes = matrices.lanes
    known = bias.astype(np.int64) + matrices.depth * data_zero_point * zero_points.astype(np.int64)
    known32 = pad_channels(known.astype(np.uint64).astype(np.uint32).view(np.int32), lanes)
    slot = program.buffer(Storage((matrices.count, 1, 1, lanes), "i32", lanes))
    kernel = Kernel(program)
    factor = kernel.number("zero_point", data_zero_point, "i32")
    leading = tuple(axis.size for axis in matrices.leading)
    steps = tuple(axis.strides[0] for axis in matrices.leading)
    output = tuple(lanes * stride for stride in row_major(leading))

    def finish(body: Body, acc: Value, extras: Sequence[Value]) -> Value:
        return body.subtract(extras[0], body.multiply(acc, factor))

    source = MapOperand(matrices.slot, (*steps, 1), matrices.slot.storage.origin)
    sums = Reduction(
        (*leading, lanes),
        (matrices.depth,),
        [Reduced(source, (matrices.row_stride,))],
        [MapOperand(known32, (*(0,) * len(leading), 1))],
        MapOperand(slot, (*output, 1)),
        SUM,
        finish,
        _LANES,
        _ROWS,
    )
    emit_reduction(kernel, sums)
    program.call(kernel, "column sums")
    return slot
