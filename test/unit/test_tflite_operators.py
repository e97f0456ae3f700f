"""Every operator of the front end against numbers that the reference kernels of ai-edge-litert 2.3.0 gave.

The files `vectors/tflite_*.npz` hold, for each case, a model of one node with drawn shapes, options and parameters, its
inputs and its outputs.  The cases `_tie` have powers of two as scales: many quotients lie half-way between two
quantized values. ELU has no reference kernel; its numbers are those of the built-in one.
"""

from pathlib import Path

import numpy as np
import pytest

from qdialect.frontends.tflite import import_tflite, supported_operators
from qdialect.frontends.tflite.reader import read_graph
from qdialect.reference import interpreter

VECTORS = sorted((Path(__file__).parent / "vectors").glob("tflite_*.npz"))
ARRAYS = {key: array for path in VECTORS for key, array in np.load(path).items()}
CASES = sorted({key.split(".")[0] for key in ARRAYS})

# What only moves or renames quantized values and shapes is in test_tflite_import.
MOVEMENTS = {"RESHAPE", "SQUEEZE", "EXPAND_DIMS"}
# What is computed on f32 values alone is in test_tflite_real.
F32_VALUES = {"CEIL", "FLOOR", "ROUND", "SQUARE"}


@pytest.mark.parametrize("case", CASES)
def test_equals_the_recorded_output(case: str) -> None:
    inputs = [ARRAYS[f"{case}.in{k}"] for k in range(sum(key.startswith(f"{case}.in") for key in ARRAYS))]
    outputs = interpreter.run(import_tflite(ARRAYS[f"{case}.model"].tobytes()), inputs)
    names = sorted(key for key in ARRAYS if key.startswith(f"{case}.out"))
    for output, name in zip(outputs, names, strict=True):
        expected = ARRAYS[name]
        assert output.dtype == expected.dtype
        assert output.shape == expected.shape
        assert np.count_nonzero(output != expected) == 0


def test_every_operator_has_a_case() -> None:
    kinds = {read_graph(ARRAYS[f"{case}.model"].tobytes()).operators[0].kind for case in CASES}
    assert kinds == set(supported_operators()) - MOVEMENTS - F32_VALUES
