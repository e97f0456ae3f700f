"""Depthwise convolution: every channel with its own taps, vectors along the channels.

Where the target has dot products they sum four taps of a row at a time, see `depthwise_dot_product`.  Elsewhere, and
for what fills no vector, one tap follows the other: it multiplies a vector of channels by a vector of
weights, element by element, so weights keep their zero points folded in exactly (9 bits and sign) and no sum of the
window is needed. Weights that are known at run time only are read in the same way, see `stored_depthwise`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from qdialect.lowering.cost.strategy import ChannelBlock, depthwise_blocks
from qdialect.lowering.ir.strides import Axis, View
from qdialect.lowering.qnn_to_linalg.contractions.contraction import Contraction, Windowed, declare_slots
from qdialect.lowering.qnn_to_linalg.contractions.depthwise_dot_product import calls_of, emit_pixel_blocks
from qdialect.lowering.qnn_to_linalg.contractions.epilogue import Stages, declare_stages
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import pad_channels
from qdialect.lowering.qnn_to_linalg.kernels.geometry import Grid, Segment, Window, segments
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Buffer, Loops, Operand, Tag, Tensor
from qdialect.lowering.qnn_to_linalg.program.program import Kernel, Program

Emit = Callable[[Kernel, Contraction, Stages, Sequence[Buffer]], None]
"""Writes the micro-kernels of a kernel, whose buffers are data, output and perhaps residual."""

_TAPS = ("kh", "kw")


class OfTaps(Windowed, Protocol):
    """A depthwise convolution, wherever its weights are."""

    @property
    def window(self) -> Window: ...
    @property
    def grid(self) -> Grid: ...
    def pixel_axes(self) -> list[Axis]:
        """The output pixels, merged where they are contiguous in every slot; at least one axis."""
        ...


def emit_depthwise(program: Program, op: Contraction, label: str) -> None:
    """Append the kernel call of a convolution with one input and one output channel per group."""
    calls = calls_of(op, program.strategy) if program.strategy.interleaved_rows else []
    if not calls:
        _append(program, op, label, op.macs, _emit_taps)
    for index, pixel_blocks in enumerate(calls):
        # What is computed again counts once.
        _append(program, op, label, 0 if index else op.macs, partial(emit_pixel_blocks, pixel_blocks))


def _append(program: Program, op: Contraction, label: str, macs: int, emit: Emit) -> None:
    kernel = Kernel(program)
    buffers = declare_slots(kernel, op)
    emit(kernel, op, declare_stages(kernel, op.epilogue), buffers)
    program.call(kernel, label, macs)


def _emit_taps(kernel: Kernel, op: Contraction, stages: Stages, buffers: Sequence[Buffer]) -> None:
    """One tap after the other."""
    emit_taps(kernel, op, stages, buffers, _declare_constants(kernel, op))


def emit_taps(
    kernel: Kernel, op: OfTaps, stages: Stages, buffers: Sequence[Buffer], taps: tuple[Buffer, Buffer]
) -> None:
    """Write the micro-kernels that add up one tap after the other.

    `taps` are the weights less their zero points, [taps, lanes], and what the accumulators start at, [lanes].
    """
    constants = [*taps, *_declare_parameters(kernel, op)]
    for block in depthwise_blocks(op.output.storage.pitch):
        for segment in segments(op.pixel_axes(), kernel.program.strategy.depthwise_segments):
            _emit_micro_kernel(kernel, op, stages, buffers, constants, block, segment)


def _declare_constants(kernel: Kernel, op: Contraction) -> tuple[Buffer, Buffer]:
    """Weights [taps, lanes] and bias [lanes]."""
    lanes = op.output.storage.pitch
    taps = op.weights.values[:, :, :, 0].astype(np.int32) - op.weights.zero_points[:, None, None]
    channels = taps.shape[0]
    weights = np.stack([pad_channels(plane, lanes) for plane in taps.reshape(channels, -1).T])
    # Nine bits and a sign: where words are multiplied, a product is one instruction on words that are known to be.
    weights = weights.astype(np.int16) if kernel.program.strategy.weighs_taps_by_words else weights
    bias = pad_channels(np.broadcast_to(op.bias, (channels,)), lanes)
    return kernel.data("weights", weights, is_weight=True), kernel.data("bias", bias)


def _declare_parameters(kernel: Kernel, op: OfTaps) -> list[Buffer]:
    """The epilogue's per-channel parameters, [lanes] each."""
    channels, lanes = op.output.storage.shape[3], op.output.storage.pitch
    return [
        kernel.data(name, pad_channels(np.broadcast_to(values, (channels,)), lanes))
        for name, values in op.epilogue.channel_parameters()
    ]


def _emit_micro_kernel(
    kernel: Kernel,
    op: OfTaps,
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
    inputs = [Operand(_accumulate(kernel, op, buffers[0], weights, block, segment, start, micro_kernel), loops)]
    inputs += [Operand(kernel.read(buffer, channel), ("c",)) for buffer in parameters]
    if len(buffers) > 2:
        inputs.append(Operand(kernel.read(buffers[2], _pixel_view(op, segment, 2, block)), loops))
    inputs += stages.row_operands(kernel, segment, len(buffers))
    destination, where = kernel.write(buffers[1], _pixel_view(op, segment, 1, block))
    body = kernel.body(inputs)
    acc, *rest = body.inputs
    beside = rest[len(parameters) :]
    residual = beside.pop(0) if len(buffers) > 2 else None
    value = stages.emit(body, acc, rest[: len(parameters)], residual, beside)
    root = Tag(micro_kernel, "root", (1,) * (len(segment.pixels) - 1) + (segment.rows, block.lanes))
    kernel.store(kernel.generic(Loops(loops), inputs, Operand(destination, loops), body, value, root), where)


def _pixel_view(op: OfTaps, segment: Segment, operand: int, block: ChannelBlock) -> View:
    offset = op.grid.origin(op.slots[operand].storage) + segment.offsets[operand] + block.start
    return View((*segment.sizes, block.channels), (*segment.strides(operand), 1), offset)


def _start(kernel: Kernel, bias: Operand, segment: Segment, block: ChannelBlock, micro_kernel: int) -> Tensor:
    """Accumulators that start at the bias."""
    loops = (*segment.loops, "c")
    empty = Operand(kernel.empty((*segment.sizes, block.channels), "i32"), loops)
    return kernel.copy(Loops(loops), bias, empty, Tag(micro_kernel, "contraction_fill"))


def _accumulate(
    kernel: Kernel,
    op: OfTaps,
    data: Buffer,
    weights: Buffer,
    block: ChannelBlock,
    segment: Segment,
    start: Tensor,
    micro_kernel: int,
) -> Tensor:
    """``acc[pixel, c] += data[pixel + tap, c] * weight[tap, c]`` over the taps."""
    loops, kernel_size, lanes = segment.loops, op.window.kernel, op.output.storage.pitch
    offset = op.window.start(op.data.storage) + segment.offsets[0] + block.start
    steps = (*segment.strides(0), *op.window.tap_strides(op.data.storage), 1)
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
