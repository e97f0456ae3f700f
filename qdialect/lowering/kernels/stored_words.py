"""Words of bytes that are stored before they are multiplied.

Where dot products are of words, a register tile widens each K group of its rows by two instructions, and every tile of
channels does so again.  A copy of the data as words is made once, and tiles then read words alone.  Weights become
words less their zero points, so that neither are windows summed up nor weights clipped.  The strategy says by the
cycles of both which takes fewer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from qdialect.lowering.kernels.contraction import Contraction
from qdialect.lowering.kernels.elementwise import MapOperand, emit_map
from qdialect.lowering.kernels.word_contraction import WordContraction
from qdialect.lowering.operands.packing import CenteredWeights
from qdialect.lowering.program import BufferSlot, Kernel, Program
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.lowering.tiling.strategy import Strategy

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
