"""Kernels of which variants are measured: how each is described, and the strategy that it is written by."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from math import prod

from qdialect._mlir import ir
from qdialect.interface import Tunable
from qdialect.lowering.errors import error_at
from qdialect.lowering.kernels.contraction import Contraction
from qdialect.lowering.kernels.depthwise_dot_product import calls_of
from qdialect.lowering.kernels.packed_weights import factor_of_ones
from qdialect.lowering.kernels.tile_contraction import pixel_blocks
from qdialect.lowering.program import Program
from qdialect.lowering.tiling.matrix_tiles import are_faster
from qdialect.lowering.tiling.variants import ContractionShape, contraction_candidates, depthwise_candidates, varied


@contextmanager
def tuned_contraction(program: Program, op: Contraction) -> Generator[None]:
    """What is emitted inside the `with` is written as the variant says that the network's module has for it.

    Raises `CompileError` for a variant that is no candidate.
    """
    if not _is_tuned(program):
        yield
        return
    shape = _shape(program, op)
    own, candidates = contraction_candidates(program.strategy, shape)
    title = f"{prod(shape.pixels)} pixels, {op.channels} channels, {shape.taps} taps"
    with _written_as(program, Tunable(_described(title, op, shape), own, tuple(candidates))):
        yield


@contextmanager
def tuned_depthwise(program: Program, op: Contraction) -> Generator[None]:
    """The same of a depthwise convolution."""
    if not _is_tuned(program):
        yield
        return
    strategy, (height, width) = program.strategy, op.window.output
    has_dots = strategy.interleaved_rows and calls_of(op, strategy)
    own, candidates = depthwise_candidates(strategy, height) if has_dots else ("taps", [])
    taps = "x".join(map(str, op.window.kernel))
    title = f"{height}x{width} pixels, {op.channels} channels, depthwise {taps}"
    with _written_as(program, Tunable(_described(title, op), own, tuple(candidates))):
        yield


def _is_tuned(program: Program) -> bool:
    # The parts of a kernel are not measured one by one.
    return program.variants is not None and program.whole is None


@contextmanager
def _written_as(program: Program, tunable: Tunable) -> Generator[None]:
    variant = (program.variants or {}).get(tunable.kernel, "")
    if variant not in ("", *tunable.candidates):
        wanted = ", ".join(tunable.candidates) or "empty"
        raise error_at(
            program.location or ir.Location.unknown(),
            f"variant of '{tunable.kernel}' must be one of {wanted}, but got '{variant}'",
        )
    own = program.strategy
    program.strategy = varied(own, variant) if variant else own
    program.tunable = Tunable(tunable.kernel, tunable.own, tunable.candidates, variant)
    try:
        yield
    finally:
        program.strategy, program.tunable = own, None


def _shape(program: Program, op: Contraction) -> ContractionShape:
    group = op.channel_groups()[0]
    axes, pixels = op.reduction_axes(group), op.pixel_axes()
    tiled = pixel_blocks(op, program.strategy, pixels)
    return ContractionShape(
        group.lanes,
        axes.taps,
        tuple(axis.size for axis in pixels),
        op.sums_pairs(program.strategy, group),
        are_faster(program.strategy.matrix_machine, tiled, (*axes.sizes, axes.k_groups), group.lanes),
        op.data.storage.bytes(),
        len(op.epilogue.channel_parameters()),
    )


def _described(title: str, op: Contraction, *more: object) -> str:
    """`title`, and a digest of all that speed depends on beside it."""
    groups = op.channel_groups()
    stages = [type(stage).__name__ for stage in op.epilogue.stages]
    parts: Sequence[object] = (
        [(slot.storage, slot.signed) for slot in op.slots],
        (op.window, op.grid, op.pixel_axes(), groups),
        [(axes.extents, axes.strides, axes.spare) for axes in map(op.reduction_axes, groups)],
        (stages, op.zero_points.any(), factor_of_ones(op.zero_points) == 1, *more),
    )
    return f"{title} #{sha256(repr(parts).encode()).hexdigest()[:10]}"
