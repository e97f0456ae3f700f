"""The table of tolerances: it names operators that exist, and the tests of front ends compare with nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tolerances import EXACT, TOLERANCES, Tolerance, assert_floats_within, assert_within, loosest, tolerance_of

from qdialect.frontends.model_files import FORMATS

TEST = Path(__file__).resolve().parents[1]
KINDS = ("onnx", "tflite", "torch", "tosa", "models")
FILES = [
    path
    for path in sorted(TEST.rglob("test_*.py"))
    # The zoo's own evaluators are no front ends.
    if any(kind in path.stem for kind in KINDS) and not path.stem.startswith("test_zoo_")
]
# Comparisons that have a bound of their own.
BOUNDED = {"allclose", "assert_allclose", "isclose", "approx", "assert_array_almost_equal", "assert_almost_equal"}


def own_tolerances(source: str) -> Iterator[int]:
    """The lines of a test that compare with a tolerance that stands there."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _name(node.func) in BOUNDED:
            yield node.lineno
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt | ast.LtE):
            left, right = node.left, node.comparators[0]
            called = {_name(inner.func) for inner in ast.walk(left) if isinstance(inner, ast.Call)}
            if ("count_nonzero" in called or {"max", "abs"} <= called) and _is_number(right):
                yield node.lineno


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_number(node: ast.expr) -> bool:
    return all(isinstance(inner, ast.Constant | ast.BinOp | ast.operator) for inner in ast.walk(node))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_front_ends_compare_with_the_table_alone(path: Path) -> None:
    assert list(own_tolerances(path.read_text())) == []


@pytest.mark.parametrize(
    "line",
    [
        "assert np.allclose(found, wanted, rtol=1e-3)",
        "np.testing.assert_allclose(found, wanted)",
        "assert np.count_nonzero(found != wanted) <= 3",
        "assert np.abs(found - wanted).max() <= 1",
        "assert np.max(np.abs(found - wanted)) < 2",
    ],
)
def test_another_tolerance_is_found(line: str) -> None:
    assert list(own_tolerances(line)) == [1]


@pytest.mark.parametrize("suffix", TOLERANCES)
def test_the_table_names_operators_that_exist(suffix: str) -> None:
    assert set(TOLERANCES[suffix]) <= set(FORMATS[suffix].operators())


def test_what_has_no_entry_is_exact() -> None:
    assert str(tolerance_of(".tflite", "ADD")) == "exact"
    assert loosest(".pt2", []) == EXACT
    assert loosest(".pt2", ["aten.relu.default", "aten.mm.default", "aten.add.Tensor"]).share == 0.001
    assert str(Tolerance(2, 0.001, "why")) == "2 steps in at most 0.1 % of the elements: why"


def test_comparisons_refuse_what_is_too_far() -> None:
    wanted = np.zeros(100, dtype=np.int8)
    one, far = wanted.copy(), wanted.copy()
    one[3], far[3] = 1, 2
    assert_within(one, wanted, Tolerance(1, 0.01, "why"))
    for found, tolerance in ((one, EXACT), (far, Tolerance(1, 0.01, "why")), (one, Tolerance(1, 0.009, "why"))):
        with pytest.raises(AssertionError):
            assert_within(found, wanted, tolerance)
    with pytest.raises(AssertionError):
        assert_within(wanted.astype(np.int16), wanted, EXACT)
    with pytest.raises(AssertionError):
        assert_floats_within(np.array([1.0001]), np.array([1.0]), "layer")
