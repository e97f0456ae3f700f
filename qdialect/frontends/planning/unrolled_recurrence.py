"""Recurrent cells that no op has: time steps one after the other, of a product and float ops each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import F32GruOp, F32LstmOp, F32MatmulOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Array
from qdialect.frontends.planning.emitter import Emitter
from qdialect.frontends.planning.f32_builder import F32Builder
from qdialect.frontends.planning.recurrence import Cell
from qdialect.frontends.slices import Slice, take_slices
from qdialect.quant_math.expressions import Expression

MAX_STEPS = 256
"""Of a sequence whose time steps are ops of their own."""


@dataclass(frozen=True)
class UnrolledCell(Cell):
    """A cell with any functions; an LSTM perhaps with peepholes and with a forget gate that the input gate decides."""

    functions: tuple[Expression, ...] = ()
    """f, g and h of ONNX's formulas, as many as the operator has."""
    peepholes: Array | None = None
    """[3 * H]: what the gates i, f and o see of the cell state."""
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
        self._s = F32Builder(emitter, (self._batch, self._width))
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
