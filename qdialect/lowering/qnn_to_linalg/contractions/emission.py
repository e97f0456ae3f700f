"""From a contraction to the calls of its kernels: which of them, in which tiles, in which variant.

Channels are cut into blocks of whole vectors, pixels into whole register tiles and smaller tiles for the rest; every
combination is a loop nest of its own (see `micro_kernel`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from math import prod

import numpy as np

from qdialect.ir._mlir import ir
from qdialect.lowering.cost.matrix_tiles import are_faster, channel_blocks
from qdialect.lowering.cost.register_tiles import Layout
from qdialect.lowering.cost.strategy import Strategy
from qdialect.lowering.cost.variants import ContractionShape, contraction_candidates, depthwise_candidates, varied
from qdialect.lowering.ir.functions import error_at
from qdialect.lowering.qnn_to_linalg.contractions import tile_contraction
from qdialect.lowering.qnn_to_linalg.contractions.contraction import Contraction, StoredTaps, with_sums
from qdialect.lowering.qnn_to_linalg.contractions.depthwise import calls_of, emit_depthwise
from qdialect.lowering.qnn_to_linalg.contractions.micro_kernel import Site
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import CenteredWeights, ConstantWeights, factor_of_ones
from qdialect.lowering.qnn_to_linalg.contractions.windows import emit_window_sums
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand, emit_map
from qdialect.lowering.qnn_to_linalg.program.program import Kernel, Program
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value
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
