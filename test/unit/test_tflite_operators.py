"""Every operator of the front end against numbers that LiteRT's reference kernels gave.

`tools/record/README.md` says what the families are.  The cases `_tie` have powers of two as scales: many quotients lie
half-way between two quantized values.  ELU has no reference kernel; its numbers are those of the built-in one.
"""

import numpy as np
import pytest
import recordings

from qdialect.frontends.tflite import import_tflite, supported_operators
from qdialect.frontends.tflite.flatbuffer.reader import read_graph
from qdialect.reference import interpreter

CASES = {
    f"{path.stem}.{name}": case
    for path in sorted(recordings.FOLDER.glob("tflite_*.npz"))
    for name, case in recordings.read(path).items()
}

# What only moves or renames quantized values and shapes is in test_tflite_import.
MOVEMENTS = {"RESHAPE", "SQUEEZE", "EXPAND_DIMS"}
# What is computed on f32 values alone is in docs/evidence and test_tflite_f32_volumes.
F32_VALUES = {
    *("CONV_3D", "CONV_3D_TRANSPOSE", "L2_POOL_2D", "LOCAL_RESPONSE_NORMALIZATION"),
    *("CEIL", "FLOOR", "FLOOR_DIV", "REDUCE_PROD", "ROUND", "SQUARE"),
    *("COS", "LOG_SOFTMAX", "POW", "SIGN", "SIN"),
}
# What integers and booleans stand for themselves in is in docs/evidence and test_tflite_plain_operators.
PLAIN = {
    *("ADD_N", "BITCAST", "BITWISE_XOR", "DILATE", "EMBEDDING_LOOKUP", "FILL", "MATRIX_DIAG", "MATRIX_SET_DIAG"),
    *("RANGE", "REDUCE_ALL", "REDUCE_ANY", "RIGHT_SHIFT", "SPARSE_TO_DENSE", "ZEROS_LIKE"),
    *("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL"),
    *("LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "SELECT", "SELECT_V2", "FLOOR_MOD"),
}
# Sequences are compared with LiteRT itself, in the tests named after them.
RECURRENT = {
    *("BIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM"),
    *("BIDIRECTIONAL_SEQUENCE_RNN", "RNN", "SVDF", "UNIDIRECTIONAL_SEQUENCE_RNN"),
}
# So is what reads or writes at run-time indices, or gives them.
SCATTERS = {"SCATTER_ND", "SEGMENT_SUM", *(f"UNSORTED_SEGMENT_{kind}" for kind in ("MAX", "MIN", "PROD", "SUM"))}
INDEXED = {*SCATTERS, "CUMSUM", "DYNAMIC_UPDATE_SLICE", "GATHER_ND", "ONE_HOT", "REVERSE_SEQUENCE", "TOPK_V2"}


@pytest.mark.parametrize("case", CASES)
def test_equals_the_recorded_output(case: str) -> None:
    recorded = CASES[case]
    outputs = interpreter.run(import_tflite(recorded.model), list(recorded.inputs))
    for output, expected in zip(outputs, recorded.outputs, strict=True):
        assert output.dtype == expected.dtype
        assert output.shape == expected.shape
        assert np.count_nonzero(output != expected) == 0


def test_every_operator_has_a_case() -> None:
    kinds = {read_graph(case.model).operators[0].kind for case in CASES.values()}
    assert kinds == set(supported_operators()) - MOVEMENTS - F32_VALUES - PLAIN - RECURRENT - INDEXED
