"""Recurrent cells of float32: one kernel with a loop over time, each step a product with the hidden state and maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qdialect.dialect import F32GruOp, F32LstmOp, F32RnnOp
from qdialect.lowering.graph import GraphLowering, lowers
from qdialect.lowering.kernels.expression import emit_expression
from qdialect.lowering.kernels.time_steps import TimeSteps, columns_from
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.quant_math.recurrence import gate_function, gru_hidden, lstm_cell, lstm_hidden


@lowers(F32LstmOp)
def _lstm(lowering: GraphLowering, op: F32LstmOp) -> None:
    steps = TimeSteps(lowering, op)
    gate, candidate = gate_function(op.gate_activation, op.clip), gate_function(op.cell_activation, op.clip)
    hidden, sums = op.hidden, steps.scratch("sums", 4 * op.hidden)

    def cell(body: Body, values: Sequence[Value]) -> Value:
        return emit_expression(body, lstm_cell(gate, candidate), *values)

    def output(body: Body, values: Sequence[Value]) -> Value:
        return emit_expression(body, lstm_hidden(gate, op.output_activation), *values)

    for step in steps.one_by_one():
        steps.product(step.before(), 4 * hidden, sums, [step.gates()], _added)
        i, f, g, o = (columns_from(sums, index * hidden) for index in range(4))
        steps.map([i, f, g, step.before(hidden)], step.after(hidden), cell)
        steps.map([o, step.after(hidden)], step.after(), output)
    steps.call()


@lowers(F32GruOp)
def _gru(lowering: GraphLowering, op: F32GruOp) -> None:
    steps = TimeSteps(lowering, op)
    gate, candidate = gate_function(op.gate_activation, op.clip), gate_function(op.cell_activation, op.clip)
    hidden, sums = op.hidden, steps.scratch("sums", 2 * op.hidden)
    update, reset = (columns_from(sums, index * hidden) for index in range(2))

    def gated(body: Body, total: Value, extras: Sequence[Value]) -> Value:
        return emit_expression(body, gate, body.add(total, extras[0]))

    def mixed(body: Body, inner: Value, own: Value, z: Value, h: Value) -> Value:
        return emit_expression(body, gru_hidden(candidate), z, body.add(inner, own), h)

    def after_reset(body: Body, total: Value, extras: Sequence[Value]) -> Value:
        r, own, z, h, *bias = extras
        products = body.add(total, bias[0] if bias else body.constant(0, "f32"))
        return mixed(body, body.multiply(r, products), own, z, h)

    def of_reset(body: Body, total: Value, extras: Sequence[Value]) -> Value:
        return mixed(body, total, *extras)

    bias = [] if op.bias is None else [replace(steps.operand("bias", op.bias), strides=(0, 1))]
    scaled = None if op.reset_after else steps.scratch("scaled", hidden)
    for step in steps.one_by_one():
        steps.product(step.before(), 2 * hidden, sums, [step.gates()], gated)
        own, h = step.gates(2 * hidden), step.before()
        if scaled is None:
            steps.product(h, hidden, step.after(), [reset, own, update, h, *bias], after_reset, 2 * hidden)
        else:
            steps.map([reset, h], scaled, _scaled)
            steps.product(scaled, hidden, step.after(), [own, update, h], of_reset, 2 * hidden)
    steps.call()


@lowers(F32RnnOp)
def _rnn(lowering: GraphLowering, op: F32RnnOp) -> None:
    steps, gate = TimeSteps(lowering, op), gate_function(op.activation, op.clip)

    def finish(body: Body, total: Value, extras: Sequence[Value]) -> Value:
        return emit_expression(body, gate, body.add(total, extras[0]))

    for step in steps.one_by_one():
        steps.product(step.before(), op.hidden, step.after(), [step.gates()], finish)
    steps.call()


def _scaled(body: Body, values: Sequence[Value]) -> Value:
    return body.multiply(values[0], values[1])


def _added(body: Body, total: Value, extras: Sequence[Value]) -> Value:
    return body.add(total, extras[0])
