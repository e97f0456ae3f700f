"""What the benchmark says about a run: goals, tables and pictures, from recorded figures."""

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qdialect.bench import pictures, report
from qdialect.bench.core_share import CoreShare
from qdialect.bench.footprint import Footprint
from qdialect.bench.goals import duration, judge
from qdialect.bench.results import Measurement, Results, Rounds, Row
from qdialect.cli import bench
from qdialect.cli.bench import measurement_table
from qdialect.support.diagnostics import InputError

PEAK = 200e9
MACS = 1_000_000


def row(engine: str, share: float, variant: str = "qdq", **fields: Any) -> Row:
    made = Row(engine, variant, seconds=MACS / PEAK / share, minimum=1e-6, upper=1e-5, calls=10)
    return replace(made, **fields)


def measurement(name: str, *rows: Row, kind: str = "layer", threads: int = 1) -> Measurement:
    return Measurement(name, kind, f"what {name} is", MACS, 50_000, threads, PEAK * threads, rows)


INEXACT: dict[str, Any] = {"is_exact": False, "different": 0.25, "largest": 2.0}
RESULTS = Results(
    machine={"cpu": "a fast one"},
    versions={"qdialect": "1.0", "onnxruntime": "2.0"},
    absent={"litert": "package 'ai_edge_litert' is not installed"},
    settings={"rounds": "3"},
    measurements=(
        measurement("W1", row("qdialect", 0.95), row("qdialect", 0.7, "other"), row("onnxruntime", 0.8)),
        measurement("W2", row("qdialect", 0.9), row("onnxruntime", 0.5), row("torch", 0.6, **INEXACT)),
        measurement("net", row("qdialect", 0.5), row("onnxruntime", 0.45), kind="model"),
        measurement("W3", row("qdialect", 0.5), Row("tvm", "relax", error="it broke")),
    ),
    limits={"L1": 200e9, "DRAM": 20e9},
    footprints=(Footprint("mobilenet_v1_025", 2.5, 300 << 20, 7, 30, 1100, 1000, 1300, 1000, 1200, 1000),),
    core_shares=(CoreShare("net", 2.5e-4, 0.6, 0.875, 0.08, 0.041),),
)


def verdicts(results: Results) -> dict[tuple[str, str], bool]:
    return {(v.what, v.figure): v.is_met for v in judge(results)}


def test_goals_are_judged() -> None:
    assert verdicts(RESULTS) == {
        ("W1", "95.0 %"): True,
        ("W2", "90.0 %"): False,
        ("W3", "50.0 %"): False,
        ("net", "1.11 times"): False,
        ("compiling mobilenet_v1_025", "2.50 s, 300 MiB"): True,
        ("memory of mobilenet_v1_025", "1.10 times"): True,
        ("memory of mobilenet_v1_025", "1.20 times"): False,
    }


def test_goals_are_those_of_the_instruction_of_the_peak() -> None:
    layers = (
        measurement("W1", row("qdialect", 0.74), row("onnxruntime", 0.8)),
        measurement("W2", row("qdialect", 0.76), row("onnxruntime", 0.5)),
        measurement("W3", row("qdialect", 0.3)),
        measurement("net", row("qdialect", 0.5), row("onnxruntime", 0.45), kind="model"),
    )
    results = replace(RESULTS, measurements=layers, footprints=(), loop="tdpbusd")
    assert [(v.what, v.goal, v.figure, v.is_met) for v in judge(results)] == [
        ("W1", "at least 75.0 % of bare tdpbusd", "74.0 %", False),
        ("W2", "at least 75.0 % of bare tdpbusd", "76.0 %", True),
        ("W1", "as fast as every engine", "0.92 times", False),
        ("W2", "as fast as every engine", "1.52 times", True),
        ("net", "1.25 times as fast as every engine", "1.11 times", False),
    ]
    page = report.markdown(results)
    assert "| peak, 1 thread | 200.0 GMAC/s, bare tdpbusd |" in page
    assert "bare tdpbusd" in pictures.shares(results)
    unknown = replace(results, loop="vpmaddwd and vpaddd")
    assert [v.what for v in judge(unknown)] == ["net"], "no goal was made for it"


def test_transformers_are_judged_by_the_fastest_engine() -> None:
    rows = row("qdialect", 0.56), row("onnxruntime", 0.4), row("torch", 0.3)
    found = tuple(measurement(name, *rows, kind="transformer") for name in ("T2", "T3"))
    results = replace(RESULTS, measurements=found, footprints=())
    met = [(verdict.what, verdict.goal, verdict.is_met) for verdict in judge(results)]
    assert met == [
        ("T2", "1.5 times as fast as every engine", False),
        ("T3", "1.25 times as fast as every engine", True),
    ]


def test_two_threads_are_judged_by_one() -> None:
    slow = Row("qdialect", "qdq", seconds=2e-3)
    one, two = (measurement("net", slow, kind="network", threads=threads) for threads in (1, 2))
    faster = replace(two, rows=(replace(slow, seconds=1e-3),))
    assert verdicts(replace(RESULTS, measurements=(one, faster), footprints=())) == {("net", "2.00 times"): True}
    assert verdicts(replace(RESULTS, measurements=(one, two), footprints=())) == {("net", "1.00 times"): False}


def test_the_best_of_the_others_says_whether_it_is_exact() -> None:
    (found,) = (v.best_peer for v in judge(RESULTS) if v.what == "W2")
    assert found == "50.0 % (onnxruntime); 60.0 % (torch, inexact)"


def test_results_survive_their_json_form() -> None:
    assert Results.from_json(RESULTS.to_json()) == RESULTS


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"version": 0}', '{"version": 1, "measurements": 3}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="results must"):
        Results.from_json(text)


def test_the_page_has_every_figure() -> None:
    page = report.markdown(RESULTS)
    assert "## Goals: 3 of 7 met" in page
    assert "| W1 | at least 94.0 % of bare vpdpbusd | 95.0 % | 80.0 % (onnxruntime) | met |" in page
    assert "| **W2** what W2 is | 5.556 us, 90.0 % | 10 us, 50.0 % | 8.333 us, 60.0 % \\* | 1.50 |" in page
    assert "| W2 | 25 % | 2 |" not in page
    assert "| torch | qdq | 8.333 us | 1 us | 10 us | 60.0 % | 25 % | 2 |" in page
    assert "- tvm relax: it broke" in page
    assert "- litert: package 'ai_edge_litert' is not installed" in page
    assert "| reads from L1 | 200.0 GB/s |" in page


def test_a_table_for_the_terminal_has_failures_below() -> None:
    lines = measurement_table(RESULTS.measurements[3]).splitlines()
    assert lines[0] == "W3: what W3 is, 1 thread, 1 million multiply-accumulates, peak 200.0 GMAC/s"
    assert lines[-1] == "tvm relax: it broke"


@pytest.mark.parametrize("picture", [pictures.shares, pictures.roofline])
def test_pictures_are_well_formed(picture: Callable[[Results], str]) -> None:
    for results in (RESULTS, replace(RESULTS, measurements=(), limits={})):
        root = ElementTree.fromstring(picture(results))
        assert root.tag.endswith("svg")


def test_there_is_a_bar_for_each_engine() -> None:
    bars = pictures.shares(RESULTS).count("opacity=")
    # The fastest variant of each: two, three, two and one.
    assert bars == 8
    assert pictures.shares(RESULTS).count('opacity="0.45"') == 1


def test_a_point_is_where_its_work_and_bytes_put_it() -> None:
    assert pictures.roofline(RESULTS).count(f'r="5" fill="{"#c96a12"}"') == 4


def test_a_roofline_of_matrix_tiles_is_higher() -> None:
    tiles = replace(RESULTS, measurements=tuple(replace(m, peak=3e12) for m in RESULTS.measurements))
    mark = ">3000</text>"
    assert mark in pictures.roofline(tiles)
    assert mark not in pictures.roofline(RESULTS)


def test_reports_are_written_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "results.json").write_text(RESULTS.to_json())
    assert bench.main(["--report-only", "--output-dir", str(tmp_path)]) == 0
    assert (tmp_path / "RESULTS.md").read_text() == report.markdown(RESULTS)
    assert {path.name for path in tmp_path.iterdir()} == {"results.json", "RESULTS.md", "shares.svg", "roofline.svg"}
    (tmp_path / "results.json").unlink()
    assert bench.main(["--report-only", "--output-dir", str(tmp_path)]) == 1
    assert "results.json" in capsys.readouterr().err


def test_rounds_become_a_row() -> None:
    agreed = {"elements": 8, "different": 2, "largest": 1.0, "is_exact": False}
    times: list[Mapping[str, Any]] = [
        {"median": m, "minimum": m / 2, "upper": m * 2, "calls": 5} for m in (3.0, 1.0, 2.0)
    ]
    assert Rounds("a", "b", agreed, times).row() == Row("a", "b", 2.0, 0.5, 4.0, 15, 0.25, 1.0, False)
    assert Rounds("a", "b", {"error": "no"}).row() == Row("a", "b", error="no")


def test_durations_have_a_unit_that_suits() -> None:
    assert [duration(s) for s in (2e-6, 1.5e-3, 2.0)] == ["2 us", "1.5 ms", "2 s"]


def test_the_share_of_the_core_is_told() -> None:
    lines = report.markdown(RESULTS).splitlines()
    assert "## Share of the core" in lines
    assert "| net | 250 us | 60.0 % | 87.5 % | 8.0 % | 4.1 % |" in lines
    assert Results.from_json(RESULTS.to_json()) == RESULTS
    older = json.loads(RESULTS.to_json())
    del older["core_shares"], older["loop"]
    assert Results.from_json(json.dumps(older)).core_shares == (), "results of before have none"
    assert Results.from_json(json.dumps(older)).loop == "vpdpbusd"
