"""Long short-term memory of float32 activations: LiteRT's reference kernel, but for the last bits of e^x."""

import numpy as np
import pytest
from litert import reference
from recurrent_models import BidirectionalLstm, Lstm
from tolerances import assert_floats_within

from qdialect.frontends.tflite import import_tflite
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

FLOAT = Lstm(data=np.float32, weights=np.float32)
HYBRID = FLOAT.but(weights=np.int8)
VARIANTS = {
    "plain": FLOAT,
    "batch": FLOAT.but(batch=3, seed=1),
    "time major": FLOAT.but(batch=2, is_time_major=True, seed=2),
    "coupled": FLOAT.but(is_coupled=True, seed=3),
    "peepholes": FLOAT.but(has_peepholes=True, batch=2, seed=4),
    "projection": FLOAT.but(width=4, projection_clip=0.3, seed=5),
    "normalized": FLOAT.but(has_norms=True, batch=2, seed=6),
    "relu": FLOAT.but(activation=1, cell_clip=0.4, seed=7),
    "all": FLOAT.but(is_coupled=True, has_peepholes=True, has_norms=True, width=5, batch=2, seed=8),
    "hybrid": HYBRID,
    "hybrid batch": HYBRID.but(batch=3, seed=1),
    "hybrid asymmetric": HYBRID.but(is_asymmetric=True, batch=2, seed=2),
    "hybrid coupled": HYBRID.but(is_coupled=True, is_time_major=True, batch=2, seed=3),
    "hybrid all": HYBRID.but(has_peepholes=True, has_norms=True, width=5, batch=2, is_asymmetric=True, seed=4),
}
# LiteRT's kernel of both directions reads memory that nothing has written where several sequences are batch major.
BOTH = {
    "merged": BidirectionalLstm(FLOAT),
    "apart": BidirectionalLstm(FLOAT.but(seed=9), is_merged=False),
    "time major": BidirectionalLstm(FLOAT.but(batch=2, is_time_major=True)),
    "hybrid": BidirectionalLstm(HYBRID.but(batch=2, width=4, is_time_major=True, has_peepholes=True)),
    "auxiliary": BidirectionalLstm(FLOAT.but(batch=2, is_time_major=True), has_auxiliary=True),
    "hybrid asymmetric": BidirectionalLstm(HYBRID.but(is_asymmetric=True, is_coupled=True), is_merged=False),
}


def check(model: Lstm | BidirectionalLstm, *, compiles: bool) -> None:
    content, inputs = model.content(), model.inputs()
    wanted = reference(content, inputs)
    module = import_tflite(content)
    results = [tuple(interpreter.run(module, inputs))]
    if compiles:
        given = compile_module(module)(*inputs)
        results.append(given if isinstance(given, tuple) else (given,))
    for found in results:
        for value, one in zip(found, wanted, strict=True):
            assert_floats_within(value, one, "cell")


@pytest.mark.parametrize("model", VARIANTS.values(), ids=VARIANTS)
def test_one_direction(model: Lstm) -> None:
    check(model, compiles=False)


@pytest.mark.parametrize("name", ["all", "hybrid all"])
def test_one_direction_compiled(name: str) -> None:
    check(VARIANTS[name], compiles=True)


@pytest.mark.parametrize("model", BOTH.values(), ids=BOTH)
def test_both_directions(model: BidirectionalLstm) -> None:
    check(model, compiles=False)


def test_both_directions_compiled() -> None:
    check(BOTH["hybrid"], compiles=True)


def test_unknown_activations_are_refused() -> None:
    with pytest.raises(ImportModelError, match="fused activation 5 is not supported"):
        import_tflite(FLOAT.but(activation=5).content())
