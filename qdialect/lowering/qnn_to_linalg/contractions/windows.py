"""Sums of windows, which are computed before the products."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.cost.register_tiles import Layout
from qdialect.lowering.cost.strategy import split
from qdialect.lowering.ir.views import Axis, View, row_major
from qdialect.lowering.qnn_to_linalg.contractions.contraction import Contraction, accumulate, with_sums
from qdialect.lowering.qnn_to_linalg.kernels.geometry import ReductionAxes, tile_segments
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Loops, Operand, Tag
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, Program
from qdialect.lowering.qnn_to_linalg.program.storage import Storage

# The sum of each window's data, computed once for all channels: what the zero points of weights are multiplied by.
#
# Contiguous bytes are summed up a vector at a time: dot products with ones leave a sum in every lane, and the lanes are
# added up at the end.  Where all weights have one zero point, it stands in place of the ones.  That is an instruction
# for 64 bytes, where a column of ones among the weights costs one for every K group and every tile of channels.

_K_GROUP = 4
# Cycles in addition to those for the bytes: to add up the lanes of a vector, and to store and load the sum.
_OVERHEAD = 8


def emit_window_sums(program: Program, op: Contraction) -> BufferSlot | None:
    """Append the kernel call that sums up the windows of the pixels: an i32 for each, in their order.

    None where zero points need no sums, where the sums differ from channel to channel, and where a column of ones is
    cheaper.
    """
    rows, (group, reduction) = program.strategy.sum_rows, op.parts[0]
    if not rows or not op.zero_points.any() or len(op.parts) > 1 or group.per_block > 1 or group.has_channels_by_group:
        return None
    step, ones = _packed_ones(reduction, program.strategy.lanes, may_read_on=op.data.has_extra_bytes)
    blocks = program.strategy.channel_blocks(group.lanes, reduction.taps)
    is_cheap = reduction.taps // _K_GROUP * sum(block.tiles for block in blocks) <= _OVERHEAD
    # Weights of matrix tiles have no column of ones.
    is_cheap = is_cheap and program.strategy.matrix_machine is None
    if is_cheap or not step:
        return None
    # Products with a matrix each come one after the other.
    batch = [] if group.strides is None or group.count == 1 else [Axis(group.count, group.strides)]
    axes = [*batch, *op.pixels]
    pixels = math.prod(axis.size for axis in axes)
    slot = program.buffer(Storage((pixels, 1, 1, 1), "i32", 1))
    kernel = Kernel(program)
    data, sums = kernel.slot("data", op.data), kernel.slot("sums", slot)
    own = op.factor_of_ones(program.strategy)
    ones *= np.int8(own)
    weights = kernel.data("ones", ones, is_weight=True, in_pairs=own == 1 and Layout.PAIRS in program.strategy.others)
    columns = kernel.read(weights, View(ones.shape, row_major(ones.shape)))
    outer = [[(0, axis.size, 1)] for axis in axes[:-1]]
    for segment in tile_segments(with_sums(axes), [*outer, split(axes[-1].size, min(rows, axes[-1].size))]):
        micro_kernel = kernel.next_micro_kernel()
        loops = Loops((*segment.loops, "nl"), reduction.loops)
        # Windows as vectors of K groups, `step` bytes apart, which may end beyond the contiguous reduction.
        source = View(
            (*segment.sizes, *reduction.sizes, *ones.shape[-3:]),
            (*segment.strides(0), *reduction.strides, step, _K_GROUP, 1),
            op.accesses[0].start + group.start_in + segment.offsets[0],
        )
        inputs = (
            Operand(kernel.read(data, source), (*segment.loops, *reduction.outer, "kk", "nl", "k4")),
            Operand(columns, (*reduction.outer, "kk", "nl", "k4")),
        )
        start = kernel.filled((*segment.sizes, ones.shape[-2]), "i32", 0, Tag(micro_kernel, "sum_fill"))
        tag = Tag(micro_kernel, "sum", reduction.tiles)
        lanes = accumulate(kernel, tag, loops, inputs, start, is_signed=op.data.signed)
        terms = [Operand(lanes, loops.parallel)]
        start = Operand(kernel.filled(segment.sizes, "i32", 0, Tag(micro_kernel, "total_fill")), segment.loops)
        body = kernel.body(terms, start)
        total = body.add(body.output, body.inputs[0])
        over = Loops(segment.loops, ("nl",))
        added = kernel.generic(over, terms, start, body, total, Tag(micro_kernel, "total"))
        destination, where = kernel.write(sums, View(segment.sizes, segment.strides(-1), segment.offsets[-1]))
        root, target = Tag(micro_kernel, "root", segment.tiles), Operand(destination, segment.loops)
        kernel.store(kernel.copy(Loops(segment.loops), Operand(added, segment.loops), target, root), where)
    program.call(kernel, "window sums")
    return slot


def _packed_ones(reduction: ReductionAxes, widest: int, *, may_read_on: bool) -> tuple[int, NDArray[np.int8]]:
    """The bytes from one vector of the contiguous reduction to the next, and the ones of each vector.

    These are [outer axes, vectors, lanes, 4]: one where a channel has a tap that no vector before has.  Vectors end
    beyond the last tap where they `may_read_on`; elsewhere they overlap, or the step is 0, as nothing fits.
    """
    taps = reduction.ordered(reduction.present[:1])[0]
    lanes = next((lanes for lanes in (4, 8) if reduction.k_groups <= lanes <= widest), widest)
    count = -(-taps.shape[-1] // (lanes * _K_GROUP))
    step = lanes * _K_GROUP
    if not may_read_on and count * step > taps.shape[-1]:
        lanes, count, step = overlapping(taps.shape[-1], widest)
    size = lanes * _K_GROUP
    padded = np.pad(taps, [*[(0, 0)] * (taps.ndim - 1), (0, max(0, (count - 1) * step + size - taps.shape[-1]))])
    vectors = [padded[..., i * step : i * step + size].copy() for i in range(count)]
    for vector in vectors[1:]:
        vector[..., : size - step] = 0
    return step, np.stack(vectors, axis=-2).reshape(*taps.shape[:-1], count, lanes, _K_GROUP)


def overlapping(taps: int, widest: int) -> tuple[int, int, int]:
    """Lanes of the fewest vectors that end with the last tap, how many, and the bytes from one to the next, or 0."""
    for lanes in (lanes for lanes in (16, 8, 4) if lanes <= widest and lanes * _K_GROUP < taps):
        size = lanes * _K_GROUP
        least = -(-taps // size)
        for count in range(least, 2 * least):
            if (taps - size) % (count - 1) == 0:
                return lanes, count, (taps - size) // (count - 1)
    return widest, 1, 0
