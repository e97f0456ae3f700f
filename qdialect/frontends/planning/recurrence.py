"""Recurrent layers of a graph: the gates of a whole sequence by one product, then a cell over time, as ops.

Whoever reads a layer's description in another format gives `Cell`: the gates in the order of the dialect's ops, weights
with the gates last.  What no one reads of a layer is not computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import DynamicLstmOp, F32RecurrentOp, PadOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Array
from qdialect.frontends.planning.computation import Computation
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.f32_builder import F32Builder
from qdialect.frontends.planning.tensors import F32Tensor, Plan
from qdialect.frontends.slices import Slice, gather, take_slices


@dataclass(frozen=True)
class Cell:
    """One direction of a layer: an op, its attributes, and its constants."""

    op_class: type[F32RecurrentOp]
    bias: Array
    """[G * H], added to the gates of the sequence."""
    recurrence: Array
    """[H, G * H]."""
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    inner_bias: Array | None = None
    """[H], of a unit that resets after its product."""

    @property
    def hidden(self) -> int:
        """H."""
        return self.recurrence.shape[0]

    @property
    def is_reverse(self) -> bool:
        """Whether time runs backwards."""
        return bool(self.attributes.get("reverse"))

    def states(self, emitter: Emitter, gates: ir.Value, start: ir.Value) -> ir.Value:
        """The states [T + 1, B, S * H] for gates [T, B, G * H] and initial states [B, S * H]."""
        inner = [] if self.inner_bias is None else [emitter.constant(self.inner_bias)]
        weights = emitter.constant(self.recurrence)
        return emitter.build(self.op_class, gates, weights, start, *inner, element="f32", **self.attributes)


@dataclass(frozen=True, kw_only=True)
class DynamicLstmCell(Cell):
    """A direction whose hidden state is quantized in each time step; `recurrence` is i8 or ui8."""

    scales: Array
    """[G * H], of the weights."""

    def states(self, emitter: Emitter, gates: ir.Value, start: ir.Value) -> ir.Value:
        """As `Cell.states`."""
        weights, scales = emitter.constant(self.recurrence), emitter.constant(self.scales)
        return emitter.build(DynamicLstmOp, gates, weights, start, scales, element="f32", **self.attributes)


@dataclass(frozen=True, eq=False)
class States(F32Tensor):
    """The states [T + 1, B, S * H] of a direction, as the op orders them.

    Sequences of several `lengths` run by themselves; what follows the end of a shorter one is 0.  Its row of initial
    states is the first, or with time running backwards the one after its last step.
    """

    products: F32Tensor
    """[T, B, G * H]: the sequence times the weights."""
    initial: tuple[F32Tensor, ...]
    """Of each state [B, H]."""
    cell: Cell
    lengths: tuple[int, ...]
    """Of each of the B sequences."""

    @classmethod
    def of(cls, products: F32Tensor, initial: tuple[F32Tensor, ...], cell: Cell, lengths: tuple[int, ...]) -> States:
        """The states of a cell over `products`."""
        steps, batch, _ = products.shape
        return cls((steps + 1, batch, cell.op_class.state_count * cell.hidden), products, initial, cell, lengths)

    def _f32(self, plan: Plan, name: str) -> Value:
        products = self.products.f32(plan, name)
        initial = [state.f32(plan, name) for state in self.initial]

        def emit(emitter: Emitter) -> Emitted:
            sums = emitter.to_channels_first(products)
            gates = F32Builder(emitter, shape_of(sums.type))("addf", sums, emitter.constant(self.cell.bias))
            starts = [emitter.to_channels_first(state) for state in initial]
            start = starts[0] if len(starts) == 1 else emitter.concatenate(starts, 1)
            return self._run(emitter, gates, start), False

        return plan.compute(name, self.shape, "f32", emit)

    def _run(self, emitter: Emitter, gates: ir.Value, start: ir.Value) -> ir.Value:
        known = sorted(set(self.lengths))
        if known == [self.products.shape[0]]:
            return self.cell.states(emitter, gates, start)
        members = [[i for i, length in enumerate(self.lengths) if length == one] for one in known]
        parts = [
            self._shorter(emitter, gather(emitter, gates, 1, who), gather(emitter, start, 0, who), length)
            for length, who in zip(known, members, strict=True)
        ]
        joined = emitter.concatenate(parts, 1) if len(parts) > 1 else parts[0]
        order = [i for who in members for i in who]
        return gather(emitter, joined, 1, [order.index(i) for i in range(len(order))])

    def _shorter(self, emitter: Emitter, gates: ir.Value, start: ir.Value, length: int) -> ir.Value:
        _, batch, width = shape_of(gates.type)
        first = take_slices(emitter, gates, (Slice(0, 1, length), Slice(0, 1, batch), Slice(0, 1, width)))
        states = self.cell.states(emitter, first, start)
        missing = self.shape[0] - 1 - length
        if not missing:
            return states
        return emitter.build(PadOp, states, element="f32", low=(0, 0, 0), high=(missing, 0, 0), value=0)


def sequence_of(states: tuple[States, ...]) -> Computation:
    """The hidden states after each time step: [T, D, B, H] for D directions."""
    steps, batch, hidden = states[0].shape[0] - 1, states[0].shape[1], states[0].cell.hidden

    def take(emitter: Emitter, values: Sequence[ir.Value]) -> ir.Value:
        parts: list[ir.Value] = []
        for one, value in zip(states, values, strict=True):
            rows = Slice(0 if one.cell.is_reverse else 1, 1, steps)
            part = take_slices(emitter, value, (rows, Slice(0, 1, batch), Slice(0, 1, hidden)))
            parts.append(emitter.reshape(_finished(emitter, one, part), (steps, 1, batch, hidden)))
        return parts[0] if len(parts) == 1 else emitter.concatenate(parts, 1)

    return Computation((steps, len(states), batch, hidden), states, take)


def _finished(emitter: Emitter, states: States, rows: ir.Value) -> ir.Value:
    """0 from the end of each sequence on, where initial states stand with time running backwards."""
    steps, batch, _ = shape_of(rows.type)
    if not states.cell.is_reverse or set(states.lengths) == {steps}:
        return rows
    mask = (np.arange(steps)[:, None] < np.array(states.lengths)).astype(np.float32)
    return F32Builder(emitter, shape_of(rows.type))("mulf", rows, emitter.constant(mask.reshape(steps, batch, 1)))


def last_of(states: tuple[States, ...], state: int) -> Computation:
    """One of the states after the last time step of each sequence: [D, B, H]."""
    batch, hidden = states[0].shape[1], states[0].cell.hidden

    def take(emitter: Emitter, values: Sequence[ir.Value]) -> ir.Value:
        parts = [
            emitter.reshape(_last_row(emitter, one, value, state), (1, batch, hidden))
            for one, value in zip(states, values, strict=True)
        ]
        return parts[0] if len(parts) == 1 else emitter.concatenate(parts, 0)

    return Computation((len(states), batch, hidden), states, take)


def _last_row(emitter: Emitter, states: States, value: ir.Value, state: int) -> ir.Value:
    """[1, B, H]"""
    batch, hidden = states.shape[1], states.cell.hidden
    columns = Slice(state * hidden, 1, hidden)
    rows = [0 if states.cell.is_reverse else length for length in states.lengths]
    if len(set(rows)) == 1:
        return take_slices(emitter, value, (Slice(rows[0], 1, 1), Slice(0, 1, batch), columns))
    parts = [take_slices(emitter, value, (Slice(row, 1, 1), Slice(i, 1, 1), columns)) for i, row in enumerate(rows)]
    return emitter.concatenate(parts, 1)
