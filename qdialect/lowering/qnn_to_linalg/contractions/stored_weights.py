"""Weights that are stored tensors, packed when the network runs: then their contraction is like any other.

The packed form is that of constant weights (`pack_k_groups`): signed, in K groups, one region for each block of
channels, with one matrix after the other. Four rows of bytes, as many channels wide as a vector has lanes, become
32-bit numbers by shifts; of matrices whose columns are contiguous, transposed ones, four neighbouring bytes are such a
number already.  With stored values x and w, zero points z_x and z_w, w' = w - 128 and z' = z_w - 128,

  sum (x - z_x)(w - z_w) = sum x w'  -  z' sum x  +  K z_x z_w  -  z_x sum w

The sum over the data is the column of ones as for constant weights; the sums of the columns of w go into what the
accumulators start from, by a kernel of their own unless z_x is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.cost.register_tiles import Layout
from qdialect.lowering.cost.strategy import ChannelBlock, depthwise_blocks, groups_of, split
from qdialect.lowering.ir.views import Axis, View, row_major
from qdialect.lowering.qnn_to_linalg.contractions import contraction
from qdialect.lowering.qnn_to_linalg.contractions.block_weights import HALF
from qdialect.lowering.qnn_to_linalg.contractions.contraction import Matrices, StoredTaps, StoredWeights
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import pad_channels
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand, emit_map, together
from qdialect.lowering.qnn_to_linalg.kernels.transposition import emit_transposition
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer, Loops, Operand, Tag
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, Program, Storage, lanes_for
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value, unchanged

_WIDTH, _SQUARE = 32, 16
_SIGN = 128


def emit_matrices(
    program: Program,
    matrices: Matrices,
    bias: NDArray[np.int32],
    points: tuple[int, NDArray[np.int32]],
    window: tuple[int, ...] = (),
) -> StoredWeights:
    """Append the kernel calls that pack `matrices`, perhaps the taps of a window, and sum up their columns.

    `points` are those of stored quantized values, of the data and of the matrices, with one or `channels` entries.
    """
    packed = emit_packing(program, matrices, program.strategy.channel_blocks(matrices.lanes, matrices.taps))
    start = _emit_matrix_start(program, matrices, packed, bias, points)
    return StoredWeights(matrices, packed, start, points[1] - _SIGN, window)


def emit_floats(program: Program, matrices: Matrices, rows: int, parameters: int) -> StoredWeights:
    """Matrices of f32 numbers that meet so many rows each; appends the kernel call that packs them where that pays.

    Rows of one register tile read them once, and those in the first level lie as near as packed ones; nor is a part of
    a kernel worth a copy.  `parameters` are those of the epilogue by channel.
    """
    found, model = replace(matrices, k_group=1), program.strategy.model
    blocks = program.strategy.channel_blocks(found.lanes, 4 * found.depth, Layout.FLOATS, parameters, rows)
    is_near = model is None or 4 * found.depth * found.row_stride <= model.machine.l1_bytes
    is_kept = rows <= blocks[0].rows or is_near or program.whole is not None
    found = replace(found, in_place=is_kept and len(found.leading) <= 1)
    slot = found.slot if found.in_place else emit_packing(program, found, blocks)
    zeros = np.zeros(found.channels, np.float32)
    return StoredWeights(found, slot, zeros, zeros.astype(np.int32))


def emit_packing(program: Program, matrices: Matrices, blocks: Sequence[ChannelBlock]) -> BufferSlot:
    """Append the kernel call that packs `matrices`; returns the slot of the result.

    K groups of two f32 numbers, which are bf16 ones, become words of them.
    """
    length, element = matrices.count * matrices.lanes * matrices.k_groups, matrices.slot.storage.element
    if element == "f32" and matrices.k_group > 1:
        element = "i32"
    elif element != "f32":
        length *= matrices.k_group
    slot = program.buffer(Storage((1, 1, 1, length), element, length))
    kernel, is_transposed = Kernel(program), matrices.channel_stride != 1
    source = kernel.slot("matrices", _words(matrices.slot) if is_transposed else matrices.slot)
    buffers = source, kernel.slot("packed", _words(slot))
    for block in blocks:
        if is_transposed:
            _emit_columns(kernel, matrices, buffers, block)
        else:
            _emit_rows(kernel, matrices, buffers, block)
    program.call(kernel, "pack")
    return slot


def _words(slot: BufferSlot) -> BufferSlot:
    """A slot of bytes as 32-bit numbers; one of such numbers as it is."""
    if slot.storage.element != "i8":
        return slot
    words = slot.storage.length // contraction.K_GROUP
    return replace(slot, storage=Storage((1, 1, 1, words), "i32", words), offset=slot.offset // contraction.K_GROUP)


def _targets(matrices: Matrices, block: ChannelBlock) -> View:
    """The region of a block as 32-bit numbers [matrix axes..., tile, K group, channel]."""
    packed = matrices.packed(block)
    leading, channels = tuple(axis.size for axis in matrices.leading), block.vectors * block.lanes
    size = block.channels * matrices.k_groups
    strides = (*(size * stride for stride in row_major(leading)), matrices.k_groups * channels, channels, 1)
    sizes = (*leading, block.tiles, matrices.k_groups, channels)
    return View(sizes, strides, packed.offset // matrices.k_group)


def _emit_rows(kernel: Kernel, matrices: Matrices, buffers: tuple[Buffer, Buffer], block: ChannelBlock) -> None:
    """Pack matrices whose rows are contiguous: the whole K groups, and the rows that are left."""
    view, k_group = _targets(matrices, block), matrices.k_group
    for first, count, rows in groups_of(k_group, matrices.depth):
        row, channels = matrices.row_stride, view.sizes[-1]
        steps = (*(axis.strides[0] for axis in matrices.leading), channels, k_group * row, 1)
        start = matrices.start + block.start + first * k_group * row
        sources = [MapOperand(buffers[0], steps, start + i * row) for i in range(rows)]
        output = MapOperand(buffers[1], view.strides, view.offset + first * view.strides[-2])
        emit_map(kernel, (*view.sizes[:-2], count, channels), sources, output, _joined, _WIDTH)


def _joined(body: Body, rows: Sequence[Value]) -> Value:
    """Stored bytes of up to four rows as a signed K group; the bytes of rows that there are not are zero.

    An f32 number is one as it is, or two bf16 numbers are a word, with the first one in the upper half.
    """
    if rows[0].is_float:
        return pair_word(body, rows) if len(rows) > 1 else rows[0]
    return _signed(body, together(body, rows), len(rows))


def pair_word(body: Body, values: Sequence[Value]) -> Value:
    """Two bf16 numbers as a word."""
    first, second = (body.cast("arith.bitcast", value, "i32") for value in values)
    return body.binary("arith.ori", first, body.binary("arith.shrui", second, body.constant(HALF, "i32")))


def _signed(body: Body, word: Value, rows: int) -> Value:
    """The lowest `rows` bytes of a 32-bit number less 128 each."""
    signs = int.from_bytes(bytes([_SIGN] * rows), "little")
    return body.binary("arith.xori", word, body.constant(signs - (signs >> 31 << 32), "i32"))


def _emit_columns(kernel: Kernel, matrices: Matrices, buffers: tuple[Buffer, Buffer], block: ChannelBlock) -> None:
    """Pack matrices whose columns are contiguous: squares of 32-bit numbers, read along K, written along channels."""
    view, column = _targets(matrices, block), matrices.channel_stride // matrices.k_group
    *leading, tiles, k_groups, width = view.sizes
    outer = tuple(f"b{i}" for i in range(len(leading)))
    loops, steps = (*outer, "nt", "kk", "nl"), tuple(axis.strides[0] // matrices.k_group for axis in matrices.leading)
    # Beyond the last channel there may be nothing to read; what the lanes there hold counts nowhere.
    parts = groups_of(width, min(matrices.channels - block.start, tiles * width))
    squares = [(first, count, *part) for first, count, extent in parts for part in split(extent, min(_SQUARE, extent))]
    for (first, count, channel, size, square), (row, rows, row_tile) in product(
        squares, split(k_groups, min(_SQUARE, k_groups))
    ):
        start = matrices.start // matrices.k_group + (block.start + first * width + channel) * column + row
        read = View((*leading, count, size, rows), (*steps, width * column, column, 1), start)
        inputs = [Operand(kernel.read(buffers[0], read), (*outer, "nt", "nl", "kk"))]
        origin = view.offset + first * view.strides[-3] + channel + row * view.strides[-2]
        target = kernel.write(buffers[1], View((*leading, count, rows, size), view.strides, origin))
        root = Tag(kernel.next_micro_kernel(), "root", (*(1 for _ in leading), 1, row_tile, square))
        kernel.map(loops, inputs, target, _column, root)


def _column(body: Body, values: Sequence[Value]) -> Value:
    (value,) = values
    return value if value.is_float else _signed(body, value, contraction.K_GROUP)


def _emit_matrix_start(
    program: Program,
    matrices: Matrices,
    packed: BufferSlot,
    bias: NDArray[np.int32],
    points: tuple[int, NDArray[np.int32]],
) -> NDArray[np.int32] | BufferSlot:
    """The initial accumulators, ``bias + K z_x z_w - z_x sum w``; appends the kernel call that sums the columns.

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
        _emit_column_sums(kernel, matrices, buffers, block, (known32, point))
    program.call(kernel, "column sums")
    return slot


def _emit_column_sums(
    kernel: Kernel,
    matrices: Matrices,
    buffers: tuple[Buffer, Buffer],
    block: ChannelBlock,
    terms: tuple[NDArray[np.int32], int],
) -> None:
    """The start of the channels of one block: ``terms[0] - terms[1] * sums``."""
    micro_kernel, view = kernel.next_micro_kernel(), matrices.packed(block)
    known, point = terms
    tile = (block.tiles, block.vectors, block.lanes)
    inner = (block.vectors * block.lanes, block.lanes, 1)
    count = 1 if matrices.are_taps else matrices.count
    loops = Loops(("b", "nt", "nv", "nl"), (*(("p",) if matrices.are_taps else ()), "kk", "k4"))
    columns = View(
        (matrices.count, *view.sizes),
        (block.channels * matrices.k_groups * contraction.K_GROUP, *view.strides),
        view.offset,
    )
    ones = np.ones(contraction.K_GROUP, np.uint8)
    operands = (
        Operand(kernel.read(kernel.data(f"ones_{block.start}", ones), View((contraction.K_GROUP,), (1,))), ("k4",)),
        Operand(kernel.read(buffers[0], columns), ("p" if matrices.are_taps else "b", "nt", "kk", "nv", "nl", "k4")),
    )
    filled = kernel.filled((count, *tile), "i32", 0, Tag(micro_kernel, "contraction_fill"))
    tag = Tag(micro_kernel, "contraction", (1,) * (len(loops.reduction) - 1) + (0,))
    sums = Operand(contraction.accumulate(kernel, tag, loops, operands, filled), loops.parallel)
    own = np.ascontiguousarray(known[block.start : block.start + block.channels])
    read = Operand(kernel.read(kernel.data(f"known_{block.start}", own), View(tile, inner)), ("nt", "nv", "nl"))
    target = kernel.write(buffers[1], View((count, *tile), (matrices.lanes, *inner), block.start))
    root = Tag(micro_kernel, "root", (1, 1, 0, 0))
    kernel.map(loops.parallel, [sums, read], target, partial(_start, point), root)


def _start(point: int, body: Body, values: Sequence[Value]) -> Value:
    """What accumulators start from, from the sum of their weights and what is known."""
    total, known = values
    return body.subtract(known, body.multiply(total, body.constant(point, "i32")))


# Convolutions: every tap of the window is a matrix [input channels, output channels] of its own, and the taps are outer
# reduction axes: the data is read through windows, and nothing is copied for it. Groups are a block-diagonal matrix, in
# which each weight outside of the groups is its channel's zero point and counts nothing.


def emit_tap_products(
    program: Program,
    weights: MapOperand,
    shape: tuple[int, int, int, int],
    groups: int,
    bias: NDArray[np.int32],
    data_zero_point: int,
    zero_points: NDArray[np.int32],
) -> StoredWeights:
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
        emit_map(kernel, extents, [source], target, unchanged)
    else:
        emit_transposition(kernel, extents, source, target)
    program.call(kernel, "weights")
    taps = Matrices(slot, (Axis(rows * columns, (column,)),), lane, inputs, channels, are_taps=True)
    return emit_matrices(program, taps, bias, (data_zero_point, zero_points), (rows, columns))


def _emit_zero_points(program: Program, slot: BufferSlot, zero_points: NDArray[np.int32]) -> None:
    """Fill `slot` with the zero point of each channel, which is the weight that counts nothing."""
    *outer, channels = slot.storage.shape
    points = np.broadcast_to(zero_points, channels).astype(np.uint8)
    kernel = Kernel(program)
    source = MapOperand(points, (0, 0, 0, 1))
    emit_map(kernel, (*outer, channels), [source], MapOperand(slot, slot.storage.strides), unchanged)
    program.call(kernel, "weights")


# Depthwise convolutions: one tap after the other, each a vector of words.
#
# The weights are transposed when the network runs, so that the channels of a tap lie side by side, and their zero
# points are taken off: words hold what is left. Accumulators start at ``b - z_x sum w``, with these w, so that the
# kernel reads the data as it is stored.


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
    return StoredTaps(words, start, (rows, columns), channels)


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
    """The initial accumulator of each lane; appends the kernel call that sums up the weights."""
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
    terms = [Operand(taps, ("k", "c"))]
    acc = Operand(kernel.filled((block.channels,), "i32", 0, Tag(micro_kernel, "contraction_fill")), ("c",))
    body = kernel.body(terms, acc)
    total = body.add(body.output, body.cast("arith.extsi", body.inputs[0], "i32"))
    summed = kernel.generic(Loops(("c",), ("k",)), terms, acc, body, total, Tag(micro_kernel, "contraction", (0, 1)))
    inputs = [Operand(summed, ("c",)), Operand(kernel.read(bias, channel), ("c",))]
    root = Tag(micro_kernel, "root", (block.lanes,))
    kernel.map(("c",), inputs, kernel.write(start, channel), partial(_start, data_zero_point), root)
