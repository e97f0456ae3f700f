"""UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM: states are zero at the start of a call."""

from __future__ import annotations

from dataclasses import replace

import tflite

from qdialect._mlir import ir
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Tensor
from qdialect.frontends.tflite.operators.cell_activation import cell_activation
from qdialect.frontends.tflite.operators.float_lstm import FloatLstm, LstmOptions
from qdialect.frontends.tflite.operators.integer_lstm import IntegerLstm
from qdialect.frontends.tflite.operators.lstm_tensors import LONGEST, SHORTEST, LstmTensors
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.operators.sequence import Steps, of_both
from qdialect.frontends.tflite.reader import read_options

# Of BIDIRECTIONAL_SEQUENCE_LSTM: where the tensors of each direction stand, as the operator of one direction has them.
_FORWARD = (0, *range(1, 18), 35, 36)
_BACKWARD = (0, *range(18, 35), 37, 38)
_AUXILIARY, _BOTH = 39, 48


@imports("UNIDIRECTIONAL_SEQUENCE_LSTM")
def _lstm(operator: Operator) -> Emission:
    def read(options: tflite.UnidirectionalSequenceLSTMOptions) -> tuple[int, float, float, bool, bool]:
        clips, is_asymmetric = (options.CellClip(), options.ProjClip()), bool(options.AsymmetricQuantizeInputs())
        require(not options.DiagonalRecurrentTensors(), "diagonals in place of recurrent weights are not supported")
        return options.FusedActivationFunction(), *clips, is_asymmetric, bool(options.TimeMajor())

    activation, cell_clip, projection_clip, is_asymmetric, is_time_major = read_options(
        operator, tflite.UnidirectionalSequenceLSTMOptions, read
    )
    found = len(operator.inputs)
    require(found in (SHORTEST, LONGEST), f"must have {SHORTEST} or {LONGEST} inputs, but got {found}")
    require(len(operator.outputs) == 1, f"must have 1 output, but got {len(operator.outputs)}")
    tensors = LstmTensors.of(operator.inputs)
    steps = Steps.of(tensors.data, is_time_major)
    if tensors.data.element == "f32":
        how = LstmOptions(cell_activation(activation), cell_clip, projection_clip, is_asymmetric)
        return FloatLstm.of(tensors, steps, how).emit
    is_tanh = activation == tflite.ActivationFunctionType.TANH
    require(is_tanh, f"fused activation must be TANH, but got {activation}")
    return IntegerLstm.of(tensors, operator.intermediates, steps, cell_clip, projection_clip).emit


@imports("BIDIRECTIONAL_SEQUENCE_LSTM")
def _bidirectional(operator: Operator) -> Emission:
    def read(options: tflite.BidirectionalSequenceLSTMOptions) -> tuple[LstmOptions, bool, bool]:
        activation = cell_activation(options.FusedActivationFunction())
        clips, is_asymmetric = (options.CellClip(), options.ProjClip()), bool(options.AsymmetricQuantizeInputs())
        return LstmOptions(activation, *clips, is_asymmetric), bool(options.TimeMajor()), bool(options.MergeOutputs())

    how, is_time_major, is_merged = read_options(operator, tflite.BidirectionalSequenceLSTMOptions, read)
    found, wanted = len(operator.outputs), 1 if is_merged else 2
    require(found == wanted, f"must have {wanted} outputs, but got {found}")
    require(len(operator.inputs) == _BOTH, f"must have {_BOTH} inputs, but got {len(operator.inputs)}")
    auxiliary = _auxiliary(operator)
    forward, backward = (LstmTensors.of([operator.inputs[index] for index in order]) for order in (_FORWARD, _BACKWARD))
    if auxiliary is not None:
        backward = replace(backward, data=auxiliary)
        backward.check_shapes()
    steps = Steps.of(forward.data, is_time_major)
    cells = FloatLstm.of(forward, steps, how), FloatLstm.of(backward, replace(steps, is_reverse=True), how)

    def emit(emitter: Emitter) -> list[ir.Value]:
        return of_both(
            emitter, steps, [cell.rows(emitter, emitter.value(cell.tensors.data)) for cell in cells], is_merged
        )

    return emit


def _auxiliary(operator: Operator) -> Tensor | None:
    """What the direction that runs backwards reads instead of the input."""
    first, *weights = operator.inputs[_AUXILIARY:]
    has_weights = any(weight is not None for weight in weights)
    require(not has_weights, "weights of an auxiliary input are not supported")
    return first
