"""Recurrent layers of .tflite models, against LiteRT's reference kernels, and loops that are unrolled."""

from pathlib import Path

import numpy as np
import pytest
from recurrent_models import BidirectionalLstm, Loop, Lstm, Rnn, Svdf
from tflite_graphs import reference, refused
from tolerances import assert_floats_within

import qdialect
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.reader import read_graph
from qdialect.frontends.tflite.folding import fold_constants
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

Model = Lstm | BidirectionalLstm | Rnn | Svdf
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
    "both directions, merged": BidirectionalLstm(FLOAT),
    "both directions, apart": BidirectionalLstm(FLOAT.but(seed=9), is_merged=False),
    "both directions, time major": BidirectionalLstm(FLOAT.but(batch=2, is_time_major=True)),
    "both directions, hybrid": BidirectionalLstm(HYBRID.but(batch=2, width=4, is_time_major=True, has_peepholes=True)),
    "both directions, auxiliary": BidirectionalLstm(FLOAT.but(batch=2, is_time_major=True), has_auxiliary=True),
    "both directions, hybrid asymmetric": BidirectionalLstm(
        HYBRID.but(is_asymmetric=True, is_coupled=True), is_merged=False
    ),
}


# Long short-term memory in integers: the bits of LiteRT's reference kernel.

BASE = Lstm()
INTEGERS = {
    "plain integers": BASE,
    "one step": BASE.but(steps=1),
    "integers of a batch": BASE.but(batch=3, seed=1),
    "time-major integers": BASE.but(batch=3, is_time_major=True, seed=2),
    "coupled integers": BASE.but(is_coupled=True, seed=3),
    "peepholes of integers": BASE.but(has_peepholes=True, seed=4, batch=2),
    "coupled peepholes": BASE.but(has_peepholes=True, is_coupled=True, seed=5),
    "projection of integers": BASE.but(width=4, seed=6),
    # Many hidden states are at the ends of their range.
    "saturated projection": BASE.but(width=13, batch=20, is_time_major=True, depth=30),
    "all integers": BASE.but(width=17, has_peepholes=True, batch=2, seed=7, cell_clip=1.5, projection_clip=0.5),
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


def test_a_call_starts_from_zero_states() -> None:
    content, inputs = BASE.content(), BASE.inputs()
    executable = compile_module(import_tflite(content))
    first = executable(*inputs)
    np.testing.assert_array_equal(executable(*inputs), first)


# Simple recurrent cells: LiteRT's reference kernels, but for the last bits of tanh.

SEQUENCE = Rnn()
ONE, TWO_WAYS = Rnn("RNN"), Rnn("BIDIRECTIONAL_SEQUENCE_RNN")
I8 = {"weights": np.int8}
CELLS = {
    "one simple step": ONE.but(batch=3),
    "one hybrid step": ONE.but(batch=3, **I8),
    "sequence": SEQUENCE,
    "sequence, batch": SEQUENCE.but(batch=3, seed=1),
    "sequence, time major": SEQUENCE.but(batch=3, is_time_major=True, seed=2),
    "sequence, relu": SEQUENCE.but(activation=1, seed=3),
    "sequence, hybrid": SEQUENCE.but(batch=2, seed=4, **I8),
    "sequence, hybrid asymmetric": SEQUENCE.but(batch=2, is_asymmetric=True, seed=5, **I8),
    "both": TWO_WAYS.but(batch=2),
    "both merged": TWO_WAYS.but(is_merged=True, seed=6),
    "both hybrid": TWO_WAYS.but(batch=2, is_asymmetric=True, seed=7, **I8),
    "auxiliary": TWO_WAYS.but(has_auxiliary=True, is_time_major=True, batch=2, seed=8),
}


# SVDF, a stateful filter.

FILTER = Svdf()
FLOAT_FILTER = Svdf(data=np.float32, weights=np.float32)
HYBRID_FILTER = FLOAT_FILTER.but(weights=np.int8)
INTEGER_FILTERS = {
    "integer filter": FILTER,
    "integer filter of rank 1": FILTER.but(rank=1, seed=1),
    "integer filter of rank 3": FILTER.but(rank=3, batch=1, memory=2, seed=2),
    "integer filter without bias": FILTER.but(has_bias=False, seed=3),
}
FILTERS = {
    "filter": FLOAT_FILTER,
    "filter without bias": FLOAT_FILTER.but(has_bias=False, activation=0, seed=1),
    "hybrid filter": HYBRID_FILTER,
    "hybrid asymmetric filter": HYBRID_FILTER.but(is_asymmetric=True, rank=1, seed=2),
}

# All of them, from zero states: in integers the bits of the kernel, in floats but for the last bits of tanh.

EXACT: dict[str, Model] = {**INTEGERS, **INTEGER_FILTERS}
NEAR: dict[str, Model] = {**VARIANTS, **BOTH, **CELLS, **FILTERS}
COMPILED = {
    *("all", "hybrid all", "both directions, hybrid", "one hybrid step", "both hybrid", *FILTERS),
    *("plain integers", "integers of a batch", "coupled peepholes", "all integers", "all with normalization"),
    "normalization of each gate apart",
}


@pytest.mark.parametrize("name", [*EXACT, *NEAR])
def test_cells(name: str) -> None:
    model = {**EXACT, **NEAR}[name]
    content, inputs = model.content(), model.inputs()
    wanted, module = reference(content, inputs), import_tflite(content)
    found = [list(interpreter.run(module, inputs))]
    found += [compile_module(module).results(inputs)] if name in COMPILED else []
    assert name in NEAR or len(np.unique(wanted[0])) > min(20, wanted[0].size // 4), "saturated"
    for value, one in ((value, one) for results in found for value, one in zip(results, wanted, strict=True)):
        if name in EXACT:
            np.testing.assert_array_equal(value, one)
        else:
            assert_floats_within(value, one, "cell")


REFUSED: list[tuple[Model, str]] = [
    (FLOAT.but(activation=5), "fused activation 5 is not supported"),
    (ONE.but(activation=5), "fused activation 5 is not supported"),
    (BASE.but(cell_exponent=-8), "cell state scale must be in"),
    (BASE.but(activation=1), "fused activation must be TANH, but got 1"),
    (
        BASE.but(width=12, has_peepholes=True, batch=2, is_time_major=True),
        "peepholes of a time-major batch must be at least 12, but got 9",
    ),
    (BASE.but(steps=257), "input must have at most 256 time steps, but got 257"),
    (FILTER.but(activation=0), "fused activation must be RELU, but got 0"),
    (FILTER.but(time=np.int8), "time weight must be i16, but got i8"),
]


@pytest.mark.parametrize(("model", "message"), REFUSED)
def test_cells_that_are_refused(model: Model, message: str) -> None:
    assert message in refused(model.content())


# Loops whose trip count is known: their trips take their place; all others are LiteRT's.

LOOP = Loop()


def kinds(model: Loop) -> list[str]:
    graph = read_graph(model.content())
    return [operator.kind for operator in fold_constants(graph).operators]


@pytest.mark.parametrize("trips", [1, 5, 30])
def test_trips_take_the_place_of_a_loop(trips: int) -> None:
    model = LOOP.but(trips=trips)
    content, inputs = model.content(), model.inputs()
    (wanted,) = reference(content, inputs)
    module = import_tflite(content)
    assert_floats_within(interpreter.run(module, inputs)[0], wanted, "cell")
    assert_floats_within(np.asarray(compile_module(module)(*inputs)), wanted, "cell")


def test_a_list_of_rows_is_joined_once() -> None:
    found = kinds(LOOP)
    assert found.count("TANH") == 5
    assert found.count("CONCATENATION") == 1
    assert "SLICE" not in found


LEFT = {
    "the limit is known at run time only": LOOP.but(reads_limit=True),
    "too many trips": LOOP.but(trips=257),
    "the list is a result": LOOP.but(is_result=True),
    "an operator is not supported": LOOP.but(unsupported=True),
}


@pytest.mark.parametrize("model", LEFT.values(), ids=LEFT)
def test_other_loops_run_in_litert(model: Loop, tmp_path: Path) -> None:
    assert kinds(model)[0] == "WHILE"
    content, inputs = model.content(), model.inputs()
    with pytest.raises(ImportModelError, match="node 0 WHILE"):
        import_tflite(content)
    path = tmp_path / "loop.tflite"
    path.write_bytes(content)
    executable = qdialect.compile(path, profile="tflite", fallback="framework")
    (wanted,) = reference(content, inputs)
    np.testing.assert_array_equal(executable(*inputs), wanted)
