"""A recurrent cell that quantizes its hidden state in each time step: dot products of bytes in the loop over time.

With the quantized values q of a state, its zero point z and weights w less their zero points,

  sum (q - z) w = sum q w - z sum w

z is known in the step alone; the sums of the weights are constants.

Every step reads all weights.  Where the first level does not hold them, what it held last are the tiles that were read
last, and a step that began with the first ones would find none of them: every other step reads the tiles from the last
to the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from qdialect.dialect import DynamicLstmOp
from qdialect.lowering.graph import GraphLowering, lowers
from qdialect.lowering.kernels.contraction import Contraction, tiles_of_products
from qdialect.lowering.kernels.elementwise import Emit, MapOperand, emit_map
from qdialect.lowering.kernels.epilogue import Epilogue, declare_stages
from qdialect.lowering.kernels.expression import emit_expression
from qdialect.lowering.kernels.folds import F32_MAXIMUM, F32_MINIMUM
from qdialect.lowering.kernels.reduction import Fold, Reduced, Reduction, emit_reduction
from qdialect.lowering.kernels.time_steps import LANES, TimeStep, TimeSteps, columns_from
from qdialect.lowering.kernels.window import Window
from qdialect.lowering.memory.storage import Storage, lanes_for
from qdialect.lowering.operands.constant_operands import required_constant
from qdialect.lowering.operands.packing import center, folded_bias
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.quant_math.expressions import Expression
from qdialect.quant_math.recurrence import (
    gate_function,
    lstm_cell,
    lstm_hidden,
    quantized_state,
    state_point,
    state_product,
    state_scale,
)

_BESIDE_WEIGHTS = 16
"""Bytes beside the weights of each column: sums, those of the weights, scales, and what the sequence gives."""


@lowers(DynamicLstmOp)
def _lstm(lowering: GraphLowering, op: DynamicLstmOp) -> None:
    steps = TimeSteps(lowering, op)
    state = _QuantizedState(steps)
    products = _Products(steps, op, state)
    gate, candidate = gate_function(op.gate_activation, op.clip), gate_function(op.cell_activation, op.clip)

    def cell(body: Body, values: Sequence[Value]) -> Value:
        *sums, before, scale, point = values
        i, f, g = (_gate(body, sums[first : first + 4], scale, point) for first in (0, 4, 8))
        return emit_expression(body, lstm_cell(gate, candidate), i, f, g, before)

    def output(body: Body, values: Sequence[Value]) -> Value:
        *sums, after, scale, point = values
        return emit_expression(body, lstm_hidden(gate, op.output_activation), _gate(body, sums, scale, point), after)

    for number, step in enumerate(steps.in_pairs() if products.are_far else steps.one_by_one()):
        state.emit(step.before())
        products.emit(backwards=number % 2 == 1)
        i, f, g, o = (products.gate(step, index) for index in range(4))
        parameters = [state.scale, state.point]
        steps.map([*i, *f, *g, step.before(op.hidden), *parameters], step.after(op.hidden), cell)
        steps.map([*o, step.after(op.hidden), *parameters], step.after(), output)
    steps.call()


def _gate(body: Body, values: Sequence[Value], scale: Value, point: Value) -> Value:
    """What the products of a state and the sequence give to a gate."""
    total, weight_sum, weight_scale, gate = values
    correction = body.multiply(body.cast("arith.fptosi", point, "i32"), weight_sum)
    total = body.cast("arith.sitofp", body.subtract(total, correction), "f32")
    return emit_expression(body, state_product(), total, scale, weight_scale, gate)


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
        self._extreme(rows, F32_MINIMUM, self._low)
        self._extreme(rows, F32_MAXIMUM, self._high)
        self._number([self._low, self._high], self.scale, state_scale())
        self._number([self._low, self.scale], self.point, state_point())
        target = MapOperand(self.quantized, (self.slot.storage.pitch, 1))
        self._steps.map([rows, self.scale, self.point], target, _byte)

    def _extreme(self, rows: MapOperand, fold: Fold, output: MapOperand) -> None:
        """The minimum or the maximum of all numbers and 0."""
        steps = self._steps
        source, target = Reduced(replace(rows, strides=(0,)), rows.strides), replace(output, strides=(0,))
        reduced = (steps.batch, steps.op.hidden)
        # One accumulator for each lane, so that lanes are joined once and not for every vector.
        by_lane = replace(fold, lanes=LANES)
        emit_reduction(steps.kernel, Reduction((1,), reduced, [source], [], target, by_lane, _total, LANES, 1))

    def _number(self, operands: Sequence[MapOperand], output: MapOperand, expression: Expression) -> None:
        emit_map(self._steps.kernel, (1, 1), operands, output, _emitted(expression), 1)


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
        kernel, product = steps.kernel, Contraction(state.slot, slot, Epilogue(), window, weights, nothing, 1)
        declared = product.declare_columns(kernel), declare_stages(kernel, product.epilogue)
        groups = product.channel_groups()
        self._tiles = [tile for group in groups for tile in tiles_of_products(kernel, product, *declared, group)]
        model = kernel.program.strategy.model
        self.are_far = model is not None and weights.values.nbytes > model.machine.l1_bytes - _BESIDE_WEIGHTS * columns
        """Whether a step displaces weights from the first level."""

    def emit(self, *, backwards: bool) -> None:
        """Multiply the state that is quantized now, beginning with the last tile where `backwards`."""
        for tile in reversed(self._tiles) if backwards else self._tiles:
            tile.emit(self._buffers)

    def gate(self, step: TimeStep, index: int) -> list[MapOperand]:
        """Of one of the gates i, f, g and o: sums, sums of weights, scales, and what the sequence gives."""
        every = (self._sums, self._weight_sums, self._scales, step.gates())
        return [columns_from(one, index * self._hidden) for one in every]


def _byte(body: Body, values: Sequence[Value]) -> Value:
    quantized = emit_expression(body, quantized_state(), *values)
    return body.narrow(body.cast("arith.fptosi", quantized, "i32"))


def _emitted(expression: Expression) -> Emit:
    return lambda body, values: emit_expression(body, expression, *values)


def _total(_: Body, total: Value, __: Sequence[Value]) -> Value:
    return total
