"""Long short-term memory in integers: the bits of LiteRT's reference kernel."""

import numpy as np
import pytest
from litert import reference
from recurrent_models import Lstm

from qdialect.frontends.tflite import import_tflite
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

BASE = Lstm()
VARIANTS = {
    "plain": BASE,
    "one step": BASE.but(steps=1),
    "batch": BASE.but(batch=3, seed=1),
    "time major": BASE.but(batch=3, is_time_major=True, seed=2),
    "coupled": BASE.but(is_coupled=True, seed=3),
    "peepholes": BASE.but(has_peepholes=True, seed=4, batch=2),
    "coupled peepholes": BASE.but(has_peepholes=True, is_coupled=True, seed=5),
    "projection": BASE.but(width=4, seed=6),
    # Many hidden states are at the ends of their range.
    "saturated projection": BASE.but(width=13, batch=20, is_time_major=True, depth=30),
    "all": BASE.but(width=17, has_peepholes=True, batch=2, seed=7, cell_clip=1.5, projection_clip=0.5),
    "cell clip": BASE.but(cell_clip=0.75, seed=8),
    "small cell": BASE.but(cell_exponent=-15, seed=9),
    "large cell": BASE.but(cell_exponent=-9, seed=10),
    "normalization": BASE.but(has_norms=True, batch=2, seed=12),
    "coupled normalization": BASE.but(has_norms=True, is_coupled=True, is_time_major=True, seed=13),
    "normalization of a power of two": BASE.but(has_norms=True, cells=16, has_peepholes=True, seed=14),
    "all with normalization": BASE.but(width=5, has_norms=True, has_peepholes=True, batch=3, seed=15, cell_clip=1.5),
    "normalization of each gate apart": BASE.but(has_norms=True, gate_scales=(1.0, 0.5, 2.0, 0.9), seed=16),
    "peepholes of a narrow projection": BASE.but(width=4, has_peepholes=True, batch=3, seed=17),
    "peepholes of a narrow time-major projection": BASE.but(
        width=4, has_peepholes=True, batch=3, is_time_major=True, seed=18
    ),
    "wide": BASE.but(cells=40, depth=33, steps=9, seed=11),
}


@pytest.mark.parametrize("model", VARIANTS.values(), ids=VARIANTS)
def test_the_reference_has_the_kernels_bits(model: Lstm) -> None:
    content, inputs = model.content(), model.inputs()
    (wanted,) = reference(content, inputs)
    assert len(np.unique(wanted)) > min(20, wanted.size // 4), "saturated"
    np.testing.assert_array_equal(interpreter.run(import_tflite(content), inputs)[0], wanted)


@pytest.mark.parametrize(
    "name", ["plain", "batch", "coupled peepholes", "all", "all with normalization", "normalization of each gate apart"]
)
def test_compiled_it_has_the_kernels_bits(name: str) -> None:
    model = VARIANTS[name]
    content, inputs = model.content(), model.inputs()
    (wanted,) = reference(content, inputs)
    module = import_tflite(content)
    np.testing.assert_array_equal(compile_module(module)(*inputs), wanted)


def test_a_call_starts_from_zero_states() -> None:
    content, inputs = BASE.content(), BASE.inputs()
    executable = compile_module(import_tflite(content))
    first = executable(*inputs)
    np.testing.assert_array_equal(executable(*inputs), first)


REFUSED = [
    (BASE.but(cell_exponent=-8), "cell state scale must be in"),
    (BASE.but(activation=1), "fused activation must be TANH, but got 1"),
    (
        BASE.but(width=12, has_peepholes=True, batch=2, is_time_major=True),
        "peepholes of a time-major batch must be at least 12, but got 9",
    ),
    (BASE.but(steps=257), "input must have at most 256 time steps, but got 257"),
]


@pytest.mark.parametrize(("model", "message"), REFUSED)
def test_what_is_refused(model: Lstm, message: str) -> None:
    with pytest.raises(ImportModelError, match=message):
        import_tflite(model.content())
