"""The measured rows of docs/evidence: a sample of them is measured again, and what compares them tells differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tools.evidence import tables
from tools.evidence.case import Case, Key, Variant, measure, outcome_of
from tools.evidence.outcomes import EQUAL, Outcome, Rank, compare, compare_all, is_worse, worst
from tools.evidence.sources import SOURCES

_SAMPLED = {"onnx": 60, "tflite": 40, "torch": 150, "recorded": 120}
"""Of so many rows one is measured here."""


def _sample(name: str) -> list[Key]:
    rows = [key for key, outcome in sorted(tables.read(name).items()) if outcome.rank != Rank.INVALID]
    return rows[:: _SAMPLED[name]]


@pytest.mark.parametrize("name", SOURCES)
def test_no_row_of_the_sample_became_worse(name: str) -> None:
    known, source = tables.read(name), SOURCES[name]()
    keys = _sample(name)
    found = {key: measure(source, key) for key in keys}
    worse = {str(key): (str(one), str(known[key])) for key, one in found.items() if is_worse(one, known[key])}
    assert worse == {}
    assert keys, "nothing was measured; run 'make evidence'"


@pytest.mark.parametrize("name", SOURCES)
def test_no_row_is_wrong(name: str) -> None:
    assert {str(key): str(one) for key, one in tables.read(name).items() if one.is_fault} == {}


def test_rows_are_read_as_they_were_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "FOLDER", tmp_path / "evidence")
    rows = {
        Key("Add", "int8", "given", "add/test_add"): EQUAL,
        Key("Add", "int8 float32", "given", "add/other"): Outcome(Rank.REFUSED, "'t' has 1 unsupported: operand"),
    }
    assert tables.read("onnx") == {}
    tables.write("onnx", rows)
    assert tables.read("onnx") == rows


F32, I8 = np.float32, np.int8


@pytest.mark.parametrize(
    ("found", "wanted", "steps", "outcome"),
    [
        (np.zeros(2, I8), np.zeros(2, I8), 0, EQUAL),
        (np.zeros(2, I8), np.ones(2, I8), 0, Outcome(Rank.WRONG, "2 of 2 elements differ by at most 1")),
        (np.zeros(2, I8), np.ones(2, I8), 1, Outcome(Rank.NEAR, "a step")),
        (np.full(2, 127, I8), np.full(2, -128, I8), 1, Outcome(Rank.WRONG, "2 of 2 elements differ by at most 255")),
        (np.zeros(2, I8), np.zeros(2, F32), 9, Outcome(Rank.WRONG, "int8 of [2], but expected float32 of [2]")),
        (np.zeros(2, I8), np.zeros(3, I8), 9, Outcome(Rank.WRONG, "int8 of [2], but expected int8 of [3]")),
        (np.array([True]), np.array([False]), 1, Outcome(Rank.WRONG, "1 of 1 elements differ")),
        (np.array([np.nan, 1], F32), np.array([np.nan, 1], F32), 0, EQUAL),
        (np.array([np.nan], F32), np.array([1], F32), 0, Outcome(Rank.WRONG, "other infinities or NaNs")),
        (np.array([np.inf], F32), np.array([-np.inf], F32), 0, Outcome(Rank.WRONG, "other infinities or NaNs")),
        (np.array([-0.0], F32), np.array([0.0], F32), 0, Outcome(Rank.NEAR, "signs of zeros")),
        (np.array([1 + 1e-6, 1], F32), np.ones(2, F32), 0, Outcome(Rank.NEAR, "1e-6")),
        (np.array([1.001, 1], F32), np.ones(2, F32), 0, Outcome(Rank.WRONG, "0.001 of the range away")),
        (np.array([1 + 1j]), np.array([1 + 2j]), 0, Outcome(Rank.WRONG, "0.5 of the range away")),
    ],
)
def test_results_are_compared(found: Any, wanted: Any, steps: int, outcome: Outcome) -> None:
    assert compare(found, wanted, steps) == outcome


def test_every_output_is_compared() -> None:
    one = np.ones(3, I8)
    assert compare_all([one, one], [one, one], 0) == EQUAL
    assert compare_all([one, one], [one, one + I8(1)], 0).rank == Rank.WRONG
    assert compare_all([one], [one, one], 0) == Outcome(Rank.WRONG, "1 outputs, but expected 2")
    assert worst([EQUAL, Outcome(Rank.NEAR, "a step"), EQUAL]) == Outcome(Rank.NEAR, "a step")


@pytest.mark.parametrize(
    ("found", "known", "worse"),
    [
        (Rank.EQUAL, Rank.NEAR, False),
        (Rank.NEAR, Rank.EQUAL, True),
        (Rank.FRAMEWORK, Rank.NEAR, True),
        (Rank.REFUSED, Rank.FRAMEWORK, True),
        (Rank.WRONG, Rank.REFUSED, True),
        (Rank.INVALID, Rank.EQUAL, False),
        (Rank.EQUAL, Rank.INVALID, False),
        (Rank.WRONG, Rank.INVALID, True),
    ],
)
def test_a_row_may_only_get_better(found: Rank, known: Rank, worse: bool) -> None:
    assert is_worse(Outcome(found), Outcome(known)) is worse


_MODEL = b"""
  func.func @main(%x: tensor<8xi8>) -> tensor<8xi8> {
    %y = "qnn.add"(%x, %x) {lhs_scale = 0.5 : f64, lhs_zero_point = 0 : i64, rhs_scale = 0.5 : f64,
      rhs_zero_point = 0 : i64, output_scale = 0.5 : f64, output_zero_point = 0 : i64,
      output_min = -128 : i64, output_max = 127 : i64}
      : (tensor<8xi8>, tensor<8xi8>) -> tensor<8xi8>
    func.return %y : tensor<8xi8>
  }"""
_X = np.arange(8, dtype=I8)


@pytest.mark.parametrize(
    ("case", "rank"),
    [
        (Case(".mlir", _MODEL, (_X,), (_X + _X,)), Rank.EQUAL),
        (Case(".mlir", _MODEL, (_X,), (_X + I8(2),)), Rank.WRONG),
        (Case(".mlir", _MODEL, (_X[:7],), (_X,)), Rank.REFUSED),
        (Case(".mlir", b"nothing", (_X,), (_X,)), Rank.REFUSED),
    ],
)
def test_a_case_is_compiled_and_compared(case: Case, rank: Rank) -> None:
    assert outcome_of(case, [Variant(), Variant("generic", threads=2), Variant(is_saved=True)]).rank == rank
