"""Convolutions whose weights are stored tensors, dense and depthwise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.cost.strategy import ChannelBlock, depthwise_blocks
from qdialect.lowering.ir.strides import Axis, View
from qdialect.lowering.qnn_to_linalg.contractions.contraction import declare_slots, window_axes
from qdialect.lowering.qnn_to_linalg.contractions.depthwise import emit_taps
from qdialect.lowering.qnn_to_linalg.contractions.epilogue import Epilogue, declare_stages
from qdialect.lowering.qnn_to_linalg.contractions.matrix_product import (
    Matrices,
    PackedMatrices,
    emit_packing,
    emit_start,
    packed_view,
)
from qdialect.lowering.qnn_to_linalg.contractions.micro_kernel import (
    Columns,
    ContractionMicroKernel,
    DeclaredColumns,
    SumOfProducts,
)
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import correction_of, pad_channels
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand, emit_map
from qdialect.lowering.qnn_to_linalg.kernels.geometry import EVERY_PIXEL, ChannelGroup, Grid, ReductionAxes, Window
from qdialect.lowering.qnn_to_linalg.kernels.transposition import emit_transposition
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer, Loops, Operand, Tag, Tensor
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, Program
from qdialect.lowering.qnn_to_linalg.program.storage import Storage, lanes_for

# Convolutions whose weights are stored tensors: packed at run time, tap by tap, as matrices of products are.
#
# Every tap of the window is a matrix [input channels, output channels] of its own, and the taps are outer reduction
# axes:
# the data is read through windows, and nothing is copied for it. The arithmetic is that of `product`, with the number
# of
# all products of a window for K. Groups are a block-diagonal matrix, in which each weight outside of the groups is its
# channel's zero point and counts nothing.


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


def emit_tap_products(
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


# Depthwise convolutions whose weights are stored tensors: one tap after the other, each a vector of words.
#
# The weights are transposed when the network runs, so that the channels of a tap lie side by side, and their zero
# points
# are taken off: words hold what is left. Accumulators start at ``b - z_x sum w``, with these w, so that the kernel
# reads
# the data as it is stored.


@dataclass(frozen=True)
class StoredTaps:
    """Weights as the kernel reads them, [taps, lanes], and what the accumulators of each lane start at."""

    weights: BufferSlot
    start: NDArray[np.int32] | BufferSlot


@dataclass(frozen=True)
class StoredDepthwise:
    """A depthwise convolution on stored tensors."""

    data: BufferSlot
    output: BufferSlot
    epilogue: Epilogue
    window: Window
    taps: StoredTaps
    grid: Grid = EVERY_PIXEL

    @property
    def slots(self) -> list[BufferSlot]:
        """What moves from pixel to pixel: data, output and, where there is one, residual."""
        residual = self.epilogue.residual
        return [self.data, self.output, *([residual] if residual else [])]

    def pixel_axes(self) -> list[Axis]:
        """The output pixels, merged where they are contiguous in every slot; at least one axis."""
        return window_axes(self, self.window, self.grid)

    @property
    def macs(self) -> int:
        """Products that are summed up, those with padding included."""
        return math.prod((*self.window.pixels, *self.window.kernel, self.output.storage.shape[3]))


def emit_stored_depthwise(program: Program, op: StoredDepthwise, label: str) -> None:
    """Append the kernel call of `op`."""
    kernel = Kernel(program)
    buffers = declare_slots(kernel, op)
    stages = declare_stages(kernel, op.epilogue)
    start = op.taps.start
    known = kernel.slot("start", start) if isinstance(start, BufferSlot) else kernel.data("bias", start)
    emit_taps(kernel, op, stages, buffers, (kernel.slot("weights", op.taps.weights), known))
    program.call(kernel, label, op.macs)


def emit_stored_taps(
    program: Program,
    weights: MapOperand,
    shape: tuple[int, int, int],
    bias: NDArray[np.int32],
    data_zero_point: int,
    zero_points: NDArray[np.int32],
) -> StoredTaps:
    """Append the kernel calls that pack `weights`, [C, KH, KW] of `shape`, and sum them up.

    Zero points are those of stored quantized values; `zero_points` has one entry or one for each channel.
    """
    channels, rows, columns = shape
    lanes = lanes_for(channels)
    transposed = program.buffer(Storage((1, rows, columns, channels), "i8", lanes))
    kernel = Kernel(program)
    of_channel, of_row, of_column = weights.strides
    source = MapOperand(weights.source, (of_row, of_column, of_channel), weights.offset)
    emit_transposition(kernel, (rows, columns, channels), source, MapOperand(transposed, (columns * lanes, lanes, 1)))
    program.call(kernel, "weights")
    words = _emit_words(program, transposed, zero_points)
    start = _emit_start(program, words, np.broadcast_to(bias, (channels,)), data_zero_point)
    return StoredTaps(words, start)


def _emit_words(program: Program, transposed: BufferSlot, zero_points: NDArray[np.int32]) -> BufferSlot:
    """Append the kernel call that takes the zero point of its channel off each weight."""
    _, rows, columns, channels = transposed.storage.shape
    lanes = transposed.storage.pitch
    slot = program.buffer(Storage((1, rows, columns, lanes), "i16", lanes))
    points = pad_channels(np.broadcast_to(zero_points, (channels,)), lanes).astype(np.int16)
    kernel, operand = Kernel(program), (lanes, 1)
    emit_map(
        kernel,
        (rows * columns, lanes),
        [MapOperand(transposed, operand), MapOperand(points, (0, 1))],
        MapOperand(slot, operand),
        lambda body, values: body.binary("arith.subi", body.cast("arith.extui", values[0], "i16"), values[1]),
    )
    program.call(kernel, "weights")
    return slot


def _emit_start(
    program: Program, words: BufferSlot, bias: NDArray[np.int32], data_zero_point: int
) -> NDArray[np.int32] | BufferSlot:
    """What the accumulators of each lane start at; appends the kernel call that sums up the weights."""
    lanes = words.storage.pitch
    known = pad_channels(bias, lanes)
    if data_zero_point == 0:
        return known
    slot = program.buffer(Storage((1, 1, 1, lanes), "i32", lanes))
    kernel = Kernel(program)
    buffers = kernel.slot("weights", words), kernel.data("bias", known), kernel.slot("start", slot)
    for block in depthwise_blocks(lanes):
        _emit_sums(kernel, buffers, (words.storage.length // lanes, lanes), block, data_zero_point)
    program.call(kernel, "column sums")
    return slot


def _emit_sums(
    kernel: Kernel,
    buffers: tuple[Buffer, Buffer, Buffer],
    shape: tuple[int, int],
    block: ChannelBlock,
    data_zero_point: int,
) -> None:
    """The start of the lanes of one block: the bias less the zero point times the sum of weights of `shape`."""
    micro_kernel, channel = kernel.next_micro_kernel(), View((block.channels,), (1,), block.start)
    weights, bias, start = buffers
    count, lanes = shape
    taps = kernel.read(weights, View((count, block.channels), (lanes, 1), block.start))
    terms, over = [Operand(taps, ("k", "c"))], Loops(("c",))
    acc = Operand(kernel.filled((block.channels,), "i32", 0, Tag(micro_kernel, "contraction_fill")), ("c",))
    body = kernel.body(terms, acc)
    total = body.add(body.output, body.cast("arith.extsi", body.inputs[0], "i32"))
    summed = kernel.generic(Loops(("c",), ("k",)), terms, acc, body, total, Tag(micro_kernel, "contraction", (0, 1)))
    inputs = [Operand(summed, ("c",)), Operand(kernel.read(bias, channel), ("c",))]
    destination, where = kernel.write(start, channel)
    body = kernel.body(inputs)
    value = body.subtract(body.inputs[1], body.multiply(body.inputs[0], body.constant(data_zero_point, "i32")))
    root = Tag(micro_kernel, "root", (block.lanes,))
    kernel.store(kernel.generic(over, inputs, Operand(destination, ("c",)), body, value, root), where)
