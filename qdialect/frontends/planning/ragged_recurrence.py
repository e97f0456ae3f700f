"""Recurrent layers whose sequences have lengths that are known at run time alone.

Every cell runs forwards over all time steps.  A sequence that runs backwards is reversed within its length before
the cell and after it; what follows the end of a sequence is 0, and its last states are those after its last step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import DynamicGatherOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.planning.computation import Computation
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.recurrence import States
from qdialect.frontends.planning.tensors import Computed, F32Tensor, Plan
from qdialect.frontends.slices import Slice, take_slices

# Of arith.cmpi: less, of signed integers.
_LESS = 2


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

        def take(emitter: Emitter, values: Sequence[ir.Value]) -> ir.Value:
            parts = [
                emitter.reshape(self._hidden(emitter, value, hidden, backwards), shape)
                for value, backwards in zip(values, is_reverse, strict=True)
            ]
            return parts[0] if len(parts) == 1 else emitter.concatenate(parts, 1)

        return Computation((self.steps, len(states), self.batch, hidden), tuple(states), take)

    def last_of(self, states: Sequence[States], state: int) -> Computation:
        """One of the states after the last time step of each sequence: [D, B, H]."""
        hidden = states[0].cell.hidden

        def take(emitter: Emitter, values: Sequence[ir.Value]) -> ir.Value:
            parts = [self._last(emitter, value, state * hidden, hidden) for value in values]
            return parts[0] if len(parts) == 1 else emitter.concatenate(parts, 0)

        return Computation((len(states), self.batch, hidden), tuple(states), take)

    def _hidden(self, emitter: Emitter, states: ir.Value, hidden: int, backwards: bool) -> ir.Value:
        """[T, B, H], 0 from the end of each sequence on."""
        rows = take_slices(emitter, states, (Slice(1, 1, self.steps), Slice(0, 1, self.batch), Slice(0, 1, hidden)))
        found = self._turned(emitter, rows) if backwards else rows
        is_inside = emitter.compare(_LESS, self._times(emitter), self._spread(emitter))
        shape = shape_of(found.type)
        inside = emitter.broadcast(emitter.reshape(is_inside, (*shape[:2], 1)), shape)
        return emitter.select(inside, found, emitter.number(0.0, shape))

    def _last(self, emitter: Emitter, states: ir.Value, first: int, hidden: int) -> ir.Value:
        """[1, B, H] of the columns from `first` on, 0 for an empty sequence."""
        rows = self._rows(emitter, states, self._at(emitter, emitter.to_channels_first(self.lengths)))
        columns = take_slices(emitter, rows, (Slice(0, 1, self.batch), Slice(first, 1, hidden)))
        lengths, shape = emitter.to_channels_first(self.lengths), (self.batch, hidden)
        has_steps = emitter.compare(_LESS, _all(emitter, 0, (self.batch,)), lengths)
        inside = emitter.broadcast(emitter.reshape(has_steps, (self.batch, 1)), shape)
        return emitter.reshape(emitter.select(inside, columns, emitter.number(0.0, shape)), (1, *shape))

    def _turned(self, emitter: Emitter, rows: ir.Value) -> ir.Value:
        last = _less(emitter, self._spread(emitter), _all(emitter, 1, (self.steps, self.batch)))
        back = _less(emitter, last, self._times(emitter))
        inside = emitter.upstream("arith.maxsi", "i32", back, _all(emitter, 0, (self.steps, self.batch)))
        return self._rows(emitter, rows, self._at(emitter, inside))

    def _rows(self, emitter: Emitter, value: ir.Value, indices: ir.Value) -> ir.Value:
        """Of [T, B, W], the rows at indices of T * B rows."""
        steps, batch, width = shape_of(value.type)
        flat = emitter.reshape(value, (steps * batch, width))
        return emitter.build(DynamicGatherOp, flat, indices, element="f32", axis=0)

    def _at(self, emitter: Emitter, times: ir.Value) -> ir.Value:
        """The indices of rows of T * B at times [..., B] of each sequence."""
        shape = shape_of(times.type)
        who = emitter.constant(np.broadcast_to(np.arange(self.batch, dtype=np.int32), shape))
        scaled = emitter.upstream("arith.muli", "i32", times, _all(emitter, self.batch, shape))
        return emitter.upstream("arith.addi", "i32", scaled, who)

    def _times(self, emitter: Emitter) -> ir.Value:
        times = np.arange(self.steps, dtype=np.int32)[:, np.newaxis]
        return emitter.constant(np.broadcast_to(times, (self.steps, self.batch)))

    def _spread(self, emitter: Emitter) -> ir.Value:
        """The lengths, for each time step."""
        row = emitter.reshape(emitter.to_channels_first(self.lengths), (1, self.batch))
        return emitter.broadcast(row, (self.steps, self.batch))


def _less(emitter: Emitter, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    return emitter.upstream("arith.subi", "i32", lhs, rhs)


def _all(emitter: Emitter, number: int, shape: tuple[int, ...]) -> ir.Value:
    return emitter.constant(np.full(shape, number, np.int32))
