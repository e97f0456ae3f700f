"""Contractions of words: 16-bit data, and bytes that are stored as words before they are multiplied."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.lowering.cost.strategy import Strategy
from qdialect.lowering.qnn_to_linalg.contractions.contraction import Contraction
from qdialect.lowering.qnn_to_linalg.contractions.micro_kernel import Columns, ContractionMicroKernel, DeclaredColumns
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import CenteredWeights
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand, emit_map
from qdialect.lowering.qnn_to_linalg.kernels.geometry import ChannelGroup, ReductionAxes
from qdialect.lowering.qnn_to_linalg.program.kernel_text import Operand
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, Program
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value

# Contractions of 16-bit data: K groups of two words, accumulated in 32 bits.
#
# The weights are packed as words, so that an instruction multiplies word by word.  A sum of 32 bits holds every sum of
# products x w with |x| <= 2^15 as long as the magnitudes of a channel's weights add up to less than 2^16.  Weights
# beyond
# that are cut into parts along the input channels, each with accumulators of its own.

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


# Words of bytes that are stored before they are multiplied.
#
# Where dot products are of words, a register tile widens each K group of its rows by two instructions, and every tile
# of
# channels does so again.  A copy of the data as words is made once, and tiles then read words alone.  Weights become
# words less their zero points, so that neither are windows summed up nor weights clipped.  The strategy says by the
# cycles of both which takes fewer.

_BYTES_PER_LANE, _BYTES_PER_WORD = 4, 2


def with_stored_words(program: Program, op: Contraction) -> Contraction:
    """`op` on words of its data, which a kernel call stores before, where that takes fewer cycles; else as it is."""
    return _on_words(op, _store_words(program, op.data)) if is_faster(op, program.strategy) else op


def is_faster(op: Contraction, strategy: Strategy) -> bool:
    """Whether `op` takes fewer cycles on words, those that store them included."""
    groups = op.channel_groups()
    if strategy.stored_word_model is None or len(groups) > 1:
        return False
    group, axes = groups[0], op.reduction_axes(groups[0])
    sums = op.pixel_count * group.count * -(-group.lanes // strategy.lanes)
    stored = _BYTES_PER_WORD * op.data.storage.length / (_BYTES_PER_LANE * strategy.lanes)
    copied = stored / (sums * math.prod(axes.sizes) * axes.k_groups)
    return strategy.takes_stored_words(group.lanes, axes.taps, op.pixel_count, copied, op.pair_remainder(group))


def _store_words(program: Program, data: BufferSlot) -> BufferSlot:
    """Append the kernel call that stores every byte of `data`, those of its halo included, as a word."""
    words = program.buffer(replace(data.storage, element="i16"))
    kernel = Kernel(program)
    emit_map(kernel, [data.storage.length], [MapOperand(data, (1,))], MapOperand(words, (1,)), _word)
    program.call(kernel, "words")
    return words


def _word(body: Body, values: Sequence[Value]) -> Value:
    return body.cast("arith.extui", values[0], "i16")


def _on_words(op: Contraction, words: BufferSlot) -> WordContraction:
    weights = op.weights
    points = weights.zero_points.astype(np.int16).reshape(-1, *[1] * (weights.values.ndim - 1))
    exact = CenteredWeights(weights.values - points, np.zeros_like(weights.zero_points))
    return WordContraction(words, op.output, op.epilogue, op.window, exact, op.bias, op.groups, op.grid)
