"""Recurrent cells over a sequence, in float32: the product of the sequence with the input weights is computed before.

The gates of all time steps, ``x W + b``, are an operand, so that one contraction computes them for the whole sequence;
the op adds the products with the hidden state.  Sums are taken as in `f32_matmul`, the part of the sequence is added
last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from qdialect.arithmetic.recurrence import CellActivation
from qdialect.dialect.fields import BOOL, F64, INTEGERS, attribute, choice, operand, optional_operand, result
from qdialect.dialect.op_base import QnnOp, Shape, check_channel_parameters, check_zero_points, require
from qdialect.dialect.type_constraints import FLOAT_1D, FLOAT_2D, FLOAT_3D, WEIGHT_2D, shape_of

_ACTIVATION = choice(CellActivation)


class F32RecurrentOp(QnnOp):
    """The states [T + 1, B, S * H] of a cell over T time steps; the S states of a cell lie side by side.

    `gates` are [T, B, G * H] with the G gates side by side, `recurrence` [H, G * H], `initial` [B, S * H].  Row 0 of
    the result is `initial` and row t + 1 follows time step t; with `reverse` row T is `initial` and row t follows
    step t.  A `clip` above 0 limits each gate to [-clip, clip].

    Constraints:
      C1: recurrence must be [H, G * H] for the gates' last extent
      C2: initial must be [B, S * H]
      C3: clip must be at least 0
    """

    gate_count: ClassVar[int]
    """G."""
    state_count: ClassVar[int]
    """S."""
    gates = operand(FLOAT_3D)
    recurrence = operand(FLOAT_2D)
    initial = operand(FLOAT_2D)
    reverse = attribute(BOOL, False)
    clip = attribute(F64, 0.0)
    output = result(FLOAT_3D)

    @classmethod
    def infer_shape(cls, shapes: Sequence[Shape], attributes: Mapping[str, Any]) -> Shape:
        (steps, batch, width), recurrence, initial = shapes[:3]
        hidden = recurrence[0]
        holds = recurrence[1] == width == cls.gate_count * hidden
        wanted = f"recurrence must be [H, {cls.gate_count} * H] for {width} gates"
        require(holds, "C1", f"{wanted}, but got {list(recurrence)}")
        wanted_initial = [batch, cls.state_count * hidden]
        require(list(initial) == wanted_initial, "C2", f"initial must be {wanted_initial}, but got {list(initial)}")
        return (steps + 1, batch, cls.state_count * hidden)

    def check(self) -> None:
        require(self.clip >= 0, "C3", f"clip must be at least 0, but got {self.clip}")

    @property
    def hidden(self) -> int:
        """H."""
        return shape_of(self.recurrence.type)[0]


class LstmOp(F32RecurrentOp):
    """Long short-term memory: gates i, f, g and o, states h and c.

    ``c' = f(f) * c + f(i) * g(g)`` and ``h' = f(o) * h(c')`` with `gate_activation` f, `cell_activation` g and
    `output_activation` h.
    """

    gate_count, state_count = 4, 2
    gate_activation = attribute(_ACTIVATION, CellActivation.SIGMOID)
    cell_activation = attribute(_ACTIVATION, CellActivation.TANH)
    output_activation = attribute(_ACTIVATION, CellActivation.TANH)


class F32LstmOp(LstmOp, name="f32_lstm"):
    """The products with the hidden state are those of float32 numbers."""


class DynamicLstmOp(LstmOp, name="dynamic_lstm"):
    """The hidden state is quantized to 8 bits in each time step, and multiplied by quantized weights.

    Its scale s and zero point z are those of the range of all of its numbers and 0, as of DynamicQuantizeLinear; NaN
    becomes a bound.  Gate n gets ``float32(acc) * (s * scales[n])`` with the int32 sum ``acc``, modulo 2^32, of
    ``(q - z) * (recurrence[k, n] - weight_zero_points[n])``.

    Constraints:
      C4: scales must have 4 * H entries
      C5: weight_zero_points must have 1 entry or one for each of the 4 * H columns, in the range of recurrence
    """

    recurrence = operand(WEIGHT_2D)
    scales = operand(FLOAT_1D)
    weight_zero_points = attribute(INTEGERS, (0,))

    def check(self) -> None:
        super().check()
        entries, wanted = shape_of(self.scales.type)[0], self.gate_count * self.hidden
        require(entries == wanted, "C4", f"scales must have {wanted} entries, but got {entries}")
        check_channel_parameters("C5", wanted, weight_zero_points=self.weight_zero_points)
        check_zero_points("C5", "weight_zero_points", self.weight_zero_points, self.recurrence.type)


class F32GruOp(F32RecurrentOp, name="f32_gru"):
    """Gated recurrent unit: gates z, r and n, state h.

    ``h' = (1 - z) * n + z * h`` with `gate_activation` of z and r and `cell_activation` of n.  The products of n are
    formed with ``r * h``.  With `reset_after` they are formed with h, `bias` [H] is added, and the sum is multiplied by
    r.

    Constraints:
      C4: bias must have H entries, and is allowed only with reset_after
    """

    gate_count, state_count = 3, 1
    gate_activation = attribute(_ACTIVATION, CellActivation.SIGMOID)
    cell_activation = attribute(_ACTIVATION, CellActivation.TANH)
    reset_after = attribute(BOOL, False)
    bias = optional_operand(FLOAT_1D)

    def check(self) -> None:
        super().check()
        if self.bias is None:
            return
        require(self.reset_after, "C4", "bias must stand with reset_after")
        entries = shape_of(self.bias.type)[0]
        require(entries == self.hidden, "C4", f"bias must have {self.hidden} entries, but got {entries}")


class F32RnnOp(F32RecurrentOp, name="f32_rnn"):
    """Simple recurrent cell: one gate, state ``h' = activation(gate)``."""

    gate_count, state_count = 1, 1
    activation = attribute(_ACTIVATION, CellActivation.TANH)
