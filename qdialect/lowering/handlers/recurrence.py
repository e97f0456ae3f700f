"""Recurrent cells: one kernel with a loop over time, each step a product with the hidden state and maps of the gates.

States are written to the result row by row, and the next step reads them there.  What a step passes from one
micro-kernel to the next is scratch memory.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod

from qdialect._mlir import ir
from qdialect.dialect import F32GruOp, F32LstmOp, F32RecurrentOp, F32RnnOp
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.kernels.elementwise import Emit, MapOperand, emit_map
from qdialect.lowering.kernels.expression import emit_expression
from qdialect.lowering.kernels.folds import F32_MAXIMUM, F32_MINIMUM, F32_PRODUCTS
from qdialect.lowering.kernels.reduction import Finish, Fold, Reduced, Reduction, emit_reduction
from qdialect.lowering.memory.storage import Storage
from qdialect.lowering.memory.strides import row_major
from qdialect.lowering.program import Kernel
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.lowering.tiling.strategy import rows_for
from qdialect.quant_math.expressions import Expression
from qdialect.quant_math.recurrence import (
    gate_function,
    gru_hidden,
    lstm_cell,
    lstm_hidden,
    rounded_state,
    state_point,
    state_scale,
)

_LANES = 16
# Vectors of accumulators that a product keeps at a time: enough that no sum waits for the one before it.
_ACCUMULATORS = 8


@lowers(F32LstmOp)
def _lstm(lowering: GraphLowering, op: F32LstmOp) -> None:
    steps = _Steps(lowering, op)
    gate, candidate = gate_function(op.gate_activation, op.clip), gate_function(op.cell_activation, op.clip)
    hidden, sums = op.hidden, steps.scratch("sums", 4 * op.hidden)

    def cell(body: Body, values: Sequence[Value]) -> Value:
        return emit_expression(body, lstm_cell(gate, candidate), *values)

    def output(body: Body, values: Sequence[Value]) -> Value:
        return emit_expression(body, lstm_hidden(gate, op.output_activation), *values)

    rounded = (
        None if op.scales is None else _RoundedState(steps, replace(steps.operand("scales", op.scales), strides=(0, 1)))
    )
    with steps.each() as step:
        if rounded is None:
            steps.product(step.before(), 4 * hidden, sums, [step.gates()], _added)
        else:
            rounded.product(step.before(), 4 * hidden, sums, step.gates())
        i, f, g, o = (steps.part(sums, index * hidden) for index in range(4))
        steps.map([i, f, g, step.before(hidden)], step.after(hidden), cell)
        steps.map([o, step.after(hidden)], step.after(), output)
    steps.call()


@lowers(F32GruOp)
def _gru(lowering: GraphLowering, op: F32GruOp) -> None:
    steps = _Steps(lowering, op)
    gate, candidate = gate_function(op.gate_activation, op.clip), gate_function(op.cell_activation, op.clip)
    hidden, sums = op.hidden, steps.scratch("sums", 2 * op.hidden)
    update, reset = (steps.part(sums, index * hidden) for index in range(2))

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
    with steps.each() as step:
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
    steps, gate = _Steps(lowering, op), gate_function(op.activation, op.clip)

    def finish(body: Body, total: Value, extras: Sequence[Value]) -> Value:
        return emit_expression(body, gate, body.add(total, extras[0]))

    with steps.each() as step:
        steps.product(step.before(), op.hidden, step.after(), [step.gates()], finish)
    steps.call()


def _scaled(body: Body, values: Sequence[Value]) -> Value:
    return body.multiply(values[0], values[1])


def _added(body: Body, total: Value, extras: Sequence[Value]) -> Value:
    return body.add(total, extras[0])


@dataclass(frozen=True)
class _Step:
    """A time step: the rows of the gates and of the states, which `time` moves."""

    gate_rows: MapOperand
    rows_before: MapOperand
    rows_after: MapOperand

    def gates(self, first: int = 0) -> MapOperand:
        """What the sequence gives to the gates from column `first` on."""
        return _columns(self.gate_rows, first)

    def before(self, first: int = 0) -> MapOperand:
        """The states before the step."""
        return _columns(self.rows_before, first)

    def after(self, first: int = 0) -> MapOperand:
        """The states after the step."""
        return _columns(self.rows_after, first)


@dataclass
class _Steps:
    """The kernel of an op: the initial states, then a loop over time."""

    lowering: GraphLowering
    op: F32RecurrentOp
    kernel: Kernel = field(init=False)

    def __post_init__(self) -> None:
        op, self.kernel = self.op, Kernel(self.lowering.program)
        self.count, self.batch, _ = shape_of(op.gates.type)
        self._gates, self._weights = self.operand("gates", op.gates), self.operand("weights", op.recurrence)
        slot = self.lowering.result(op.output)
        strides = dim_strides(shape_of(op.output.type), slot.storage)
        self._states = MapOperand(self.kernel.slot("states", slot), strides, slot.storage.origin)
        first = self.count * strides[0] if op.reverse else 0
        target = _columns(replace(self._states, strides=strides[1:]), first)
        shape = shape_of(op.initial.type)
        emit_map(self.kernel, shape, [self.operand("initial", op.initial)], target, lambda _, values: values[0], _LANES)

    def operand(self, name: str, value: ir.Value) -> MapOperand:
        """A tensor where it is stored, a constant where it lies."""
        shape, array = shape_of(value.type), constant_value(value)
        if array is not None:
            return MapOperand(self.kernel.data(name, array), row_major(shape))
        slot = self.lowering.slot(value)
        return MapOperand(self.kernel.slot(name, slot), dim_strides(shape, slot.storage), slot.storage.origin)

    def scratch(self, name: str, width: int) -> MapOperand:
        """Memory for [B, width] f32 values of one step."""
        storage = Storage((self.batch, 1, 1, width), "f32", width)
        return MapOperand(self.kernel.scratch(name, storage), (width, 1))

    def part(self, operand: MapOperand, first: int) -> MapOperand:
        """The columns of `operand` from `first` on."""
        return _columns(operand, first)

    @contextmanager
    def each(self) -> Generator[_Step]:
        """The loop over time."""
        kernel, is_reverse = self.kernel, self.op.reverse
        with kernel.loop(self.count) as index:
            if is_reverse:
                index = kernel.sum(kernel.multiple(index, -1), kernel.constant(self.count - 1, "index"))
            row = self._states.strides[0]
            low, high = (self._at(self._states, index, offset) for offset in (0, row))
            before, after = (high, low) if is_reverse else (low, high)
            yield _Step(self._at(self._gates, index, 0), before, after)

    def product(
        self,
        rows: MapOperand,
        width: int,
        output: MapOperand,
        extras: Sequence[MapOperand],
        finish: Finish,
        first: int = 0,
    ) -> None:
        """``finish(rows [B, H] times `width` columns of the weights from `first` on, extras)``."""
        at_once = rows_for(self.batch, _ACCUMULATORS)
        reduction = Reduction(
            (self.batch, width),
            (self.op.hidden,),
            [
                Reduced(_columns(replace(self._weights, strides=(0, 1)), first), self._weights.strides[:1]),
                Reduced(replace(rows, strides=(rows.strides[0], 0)), rows.strides[1:]),
            ],
            extras,
            output,
            F32_PRODUCTS,
            finish,
            _LANES * (_ACCUMULATORS // at_once),
            at_once,
        )
        emit_reduction(self.kernel, reduction)

    def map(self, operands: Sequence[MapOperand], output: MapOperand, emit: Emit) -> None:
        """``emit`` of elements [B, H]."""
        emit_map(self.kernel, (self.batch, self.op.hidden), operands, output, emit, _LANES)

    def call(self) -> None:
        """Append the call of the kernel."""
        macs = self.count * self.batch * prod(shape_of(self.op.recurrence.type))
        self.lowering.program.call(self.kernel, self.op.operation.name, macs)

    def _at(self, operand: MapOperand, index: Value, offset: int) -> MapOperand:
        """The row [B, ...] of `operand` at a time, `offset` elements further on."""
        start = self.kernel.multiple(index, operand.strides[0])
        return MapOperand(operand.source, operand.strides[1:], operand.offset + offset, start)


@dataclass
class _RoundedState:
    """Products with a hidden state that is quantized by its range: numbers of a step, and the rounded state."""

    steps: _Steps
    scales: MapOperand
    """Of the columns of the weights."""

    def __post_init__(self) -> None:
        numbers = (replace(self.steps.scratch(name, 1), strides=(0, 0)) for name in ("low", "high", "scale", "point"))
        self._low, self._high, self._scale, self._point = numbers
        self._rounded = self.steps.scratch("rounded", self.steps.op.hidden)

    def product(self, rows: MapOperand, width: int, output: MapOperand, gates: MapOperand) -> None:
        """``gates + (rows, rounded) times the weights * (scale * scales)``."""
        self._extreme(rows, F32_MINIMUM, self._low)
        self._extreme(rows, F32_MAXIMUM, self._high)
        self._number([self._low, self._high], self._scale, state_scale())
        self._number([self._low, self._scale], self._point, state_point())
        self.steps.map([rows, self._scale, self._point], self._rounded, _emitted(rounded_state()))
        self.steps.product(self._rounded, width, output, [gates, self._scale, self.scales], _scaled_and_added)

    def _extreme(self, rows: MapOperand, fold: Fold, output: MapOperand) -> None:
        """The minimum or the maximum of all numbers and 0."""
        steps = self.steps
        source = Reduced(replace(rows, strides=(0,)), rows.strides)
        emit_reduction(
            steps.kernel,
            Reduction(
                (1,),
                (steps.batch, steps.op.hidden),
                [source],
                [],
                replace(output, strides=(0,)),
                fold,
                _total,
                _LANES,
                1,
            ),
        )

    def _number(self, operands: Sequence[MapOperand], output: MapOperand, expression: Expression) -> None:
        emit_map(self.steps.kernel, (1, 1), operands, output, _emitted(expression), 1)


def _emitted(expression: Expression) -> Emit:
    return lambda body, values: emit_expression(body, expression, *values)


def _total(_: Body, total: Value, __: Sequence[Value]) -> Value:
    return total


def _scaled_and_added(body: Body, total: Value, extras: Sequence[Value]) -> Value:
    gates, scale, own = extras
    return body.add(body.multiply(total, body.multiply(scale, own)), gates)


def _columns(operand: MapOperand, first: int) -> MapOperand:
    return replace(operand, offset=operand.offset + first)
