"""Depthwise convolutions whose weights are stored tensors: one tap after the other, each a vector of words.

The weights are transposed when the network runs, so that the channels of a tap lie side by side, and their zero points
are taken off: words hold what is left. Accumulators start at ``b - z_x sum w``, with these w, so that the kernel reads
the data as it is stored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.kernels.contraction import declare_slots, window_axes
from qdialect.lowering.kernels.depthwise import emit_taps
from qdialect.lowering.kernels.elementwise import MapOperand, emit_map
from qdialect.lowering.kernels.epilogue import Epilogue, declare_stages
from qdialect.lowering.kernels.transposition import emit_transposition
from qdialect.lowering.kernels.window import EVERY_PIXEL, Grid, Window
from qdialect.lowering.memory.storage import Storage, lanes_for
from qdialect.lowering.memory.views import Axis, View
from qdialect.lowering.operands.packing import pad_channels
from qdialect.lowering.program import BufferSlot, Kernel, Program
from qdialect.lowering.text.kernel_text import Buffer, Loops, Operand, Tag
from qdialect.lowering.tiling.strategy import ChannelBlock, depthwise_blocks


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
