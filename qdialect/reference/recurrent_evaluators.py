"""Evaluators of recurrent cells: one time step after the other, every operation rounded to float32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qdialect.dialect import F32GruOp, F32LstmOp, F32RecurrentOp, F32RnnOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.quant_math.float32.numpy_machine import multiply_add
from qdialect.quant_math.recurrence import (
    gate_function,
    gru_hidden,
    lstm_cell,
    lstm_hidden,
    rounded_state,
    state_point,
    state_scale,
)
from qdialect.reference.evaluators import Array, Arrays, evaluates

Step = Callable[[Array, Array], Array]
"""(gates [B, G * H], state before [B, S * H]) -> state after."""


@evaluates(F32LstmOp)
def _lstm(op: F32LstmOp, operands: Arrays) -> Array:
    gate, candidate = gate_function(op.gate_activation, op.clip), gate_function(op.cell_activation, op.clip)
    recurrence, width = operands[1], op.hidden
    scales = operands[3] if len(operands) > 3 else None

    def step(gates: Array, state: Array) -> Array:
        hidden, cell = state[:, :width], state[:, width:]
        own = product(hidden, recurrence) if scales is None else _rounded_product(hidden, recurrence, scales)
        i, f, g, o = np.split(own + gates, 4, axis=1)
        after = lstm_cell(gate, candidate).in_kernel(i, f, g, cell)
        return np.concatenate([lstm_hidden(gate, op.output_activation).in_kernel(o, after), after], axis=1)

    return _states(op, operands, step)


@evaluates(F32GruOp)
def _gru(op: F32GruOp, operands: Arrays) -> Array:
    gate, candidate = gate_function(op.gate_activation, op.clip), gate_function(op.cell_activation, op.clip)
    recurrence, width = operands[1], op.hidden
    bias = operands[3] if len(operands) > 3 else np.zeros(width, np.float32)

    def step(gates: Array, state: Array) -> Array:
        z, r = (
            gate.in_kernel(one)
            for one in np.split(product(state, recurrence[:, : 2 * width]) + gates[:, : 2 * width], 2, axis=1)
        )
        own, last = gates[:, 2 * width :], recurrence[:, 2 * width :]
        inner = r * (product(state, last) + bias) if op.reset_after else product(r * state, last)
        return gru_hidden(candidate).in_kernel(z, inner + own, state)

    return _states(op, operands, step)


@evaluates(F32RnnOp)
def _rnn(op: F32RnnOp, operands: Arrays) -> Array:
    gate = gate_function(op.activation, op.clip)
    return _states(op, operands, lambda gates, state: gate.in_kernel(product(state, operands[1]) + gates))


def product(rows: Array, matrix: Array) -> Array:
    """``rows @ matrix`` in float32: fused multiply-adds in ascending order from zero."""
    total = np.zeros((rows.shape[0], matrix.shape[1]), np.float32)
    for k in range(matrix.shape[0]):
        total = multiply_add(rows[:, k, np.newaxis], matrix[k], total)
    return total


def _rounded_product(rows: Array, matrix: Array, scales: Array) -> Array:
    """The same of rows that are quantized by their range, whose products with whole numbers are scaled."""
    zero = np.float32(0)
    low, high = np.minimum(rows.min(), zero), np.maximum(rows.max(), zero)
    scale = state_scale()(low, high)
    rounded = rounded_state()(rows, scale, state_point()(low, scale))
    return product(rounded, matrix) * (scale * scales)


def _states(op: F32RecurrentOp, operands: Arrays, step: Step) -> Array:
    gates, _, initial = operands[:3]
    states = np.empty(shape_of(op.output.type), np.float32)
    steps = gates.shape[0]
    order = range(steps - 1, -1, -1) if op.reverse else range(steps)
    before, after = (1, 0) if op.reverse else (0, 1)
    states[steps if op.reverse else 0] = initial
    with np.errstate(all="ignore"):
        for t in order:
            states[t + after] = step(gates[t], states[t + before])
    return states
