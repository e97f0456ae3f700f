"""Simple recurrent cells: LiteRT's reference kernels, but for the last bits of tanh."""

import numpy as np
import pytest
from litert import reference
from simple_recurrent_models import Rnn
from tolerances import assert_floats_within

from qdialect.frontends.tflite import import_tflite
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

SEQUENCE = Rnn()
ONE, BOTH = Rnn("RNN"), Rnn("BIDIRECTIONAL_SEQUENCE_RNN")
I8 = {"weights": np.int8}
VARIANTS = {
    "one step": ONE.but(batch=3),
    "one hybrid step": ONE.but(batch=3, **I8),
    "sequence": SEQUENCE,
    "batch": SEQUENCE.but(batch=3, seed=1),
    "time major": SEQUENCE.but(batch=3, is_time_major=True, seed=2),
    "relu": SEQUENCE.but(activation=1, seed=3),
    "hybrid": SEQUENCE.but(batch=2, seed=4, **I8),
    "hybrid asymmetric": SEQUENCE.but(batch=2, is_asymmetric=True, seed=5, **I8),
    "both": BOTH.but(batch=2),
    "both merged": BOTH.but(is_merged=True, seed=6),
    "both hybrid": BOTH.but(batch=2, is_asymmetric=True, seed=7, **I8),
    "auxiliary": BOTH.but(has_auxiliary=True, is_time_major=True, batch=2, seed=8),
}


def check(model: Rnn, *, compiles: bool) -> None:
    content, inputs = model.content(), model.inputs()
    wanted = reference(content, inputs)
    module = import_tflite(content)
    given = compile_module(module)(*inputs) if compiles else interpreter.run(module, inputs)
    found = given if isinstance(given, tuple | list) else [given]
    for value, one in zip(found, wanted, strict=True):
        assert_floats_within(value, one, "cell")


@pytest.mark.parametrize("model", VARIANTS.values(), ids=VARIANTS)
def test_cells(model: Rnn) -> None:
    check(model, compiles=False)


@pytest.mark.parametrize("name", ["one hybrid step", "both hybrid"])
def test_compiled_cells(name: str) -> None:
    check(VARIANTS[name], compiles=True)


def test_unknown_activations_are_refused() -> None:
    with pytest.raises(ImportModelError, match="fused activation 5 is not supported"):
        import_tflite(ONE.but(activation=5).content())
