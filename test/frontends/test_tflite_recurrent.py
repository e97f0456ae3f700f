"""Recurrent layers of .tflite models, against LiteRT's reference kernels, and loops that are unrolled."""

from pathlib import Path

import numpy as np
import pytest
from recurrent_models import BidirectionalLstm, Loop, Lstm, Rnn
from tflite_graphs import reference
from tolerances import assert_floats_within

import qdialect
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.reader import read_graph
from qdialect.frontends.tflite.folding import fold_constants
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


# Long short-term memory in integers: the bits of LiteRT's reference kernel.

BASE = Lstm()
INTEGERS = {
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


@pytest.mark.parametrize("model", INTEGERS.values(), ids=INTEGERS)
def test_the_reference_has_the_kernels_bits(model: Lstm) -> None:
    content, inputs = model.content(), model.inputs()
    (wanted,) = reference(content, inputs)
    assert len(np.unique(wanted)) > min(20, wanted.size // 4), "saturated"
    np.testing.assert_array_equal(interpreter.run(import_tflite(content), inputs)[0], wanted)


@pytest.mark.parametrize(
    "name", ["plain", "batch", "coupled peepholes", "all", "all with normalization", "normalization of each gate apart"]
)
def test_compiled_it_has_the_kernels_bits(name: str) -> None:
    model = INTEGERS[name]
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


# Simple recurrent cells: LiteRT's reference kernels, but for the last bits of tanh.

SEQUENCE = Rnn()
ONE, TWO_WAYS = Rnn("RNN"), Rnn("BIDIRECTIONAL_SEQUENCE_RNN")
I8 = {"weights": np.int8}
CELLS = {
    "one step": ONE.but(batch=3),
    "one hybrid step": ONE.but(batch=3, **I8),
    "sequence": SEQUENCE,
    "batch": SEQUENCE.but(batch=3, seed=1),
    "time major": SEQUENCE.but(batch=3, is_time_major=True, seed=2),
    "relu": SEQUENCE.but(activation=1, seed=3),
    "hybrid": SEQUENCE.but(batch=2, seed=4, **I8),
    "hybrid asymmetric": SEQUENCE.but(batch=2, is_asymmetric=True, seed=5, **I8),
    "both": TWO_WAYS.but(batch=2),
    "both merged": TWO_WAYS.but(is_merged=True, seed=6),
    "both hybrid": TWO_WAYS.but(batch=2, is_asymmetric=True, seed=7, **I8),
    "auxiliary": TWO_WAYS.but(has_auxiliary=True, is_time_major=True, batch=2, seed=8),
}


def check_cell(model: Rnn, *, compiles: bool) -> None:
    content, inputs = model.content(), model.inputs()
    wanted = reference(content, inputs)
    module = import_tflite(content)
    given = compile_module(module)(*inputs) if compiles else interpreter.run(module, inputs)
    found = given if isinstance(given, tuple | list) else [given]
    for value, one in zip(found, wanted, strict=True):
        assert_floats_within(value, one, "cell")


@pytest.mark.parametrize("model", CELLS.values(), ids=CELLS)
def test_cells(model: Rnn) -> None:
    check_cell(model, compiles=False)


@pytest.mark.parametrize("name", ["one hybrid step", "both hybrid"])
def test_compiled_cells(name: str) -> None:
    check_cell(CELLS[name], compiles=True)


def test_unknown_activations_of_cells_are_refused() -> None:
    with pytest.raises(ImportModelError, match="fused activation 5 is not supported"):
        import_tflite(ONE.but(activation=5).content())


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
