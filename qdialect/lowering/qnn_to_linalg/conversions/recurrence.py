"""Recurrent cells of float32: one kernel with a loop over time, each step a product with the hidden state and maps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

import numpy as np

from qdialect.arithmetic import recurrence
from qdialect.arithmetic.expressions import Expression
from qdialect.dialect import DynamicLstmOp, F32GruOp, F32LstmOp, F32RecurrentOp, F32RnnOp
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.cost.strategy import rows_for
from qdialect.lowering.ir.functions import required_constant
from qdialect.lowering.ir.views import row_major
from qdialect.lowering.qnn_to_linalg.bodies.scalar_ops import emit_expression
from qdialect.lowering.qnn_to_linalg.contractions.contraction import Epilogue, convolution
from qdialect.lowering.qnn_to_linalg.contractions.micro_kernel import Site
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import ConstantWeights, center, folded_bias
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, lowers, stored_operand
from qdialect.lowering.qnn_to_linalg.kernels import reduction
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand, emit_map
from qdialect.lowering.qnn_to_linalg.kernels.geometry import Window
from qdialect.lowering.qnn_to_linalg.program.program import Kernel, Storage, lanes_for
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Emit, Value, unchanged


@lowers(F32LstmOp)
def _lstm(lowering: GraphLowering, op: F32LstmOp) -> None:
    steps = TimeSteps(lowering, op)
    gate, candidate = (
        recurrence.gate_function(op.gate_activation, op.clip),
        recurrence.gate_function(op.cell_activation, op.clip),
    )
    hidden, sums = op.hidden, steps.scratch("sums", 4 * op.hidden)

    def cell(body: Body, values: Sequence[Value]) -> Value:
        return emit_expression(body, recurrence.lstm_cell(gate, candidate), *values)

    def output(body: Body, values: Sequence[Value]) -> Value:
        return emit_expression(body, recurrence.lstm_hidden(gate, op.output_activation), *values)

    for step in steps.one_by_one():
        steps.product(step.before(), 4 * hidden, sums, [step.gates()], _added)
        i, f, g, o = (columns_from(sums, index * hidden) for index in range(4))
        steps.map([i, f, g, step.before(hidden)], step.after(hidden), cell)
        steps.map([o, step.after(hidden)], step.after(), output)
    steps.call()


@lowers(F32GruOp)
def _gru(lowering: GraphLowering, op: F32GruOp) -> None:
    steps = TimeSteps(lowering, op)
    gate, candidate = (
        recurrence.gate_function(op.gate_activation, op.clip),
        recurrence.gate_function(op.cell_activation, op.clip),
    )
    hidden, sums = op.hidden, steps.scratch("sums", 2 * op.hidden)
    update, reset = (columns_from(sums, index * hidden) for index in range(2))

    def gated(body: Body, total: Value, extras: Sequence[Value]) -> Value:
        return emit_expression(body, gate, body.add(total, extras[0]))

    def mixed(body: Body, inner: Value, own: Value, z: Value, h: Value) -> Value:
        return emit_expression(body, recurrence.gru_hidden(candidate), z, body.add(inner, own), h)

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
            steps.map([reset, h], scaled, lambda body, values: body.multiply(values[0], values[1]))
            steps.product(scaled, hidden, step.after(), [own, update, h], of_reset, 2 * hidden)
    steps.call()


@lowers(F32RnnOp)
def _rnn(lowering: GraphLowering, op: F32RnnOp) -> None:
    steps, gate = TimeSteps(lowering, op), recurrence.gate_function(op.activation, op.clip)

    def finish(body: Body, total: Value, extras: Sequence[Value]) -> Value:
        return emit_expression(body, gate, body.add(total, extras[0]))

    for step in steps.one_by_one():
        steps.product(step.before(), op.hidden, step.after(), [step.gates()], finish)
    steps.call()


def _added(body: Body, total: Value, extras: Sequence[Value]) -> Value:
    return body.add(total, extras[0])


# A kernel with a loop over time: its steps read rows of the gates and the states before, and write the states after.
#
# States are written to the result row by row, and the next step reads them there.  What a step passes from one
# micro-kernel to the next is scratch memory.

LANES = 16
"""Numbers of a vector."""
# Vectors of accumulators that a product keeps at a time: enough that no sum waits for the one before it.
_ACCUMULATORS = 8


@dataclass(frozen=True)
class TimeStep:
    """A time step: the rows of the gates and of the states, which `time` moves."""

    gate_rows: MapOperand
    rows_before: MapOperand
    rows_after: MapOperand

    def gates(self, first: int = 0) -> MapOperand:
        """The sequence's part of the gates from column `first` on."""
        return columns_from(self.gate_rows, first)

    def before(self, first: int = 0) -> MapOperand:
        return columns_from(self.rows_before, first)

    def after(self, first: int = 0) -> MapOperand:
        return columns_from(self.rows_after, first)


@dataclass
class TimeSteps:
    """The kernel of an op: the initial states, then a loop over time."""

    lowering: GraphLowering
    op: F32RecurrentOp
    kernel: Kernel = field(init=False)

    def __post_init__(self) -> None:
        op, self.kernel = self.op, Kernel(self.lowering.program)
        self.count, self.batch, _ = shape_of(op.gates.type)
        self._gates = self.operand("gates", op.gates)
        slot = self.lowering.result(op.output)
        states = stored_operand(slot, shape_of(op.output.type))
        self._states, strides = replace(states, source=self.kernel.slot("states", slot)), states.strides
        first = self.count * strides[0] if op.reverse else 0
        target = columns_from(replace(self._states, strides=strides[1:]), first)
        shape = shape_of(op.initial.type)
        emit_map(self.kernel, shape, [self.operand("initial", op.initial)], target, unchanged, LANES)

    @cached_property
    def _weights(self) -> MapOperand:
        return self.operand("weights", self.op.recurrence)

    def operand(self, name: str, value: ir.Value) -> MapOperand:
        """A tensor where it is stored, a constant where it lies."""
        shape, array = shape_of(value.type), constant_value(value)
        if array is not None:
            return MapOperand(self.kernel.data(name, array), row_major(shape))
        slot = self.lowering.slot(value)
        return replace(stored_operand(slot, shape), source=self.kernel.slot(name, slot))

    def scratch(self, name: str, width: int) -> MapOperand:
        """Memory for [B, width] f32 values of one step."""
        storage = Storage((self.batch, 1, 1, width), "f32", width)
        return MapOperand(self.kernel.scratch(name, storage), (width, 1))

    def one_by_one(self) -> Iterator[TimeStep]:
        """The step of a loop over time."""
        with self.kernel.loop(self.count) as index:
            yield self._step(index)

    def in_pairs(self) -> Iterator[TimeStep]:
        """Two steps of a loop over time that takes two at once, and the last one of an odd number."""
        pairs, kernel = self.count // 2, self.kernel
        if pairs:
            with kernel.loop(pairs) as index:
                even = kernel.multiple(index, 2)
                yield self._step(even)
                yield self._step(kernel.sum(even, kernel.constant(1, "index")))
        if self.count % 2:
            yield self._step(kernel.constant(self.count - 1, "index"))

    def _step(self, index: Value) -> TimeStep:
        """The step that is computed after `index` others."""
        kernel, is_reverse = self.kernel, self.op.reverse
        if is_reverse:
            index = kernel.sum(kernel.multiple(index, -1), kernel.constant(self.count - 1, "index"))
        row = self._states.strides[0]
        low, high = (self._at(self._states, index, offset) for offset in (0, row))
        before, after = (high, low) if is_reverse else (low, high)
        return TimeStep(self._at(self._gates, index, 0), before, after)

    def product(
        self,
        rows: MapOperand,
        width: int,
        output: MapOperand,
        extras: Sequence[MapOperand],
        finish: reduction.Finish,
        first: int = 0,
    ) -> None:
        """``finish(rows [B, H] times `width` columns of the weights from `first` on, extras)``."""
        at_once = rows_for(self.batch, _ACCUMULATORS)
        reduction.emit_reduction(
            self.kernel,
            reduction.Reduction(
                (self.batch, width),
                (self.op.hidden,),
                [
                    reduction.Reduced(
                        columns_from(replace(self._weights, strides=(0, 1)), first), self._weights.strides[:1]
                    ),
                    reduction.Reduced(replace(rows, strides=(rows.strides[0], 0)), rows.strides[1:]),
                ],
                extras,
                output,
                reduction.F32_PRODUCTS,
                finish,
                LANES * (_ACCUMULATORS // at_once),
                at_once,
            ),
        )

    def map(self, operands: Sequence[MapOperand], output: MapOperand, emit: Emit) -> None:
        """``emit`` of elements [B, H]."""
        emit_map(self.kernel, (self.batch, self.op.hidden), operands, output, emit, LANES)

    def call(self) -> None:
        macs = self.count * self.batch * prod(shape_of(self.op.recurrence.type))
        self.lowering.program.call(self.kernel, self.op.operation.name, macs)

    def _at(self, operand: MapOperand, index: Value, offset: int) -> MapOperand:
        """The row [B, ...] of `operand` at a time, `offset` elements further on."""
        start = self.kernel.multiple(index, operand.strides[0])
        return MapOperand(operand.source, operand.strides[1:], operand.offset + offset, start)


def columns_from(operand: MapOperand, first: int) -> MapOperand:
    """The columns of `operand` from `first` on."""
    return replace(operand, offset=operand.offset + first)


# A recurrent cell that quantizes its hidden state in each time step: dot products of bytes in the loop over time.
#
# With the quantized values q of a state, its zero point z and weights w less their zero points,
#
#   sum (q - z) w = sum q w - z sum w
#
# z is known only in the step; the sums of the weights are constants.
#
# Every step reads all weights.  If they do not fit in L1, it holds the tiles that were read last, and a step that began
# with the first ones would find none of them: every other step reads the tiles from the last to the first.

_BYTES_OF_COLUMN = 16
"""Bytes of each column in addition to the weights: accumulators, sums of weights, scales, and the sequence's part."""


@lowers(DynamicLstmOp)
def _dynamic_lstm(lowering: GraphLowering, op: DynamicLstmOp) -> None:
    steps = TimeSteps(lowering, op)
    state = _QuantizedState(steps)
    products = _Products(steps, op, state)
    gate, candidate = (
        recurrence.gate_function(op.gate_activation, op.clip),
        recurrence.gate_function(op.cell_activation, op.clip),
    )

    def cell(body: Body, values: Sequence[Value]) -> Value:
        *sums, before, scale, point = values
        i, f, g = (_gate(body, sums[first : first + 4], scale, point) for first in (0, 4, 8))
        return emit_expression(body, recurrence.lstm_cell(gate, candidate), i, f, g, before)

    def output(body: Body, values: Sequence[Value]) -> Value:
        *sums, after, scale, point = values
        return emit_expression(
            body, recurrence.lstm_hidden(gate, op.output_activation), _gate(body, sums, scale, point), after
        )

    for number, step in enumerate(steps.in_pairs() if products.are_far else steps.one_by_one()):
        state.emit(step.before())
        products.emit(backwards=number % 2 == 1)
        i, f, g, o = (products.gate(step, index) for index in range(4))
        parameters = [state.scale, state.point]
        steps.map([*i, *f, *g, step.before(op.hidden), *parameters], step.after(op.hidden), cell)
        steps.map([*o, step.after(op.hidden), *parameters], step.after(), output)
    steps.call()


def _gate(body: Body, values: Sequence[Value], scale: Value, point: Value) -> Value:
    """The parts of a gate from the products of a state and from the sequence."""
    total, weight_sum, weight_scale, gate = values
    correction = body.multiply(body.cast("arith.fptosi", point, "i32"), weight_sum)
    total = body.cast("arith.sitofp", body.subtract(total, correction), "f32")
    return emit_expression(body, recurrence.state_product(), total, scale, weight_scale, gate)


class _QuantizedState:
    """The hidden states of a step as bytes, with their scale and their zero point, which are f32 numbers."""

    def __init__(self, steps: TimeSteps) -> None:
        self._steps = steps
        numbers = (replace(steps.scratch(name, 1), strides=(0, 0)) for name in ("low", "high", "scale", "point"))
        self._low, self._high, self.scale, self.point = numbers
        storage = Storage((steps.batch, 1, 1, steps.op.hidden), "i8", lanes_for(steps.op.hidden))
        self.slot = steps.lowering.program.buffer(storage)
        self.quantized = steps.kernel.scratch_slot("quantized", self.slot)

    def emit(self, rows: MapOperand) -> None:
        """Quantize `rows` [B, H] by the range of all of them."""
        self._extreme(rows, reduction.F32_MINIMUM, self._low)
        self._extreme(rows, reduction.F32_MAXIMUM, self._high)
        self._number([self._low, self._high], self.scale, recurrence.state_scale())
        self._number([self._low, self.scale], self.point, recurrence.state_point())
        target = MapOperand(self.quantized, (self.slot.storage.pitch, 1))
        self._steps.map([rows, self.scale, self.point], target, _byte)

    def _extreme(self, rows: MapOperand, fold: reduction.Fold, output: MapOperand) -> None:
        """The minimum or the maximum of all numbers and 0."""
        steps = self._steps
        source, target = reduction.Reduced(replace(rows, strides=(0,)), rows.strides), replace(output, strides=(0,))
        reduced = (steps.batch, steps.op.hidden)
        # One accumulator for each lane, so that lanes are joined once and not for every vector.
        by_lane = replace(fold, lanes=LANES)
        reduction.emit_reduction(
            steps.kernel,
            reduction.Reduction((1,), reduced, [source], [], target, by_lane, reduction.as_folded, LANES, 1),
        )

    def _number(self, operands: Sequence[MapOperand], output: MapOperand, expression: Expression) -> None:
        emit_map(self._steps.kernel, (1, 1), operands, output, lambda body, v: emit_expression(body, expression, *v), 1)


class _Products:
    """The sums of the products of a quantized state with the weights, int32[B, 4 * H] of a step."""

    def __init__(self, steps: TimeSteps, op: DynamicLstmOp, state: _QuantizedState) -> None:
        self._steps, self._hidden, columns = steps, op.hidden, 4 * op.hidden
        taps = np.ascontiguousarray(required_constant("recurrence", op.recurrence).T)
        weights, nothing = center(taps.reshape(columns, 1, 1, -1), op.weight_zero_points), np.zeros(columns, np.int32)
        storage = Storage((steps.batch, 1, 1, columns), "i32", lanes_for(columns))
        slot = steps.lowering.program.buffer(storage)
        window = Window(steps.batch, (1, 1), (1, 1), (1, 1), (1, 1), (0, 0))
        # A multiple of the zero point is subtracted later: the accumulators start at 0.
        self._buffers = state.quantized, steps.kernel.scratch_slot("sums", slot)
        self._sums = MapOperand(self._buffers[1], (storage.pitch, 1))
        weight_sums = steps.kernel.data("weight_sums", folded_bias(weights, nothing, -1))
        self._weight_sums = MapOperand(weight_sums, (0, 1))
        self._scales = replace(steps.operand("scales", op.scales), strides=(0, 1))
        product = convolution(state.slot, slot, Epilogue(), window, ConstantWeights(weights, nothing))
        self._tiles = Site.of(steps.kernel, product, self._buffers).single_tiles()
        model = steps.kernel.program.strategy.model
        self.are_far = model is not None and weights.values.nbytes > model.machine.l1_bytes - _BYTES_OF_COLUMN * columns
        """Whether a step evicts weights from L1."""

    def emit(self, *, backwards: bool) -> None:
        """Multiply the state that is quantized now, beginning with the last tile where `backwards`."""
        for tile in reversed(self._tiles) if backwards else self._tiles:
            tile.emit()

    def gate(self, step: TimeStep, index: int) -> list[MapOperand]:
        """Of one of the gates i, f, g and o: sums, sums of weights, scales, and the sequence's part."""
        every = (self._sums, self._weight_sums, self._scales, step.gates())
        return [columns_from(one, index * self._hidden) for one in every]


def _byte(body: Body, values: Sequence[Value]) -> Value:
    quantized = emit_expression(body, recurrence.quantized_state(), *values)
    return body.narrow(body.cast("arith.fptosi", quantized, "i32"))
