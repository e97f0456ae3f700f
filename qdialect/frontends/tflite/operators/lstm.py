"""UNIDIRECTIONAL_SEQUENCE_LSTM: states are zero at the start of a call."""

from __future__ import annotations

import tflite

from qdialect.frontends.common import require
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.integer_lstm import IntegerLstm
from qdialect.frontends.tflite.operators.lstm_tensors import LstmTensors
from qdialect.frontends.tflite.operators.registry import Emission, imports
from qdialect.frontends.tflite.operators.sequence import Steps
from qdialect.frontends.tflite.reader import read_options


@imports("UNIDIRECTIONAL_SEQUENCE_LSTM")
def _lstm(operator: Operator) -> Emission:
    def read(options: tflite.UnidirectionalSequenceLSTMOptions) -> tuple[int, float, float, bool]:
        clips = options.CellClip(), options.ProjClip()
        return options.FusedActivationFunction(), *clips, bool(options.TimeMajor())

    activation, cell_clip, projection_clip, is_time_major = read_options(
        operator, tflite.UnidirectionalSequenceLSTMOptions, read
    )
    tensors = LstmTensors.of(operator)
    steps = Steps.of(tensors.data, is_time_major)
    is_tanh = activation == tflite.ActivationFunctionType.TANH
    require(is_tanh, f"fused activation must be TANH, but got {activation}")
    return IntegerLstm.of(tensors, operator.intermediates, steps, cell_clip, projection_clip).emit
