"""From a contraction to the calls of its kernels: which of them, in which tiles, in which variant.

Channels are cut into blocks of whole vectors, pixels into whole register tiles and smaller tiles for the rest; every
combination is a loop nest of its own (see `micro_kernel`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from math import prod

import numpy as np
from numpy.typing import NDArray

from qdialect.ir._mlir import ir
from qdialect.lowering.cost.matrix_tiles import are_faster, channel_blocks
from qdialect.lowering.cost.register_tiles import Layout
from qdialect.lowering.cost.strategy import Strategy, split
from qdialect.lowering.cost.variants import ContractionShape, contraction_candidates, depthwise_candidates, varied
from qdialect.lowering.ir.functions import error_at
from qdialect.lowering.ir.views import Axis, View, row_major
from qdialect.lowering.qnn_to_linalg.contractions import tile_contraction
from qdialect.lowering.qnn_to_linalg.contractions.contraction import Contraction, StoredTaps, accumulate, with_sums
from qdialect.lowering.qnn_to_linalg.contractions.depthwise import calls_of, emit_depthwise
from qdialect.lowering.qnn_to_linalg.contractions.micro_kernel import Site
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import CenteredWeights, ConstantWeights, factor_of_ones
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand, emit_map
from qdialect.lowering.qnn_to_linalg.kernels.geometry import ReductionAxes, tile_segments
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Loops, Operand, Tag
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, Program, Storage
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value, unchanged
from qdialect.support.interface import Tunable


def emit(program: Program, op: Contraction, label: str) -> None:
    """Append the kernel calls of `op`, whose groups may be single channels; perhaps on words of its data."""
    weights = op.weights
    if isinstance(weights, StoredTaps) or 1 < op.groups == op.data.storage.shape[3] == op.channels:
        with _tuned(program, op, _depthwise_variants):
            emit_depthwise(program, op, label)
        return
    words = _on_words(program, op) if is_faster_on_words(op, program.strategy) else None
    if words:
        _emit_products(program, words, label)
        return
    with _tuned(program, op, _variants):
        _emit_products(program, op, label)


def _emit_products(program: Program, op: Contraction, label: str) -> None:
    sums = emit_window_sums(program, op)
    kernel = Kernel(program)
    site = Site.of(kernel, op, sums=sums)
    tiled = tile_contraction.pixel_blocks(op, program.strategy, with_sums(op.pixels))
    for group, axes in op.parts:
        wide = tile_contraction.tiled_axes(op, group, axes, has_sums=sums is not None)
        if wide and are_faster(program.strategy.matrix_machine, tiled, (*wide.sizes, wide.k_groups), group.lanes):
            scratch = tile_contraction.sums_scratch(kernel, group)
            for block in channel_blocks(group.lanes, tiled):
                tile_contraction.TileMicroKernel(site, group, wide, block).emit_blocks(scratch, tiled)
            continue
        site.emit_dot_products(group, axes)
    program.call(kernel, label, op.macs)


# Words of bytes that are stored before they are multiplied.
#
# Where dot products are of words, a register tile widens each K group of its rows by two instructions, and every tile
# of channels does so again.  A copy of the data as words is made once, and tiles then read words alone.  Weights become
# words less their zero points, so that neither are windows summed up nor weights clipped.  The strategy chooses by the
# cycles of both.

_BYTES_PER_LANE, _BYTES_PER_WORD = 4, 2


def is_faster_on_words(op: Contraction, strategy: Strategy) -> bool:
    """Whether `op` takes fewer cycles on words, those that store them included."""
    if Layout.STORED_WORDS not in strategy.others or not isinstance(op.weights, ConstantWeights):
        return False
    if op.data.storage.element != "i8":
        return False
    (group, axes), *others = op.parts
    if others:
        return False
    sums = op.pixel_count * group.count * -(-group.lanes // strategy.lanes)
    stored = _BYTES_PER_WORD * op.data.storage.length / (_BYTES_PER_LANE * strategy.lanes)
    copied = stored / (sums * prod(axes.sizes) * axes.k_groups)
    return strategy.takes_stored_words(group.lanes, axes.taps, op.pixel_count, copied, op.pair_remainder(group, axes))


def _on_words(program: Program, op: Contraction) -> Contraction:
    """`op` on words of its data: appends the kernel call that stores every byte as one, padding included."""
    assert isinstance(op.weights, ConstantWeights), "words are less their zero points"
    centered, (data, *others) = op.weights.centered, op.accesses
    words = program.buffer(replace(data.slot.storage, element="i16"))
    kernel, length = Kernel(program), words.storage.length
    emit_map(kernel, [length], [MapOperand(data.slot, (1,))], MapOperand(words, (1,)), _word)
    program.call(kernel, "words")
    points = centered.zero_points.astype(np.int16).reshape(-1, *[1] * (centered.values.ndim - 1))
    exact = CenteredWeights(centered.values - points, np.zeros_like(centered.zero_points))
    weights = ConstantWeights(exact, op.weights.bias, k_group=2)
    return replace(op, accesses=(replace(data, slot=words), *others), weights=weights)


def _word(body: Body, values: Sequence[Value]) -> Value:
    return body.cast("arith.extui", values[0], "i16")


# Kernels of which variants are measured: how each is described, and the strategy that it is written by.


@contextmanager
def _tuned(program: Program, op: Contraction, tunable_of: Callable[[Program, Contraction], Tunable]) -> Generator[None]:
    """Kernels emitted inside the `with` get the variant that the network's module has chosen for them.

    Raises `CompileError` for a variant that is no candidate.
    """
    # The parts of a kernel are not measured one by one, nor are weights that are not known.
    if program.variants is None or program.whole is not None or not isinstance(op.weights, ConstantWeights):
        yield
        return
    tunable = tunable_of(program, op)
    variant = program.variants.get(tunable.kernel, "")
    if variant not in ("", *tunable.candidates):
        wanted = ", ".join(tunable.candidates) or "empty"
        raise error_at(
            program.location or ir.Location.unknown(),
            f"variant of '{tunable.kernel}' must be one of {wanted}, but got '{variant}'",
        )
    own = program.strategy
    program.strategy = varied(own, variant) if variant else own
    program.tunable = replace(tunable, variant=variant)
    try:
        yield
    finally:
        program.strategy, program.tunable = own, None


def _variants(program: Program, op: Contraction) -> Tunable:
    strategy, (group, axes) = program.strategy, op.parts[0]
    tiled = tile_contraction.pixel_blocks(op, strategy, op.pixels)
    in_tiles = tile_contraction.tiled_axes(op, group, axes, has_sums=True) is not None
    shape = ContractionShape(
        group.lanes,
        axes.weight_bytes,
        tuple(axis.size for axis in op.pixels),
        op.layout(strategy, group, axes),
        in_tiles and are_faster(strategy.matrix_machine, tiled, (*axes.sizes, axes.k_groups), group.lanes),
        op.data.storage.bytes(),
        len(op.epilogue.channel_parameters()),
        op.tile_rows(op.layout(strategy, group, axes)),
    )
    own, candidates = contraction_candidates(strategy, shape)
    title = f"{prod(shape.pixels)} pixels, {op.channels} channels, {axes.taps} taps"
    return Tunable(_described(title, op, shape), own, tuple(candidates))


def _depthwise_variants(program: Program, op: Contraction) -> Tunable:
    strategy, (_, height, width) = program.strategy, op.extents
    has_dots = strategy.depthwise.interleaved_rows and calls_of(op, strategy)
    own, candidates = depthwise_candidates(strategy.depthwise, height) if has_dots else ("taps", [])
    title = f"{height}x{width} pixels, {op.channels} channels, depthwise {'x'.join(map(str, op.window))}"
    return Tunable(_described(title, op), own, tuple(candidates))


def _described(title: str, op: Contraction, *more: object) -> str:
    """`title`, and a digest of everything else that speed depends on."""
    stages = [type(stage).__name__ for stage in op.epilogue.stages]
    parts: Sequence[object] = (
        [(one.slot.storage, one.slot.signed, one.start, one.pixels, one.taps) for one in op.accesses],
        (op.window, op.extents, [group for group, _ in op.parts]),
        [(axes.extents, axes.strides, axes.lane_padding) for _, axes in op.parts],
        (stages, op.zero_points.any(), factor_of_ones(op.zero_points) == 1, *more),
    )
    return f"{title} #{sha256(repr(parts).encode()).hexdigest()[:10]}"


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
        target = kernel.write(sums, View(segment.sizes, segment.strides(-1), segment.offsets[-1]))
        root = Tag(micro_kernel, "root", segment.tiles)
        kernel.map(segment.loops, [Operand(added, segment.loops)], target, unchanged, root)
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
