"""ONNX models against numbers that ONNX Runtime 1.31.1 gave, for contractions with graph optimization off.

Units are random networks of one operator each, between quantizations or in its QLinear form, with default optimization.

`vectors/onnx_*.npz` hold, for each case, a model, its inputs and its outputs.
"""

from pathlib import Path

import numpy as np
import pytest

from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter

FAMILIES = ("contractions", "movement", "resize", "softmax", "units")
VECTORS = [Path(__file__).parent / "vectors" / f"onnx_{family}.npz" for family in FAMILIES]
ARRAYS = {key: array for path in VECTORS for key, array in np.load(path).items()}
CASES = sorted({key.split(".")[0] for key in ARRAYS})


@pytest.mark.parametrize("case", CASES)
def test_equals_the_recorded_output(case: str) -> None:
    inputs = [ARRAYS[f"{case}.in{k}"] for k in range(sum(key.startswith(f"{case}.in") for key in ARRAYS))]
    outputs = interpreter.run(import_onnx(ARRAYS[f"{case}.model"].tobytes()), inputs)
    names = sorted(key for key in ARRAYS if key.startswith(f"{case}.out"))
    for output, name in zip(outputs, names, strict=True):
        expected = ARRAYS[name]
        assert output.dtype == expected.dtype
        assert output.shape == expected.shape
        assert np.count_nonzero(output != expected) == 0
