"""Convolutions whose weights are stored tensors: packed at run time, tap by tap, as matrices of products are.

Every tap of the window is a matrix [input channels, output channels] of its own, and the taps are outer reduction axes:
the data is read through windows, and nothing is copied for it. The arithmetic is that of `product`, with the number of
all products of a window for K. Groups are a block-diagonal matrix, in which each weight outside of the groups is its
channel's zero point and counts nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.kernels.contraction import window_axes
from qdialect.lowering.kernels.contraction_micro_kernel import (
    Columns,
    ContractionMicroKernel,
    DeclaredColumns,
    SumOfProducts,
)
from qdialect.lowering.kernels.elementwise import MapOperand, emit_map
from qdialect.lowering.kernels.groups import ChannelGroup
from qdialect.lowering.kernels.matrix_packing import Matrices, emit_packing, emit_start, packed_view
from qdialect.lowering.kernels.packed_weights import correction_of
from qdialect.lowering.kernels.product import PackedMatrices
from qdialect.lowering.kernels.reduction_axes import ReductionAxes
from qdialect.lowering.kernels.transposition import emit_transposition
from qdialect.lowering.kernels.window import EVERY_PIXEL, Window
from qdialect.lowering.memory.storage import Storage, lanes_for
from qdialect.lowering.memory.views import Axis, View
from qdialect.lowering.program import BufferSlot, Kernel, Program
from qdialect.lowering.text.kernel_text import Buffer, Operand, Tensor


@dataclass(frozen=True)
class StoredConvolution(SumOfProducts):
    """A convolution on stored tensors, all of whose groups are one."""

    window: Window
    taps: PackedMatrices
    points: NDArray[np.int32]
    """What is left of the zero points of the weights, by channel."""

    @property
    def channels(self) -> int:
        return self.taps.matrices.channels

    @property
    def macs(self) -> int:
        return math.prod((*self.window.pixels, *self._extents, self.channels))

    @property
    def zero_points(self) -> NDArray[np.int32]:
        return self.points

    @property
    def _extents(self) -> tuple[int, int, int]:
        return (*self.window.kernel, self.taps.matrices.depth)

    def start(self, operand: int) -> int:
        return self.window.start(self.data.storage) if operand == 0 else self.slots[operand].storage.origin

    def pixel_axes(self) -> list[Axis]:
        return window_axes(self, self.window, EVERY_PIXEL)

    def channel_groups(self) -> list[ChannelGroup]:
        return [ChannelGroup(1, 0, 0, self.taps.matrices.depth, self.channels, 1)]

    def reduction_axes(self, group: ChannelGroup) -> ReductionAxes:
        strides = self.window.tap_strides(self.data.storage)
        return ReductionAxes(self._extents, strides, 0, np.ones((1, *self._extents), np.int8))

    def declare_columns(self, kernel: Kernel) -> Columns:
        start = self.taps.start
        sums = kernel.slot("start", start) if isinstance(start, BufferSlot) else start
        return _TapColumns(self, kernel.slot("packed", self.taps.slot), sums)


@dataclass(frozen=True)
class _TapColumns:
    """The packed taps as the columns of a micro-kernel."""

    op: StoredConvolution
    packed: Buffer
    start: Buffer | NDArray[np.int32]

    def declare(self, micro_kernel: ContractionMicroKernel) -> DeclaredColumns:
        """Declare views of the micro-kernel's channels."""
        factor = self.op.factor_of_ones(micro_kernel.kernel.program.strategy)
        correction = correction_of(self.op.points, micro_kernel.tiles, micro_kernel.axes, factor)
        return DeclaredColumns(self._weights(micro_kernel), self._start(micro_kernel), correction)

    def _weights(self, micro_kernel: ContractionMicroKernel) -> Tensor:
        """[tile, row, column, K group, vector, lane, 4]."""
        matrices, block = self.op.taps.matrices, micro_kernel.tiles.block
        tap = packed_view(matrices, block)
        size = tap.sizes[0] * tap.strides[0]
        rows, columns = self.op.window.kernel
        sizes = (tap.sizes[0], rows, columns, *tap.sizes[1:])
        strides = (tap.strides[0], columns * size, size, *tap.strides[1:])
        return micro_kernel.kernel.read(self.packed, View(sizes, strides, tap.offset))

    def _start(self, micro_kernel: ContractionMicroKernel) -> Operand:
        tiles = micro_kernel.tiles
        if not isinstance(self.start, Buffer):
            return Operand(micro_kernel.constant("bias", tiles.per_channel(self.start)), micro_kernel.channel_loops)
        view = View(tiles.sizes, (tiles.block.vectors * tiles.block.lanes, tiles.block.lanes, 1), tiles.block.start)
        return Operand(micro_kernel.kernel.read(self.start, view), ("nt", "nv", "nl"))


def emit_taps(
    program: Program,
    weights: MapOperand,
    shape: tuple[int, int, int, int],
    groups: int,
    bias: NDArray[np.int32],
    data_zero_point: int,
    zero_points: NDArray[np.int32],
) -> PackedMatrices:
    """Append the kernel calls that pack `weights`, [OC, KH, KW, IC / groups] of `shape`, for all groups together.

    Zero points are those of stored quantized values; `zero_points` has one entry or one for each channel.
    """
    channels, rows, columns, depth = shape
    inputs = depth * groups
    storage = Storage((rows, columns, inputs, channels), "i8", lanes_for(channels))
    slot = program.buffer(storage)
    if groups > 1:
        _emit_zero_points(program, slot, zero_points)
    kernel = Kernel(program)
    of_channel, of_row, of_column, of_input = weights.strides
    per_group = channels // groups
    source = MapOperand(
        weights.source, (per_group * of_channel, of_row, of_column, of_input, of_channel), weights.offset
    )
    row, column, lane, _ = storage.strides
    target = MapOperand(slot, (depth * lane + per_group, row, column, lane, 1), 0)
    extents = (groups, rows, columns, depth, per_group)
    if groups > 1:
        # Whole vectors of a group would reach into the next.
        emit_map(kernel, extents, [source], target, lambda _, values: values[0])
    else:
        emit_transposition(kernel, extents, source, target)
    program.call(kernel, "weights")
    taps = Matrices(slot, (Axis(rows * columns, (column,)),), lane, inputs, channels, are_taps=True)
    packed = emit_packing(program, taps)
    start = emit_start(program, taps, packed, bias, (data_zero_point, zero_points))
    return PackedMatrices(taps, packed, start)


def _emit_zero_points(program: Program, slot: BufferSlot, zero_points: NDArray[np.int32]) -> None:
    """Fill `slot` with the zero point of each channel, which is the weight that counts nothing."""
    *outer, channels = slot.storage.shape
    points = np.broadcast_to(zero_points, channels).astype(np.uint8)
    kernel = Kernel(program)
    source = MapOperand(points, (0, 0, 0, 1))
    emit_map(kernel, (*outer, channels), [source], MapOperand(slot, slot.storage.strides), lambda _, values: values[0])
    program.call(kernel, "weights")
