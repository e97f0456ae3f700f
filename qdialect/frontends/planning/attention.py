"""Scaled dot-product attention in float32, as ops: products, a softmax of rows, and what is added before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from qdialect.dialect import F32MatmulOp, F32MaxOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import Shape
from qdialect.frontends.building.op_builder import Arithmetic, OpBuilder, blocked_sum, ordered_sum, reduced
from qdialect.frontends.planning.emitter import Emitter
from qdialect.ir._mlir import ir

LOWEST = float(np.finfo(np.float32).min)
"""The addend of a score that must not count; its exponential is 0."""


class Stage(IntEnum):
    """The stages of the scores, in the order in which they are computed."""

    PRODUCTS = 0
    BOUNDED = 1
    """By a softcap."""
    MASKED = 2
    WEIGHTS = 3
    """After the softmax."""


@dataclass(frozen=True)
class Attention:
    """``softmax(q k^T * scale + biases) v``, each query limited to the keys up to its own where it is causal.

    The first `earlier` keys are those of earlier tokens, which no query is kept from.  A `softcap` above 0 takes
    ``softcap * tanh(score / softcap)`` of the scaled scores.
    """

    scale: float
    is_causal: bool = False
    softcap: float = 0.0
    earlier: int = 0
    is_guarded: bool = False
    """Whether scores that biases make `LOWEST` or less do not count, as those that `counted` leaves out."""

    def emit(
        self,
        emitter: Emitter,
        query: ir.Value,
        key: ir.Value,
        value: ir.Value,
        biases: Sequence[ir.Value],
        counted: ir.Value | None = None,
        sink: ir.Value | None = None,
    ) -> ir.Value:
        """[B, N, S, D] of queries [B, N, S, K], keys [B, N, L, K] and values [B, N, L, D].

        Biases broadcast to the scores [B, N, S, L], and so does `counted`, booleans that select the scores that count.
        The result of a query of which no score counts is 0.  A `sink` is a score of each head, [1, N, 1, 1], of a key
        whose value is 0.
        """
        weights = self.scores(emitter, query, key, biases, counted, sink)
        return emitter.build(F32MatmulOp, weights, value, element="f32")

    def scores(
        self,
        emitter: Emitter,
        query: ir.Value,
        key: ir.Value,
        biases: Sequence[ir.Value],
        counted: ir.Value | None = None,
        sink: ir.Value | None = None,
        stage: Stage = Stage.WEIGHTS,
    ) -> ir.Value:
        """[B, N, S, L] at a stage, where those of keys behind a causal query are `LOWEST`."""
        transposed = emitter.transpose(key, (0, 1, 3, 2))
        product = emitter.build(F32MatmulOp, query, transposed, element="f32")
        shape = shape_of(product.type)
        s = emitter.f32
        scores = s("mulf", product, self.scale)
        if stage is Stage.PRODUCTS:
            return scores
        if self.softcap:
            scores = s("mulf", s("tanh", s("divf", scores, self.softcap)), self.softcap)
        if stage is Stage.BOUNDED:
            return scores
        if self.is_causal:
            later = np.triu(np.full(shape[2:], LOWEST, np.float32), 1 + self.earlier)
            scores = s("addf", scores, emitter.constant(later))
        for bias in biases:
            scores = s("addf", scores, bias)
        holds = None if counted is None else self._allowed(emitter, counted, shape)
        if holds is not None:
            scores = emitter.select(holds, scores, emitter.number(LOWEST, shape))
        if stage is Stage.MASKED:
            return emitter.select(self._reached(emitter, shape), scores, emitter.number(LOWEST, shape))
        if self.is_guarded and biases:
            scores = s("maximumf", scores, LOWEST)
            holds = Arithmetic(emitter).compare("ne", scores, LOWEST)
        weights = softmax(emitter, scores, (3,), sink=sink)
        return weights if holds is None else emitter.select(holds, weights, emitter.number(0.0, shape))

    def _allowed(self, emitter: Emitter, counted: ir.Value, shape: Shape) -> ir.Value:
        """Which scores count, of all that a causal query reaches."""
        holds = emitter.broadcast(counted, shape)
        if not self.is_causal:
            return holds
        return emitter.upstream("arith.andi", holds, self._reached(emitter, shape))

    def _reached(self, emitter: Emitter, shape: Shape) -> ir.Value:
        keys = self.earlier if self.is_causal else shape[3]
        return emitter.broadcast(emitter.constant(np.tri(*shape[2:], k=keys, dtype=np.bool_)), shape)


def softmax(
    emitter: OpBuilder,
    value: ir.Value,
    axes: tuple[int, ...],
    *,
    is_logarithm: bool = False,
    beta: float = 1.0,
    in_order: bool = False,
    sink: ir.Value | None = None,
) -> ir.Value:
    """``e^(beta * d) * (1 / sum)`` over `axes`, with the distance d from the largest number, or the logarithm of that.

    ONNX Runtime multiplies by the reciprocal.  With `in_order` terms are added one after another, functions are those
    of a C library, and the sum divides.  A `sink` is one number more, of which there is no result.
    """
    s, largest = emitter.f32, reduced(emitter, F32MaxOp, value, axes)
    if sink is not None:
        largest = s("maximumf", largest, sink)
    distance = s("subf", value, largest)
    distance = distance if beta == 1 else s("mulf", distance, beta)
    raised = emitter.upstream("math.exp", distance, in_float64=in_order)
    total = ordered_sum(emitter, raised, axes) if in_order else blocked_sum(emitter, raised, axes)
    if sink is not None:
        total = s("addf", total, emitter.upstream("math.exp", s("subf", sink, largest)))
    if is_logarithm:
        return s("subf", distance, emitter.upstream("math.log", total, in_float64=in_order))
    return s("divf", raised, total) if in_order else s("mulf", raised, s("divf", 1.0, total))


def split_heads(emitter: Emitter, value: ir.Value, heads: int) -> ir.Value:
    """[B, S, N * D] as [B, N, S, D]."""
    batch, steps, width = shape_of(value.type)
    return emitter.transpose(emitter.reshape(value, (batch, steps, heads, width // heads)), (0, 2, 1, 3))


def joined_heads(emitter: Emitter, value: ir.Value) -> ir.Value:
    """[B, N, S, D] as [B, S, N * D]."""
    batch, heads, steps, width = shape_of(value.type)
    return emitter.reshape(emitter.transpose(value, (0, 2, 1, 3)), (batch, steps, heads * width))


def repeated_heads(emitter: Emitter, value: ir.Value, times: int) -> ir.Value:
    """[B, N, L, D] with each head repeated `times` times."""
    if times == 1:
        return value
    batch, heads, length, width = shape_of(value.type)
    spread = emitter.broadcast(
        emitter.reshape(value, (batch, heads, 1, length, width)), (batch, heads, times, length, width)
    )
    return emitter.reshape(spread, (batch, heads * times, length, width))
