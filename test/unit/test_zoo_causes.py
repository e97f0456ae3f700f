"""tools/zoo/units/causes.py: whose result of a unit is how far from the truth."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from tools.zoo.report import report
from tools.zoo.results import Result, from_fields
from tools.zoo.truth.tracing import Exact
from tools.zoo.units.causes import Cause, causes


def _values(*entries: int) -> dict[str, np.ndarray]:
    return {"a": np.array(entries, np.uint8), "b": np.array([7], np.uint8)}


def test_elements_that_differ_are_held_against_the_truth() -> None:
    exact = Exact(np.array([3, 4, 9, 0], np.uint8), np.array([3.25, 4.4375, 9.0, -5.0]))
    same = Exact(np.array([7], np.uint8), np.array([7.0]))
    truth = {"a": exact, "b": same}
    # The first element is further away, but both have it.
    found = causes([_values(5, 4, 9, 0)] * 2, [_values(5, 5, 9, 1)] * 2, [truth] * 2)
    assert found == (Cause("a", 4, 0.0, 5.5),)
    (found,) = causes([_values(3, 5, 9, 0)], [_values(3, 4, 8, 0)], [truth])
    assert found == Cause("a", 2, 0.0625, 0.5)


def test_the_unit_that_differs_most_is_the_first() -> None:
    exact = {name: Exact(np.zeros(3, np.int8), np.zeros(3)) for name in "ab"}
    wanted = {name: np.zeros(3, np.int8) for name in "ab"}
    found = causes([{"a": np.array([0, 1, 0], np.int8), "b": np.ones(3, np.int8)}], [wanted], [exact])
    assert [cause.name for cause in found] == ["b", "a"]
    assert causes([wanted], [wanted], [exact]) == ()


CASES = [
    (Cause("q", 3, 1e-6, 0.0), "ties, of which the truth is at most 1e-06 of a step away"),
    (Cause("q", 3, 1e-6, 0.5), "the framework's arithmetic, up to 0.5 of a step from the truth; ours is at most 1e-06"),
    (Cause("q", 3, 0.25, 0.0), "our arithmetic, up to 0.2 of a step from the truth; the framework's is at most 0 of a"),
    (
        Cause("q", 3, 0.5, 2.0),
        "both are away from the truth: ours up to 0.5 of a step, the framework's up to 2 of a step",
    ),
]


@pytest.mark.parametrize(("cause", "text"), CASES)
def test_the_report_says_whose_arithmetic_it_is(cause: Cause, text: str) -> None:
    result = Result("gpt2", "qdq_u8s8", "native", causes=(cause,))
    assert from_fields(json.loads(json.dumps(asdict(result)))) == result
    assert f"- unit that differs: q (3): {text}" in report([result], {}, "small")
