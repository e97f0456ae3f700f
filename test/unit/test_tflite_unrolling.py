"""Loops whose trip count is known: their trips take their place; all others are LiteRT's."""

from pathlib import Path

import numpy as np
import pytest
from litert import reference
from loop_models import Loop
from tolerances import assert_floats_within

import qdialect
from qdialect.frontends.tflite import import_tflite
from qdialect.frontends.tflite.flatbuffer.reader import read_graph
from qdialect.frontends.tflite.folding import fold_constants
from qdialect.reference import interpreter
from qdialect.runtime import compile_module
from qdialect.support.diagnostics import ImportModelError

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
