"""tools/zoo/report.py and distance.py: what the numbers of the report mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_graphs import ModelBuilder, drawn

from qdialect.bench.units.agreement import Agreement, Difference, Distance, Ties, distance
from tools.zoo import calls
from tools.zoo.report import report
from tools.zoo.results import Result, from_fields
from tools.zoo.timing import timed
from tools.zoo.verdict import is_further, verdict

NEAR = Result(
    "bert", "qdq_u8s8", "native", (), 1.0, 2.5, Difference(3, 20, 0.25), Distance(0.1, 0.2), Distance(0.1, 0.3)
)


def test_a_distance_is_a_share_of_the_range_of_each_output() -> None:
    truth = [[np.array([0.0, 10.0]), np.array([0.0, 1.0])]]
    found = [[np.array([0.0, 9.0]), np.array([0.5, 1.0])]]
    assert distance(found, truth) == Distance((0.1 + 0.5) / 4, 0.5)


@pytest.mark.parametrize(
    ("ours", "what"), [((0.2, 0.3), "mean"), ((0.1, 0.4), "maximum"), ((0.2, 0.4), "mean and maximum")]
)
def test_what_is_further_is_named(ours: tuple[float, float], what: str) -> None:
    assert verdict(replace(NEAR, ours=Distance(*ours))) == f"further from the truth ({what})"


def test_a_framework_that_differs_from_itself_has_a_spread() -> None:
    further = replace(NEAR, ours=Distance(0.15, 0.35))
    assert verdict(replace(further, plain=Distance(0.2, 0.4))) == "within the framework's spread"
    assert verdict(replace(further, plain=Distance(0.12, 0.4))) == "further from the truth (mean and maximum)"


def test_the_page_shows_each_flow_with_the_engines_that_were_timed() -> None:
    timed = replace(NEAR, network="gpt2", times={"qdialect": 0.001, "onnx_runtime": 0.0025})
    other = Result("resnet18", "pt2e_x86", "crashed", ("ended by SIGSEGV",))
    page = report([NEAR, timed, other], {"cpu": "some"}, "small inputs")
    head = "network | status | products compiled | compile s | elements different | largest | "
    head += "integer units | float units | units against the truth: ours | framework | ours to truth | "
    head += "framework to truth | unoptimized to truth | verdict |"
    assert f"| {head} qdialect ms | onnx_runtime ms | factor |" in page
    row = "| gpt2 | native | 100 % | 2.5 | 3 of 20 | 0.25 | - | - | - | - | 0.1, 0.2 | 0.1, 0.3 | - |"
    assert f"{row} as near to the truth | 1 | 2.5 | 2.50 |" in page
    assert f"| {head}\n" in page
    assert "### resnet18, pt2e_x86: crashed\n\n- ended by SIGSEGV\n" in page
    assert "| all | 2 | 0 | 0 | 1 | 0 |" in page
    assert "- as near to the truth: 2" in page


def test_units_are_columns_and_those_that_differ_are_named() -> None:
    units = replace(NEAR, integer_units=Agreement(4, 0, 100, 0), float_units=Agreement(2, 3, 50, 2, ("softmax (3)",)))
    assert from_fields(json.loads(json.dumps(asdict(units)))) == units
    page = report([units, NEAR], {}, "small")
    assert "| 0 of 100 | 3 of 50, by 2 at most | - | - |" in page
    assert "- float units that differ: softmax (3)" in page
    assert "| - | - | - | - | 0.1, 0.2 |" in page


def test_a_distance_that_ties_explain_is_named_so() -> None:
    further = replace(NEAR, ours=Distance(0.2, 0.2))
    assert is_further(further)
    ties = replace(further, flipped=Ties(1, 2, 50, 2.61e-6))
    assert is_further(ties)
    assert verdict(ties) == "amplified ties: 2 elements in 1 unit, at most 3e-06 of a step from a tie"
    assert "- amplified ties: 1\n" in report([ties], {}, "small")
    assert verdict(replace(NEAR, flipped=ties.flipped)) == "as near to the truth"


# tools/zoo/timing.py: engines that the test brings are loaded once and called alternately.

START = Result("dense", "qdq_u8s8", "native", notes=("kept",), times={"old": 1.0}, untimed={"old": "why"})
SAMPLE = (np.random.default_rng(0).standard_normal((2, 16)).astype(np.float32),)


def _dense(path: Path) -> Path:
    builder = ModelBuilder()
    data = builder.dequantize(builder.quantize(builder.input("x", (2, 16)), (0.02, 128)), (0.02, 128))
    product = builder.node("MatMul", data, builder.weight(drawn((16, 8), np.int8), 0.01))
    path.write_bytes(builder.finish(product, dtype=np.float32))
    return path


def _calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every call of ONNX Runtime; OpenVINO takes no model."""
    seen: list[str] = []

    def load_call(name: str, path: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> Callable[[], None]:
        assert Path(path).exists()
        assert [array.shape for array in (*inputs, *outputs)] == [(2, 16), (2, 8)]
        if name == "open_vino":
            raise ValueError("not\ntaken")
        return lambda: seen.append(name)

    monkeypatch.setattr(calls, "load_call", load_call)
    return seen


def test_engines_that_fail_have_a_reason_and_the_others_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = _calls(monkeypatch)
    monkeypatch.setattr("tools.zoo.timing._SECONDS", 0.01)
    found = timed(START, _dense(tmp_path / "dense.onnx"), SAMPLE)
    assert list(found.times) == ["qdialect", "onnx_runtime"]
    assert min(found.times.values()) > 0
    assert found.untimed == {"open_vino": "open_vino: ValueError: not taken"}
    assert (found.status, found.notes) == ("native", ("kept",))
    assert seen
