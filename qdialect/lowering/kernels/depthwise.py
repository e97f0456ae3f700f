"""Depthwise convolution: every channel with its own taps, vectors along the channels.

A tap multiplies a vector of channels by a vector of weights, element by element, so weights keep their zero points
folded in exactly (9 bits and sign) and no sum of the window is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qdialect.lowering.kernel_text import Buffer, Loops, Operand, Tag, Tensor
from qdialect.lowering.kernels.contraction import Contraction
from qdialect.lowering.kernels.epilogue import Stages, declare_stages
from qdialect.lowering.packing import pad_channels
from qdialect.lowering.program import Kernel, Program
from qdialect.lowering.strategy import ChannelBlock, depthwise_blocks, depthwise_segments
from qdialect.lowering.views import Axis, View, collapse

_TAPS = ("kh", "kw")


@dataclass(frozen=True)
class _Buffers:
    """The buffer parameters of the kernel."""

    data: Buffer
    output: Buffer
    residual: Buffer | None


def emit_depthwise(program: Program, op: Contraction, label: str) -> None:
    """Append the kernel call of a convolution with one input and one output channel per group."""
    kernel = Kernel(program)
    data, output = kernel.place("data", op.data), kernel.place("output", op.output)
    residual = op.epilogue.residual
    buffers = _Buffers(data, output, kernel.place("residual", residual.place) if residual else None)
    stages = declare_stages(kernel, op.epilogue)
    lanes = op.output.storage.pitch
    taps = op.weights.codes[:, :, :, 0].astype(np.int32) - op.weights.zero_points[:, None, None]
    weights = np.stack([pad_channels(plane, lanes) for plane in taps.reshape(taps.shape[0], -1).T])
    channel_arrays = [op.bias, *(values for _, values in op.epilogue.channel_parameters())]
    constants = [kernel.data("weights", weights)]
    for index, values in enumerate(channel_arrays):
        whole = np.broadcast_to(values, (taps.shape[0],))
        constants.append(kernel.data(f"channel{index}", pad_channels(whole, lanes)))
    for block in depthwise_blocks(lanes):
        for segment in _segments(op):
            _emit_nest(kernel, op, stages, buffers, constants, block, segment)
    program.call(kernel, label)


@dataclass(frozen=True)
class _Segment:
    """Pixels of one nest, the offset of each operand at their start, and pixels per tile."""

    pixels: Sequence[Axis]
    offsets: Sequence[int]
    rows: int


def _segments(op: Contraction) -> list[_Segment]:
    steps = [op.window.pixel_strides(op.data.storage), op.output.storage.strides[:3]]
    if op.epilogue.residual:
        steps.append(op.epilogue.residual.place.storage.strides[:3])
    axes = [Axis(extent, tuple(step[i] for step in steps)) for i, extent in enumerate(op.window.pixels)]
    *outer, last = collapse(axes) or [Axis(1, tuple(0 for _ in steps))]
    return [
        _Segment([*outer, Axis(extent, last.strides)], [start * stride for stride in last.strides], rows)
        for start, extent, rows in depthwise_segments(last.size)
    ]


def _emit_nest(
    kernel: Kernel,
    op: Contraction,
    stages: Stages,
    buffers: _Buffers,
    constants: Sequence[Buffer],
    block: ChannelBlock,
    segment: _Segment,
) -> None:
    nest = kernel.next_nest()
    loops = (*(f"m{i}" for i in range(len(segment.pixels))), "c")
    sizes = (*(a.size for a in segment.pixels), block.channels)
    acc = _accumulate(kernel, op, buffers, constants[0], block, segment, nest)
    channel = View((block.channels,), (1,), block.start)
    inputs = [Operand(acc, loops), *(Operand(kernel.read(buffer, channel), ("c",)) for buffer in constants[1:])]
    residual = op.epilogue.residual
    if buffers.residual is not None and residual is not None:
        view = _pixel_view(segment, 2, sizes, residual.place.storage.origin + block.start)
        inputs.append(Operand(kernel.read(buffers.residual, view), loops))
    view = _pixel_view(segment, 1, sizes, op.output.storage.origin + block.start)
    destination, where = kernel.write(buffers.output, view)
    body = kernel.body()
    biased = body.binary("arith.addi", "%x0", "%x1", "i32")
    parameters = [f"%x{i}" for i in range(2, 1 + len(constants[1:]))]
    value = stages.emit(body, biased, parameters, f"%x{len(inputs) - 1}" if residual else None)
    tiles = (1,) * (len(segment.pixels) - 1) + (segment.rows, block.lanes)
    root = Tag(nest, "root", tiles)
    done = kernel.generic(Loops(loops), inputs, Operand(destination, loops), body, value, root)
    kernel.store(done, where)


def _pixel_view(segment: _Segment, operand: int, sizes: tuple[int, ...], offset: int) -> View:
    strides = (*(a.strides[operand] for a in segment.pixels), 1)
    return View(sizes, strides, offset + segment.offsets[operand])


def _accumulate(
    kernel: Kernel,
    op: Contraction,
    buffers: _Buffers,
    weights: Buffer,
    block: ChannelBlock,
    segment: _Segment,
    nest: int,
) -> Tensor:
    """``acc[pixel, c] += data[pixel + tap, c] * weight[tap, c]`` over the taps, from zero."""
    pixels, kernel_size = segment.pixels, op.window.kernel
    loops = tuple(f"m{i}" for i in range(len(pixels)))
    sizes = tuple(a.size for a in pixels)
    start = op.window.start(op.data.storage) + segment.offsets[0] + block.start
    steps = (*(a.strides[0] for a in pixels), *op.window.tap_strides(op.data.storage), 1)
    source = kernel.read(buffers.data, View((*sizes, *kernel_size, block.channels), steps, start))
    lanes = op.output.storage.pitch
    taps = View((*kernel_size, block.channels), (kernel_size[1] * lanes, lanes, 1), block.start)
    weight = kernel.read(weights, taps)
    body = kernel.body()
    x = body.cast("arith.extui", "%x0", "i8", "i32")
    total = body.binary("arith.addi", "%o", body.binary("arith.muli", x, "%x1", "i32"), "i32")
    first = kernel.filled((*sizes, block.channels), "i32", 0, Tag(nest, "contraction_fill"))
    operands = [Operand(source, (*loops, *_TAPS, "c")), Operand(weight, (*_TAPS, "c"))]
    tag = Tag(nest, "contraction", (0,) * (len(loops) + 1) + (1, 1))
    return kernel.generic(Loops((*loops, "c"), _TAPS), operands, Operand(first, (*loops, "c")), body, total, tag)
