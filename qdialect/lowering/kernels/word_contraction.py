"""Contractions of 16-bit data: K groups of two words, accumulated in 32 bits.

The weights are packed as words, so that an instruction multiplies word by word.  A sum of 32 bits holds every sum of
products x w with |x| <= 2^15 as long as the magnitudes of a channel's weights add up to less than 2^16.  Weights beyond
that are cut into parts along the input channels, each with accumulators of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.kernels.contraction import Contraction
from qdialect.lowering.kernels.contraction_micro_kernel import Columns, ContractionMicroKernel, DeclaredColumns
from qdialect.lowering.kernels.groups import ChannelGroup
from qdialect.lowering.kernels.reduction_axes import ReductionAxes
from qdialect.lowering.program import Kernel
from qdialect.lowering.text.kernel_text import Operand
from qdialect.lowering.tiling.strategy import Strategy

K_GROUP = 2
_LARGEST_SUM = 2**16 - 1
Part = tuple[int, int]
"""The first input channel of a part and their number."""


@dataclass(frozen=True)
class WordContraction(Contraction):
    """A convolution of the input channels from `first` on, as many as the weights are deep; groups take all."""

    first: int = 0

    def channel_groups(self) -> list[ChannelGroup]:
        if self.groups > 1:
            return super().channel_groups()
        return [ChannelGroup(1, 0, self.first, self.weights.values.shape[3], self.channels, 1)]

    def reduction_axes(self, group: ChannelGroup) -> ReductionAxes:
        return replace(super().reduction_axes(group), k_group=K_GROUP)

    def sums_pairs(self, strategy: Strategy, group: ChannelGroup) -> bool:
        # Pairs are of bytes.
        return False

    def declare_columns(self, kernel: Kernel) -> Columns:
        return WordColumns(self.weights.values, self.bias)


@dataclass(frozen=True)
class WordColumns:
    """Weights [OC, KH, KW, depth] that fit words, packed so, and what accumulators start from, int32[OC]."""

    weights: NDArray[Any]
    bias: NDArray[np.int32]

    def declare(self, micro_kernel: ContractionMicroKernel) -> DeclaredColumns:
        """Declare the packed weights of the micro-kernel's channels."""
        tiles, axes = micro_kernel.tiles, micro_kernel.axes
        taps = axes.ordered(tiles.group.taps(self.weights)).astype(np.int16)
        weights = micro_kernel.constant("weights", tiles.packed(taps, axes.k_group), is_weight=True)
        bias = micro_kernel.constant("bias", tiles.per_channel(self.bias))
        return DeclaredColumns(weights, Operand(bias, micro_kernel.channel_loops), None)


def fits_words(weights: NDArray[Any]) -> bool:
    """Whether 32 bits hold every sum of products with weights [OC, ...]."""
    return int(np.abs(weights.astype(np.int64)).reshape(len(weights), -1).sum(axis=1).max()) <= _LARGEST_SUM


def channel_parts(weights: NDArray[Any]) -> list[Part] | None:
    """As few parts of the input channels of int8[OC, KH, KW, depth] as have sums of 32 bits; None where none have."""
    depth = weights.shape[3]
    magnitudes = np.abs(weights.astype(np.int64)).sum(axis=(1, 2))
    ends = [*range(K_GROUP, depth, K_GROUP), depth]
    totals = np.concatenate([np.zeros((1, len(magnitudes)), np.int64), magnitudes.cumsum(axis=1).T[np.array(ends) - 1]])
    starts, parts = [0, *ends[:-1]], list[Part]()
    while not parts or sum(parts[-1]) < depth:
        first = sum(parts[-1]) if parts else 0
        begin = starts.index(first)
        fits = ((totals[begin + 1 :] - totals[begin]) <= _LARGEST_SUM).all(axis=1)
        count = int(np.argmin(fits)) if not fits.all() else len(fits)
        if count == 0:
            return None
        parts.append((first, ends[begin + count - 1] - first))
    return parts
