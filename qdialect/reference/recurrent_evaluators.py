"""Evaluators of recurrent cells: one time step after the other, every operation rounded to float32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qdialect.arithmetic.machine import multiply_add
from qdialect.arithmetic.recurrence import (
    gate_function,
    gru_hidden,
    lstm_cell,
    lstm_hidden,
    quantized_state,
    state_point,
    state_product,
    state_scale,
)
from qdialect.dialect import DynamicLstmOp, F32GruOp, F32LstmOp, F32RecurrentOp, F32RnnOp
from qdialect.dialect.recurrent_ops import LstmOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.reference.evaluators import Array, Arrays, evaluates

Step = Callable[[Array, Array], Array]
"""(gates [B, G * H], state before [B, S * H]) -> state after."""


@evaluates(F32LstmOp)
def _lstm(op: F32LstmOp, operands: Arrays) -> Array:
    return _states(op, operands, _lstm_step(op, lambda hidden, gates: product(hidden, operands[1]) + gates))


@evaluates(DynamicLstmOp)
def _dynamic_lstm(op: DynamicLstmOp, operands: Arrays) -> Array:
    _, recurrence, _, scales = operands
    weights = recurrence.astype(np.int64) - np.array(op.weight_zero_points)
    return _states(op, operands, _lstm_step(op, lambda hidden, gates: _quantized_sum(hidden, weights, scales, gates)))


def _lstm_step(op: LstmOp, sums: Step) -> Step:
    """A step whose gates are `sums` of the hidden state before and of what the sequence gives to them."""
    gate, candidate = gate_function(op.gate_activation, op.clip), gate_function(op.cell_activation, op.clip)

    def step(gates: Array, state: Array) -> Array:
        hidden, cell = state[:, : op.hidden], state[:, op.hidden :]
        i, f, g, o = np.split(sums(hidden, gates), 4, axis=1)
        after = lstm_cell(gate, candidate).in_kernel(i, f, g, cell)
        return np.concatenate([lstm_hidden(gate, op.output_activation).in_kernel(o, after), after], axis=1)

    return step


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


def _quantized_sum(hidden: Array, weights: Array, scales: Array, gates: Array) -> Array:
    """The gates of a hidden state that is quantized by its range, with int64 weights less their zero points."""
    zero = np.float32(0)
    low, high = np.minimum(hidden.min(), zero), np.maximum(hidden.max(), zero)
    scale = state_scale()(low, high)
    point = state_point()(low, scale)
    offsets = quantized_state()(hidden, scale, point).astype(np.int64) - np.int64(point)
    total = (offsets @ weights).astype(np.uint64).astype(np.uint32).view(np.int32)
    return state_product()(total.astype(np.float32), scale, scales, gates)


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
