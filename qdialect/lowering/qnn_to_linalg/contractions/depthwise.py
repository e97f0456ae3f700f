"""Depthwise convolution: every channel with its own taps, vectors along the channels.

Where the target has dot products they sum four taps of a row at a time, see `depthwise_dot_product`.  Elsewhere, and
for what fills no vector, one tap follows the other: it multiplies a vector of channels by a vector of
weights, element by element, so weights keep their zero points folded in exactly (9 bits and sign) and no sum of the
window is needed. Weights that are known at run time only are read in the same way, see `stored_weights`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.cost.strategy import ChannelBlock, depthwise_blocks
from qdialect.lowering.ir.strides import View
from qdialect.lowering.qnn_to_linalg.contractions.contraction import Contraction, StoredTaps
from qdialect.lowering.qnn_to_linalg.contractions.depthwise_dot_product import calls_of, emit_pixel_blocks
from qdialect.lowering.qnn_to_linalg.contractions.epilogue import Stages, declare_stages
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import ConstantWeights, pad_channels
from qdialect.lowering.qnn_to_linalg.kernels.geometry import Segment, segments
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer, Loops, Operand, Tag, Tensor
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, Program

_TAPS = ("kh", "kw")


def emit_depthwise(program: Program, op: Contraction, label: str) -> None:
    """Append the kernel calls of a convolution with one input and one output channel per group."""
    is_known = isinstance(op.weights, ConstantWeights)
    calls = calls_of(op, program.strategy) if is_known and program.strategy.interleaved_rows else []
    for index, pixel_blocks in enumerate(calls or [None]):
        kernel = Kernel(program)
        buffers = op.declare(kernel)
        stages = declare_stages(kernel, op.epilogue)
        if pixel_blocks:
            emit_pixel_blocks(pixel_blocks, kernel, op, stages, buffers)
        else:
            _emit_taps(kernel, op, stages, buffers)
        # What is computed again counts once.
        program.call(kernel, label, 0 if index else op.macs)


def _emit_taps(kernel: Kernel, op: Contraction, stages: Stages, buffers: Sequence[Buffer]) -> None:
    """Write the micro-kernels that add up one tap after the other."""
    lanes, channels = op.output.storage.pitch, op.channels

    def by_lane(name: str, values: NDArray[Any]) -> Buffer:
        return kernel.data(name, pad_channels(np.broadcast_to(values, (channels,)), lanes))

    constants = [*_declare_weights(kernel, op, lanes)]
    constants += [by_lane(*parameter) for parameter in op.epilogue.channel_parameters()]
    for block in depthwise_blocks(lanes):
        for segment in segments(op.pixels, kernel.program.strategy.depthwise_segments):
            _emit_micro_kernel(kernel, op, stages, buffers, constants, block, segment)


def _declare_weights(kernel: Kernel, op: Contraction, lanes: int) -> tuple[Buffer, Buffer]:
    """Weights less their zero points, [taps, lanes], and what the accumulators start at, [lanes]."""
    weights = op.weights
    if isinstance(weights, StoredTaps):
        start = weights.start
        known = kernel.slot("start", start) if isinstance(start, BufferSlot) else kernel.data("bias", start)
        return kernel.slot("weights", weights.slot), known
    assert isinstance(weights, ConstantWeights), "matrices are not of single channels"
    taps = weights.exact.reshape(op.channels, -1)
    planes = np.stack([pad_channels(plane, lanes) for plane in taps.T])
    # Nine bits and a sign: where words are multiplied, a product is one instruction on words that are known to be.
    planes = planes.astype(np.int16) if kernel.program.strategy.weighs_taps_by_words else planes
    bias = pad_channels(np.broadcast_to(weights.bias, (op.channels,)), lanes)
    return kernel.data("weights", planes, is_weight=True), kernel.data("bias", bias)


def _emit_micro_kernel(
    kernel: Kernel,
    op: Contraction,
    stages: Stages,
    buffers: Sequence[Buffer],
    constants: Sequence[Buffer],
    block: ChannelBlock,
    segment: Segment,
) -> None:
    micro_kernel = kernel.next_micro_kernel()
    loops = (*segment.loops, "c")
    weights, bias, *parameters = constants
    channel = View((block.channels,), (1,), block.start)
    start = _start(kernel, Operand(kernel.read(bias, channel), ("c",)), segment, block, micro_kernel)
    stages.store(
        kernel,
        Loops(loops),
        Operand(_accumulate(kernel, op, buffers[0], weights, block, segment, start, micro_kernel), loops),
        [Operand(kernel.read(buffer, channel), ("c",)) for buffer in parameters],
        (),
        Operand(kernel.read(buffers[2], _pixel_view(op, segment, 2, block)), loops) if buffers[2:] else None,
        stages.row_operands(kernel, segment, len(buffers)),
        kernel.write(buffers[1], _pixel_view(op, segment, 1, block)),
        Tag(micro_kernel, "root", (1,) * (len(segment.pixels) - 1) + (segment.rows, block.lanes)),
    )


def _pixel_view(op: Contraction, segment: Segment, operand: int, block: ChannelBlock) -> View:
    offset = op.accesses[operand].start + segment.offsets[operand] + block.start
    return View((*segment.sizes, block.channels), (*segment.strides(operand), 1), offset)


def _start(kernel: Kernel, bias: Operand, segment: Segment, block: ChannelBlock, micro_kernel: int) -> Tensor:
    """Accumulators that start at the bias."""
    loops = (*segment.loops, "c")
    empty = Operand(kernel.empty((*segment.sizes, block.channels), "i32"), loops)
    return kernel.copy(Loops(loops), bias, empty, Tag(micro_kernel, "contraction_fill"))


def _accumulate(
    kernel: Kernel,
    op: Contraction,
    data: Buffer,
    weights: Buffer,
    block: ChannelBlock,
    segment: Segment,
    start: Tensor,
    micro_kernel: int,
) -> Tensor:
    """``acc[pixel, c] += data[pixel + tap, c] * weight[tap, c]`` over the taps."""
    loops, kernel_size, lanes = segment.loops, op.window, op.output.storage.pitch
    offset = op.accesses[0].start + segment.offsets[0] + block.start
    steps = (*segment.strides(0), *op.accesses[0].taps, 1)
    source = kernel.read(data, View((*segment.sizes, *kernel_size, block.channels), steps, offset))
    taps = View((*kernel_size, block.channels), (kernel_size[1] * lanes, lanes, 1), block.start)
    weight = kernel.read(weights, taps)
    operands, acc = (
        [Operand(source, (*loops, *_TAPS, "c")), Operand(weight, (*_TAPS, "c"))],
        Operand(start, (*loops, "c")),
    )
    body = kernel.body(operands, acc)
    x, tap = body.inputs
    tap = tap if tap.type == "i32" else body.cast("arith.extsi", tap, "i32")
    total = body.add(body.output, body.multiply(body.cast("arith.extui", x, "i32"), tap))
    tag = Tag(micro_kernel, "contraction", (0,) * (len(loops) + 1) + (1, 1))
    return kernel.generic(Loops((*loops, "c"), _TAPS), operands, acc, body, total, tag)
