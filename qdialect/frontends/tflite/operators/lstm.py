"""Plans UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM: states are zero at the start of a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import tflite

from qdialect.arithmetic import activations
from qdialect.arithmetic.expressions import Expression
from qdialect.dialect import F32SumOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import Array, require
from qdialect.frontends.building.op_builder import F32
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators import recurrence
from qdialect.frontends.tflite.operators.checks import check_scales, constant
from qdialect.frontends.tflite.operators.integer_lstm import IntegerLstm
from qdialect.frontends.tflite.operators.recurrence import LONGEST, SHORTEST, Gate, LstmTensors, RowProduct, Steps
from qdialect.frontends.tflite.operators.registry import Building, Emission, Emitter, imports
from qdialect.ir._mlir import ir

# Of BIDIRECTIONAL_SEQUENCE_LSTM: where the tensors of each direction stand, as the operator of one direction has them.
_FORWARD = (0, *range(1, 18), 35, 36)
_BACKWARD = (0, *range(18, 35), 37, 38)
_AUXILIARY, _BOTH = 39, 48
_FIELDS = ("FusedActivationFunction", "CellClip", "ProjClip", "AsymmetricQuantizeInputs", "TimeMajor")


@imports("UNIDIRECTIONAL_SEQUENCE_LSTM")
def _lstm(operator: Operator) -> Emission:
    fields = (*_FIELDS, "DiagonalRecurrentTensors")
    activation, cell_clip, projection_clip, is_asymmetric, is_time_major, is_diagonal = operator.options(*fields)
    require(not is_diagonal, "diagonals in place of recurrent weights are not supported")
    found = len(operator.inputs)
    require(found in (SHORTEST, LONGEST), f"must have {SHORTEST} or {LONGEST} inputs, but got {found}")
    require(len(operator.outputs) == 1, f"must have 1 output, but got {len(operator.outputs)}")
    tensors = LstmTensors.of(operator.inputs)
    steps = Steps.of(tensors.data, is_time_major)
    if tensors.data.element == "f32":
        how = LstmOptions(recurrence.cell_activation(activation), cell_clip, projection_clip, is_asymmetric)
        return FloatLstm.of(tensors, steps, how).emit
    is_tanh = activation == tflite.ActivationFunctionType.TANH
    require(is_tanh, f"fused activation must be TANH, but got {activation}")
    return IntegerLstm.of(tensors, operator.intermediates, steps, cell_clip, projection_clip).emit


@imports("BIDIRECTIONAL_SEQUENCE_LSTM")
def _bidirectional(operator: Operator) -> Building:
    fields = (*_FIELDS, "MergeOutputs")
    activation, cell_clip, projection_clip, is_asymmetric, is_time_major, is_merged = operator.options(*fields)
    how = LstmOptions(recurrence.cell_activation(activation), cell_clip, projection_clip, is_asymmetric)
    auxiliary = recurrence.auxiliary_of(operator, _AUXILIARY, _BOTH, is_merged)
    forward, backward = (LstmTensors.of([operator.inputs[index] for index in order]) for order in (_FORWARD, _BACKWARD))
    if auxiliary is not None:
        backward = replace(backward, data=auxiliary)
        backward.check_shapes()
    steps = Steps.of(forward.data, is_time_major)
    cells = FloatLstm.of(forward, steps, how), FloatLstm.of(backward, replace(steps, is_reverse=True), how)
    emitter = yield
    return recurrence.of_both(
        emitter, steps, [cell.rows(emitter, emitter.value(cell.tensors.data)) for cell in cells], is_merged
    )


# Long short-term memory of float32 activations: weights of float32, or of i8 ("hybrid").
#
# The operations and their order are those of TFLite's lstm_eval.cc, LstmStepFloat and LstmStepHybrid.

# Keeps the deviation of a normalization from zero.
_EPSILON = 1e-8


@dataclass(frozen=True)
class LstmOptions:
    """How an operator computes; a clip of 0 limits nothing."""

    activation: Expression
    cell_clip: float
    projection_clip: float
    is_asymmetric: bool


@dataclass(frozen=True)
class _FloatCell:
    """The state after a time step: h f32 [B, P] and c f32 [B, H]."""

    hidden: ir.Value
    cell: ir.Value


@dataclass(frozen=True)
class FloatLstm:
    """An operator's tensors, checked."""

    tensors: LstmTensors
    steps: Steps
    options: LstmOptions
    given: RowProduct
    """Of the sequence."""
    recurrent: RowProduct
    projection: RowProduct | None

    @classmethod
    def of(cls, tensors: LstmTensors, steps: Steps, options: LstmOptions) -> FloatLstm:
        """Raises `UnsupportedError`."""
        for tensor in (tensors.data, tensors.hidden_state, tensors.cell_state):
            require(tensor.element == "f32", f"'{tensor.name}' must be f32, but got {tensor.element}")
        for gate in tensors.gates:
            recurrence.f32_vector(gate.bias, tensors.cells, "bias")
            recurrence.f32_vector(gate.norm, tensors.cells, "normalization")
            _peephole(gate)
        recurrence.f32_vector(tensors.projection_bias, tensors.width, "projection bias")
        gates, is_asymmetric = tensors.gates, options.is_asymmetric
        given = RowProduct(tuple(gate.weight for gate in gates), is_asymmetric)
        recurrent = RowProduct(tuple(gate.recurrence for gate in gates), is_asymmetric)
        projection = None if tensors.projection is None else RowProduct((tensors.projection,), is_asymmetric)
        return cls(tensors, steps, options, given, recurrent, projection)

    def emit(self, emitter: Emitter) -> ir.Value:
        """The sequence of hidden states."""
        return self.steps.joined(emitter, self.rows(emitter, emitter.value(self.tensors.data)))

    def rows(self, emitter: Emitter, data: ir.Value) -> list[ir.Value]:
        """The hidden state [B, P] after each step of a sequence."""
        count, batch, tensors = self.steps.count, self.steps.batch, self.tensors
        value = emitter.reshape(self.steps.time_first(emitter, data), (count * batch, tensors.data.shape[2]))
        bias = None if self.tensors.gates[0].norm is not None else self._biases()
        width = tensors.cells * len(tensors.gates)
        sums = emitter.reshape(self.given.emit(emitter, value, bias), (count, batch, width))

        def step(before: _FloatCell | None, index: int) -> tuple[_FloatCell | None, ir.Value]:
            after = self._step(emitter, self.steps.row(emitter, sums, index), before)
            return after, after.hidden

        return self.steps.run(None, step)

    def _biases(self) -> Array:
        cells = self.tensors.cells
        found = [recurrence.f32_vector(gate.bias, cells, "bias") for gate in self.tensors.gates]
        return np.concatenate([np.zeros(cells, np.float32) if bias is None else bias for bias in found])

    def _step(self, emitter: Emitter, sums: ir.Value, before: _FloatCell | None) -> _FloatCell:
        """States start at zero, where products with them are zero too."""
        if before is not None:
            sums = emitter.f32("addf", sums, self.recurrent.emit(emitter, before.hidden))
        *early, last = self.tensors.gates
        count = len(self.tensors.gates)
        parts = [recurrence.columns(emitter, sums, index, count) for index in range(count)]
        old = None if before is None else before.cell
        gates = [self._gate(emitter, gate, part, old) for gate, part in zip(early, parts[:-1], strict=True)]
        cell = self._cell(emitter, gates, old)
        return _FloatCell(self._hidden(emitter, self._gate(emitter, last, parts[-1], cell), cell), cell)

    def _gate(self, emitter: Emitter, gate: Gate, sums: ir.Value, cell: ir.Value | None) -> ir.Value:
        s, peephole = emitter.f32, _peephole(gate)
        if peephole is not None and cell is not None:
            sums = s("addf", sums, s("mulf", emitter.constant(peephole), cell))
        if gate.norm is not None:
            scaled = s("mulf", _normalized(emitter, sums), emitter.value(gate.norm))
            sums = scaled if gate.bias is None else s("addf", scaled, emitter.value(gate.bias))
        return emitter.expression(self.options.activation if gate.is_cell else activations.sigmoid, sums)

    def _cell(self, emitter: Emitter, gates: Sequence[ir.Value], before: ir.Value | None) -> ir.Value:
        """``f * c + i * g``, limited; without i, ``1 - f`` is that."""
        *first, forget, candidate = gates
        s = emitter.f32
        taken = first[0] if first else s("subf", 1.0, forget)
        fresh = s("mulf", candidate, taken)
        cell = fresh if before is None else s("addf", s("mulf", forget, before), fresh)
        return _limited(s, cell, self.options.cell_clip)

    def _hidden(self, emitter: Emitter, gate: ir.Value, cell: ir.Value) -> ir.Value:
        """``o * activation(c)``, projected."""
        s = emitter.f32
        value = s("mulf", gate, emitter.expression(self.options.activation, cell))
        if self.projection is None:
            return value
        bias = recurrence.f32_vector(self.tensors.projection_bias, self.tensors.width, "projection bias")
        value = self.projection.emit(emitter, value, bias)
        return _limited(emitter.f32, value, self.options.projection_clip)


def _peephole(gate: Gate) -> Array | None:
    """The numbers that its weights stand for."""
    tensor: Tensor | None = gate.peephole
    if tensor is None or tensor.element == "f32":
        return None if tensor is None else constant(tensor, "peephole")
    require(tensor.element == "i8", f"peephole must be f32 or i8, but got {tensor.element}")
    check_scales(tensor, "peephole")
    require(not any(tensor.zero_points), "i8 peephole must have zero point 0")
    return constant(tensor, "peephole").astype(np.float32) * np.float32(tensor.scale)


def _limited(s: F32, value: ir.Value, clip: float) -> ir.Value:
    return s("maximumf", s("minimumf", value, clip), -clip) if clip > 0 else value


def _normalized(emitter: Emitter, value: ir.Value) -> ir.Value:
    """``(x - mean) / sqrt(variance + epsilon)`` of each row."""
    shape = shape_of(value.type)
    s = emitter.f32

    def mean(of: ir.Value) -> ir.Value:
        total = emitter.build(F32SumOp, of, element="f32", axes=(1,), keep_dims=True, in_order=True)
        return s("divf", total, float(shape[1]))

    centered = s("subf", value, mean(value))
    variance = mean(s("mulf", centered, centered))
    root = s("divf", 1.0, s("sqrt", s("addf", variance, _EPSILON)))
    return s("mulf", centered, root)
