"""ONNX models against numbers that ONNX Runtime 1.31.1 gave, for contractions with graph optimization off.

Units are random networks of one operator each, between quantizations or in its QLinear form, with default optimization.
Of the float sums ONNX Runtime computes in f32 those results that its order of adding decides.

`vectors/onnx_*.npz` hold, for each case, a model, its inputs and its outputs.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tolerances import EXACT, Tolerance, assert_within, tolerance_of

from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter

FAMILIES = ("contractions", "movement", "resize", "softmax", "units")
VECTORS = [Path(__file__).parent / "vectors" / f"onnx_{family}.npz" for family in FAMILIES]
ARRAYS = {key: array for path in VECTORS for key, array in np.load(path).items()}
CASES = sorted({key.split(".")[0] for key in ARRAYS})
SUMS = dict(np.load(Path(__file__).parent / "vectors" / "onnx_float_sums.npz"))
SUM_CASES = sorted({key.split(".")[0] for key in SUMS})


def check(arrays: Mapping[str, NDArray[Any]], case: str, tolerance: Tolerance) -> int:
    """How many elements of all outputs are away."""
    inputs = [arrays[f"{case}.in{k}"] for k in range(sum(key.startswith(f"{case}.in") for key in arrays))]
    outputs = interpreter.run(import_onnx(arrays[f"{case}.model"].tobytes()), inputs)
    wanted = [arrays[name] for name in sorted(key for key in arrays if key.startswith(f"{case}.out"))]
    for pair in zip(outputs, wanted, strict=True):
        assert_within(*pair, tolerance)
    return sum(int(np.count_nonzero(found != other)) for found, other in zip(outputs, wanted, strict=True))


@pytest.mark.parametrize("case", CASES)
def test_equals_the_recorded_output(case: str) -> None:
    check(ARRAYS, case, EXACT)


@pytest.mark.parametrize("kind", sorted({case.partition("_")[0] for case in SUM_CASES}))
def test_sums_of_floats_are_as_close_as_their_tolerance_says(kind: str) -> None:
    """And not closer: an operator whose cases are all equal would need none."""
    cases = [case for case in SUM_CASES if case.startswith(f"{kind}_")]
    assert sum(check(SUMS, case, tolerance_of(".onnx", kind)) for case in cases) > 0
