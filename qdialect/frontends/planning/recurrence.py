"""Recurrent layers of a graph: the gates of a whole sequence by one product, then a cell over time, as ops.

Whoever reads a layer's description in another format gives `Cell`: the gates in the order of the dialect's ops, weights
with the gates last.  What no one reads of a layer is not computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qdialect.arithmetic.expressions import Expression
from qdialect.dialect import DynamicGatherOp, DynamicLstmOp, F32GruOp, F32LstmOp, F32MatmulOp, F32RecurrentOp, PadOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import Array, Shape
from qdialect.frontends.building.op_builder import Arithmetic
from qdialect.frontends.building.slices import Slice, gather, take_slices
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import Computation, Computed, F32Tensor, Plan
from qdialect.ir._mlir import ir


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

    Sequences of several `lengths` run separately; values after the end of a shorter one are 0.  Its row of initial
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
            gates = emitter.f32("addf", sums, emitter.constant(self.cell.bias))
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


def _beside(
    states: Sequence[States], shape: Shape, axis: int, part: Callable[[Emitter, int, ir.Value], ir.Value]
) -> Computation:
    """What `part` makes of the states of each direction, by its index: of `shape`, side by side along `axis`."""

    def take(emitter: Emitter, values: Sequence[ir.Value]) -> ir.Value:
        return emitter.concatenate([emitter.reshape(part(emitter, *one), shape) for one in enumerate(values)], axis)

    return Computation((*shape[:axis], len(states), *shape[axis + 1 :]), tuple(states), take)


def sequence_of(states: tuple[States, ...]) -> Computation:
    """The hidden states after each time step: [T, D, B, H] for D directions."""
    steps, batch, hidden = states[0].shape[0] - 1, states[0].shape[1], states[0].cell.hidden

    def part(emitter: Emitter, index: int, value: ir.Value) -> ir.Value:
        rows = Slice(0 if states[index].cell.is_reverse else 1, 1, steps)
        taken = take_slices(emitter, value, (rows, Slice(0, 1, batch), Slice(0, 1, hidden)))
        return _finished(emitter, states[index], taken)

    return _beside(states, (steps, 1, batch, hidden), 1, part)


def _finished(emitter: Emitter, states: States, rows: ir.Value) -> ir.Value:
    """0 from the end of each sequence on, where initial states stand with time running backwards."""
    steps, batch, _ = shape_of(rows.type)
    if not states.cell.is_reverse or set(states.lengths) == {steps}:
        return rows
    mask = (np.arange(steps)[:, None] < np.array(states.lengths)).astype(np.float32)
    return emitter.f32("mulf", rows, emitter.constant(mask.reshape(steps, batch, 1)))


def last_of(states: tuple[States, ...], state: int) -> Computation:
    """One of the states after the last time step of each sequence: [D, B, H]."""
    shape = (1, states[0].shape[1], states[0].cell.hidden)
    return _beside(states, shape, 0, lambda emitter, index, value: _last_row(emitter, states[index], value, state))


def _last_row(emitter: Emitter, states: States, value: ir.Value, state: int) -> ir.Value:
    """[1, B, H]"""
    batch, hidden = states.shape[1], states.cell.hidden
    columns = Slice(state * hidden, 1, hidden)
    rows = [0 if states.cell.is_reverse else length for length in states.lengths]
    if len(set(rows)) == 1:
        return take_slices(emitter, value, (Slice(rows[0], 1, 1), Slice(0, 1, batch), columns))
    parts = [take_slices(emitter, value, (Slice(row, 1, 1), Slice(i, 1, 1), columns)) for i, row in enumerate(rows)]
    return emitter.concatenate(parts, 1)


# Recurrent layers whose sequences have lengths that are known at run time alone.
#
# Every cell runs forwards over all time steps.  A sequence that runs backwards is reversed within its length before
# the cell and after it; values after the end of a sequence are 0, and its last states are those after its last step.


@dataclass(frozen=True)
class Ragged:
    """The lengths of B sequences within T time steps: i32 of shape [B]."""

    lengths: Value
    steps: int

    @property
    def batch(self) -> int:
        """B."""
        return self.lengths.shape[0]

    def reversed(self, plan: Plan, name: str, sequence: F32Tensor) -> Computed:
        """[T, B, W] with each sequence backwards within its length."""
        value = sequence.f32(plan, name)

        def emit(emitter: Emitter) -> Emitted:
            return self._turned(emitter, emitter.to_channels_first(value)), False

        return Computed(sequence.shape, plan.compute(name, sequence.shape, "f32", emit))

    def sequence_of(self, states: Sequence[States], is_reverse: Sequence[bool]) -> Computation:
        """The hidden states after each time step: [T, D, B, H] for D directions."""
        hidden = states[0].cell.hidden
        shape = (self.steps, 1, self.batch, hidden)
        return _beside(
            states, shape, 1, lambda emitter, index, value: self._hidden(emitter, value, hidden, is_reverse[index])
        )

    def last_of(self, states: Sequence[States], state: int) -> Computation:
        """One of the states after the last time step of each sequence: [D, B, H]."""
        hidden = states[0].cell.hidden
        shape = (1, self.batch, hidden)
        return _beside(states, shape, 0, lambda emitter, _, value: self._last(emitter, value, state * hidden, hidden))

    def _hidden(self, emitter: Emitter, states: ir.Value, hidden: int, backwards: bool) -> ir.Value:
        """[T, B, H], 0 from the end of each sequence on."""
        rows = take_slices(emitter, states, (Slice(1, 1, self.steps), Slice(0, 1, self.batch), Slice(0, 1, hidden)))
        found = self._turned(emitter, rows) if backwards else rows
        is_inside = emitter.compare("lt", self._times(emitter), self._spread(emitter))
        shape = shape_of(found.type)
        inside = emitter.broadcast(emitter.reshape(is_inside, (*shape[:2], 1)), shape)
        return emitter.select(inside, found, 0.0)

    def _last(self, emitter: Emitter, states: ir.Value, first: int, hidden: int) -> ir.Value:
        """[1, B, H] of the columns from `first` on, 0 for an empty sequence."""
        rows = self._rows(emitter, states, self._at(emitter, emitter.to_channels_first(self.lengths)))
        columns = take_slices(emitter, rows, (Slice(0, 1, self.batch), Slice(first, 1, hidden)))
        lengths, shape = emitter.to_channels_first(self.lengths), (self.batch, hidden)
        has_steps = emitter.compare("gt", lengths, 0)
        inside = emitter.broadcast(emitter.reshape(has_steps, (self.batch, 1)), shape)
        return emitter.reshape(emitter.select(inside, columns, 0.0), (1, *shape))

    def _turned(self, emitter: Emitter, rows: ir.Value) -> ir.Value:
        s = Arithmetic(emitter)
        back = s.op("arith.subi", s.op("arith.subi", self._spread(emitter), 1), self._times(emitter))
        return self._rows(emitter, rows, self._at(emitter, s.op("arith.maxsi", back, 0)))

    def _rows(self, emitter: Emitter, value: ir.Value, indices: ir.Value) -> ir.Value:
        """Of [T, B, W], the rows at indices of T * B rows."""
        steps, batch, width = shape_of(value.type)
        flat = emitter.reshape(value, (steps * batch, width))
        return emitter.build(DynamicGatherOp, flat, indices, element="f32", axis=0)

    def _at(self, emitter: Emitter, times: ir.Value) -> ir.Value:
        """The indices of rows of T * B at times [..., B] of each sequence."""
        shape = shape_of(times.type)
        who = emitter.constant(np.broadcast_to(np.arange(self.batch, dtype=np.int32), shape))
        s = Arithmetic(emitter)
        return s.op("arith.addi", s.op("arith.muli", times, self.batch), who)

    def _times(self, emitter: Emitter) -> ir.Value:
        times = np.arange(self.steps, dtype=np.int32)[:, np.newaxis]
        return emitter.constant(np.broadcast_to(times, (self.steps, self.batch)))

    def _spread(self, emitter: Emitter) -> ir.Value:
        """The lengths, for each time step."""
        row = emitter.reshape(emitter.to_channels_first(self.lengths), (1, self.batch))
        return emitter.broadcast(row, (self.steps, self.batch))


# Recurrent cells that no op has: time steps one after the other, of a product and float ops each.

MAX_STEPS = 256
"""Of a sequence whose time steps are ops of their own."""


@dataclass(frozen=True)
class UnrolledCell(Cell):
    """A cell with any functions; an LSTM perhaps with peepholes and with a forget gate that the input gate decides."""

    functions: tuple[Expression, ...] = ()
    """f, g and h of ONNX's formulas, or those of them that the operator has."""
    peepholes: Array | None = None
    """[3 * H]: factors of the cell state in the gates i, f and o."""
    is_coupled: bool = False
    """Whether the forget gate is ``1 - i``."""

    def states(self, emitter: Emitter, gates: ir.Value, start: ir.Value) -> ir.Value:
        """As `Cell.states`."""
        steps, batch, width = shape_of(gates.type)
        rows = [start]
        for t in range(steps - 1, -1, -1) if self.is_reverse else range(steps):
            slices = (Slice(t, 1, 1), Slice(0, 1, batch), Slice(0, 1, width))
            row = emitter.reshape(take_slices(emitter, gates, slices), (batch, width))
            rows.append(self._step(emitter, row, rows[-1]))
        ordered = rows[::-1] if self.is_reverse else rows
        return emitter.concatenate([emitter.reshape(row, (1, *shape_of(row.type))) for row in ordered], 0)

    def _step(self, emitter: Emitter, gates: ir.Value, before: ir.Value) -> ir.Value:
        step = _Step(self, emitter, gates, before)
        if self.op_class is F32LstmOp:
            return step.lstm()
        return step.gru() if self.op_class is F32GruOp else step.rnn()


class _Step:
    """One time step of a cell: gates [B, G * H] of the sequence and the states [B, S * H] before."""

    def __init__(self, cell: UnrolledCell, emitter: Emitter, gates: ir.Value, before: ir.Value) -> None:
        self._cell, self._emitter, self._gates = cell, emitter, gates
        self._batch, self._width = shape_of(gates.type)[0], cell.hidden
        self._s = emitter.f32
        self._before = [self._columns(before, index) for index in range(cell.op_class.state_count)]

    def lstm(self) -> ir.Value:
        """``c' = f(f) * c + f(i) * g(g)`` and ``h' = f(o) * h(c')``."""
        s, (hidden, before) = self._s, self._before
        f, g, h = self._cell.functions
        i, forget, candidate, o = (self._sum(hidden, index) for index in range(4))
        taken = self._of(f, self._seen(i, 0, before))
        kept = s("subf", 1.0, taken) if self._cell.is_coupled else self._of(f, self._seen(forget, 1, before))
        after = s("addf", s("mulf", kept, before), s("mulf", taken, self._of(g, candidate)))
        given = self._of(f, self._seen(o, 2, after))
        return self._emitter.concatenate([s("mulf", given, self._emitter.expression(h, after)), after], 1)

    def gru(self) -> ir.Value:
        """``h' = (1 - z) * n + z * h``."""
        s, (hidden,) = self._s, self._before
        f, g = self._cell.functions
        z, r = (self._of(f, self._sum(hidden, index)) for index in range(2))
        n = self._of(g, self._reset(r, hidden))
        return s("addf", s("mulf", s("subf", 1.0, z), n), s("mulf", z, hidden))

    def rnn(self) -> ir.Value:
        """``h' = f(gate)``."""
        return self._of(self._cell.functions[0], self._sum(self._before[0], 0))

    def _reset(self, r: ir.Value, hidden: ir.Value) -> ir.Value:
        """The gate n, whose products are those of ``r * h``, or r times those of h."""
        s, own = self._s, self._columns(self._gates, 2)
        if not self._cell.attributes.get("reset_after"):
            return s("addf", self._product(s("mulf", r, hidden), 2), own)
        inner, bias = self._product(hidden, 2), self._cell.inner_bias
        if bias is not None:
            inner = s("addf", inner, self._emitter.constant(bias))
        return s("addf", s("mulf", r, inner), own)

    def _sum(self, hidden: ir.Value, gate: int) -> ir.Value:
        return self._s("addf", self._product(hidden, gate), self._columns(self._gates, gate))

    def _product(self, rows: ir.Value, gate: int) -> ir.Value:
        """`rows` times the columns of a gate."""
        own = self._cell.recurrence[:, gate * self._width : (gate + 1) * self._width]
        matrix = self._emitter.constant(np.ascontiguousarray(own))
        return self._emitter.build(F32MatmulOp, rows, matrix, element="f32")

    def _seen(self, gate: ir.Value, index: int, state: ir.Value) -> ir.Value:
        if self._cell.peepholes is None:
            return gate
        own = self._cell.peepholes[index * self._width : (index + 1) * self._width]
        return self._s("addf", gate, self._s("mulf", self._emitter.constant(own), state))

    def _of(self, function: Expression, gate: ir.Value) -> ir.Value:
        clip: float = self._cell.attributes.get("clip", 0.0)
        limited = self._s("minimumf", self._s("maximumf", gate, -clip), clip) if clip > 0 else gate
        return self._emitter.expression(function, limited)

    def _columns(self, value: ir.Value, index: int) -> ir.Value:
        slices = (Slice(0, 1, self._batch), Slice(index * self._width, 1, self._width))
        return take_slices(self._emitter, value, slices)
