"""RNN, UNIDIRECTIONAL_SEQUENCE_RNN and BIDIRECTIONAL_SEQUENCE_RNN: states are zero at the start of a call.

Weights are of float32, or of i8 ("hybrid"); the operations are those of TFLite's RnnBatchStep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import tflite

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Array, require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Tensor
from qdialect.frontends.tflite.operators.cell_activation import cell_activation
from qdialect.frontends.tflite.operators.f32 import F32Builder
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.operators.row_product import RowProduct, f32_vector
from qdialect.frontends.tflite.operators.sequence import Steps, check_matrix, of_both
from qdialect.frontends.tflite.reader import read_options
from qdialect.quant_math.expressions import Expression

_INPUTS = 5
# Of BIDIRECTIONAL_SEQUENCE_RNN: weights, recurrent weights and bias of each direction, and the auxiliary input.
_FORWARD, _BACKWARD, _AUXILIARY, _BOTH = slice(1, 4), slice(5, 8), 9, 12


@dataclass(frozen=True)
class _Cell:
    """``activation(x W + b + h R)``, checked."""

    data: Tensor
    steps: Steps
    given: RowProduct
    recurrent: RowProduct
    bias: Array
    activation: Expression

    @classmethod
    def of(
        cls, data: Tensor, parts: Sequence[Tensor | None], steps: Steps, activation: Expression, is_asymmetric: bool
    ) -> _Cell:
        """`parts` are weights, recurrent weights and bias; raises `UnsupportedError`."""
        weight, recurrence, bias = parts
        require(weight is not None and recurrence is not None, "weights must be given")
        assert weight is not None
        assert recurrence is not None
        require(data.element == "f32", f"input must be f32, but got {data.element}")
        require(len(weight.shape) == 2, f"weight must have 2 dimensions, but got {len(weight.shape)}")
        units = weight.shape[0]
        check_matrix(weight, (units, data.shape[-1]), "weight")
        check_matrix(recurrence, (units, units), "recurrent weight")
        start = f32_vector(bias, units, "bias")
        require(start is not None, "bias must be given")
        assert start is not None
        given, recurrent = RowProduct((weight,), is_asymmetric), RowProduct((recurrence,), is_asymmetric)
        return cls(data, steps, given, recurrent, start, activation)

    def rows(self, emitter: Emitter) -> list[ir.Value]:
        """The state [B, H] after each step of the sequence."""
        count, batch = self.steps.count, self.steps.batch
        value = self.steps.time_first(emitter, emitter.reshape(emitter.value(self.data), self._sequence_shape()))
        value = emitter.reshape(value, (count * batch, self.data.shape[-1]))
        total = self.given.emit(emitter, value, self.bias)
        sums = emitter.reshape(total, (count, batch, len(self.bias)))

        def step(before: ir.Value | None, index: int) -> tuple[ir.Value | None, ir.Value]:
            row = self.steps.row(emitter, sums, index)
            if before is not None:
                row = F32Builder(emitter, shape_of(row.type))("addf", row, self.recurrent.emit(emitter, before))
            after = emitter.expression(self.activation, row)
            return after, after

        return self.steps.run(None, step)

    def _sequence_shape(self) -> tuple[int, int, int]:
        count, batch, depth = self.steps.count, self.steps.batch, self.data.shape[-1]
        return (count, batch, depth) if self.steps.is_time_major else (batch, count, depth)


def _input(operator: Operator, count: int, dimensions: int) -> Tensor:
    found = len(operator.inputs)
    require(found == count, f"must have {count} inputs, but got {found}")
    data = operator.inputs[0]
    holds = data is not None and len(data.shape) == dimensions
    require(holds, f"input must have {dimensions} dimensions")
    assert data is not None
    return data


@imports("RNN")
def _rnn(operator: Operator) -> Emission:
    """One step."""

    def read(options: tflite.RNNOptions) -> tuple[int, bool]:
        return options.FusedActivationFunction(), bool(options.AsymmetricQuantizeInputs())

    activation, is_asymmetric = read_options(operator, tflite.RNNOptions, read)
    data = _input(operator, _INPUTS, 2)
    steps = Steps(1, data.shape[0], is_time_major=True)
    cell = _Cell.of(data, operator.inputs[_FORWARD], steps, cell_activation(activation), is_asymmetric)
    require(len(operator.outputs) == 1, f"must have 1 output, but got {len(operator.outputs)}")
    return lambda emitter: cell.rows(emitter)[0]


@imports("UNIDIRECTIONAL_SEQUENCE_RNN")
def _sequence(operator: Operator) -> Emission:
    def read(options: tflite.SequenceRNNOptions) -> tuple[int, bool, bool]:
        is_asymmetric = bool(options.AsymmetricQuantizeInputs())
        return options.FusedActivationFunction(), bool(options.TimeMajor()), is_asymmetric

    activation, is_time_major, is_asymmetric = read_options(operator, tflite.SequenceRNNOptions, read)
    data = _input(operator, _INPUTS, 3)
    steps = Steps.of(data, is_time_major)
    cell = _Cell.of(data, operator.inputs[_FORWARD], steps, cell_activation(activation), is_asymmetric)
    require(len(operator.outputs) == 1, f"must have 1 output, but got {len(operator.outputs)}")
    return lambda emitter: steps.joined(emitter, cell.rows(emitter))


@imports("BIDIRECTIONAL_SEQUENCE_RNN")
def _both(operator: Operator) -> Emission:
    def read(options: tflite.BidirectionalSequenceRNNOptions) -> tuple[int, bool, bool, bool]:
        ways = bool(options.TimeMajor()), bool(options.MergeOutputs()), bool(options.AsymmetricQuantizeInputs())
        return options.FusedActivationFunction(), *ways

    kind, is_time_major, is_merged, is_asymmetric = read_options(operator, tflite.BidirectionalSequenceRNNOptions, read)
    data, activation = _input(operator, _BOTH, 3), cell_activation(kind)
    auxiliary, *weights = operator.inputs[_AUXILIARY:]
    has_weights = any(weight is not None for weight in weights)
    require(not has_weights, "weights of an auxiliary input are not supported")
    found, wanted = len(operator.outputs), 1 if is_merged else 2
    require(found == wanted, f"must have {wanted} outputs, but got {found}")
    steps = Steps.of(data, is_time_major)
    forward = _Cell.of(data, operator.inputs[_FORWARD], steps, activation, is_asymmetric)
    behind = replace(steps, is_reverse=True)
    backward = _Cell.of(auxiliary or data, operator.inputs[_BACKWARD], behind, activation, is_asymmetric)
    require(backward.data.shape[:2] == data.shape[:2], "auxiliary input must have the input's steps and batch")
    return lambda emitter: of_both(emitter, steps, [forward.rows(emitter), backward.rows(emitter)], is_merged)
