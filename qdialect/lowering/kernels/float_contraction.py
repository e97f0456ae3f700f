"""Contractions of stored words whose sums of products are added up as floats, see `tiling.float_sums`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.kernels.contraction import Contraction
from qdialect.lowering.kernels.contraction_micro_kernel import Columns, ContractionMicroKernel, DeclaredColumns
from qdialect.lowering.kernels.groups import ChannelGroup
from qdialect.lowering.kernels.packed_weights import ZeroPointCorrection
from qdialect.lowering.kernels.reduction_axes import ReductionAxes
from qdialect.lowering.kernels.window_sums import emit_window_sums
from qdialect.lowering.kernels.word_contraction import WordColumns, WordContraction
from qdialect.lowering.memory.strides import row_major
from qdialect.lowering.memory.views import View
from qdialect.lowering.operands.packing import CenteredWeights
from qdialect.lowering.program import BufferSlot, Kernel, Program
from qdialect.lowering.text.kernel_text import Tensor
from qdialect.lowering.tiling.float_sums import runs_of, shift_of


@dataclass(frozen=True)
class FloatContraction(WordContraction):
    """Sums of weights that are not negative, cut into `runs` along the contiguous taps, less `sums` of each pixel."""

    sums: BufferSlot | None = None
    runs: int = 1

    @property
    def given_sums(self) -> BufferSlot | None:
        return self.sums

    @property
    def sums_floats(self) -> bool:
        return True

    def reduction_axes(self, group: ChannelGroup) -> ReductionAxes:
        return _cut(super().reduction_axes(group), self.runs)

    def declare_columns(self, kernel: Kernel) -> Columns:
        return FloatColumns(self.weights.values, self.bias)


@dataclass(frozen=True)
class FloatColumns(WordColumns):
    """Weights that are not negative, and what accumulators start from."""

    def declare(self, micro_kernel: ContractionMicroKernel) -> DeclaredColumns:
        # The sums are there: no ones are multiplied.
        correction = ZeroPointCorrection(None, np.empty(0, np.int8)) if micro_kernel.sums else None
        return replace(super().declare(micro_kernel), correction=correction)

    def _constant(self, micro_kernel: ContractionMicroKernel, packed: NDArray[np.int16]) -> Tensor:
        kernel = micro_kernel.kernel
        data = kernel.float_run(micro_kernel.name_of("weights"), packed)
        return kernel.read(data, View(packed.shape, row_major(packed.shape)))


@dataclass(frozen=True)
class _Windows(Contraction):
    """A contraction whose windows are summed up whatever its weights are."""

    @property
    def zero_points(self) -> NDArray[np.int32]:
        return np.ones(1, np.int32)


def float_contraction(program: Program, op: WordContraction, of_bytes: Contraction) -> FloatContraction | None:
    """`op`, which is `of_bytes` on words that are not stored yet; the kernel call that sums up windows is appended.

    None where no runs of taps have sums that are exact as floats, and where windows have no sums of their own.
    """
    shift, group = shift_of(op.weights.values), op.channel_groups()[0]
    weights = op.weights.values + np.int16(shift)
    runs = runs_of(op.reduction_axes(group).ordered(group.taps(weights)))
    if runs is None:
        return None
    sums = emit_window_sums(program, _Windows(*_parts(of_bytes)), op.pixel_axes(), shift) if shift else None
    if shift and sums is None:
        return None
    shifted = replace(op, weights=CenteredWeights(weights, op.weights.zero_points))
    return FloatContraction(*_parts(shifted), sums=sums, runs=runs)


def _parts(op: Contraction) -> tuple[Any, ...]:
    return op.data, op.output, op.epilogue, op.window, op.weights, op.bias, op.groups, op.grid


def _cut(axes: ReductionAxes, runs: int) -> ReductionAxes:
    """`axes` with the contiguous one as `runs` after each other."""
    *outer, taps = axes.extents
    if runs == 1:
        return axes
    return replace(axes, extents=(*outer, runs, taps // runs), strides=(*axes.strides, taps // runs))
