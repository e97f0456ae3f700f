"""Products of two stored tensors: the right operand is packed at run time, then it is a contraction like any other.

The packed form is that of constant weights (see `matrix_packing`).  With stored values x and w, zero points z_x and
z_w, w' = w - 128 and z' = z_w - 128,

  sum (x - z_x)(w - z_w) = sum x w'  -  z' sum x  +  K z_x z_w  -  z_x sum w

The sum over the data is the column of ones as for constant weights; the sums of the columns of w go into what the
accumulators start from, by a kernel of their own unless z_x is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.cost.strategy import ChannelBlock, split
from qdialect.lowering.ir.strides import Axis, View, row_major
from qdialect.lowering.qnn_to_linalg.contractions.micro_kernel import (
    Columns,
    ContractionMicroKernel,
    DeclaredColumns,
    SumOfProducts,
    accumulate,
)
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import correction_of, pad_channels
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand, emit_map
from qdialect.lowering.qnn_to_linalg.kernels.geometry import ChannelGroup, ReductionAxes
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer, Loops, Operand, Tag, Tensor
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, Program
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value
from qdialect.lowering.qnn_to_linalg.program.storage import Storage, lanes_for


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
        factor = self.product.factor_of_ones(micro_kernel.kernel.program.strategy)
        correction = correction_of(self.product.points, micro_kernel.tiles, micro_kernel.axes, factor)
        return DeclaredColumns(self._weights(micro_kernel), self._bias(micro_kernel), correction)

    def _weights(self, micro_kernel: ContractionMicroKernel) -> Tensor:
        """The packed channels of the micro-kernel, one group after the other."""
        matrices, block = self.product.right.matrices, micro_kernel.tiles.block
        view = packed_view(matrices, block)
        size = block.channels * matrices.k_groups * K_GROUP
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


# Packing of stored matrices at run time, into the form in which constant weights are stored.
#
# The packed form is signed, in K groups (`pack_k_groups`), one region for each block of channels, with one matrix
# after
# the other. Four rows of bytes, as many channels wide as a vector has lanes, become 32-bit numbers by shifts; of
# matrices
# whose columns are contiguous, transposed ones, four neighbouring bytes are such a number already.

K_GROUP = 4
_WIDTH, _SQUARE = 32, 16
_SIGN = 128


@dataclass(frozen=True)
class Matrices:
    """The right operand as it is stored: `leading` axes over matrices, then [depth, channels].

    One of `row_stride` and `channel_stride` is 1; where it is that of the rows, of transposed matrices, the tensor is
    in the arena, and all other strides and the depth are multiples of 4.
    """

    slot: BufferSlot
    leading: tuple[Axis, ...]
    row_stride: int
    depth: int
    channels: int
    channel_stride: int = 1
    offset: int = 0
    """Of the first element, from that of the stored tensor."""
    are_taps: bool = False
    """Whether they are the taps of one window, so that their products add up."""

    @property
    def taps(self) -> int:
        """Products of a sum."""
        return self.depth * (self.count if self.are_taps else 1)

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
        return -(-self.depth // K_GROUP)

    @property
    def start(self) -> int:
        """Offset of the first element in its buffer."""
        return self.slot.storage.origin + self.offset


def packed_view(matrices: Matrices, block: ChannelBlock) -> View:
    """The first matrix of a block's region as [tile, K group, vector, lane, 4]."""
    vector = block.lanes * K_GROUP
    tile = block.vectors * vector
    strides = (matrices.k_groups * tile, tile, vector, K_GROUP, 1)
    sizes = (block.tiles, matrices.k_groups, block.vectors, block.lanes, K_GROUP)
    # Regions lie one after the other, each as long as its channels are many.
    return View(sizes, strides, matrices.count * block.start * matrices.k_groups * K_GROUP)


def emit_packing(program: Program, matrices: Matrices) -> BufferSlot:
    """Append the kernel call that packs `matrices`; returns the slot of the result."""
    length = matrices.count * matrices.lanes * matrices.k_groups * K_GROUP
    slot = program.buffer(Storage((1, 1, 1, length), "i8", length))
    kernel, is_transposed = Kernel(program), matrices.channel_stride != 1
    source = kernel.slot("matrices", _words(matrices.slot) if is_transposed else matrices.slot)
    buffers = source, kernel.slot("packed", _words(slot))
    for block in program.strategy.channel_blocks(matrices.lanes, matrices.taps):
        if is_transposed:
            _emit_columns(kernel, matrices, buffers, block)
        else:
            _emit_rows(kernel, matrices, buffers, block)
    program.call(kernel, "pack")
    return slot


def _words(slot: BufferSlot) -> BufferSlot:
    """A slot of bytes as 32-bit numbers."""
    words = slot.storage.length // K_GROUP
    return replace(slot, storage=Storage((1, 1, 1, words), "i32", words), offset=slot.offset // K_GROUP)


def _targets(matrices: Matrices, block: ChannelBlock) -> tuple[View, tuple[int, ...]]:
    """The region of a block as 32-bit numbers [matrix axes..., tile, K group, channel], and the extents of the axes."""
    packed = packed_view(matrices, block)
    leading, channels = tuple(axis.size for axis in matrices.leading), block.vectors * block.lanes
    size = block.channels * matrices.k_groups
    strides = (*(size * stride for stride in row_major(leading)), matrices.k_groups * channels, channels, 1)
    sizes = (*leading, block.tiles, matrices.k_groups, channels)
    return View(sizes, strides, packed.offset // K_GROUP), leading


def _emit_rows(kernel: Kernel, matrices: Matrices, buffers: tuple[Buffer, Buffer], block: ChannelBlock) -> None:
    """Pack matrices whose rows are contiguous: the whole K groups, and the rows that are left."""
    view, _ = _targets(matrices, block)
    whole, rest = divmod(matrices.depth, K_GROUP)
    for first, count, rows in ((0, whole, K_GROUP), (whole, 1, rest)):
        if not count or not rows:
            continue
        row, channels = matrices.row_stride, view.sizes[-1]
        steps = (*(axis.strides[0] for axis in matrices.leading), channels, K_GROUP * row, 1)
        start = matrices.start + block.start + first * K_GROUP * row
        sources = [MapOperand(buffers[0], steps, start + i * row) for i in range(rows)]
        output = MapOperand(buffers[1], view.strides, view.offset + first * view.strides[-2])
        emit_map(kernel, (*view.sizes[:-2], count, channels), sources, output, _joined, _WIDTH)


def _joined(body: Body, rows: Sequence[Value]) -> Value:
    """Stored bytes of up to four rows as a signed K group; the bytes of rows that there are not are zero."""
    joined, *others = (body.cast("arith.extui", value, "i32") for value in rows)
    for i, value in enumerate(others, start=1):
        joined = body.binary("arith.ori", joined, body.binary("arith.shli", value, body.constant(8 * i, "i32")))
    return _signed(body, joined, len(rows))


def _signed(body: Body, word: Value, rows: int) -> Value:
    """The lowest `rows` bytes of a 32-bit number less 128 each."""
    signs = int.from_bytes(bytes([_SIGN] * rows), "little")
    return body.binary("arith.xori", word, body.constant(signs - (signs >> 31 << 32), "i32"))


def _emit_columns(kernel: Kernel, matrices: Matrices, buffers: tuple[Buffer, Buffer], block: ChannelBlock) -> None:
    """Pack matrices whose columns are contiguous: squares of 32-bit numbers, read along K, written along channels."""
    view, _ = _targets(matrices, block)
    *_, tiles, _, channels = view.sizes
    known = min(matrices.channels - block.start, tiles * channels)
    whole, rest = divmod(known, channels)
    # Beyond the last channel there may be nothing to read; what the lanes there hold counts nowhere.
    for tile, count, extent in ((0, whole, channels), (whole, 1, rest)):
        for channel, size, width in split(extent, min(_SQUARE, extent)) if count and extent else ():
            _emit_squares(kernel, matrices, buffers, block, (tile, count), (channel, size, width))


def _emit_squares(
    kernel: Kernel,
    matrices: Matrices,
    buffers: tuple[Buffer, Buffer],
    block: ChannelBlock,
    tiles: tuple[int, int],
    channels: tuple[int, int, int],
) -> None:
    """Pack `channels` of each tile, (first, count, of a square), in `tiles`, (first, count)."""
    view, leading = _targets(matrices, block)
    outer = tuple(f"b{i}" for i in range(len(leading)))
    *_, k_groups, width = view.sizes
    first, count = tiles
    channel, size, square = channels
    column, loops = matrices.channel_stride // K_GROUP, Loops((*outer, "nt", "kk", "nl"))
    steps = tuple(axis.strides[0] // K_GROUP for axis in matrices.leading)
    start = matrices.start // K_GROUP + (block.start + first * width + channel) * column
    origin = view.offset + first * view.strides[-3] + channel
    for row, rows, row_tile in split(k_groups, min(_SQUARE, k_groups)):
        read = View((*leading, count, size, rows), (*steps, width * column, column, 1), start + row)
        inputs = [Operand(kernel.read(buffers[0], read), (*outer, "nt", "nl", "kk"))]
        write = View((*leading, count, rows, size), view.strides, origin + row * view.strides[-2])
        destination, where = kernel.write(buffers[1], write)
        body = kernel.body(inputs)
        value = _signed(body, body.inputs[0], K_GROUP)
        root = Tag(kernel.next_micro_kernel(), "root", (*(1,) * len(leading), 1, row_tile, square))
        kernel.store(kernel.generic(loops, inputs, Operand(destination, loops.parallel), body, value, root), where)


def emit_start(
    program: Program,
    matrices: Matrices,
    packed: BufferSlot,
    bias: NDArray[np.int32],
    points: tuple[int, NDArray[np.int32]],
) -> NDArray[np.int32] | BufferSlot:
    """What accumulators start from, ``bias + K z_x z_w - z_x sum w``; appends the kernel call that sums the columns.

    `points` are those of stored quantized values, of the data and of the matrices, with one or `channels` entries. The
    columns are summed up where they are packed, by dot products with ones: ``sum w = sum w' + 128 K``.
    """
    point, own = points
    if point == 0:
        return bias
    lanes = matrices.lanes
    known = bias.astype(np.int64) + matrices.taps * point * (own.astype(np.int64) - _SIGN)
    known32 = pad_channels(known.astype(np.uint64).astype(np.uint32).view(np.int32), lanes)
    results = 1 if matrices.are_taps else matrices.count
    slot = program.buffer(Storage((results, 1, 1, lanes), "i32", lanes))
    kernel = Kernel(program)
    buffers = kernel.slot("packed", packed), kernel.slot("start", slot)
    for block in program.strategy.channel_blocks(lanes, matrices.taps):
        _emit_sums(kernel, matrices, buffers, block, (known32, point))
    program.call(kernel, "column sums")
    return slot


def _emit_sums(
    kernel: Kernel,
    matrices: Matrices,
    buffers: tuple[Buffer, Buffer],
    block: ChannelBlock,
    terms: tuple[NDArray[np.int32], int],
) -> None:
    """The start of the channels of one block: ``terms[0] - terms[1] * sums``."""
    micro_kernel, view = kernel.next_micro_kernel(), packed_view(matrices, block)
    known, point = terms
    tile = (block.tiles, block.vectors, block.lanes)
    inner = (block.vectors * block.lanes, block.lanes, 1)
    count = 1 if matrices.are_taps else matrices.count
    loops = Loops(("b", "nt", "nv", "nl"), (*(("p",) if matrices.are_taps else ()), "kk", "k4"))
    columns = View(
        (matrices.count, *view.sizes), (block.channels * matrices.k_groups * K_GROUP, *view.strides), view.offset
    )
    ones = np.ones(K_GROUP, np.uint8)
    operands = (
        Operand(kernel.read(kernel.data(f"ones_{block.start}", ones), View((K_GROUP,), (1,))), ("k4",)),
        Operand(kernel.read(buffers[0], columns), ("p" if matrices.are_taps else "b", "nt", "kk", "nv", "nl", "k4")),
    )
    filled = kernel.filled((count, *tile), "i32", 0, Tag(micro_kernel, "contraction_fill"))
    tag = Tag(micro_kernel, "contraction", (1,) * (len(loops.reduction) - 1) + (0,))
    sums = Operand(accumulate(kernel, tag, loops, operands, filled), loops.parallel)
    own = np.ascontiguousarray(known[block.start : block.start + block.channels])
    read = Operand(kernel.read(kernel.data(f"known_{block.start}", own), View(tile, inner)), ("nt", "nv", "nl"))
    destination, where = kernel.write(buffers[1], View((count, *tile), (matrices.lanes, *inner), block.start))
    body = kernel.body([sums, read])
    factor = body.constant(point, "i32")
    value = body.subtract(body.inputs[1], body.multiply(body.inputs[0], factor))
    over, root = Loops(loops.parallel), Tag(micro_kernel, "root", (1, 1, 0, 0))
    kernel.store(kernel.generic(over, [sums, read], Operand(destination, loops.parallel), body, value, root), where)
