"""ONNX models against numbers that ONNX Runtime gave.

`tools/record/README.md` says what the families are and which version and options gave them.  Of the f32 sums ONNX
Runtime computes those results that its order of adding decides.
"""

import pytest
import recordings
from recordings import Recording
from tolerances import EXACT, Tolerance, assert_within, tolerance_of

from qdialect.frontends.onnx import import_onnx
from qdialect.reference import interpreter

FAMILIES = ("contractions", "elementwise", "movement", "resize", "softmax", "qdq_groups")
CASES = {
    f"{family}.{name}": case for family in FAMILIES for name, case in recordings.read_family(f"onnx_{family}").items()
}
LAYERS = recordings.read_family("onnx_layers")
SUMS = recordings.read_family("onnx_float_sums")


def check(case: Recording, tolerance: Tolerance) -> int:
    """How many elements of all outputs are away."""
    outputs = interpreter.run(import_onnx(case.model), list(case.inputs))
    for pair in zip(outputs, case.outputs, strict=True):
        assert_within(*pair, tolerance)
    return sum(int((found != wanted).sum()) for found, wanted in zip(outputs, case.outputs, strict=True))


@pytest.mark.parametrize("case", CASES)
def test_equals_the_recorded_output(case: str) -> None:
    assert check(CASES[case], EXACT) == 0


@pytest.mark.parametrize("case", LAYERS)
def test_layers_are_as_close_as_their_tolerance_says(case: str) -> None:
    check(LAYERS[case], tolerance_of(".onnx", case.rpartition("_")[0]))


@pytest.mark.parametrize("kind", sorted({case.partition("_")[0] for case in SUMS}))
def test_sums_of_floats_are_as_close_as_their_tolerance_says(kind: str) -> None:
    """And not closer: an operator whose cases are all equal would need none."""
    cases = [case for name, case in SUMS.items() if name.startswith(f"{kind}_")]
    tolerance = tolerance_of(".onnx", kind)
    assert (sum(check(case, tolerance) for case in cases) > 0) == (tolerance != EXACT)
