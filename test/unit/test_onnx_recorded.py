"""Contractions of ONNX models against numbers that ONNX Runtime 1.31.1 gave, graph optimization off.

`vectors/onnx_contractions.npz` holds, for each case, a model, its inputs and its output.
"""

from pathlib import Path

import numpy as np
import pytest

from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter

ARRAYS = dict(np.load(Path(__file__).parent / "vectors" / "onnx_contractions.npz"))
CASES = sorted({key.split(".")[0] for key in ARRAYS})


@pytest.mark.parametrize("case", CASES)
def test_equals_the_recorded_output(case: str) -> None:
    inputs = [ARRAYS[f"{case}.in{k}"] for k in range(sum(key.startswith(f"{case}.in") for key in ARRAYS))]
    (output,) = interpreter.run(import_onnx(ARRAYS[f"{case}.model"].tobytes()), inputs)
    expected = ARRAYS[f"{case}.out"]
    assert output.dtype == expected.dtype
    assert output.shape == expected.shape
    assert np.count_nonzero(output != expected) == 0
