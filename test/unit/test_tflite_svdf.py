"""SVDF, from zero states: in integers the bits of LiteRT's reference kernel."""

import numpy as np
import pytest
from litert import reference
from simple_recurrent_models import Svdf
from tolerances import assert_floats_within

from qdialect.frontends.tflite import import_tflite
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

INTEGER = Svdf()
FLOAT = Svdf(data=np.float32, weights=np.float32)
HYBRID = FLOAT.but(weights=np.int8)
EXACT = {
    "plain": INTEGER,
    "rank 1": INTEGER.but(rank=1, seed=1),
    "rank 3": INTEGER.but(rank=3, batch=1, memory=2, seed=2),
    "without bias": INTEGER.but(has_bias=False, seed=3),
}
NEAR = {
    "float": FLOAT,
    "float without bias": FLOAT.but(has_bias=False, activation=0, seed=1),
    "hybrid": HYBRID,
    "hybrid asymmetric": HYBRID.but(is_asymmetric=True, rank=1, seed=2),
}


@pytest.mark.parametrize("model", EXACT.values(), ids=EXACT)
def test_integers(model: Svdf) -> None:
    content, inputs = model.content(), model.inputs()
    (wanted,) = reference(content, inputs)
    assert len(np.unique(wanted)) > 5, "saturated"
    np.testing.assert_array_equal(interpreter.run(import_tflite(content), inputs)[0], wanted)


def test_integers_compiled() -> None:
    content, inputs = INTEGER.content(), INTEGER.inputs()
    (wanted,) = reference(content, inputs)
    np.testing.assert_array_equal(compile_module(import_tflite(content))(*inputs), wanted)


@pytest.mark.parametrize("model", NEAR.values(), ids=NEAR)
def test_floats(model: Svdf) -> None:
    content, inputs = model.content(), model.inputs()
    (wanted,) = reference(content, inputs)
    module = import_tflite(content)
    assert_floats_within(interpreter.run(module, inputs)[0], wanted, "cell")
    assert_floats_within(np.asarray(compile_module(module)(*inputs)), wanted, "cell")


REFUSED = [
    (INTEGER.but(activation=0), "fused activation must be RELU, but got 0"),
    (INTEGER.but(time=np.int8), "time weight must be i16, but got i8"),
]


@pytest.mark.parametrize(("model", "message"), REFUSED)
def test_what_is_refused(model: Svdf, message: str) -> None:
    with pytest.raises(ImportModelError, match=message):
        import_tflite(model.content())
