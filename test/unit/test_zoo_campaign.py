"""tools/zoo: models are made and measured once, failures are results, and the command writes its report."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tools.zoo.__main__ import forget, main, write
from tools.zoo.campaign import Campaign
from tools.zoo.child import Ended, Limits
from tools.zoo.distance import Difference, Distance
from tools.zoo.results import Result, Status, read
from tools.zoo.table import Entry

ENTRY = Entry("mlp", "qdq_u8s8")
LIMITS = Limits(1.0, 1.0)
MEASURED = Result(
    "mlp",
    "qdq_u8s8",
    "fallback",
    ("node 3: why",),
    0.5,
    1.25,
    Difference(1, 10, 0.5),
    Distance(0.1, 0.2),
    notes=("truth: absent",),
)
TIMED = replace(MEASURED, times={"qdialect": 0.001})


class Children:
    """Stands for child processes: making writes a model, measuring and timing a result, unless told to fail."""

    def __init__(self, folder: Path, **failures: str) -> None:
        self.started: list[list[str]] = []
        self._folder = folder / "mlp"
        self._failures = failures

    def __call__(self, module: str, arguments: list[str], limits: Limits) -> Ended:
        assert limits == LIMITS
        kind = module.removeprefix("tools.zoo.").removesuffix("_model")
        self.started.append([kind, *arguments[1:]])
        if kind in self._failures:
            return Ended("", self._failures[kind])
        self._folder.mkdir(exist_ok=True)
        if kind == "make":
            (self._folder / "mlp.qdq_u8s8.onnx").write_bytes(b"")
        else:
            (MEASURED if kind == "measure" else TIMED).write(self._folder / "mlp.qdq_u8s8.json")
        return Ended("")


def _campaign(folder: Path, children: Children, *, is_small: bool = False) -> Campaign:
    return Campaign(folder, LIMITS, is_small, children)


def test_a_model_is_made_and_then_measured(tmp_path: Path) -> None:
    children = Children(tmp_path)
    assert _campaign(tmp_path, children).result(ENTRY) == MEASURED
    assert children.started == [["make", "mlp", "qdq_u8s8"], ["measure", "mlp", "qdq_u8s8"]]


def test_the_size_is_passed_on(tmp_path: Path) -> None:
    children = Children(tmp_path)
    _campaign(tmp_path, children, is_small=True).result(ENTRY)
    assert [one[3:] for one in children.started] == [["small"], []]


def test_times_are_added_to_a_result(tmp_path: Path) -> None:
    children = Children(tmp_path)
    campaign = _campaign(tmp_path, children)
    assert campaign.result(ENTRY).times == {}
    assert campaign.timed(ENTRY) == TIMED
    assert children.started[2:] == [["time", "mlp", "qdq_u8s8"]]


def test_times_of_before_go_where_the_model_cannot_be_timed_any_more(tmp_path: Path) -> None:
    campaign = _campaign(tmp_path, Children(tmp_path, time="ended by SIGSEGV"))
    campaign.result(ENTRY)
    TIMED.write(tmp_path / "mlp" / "mlp.qdq_u8s8.json")
    found = campaign.timed(ENTRY)
    assert found == replace(MEASURED, untimed={"qdialect": "qdialect: ended by SIGSEGV"})
    assert read(tmp_path / "mlp" / "mlp.qdq_u8s8.json") == found


def test_a_model_that_does_not_run_is_not_timed(tmp_path: Path) -> None:
    children = Children(tmp_path, measure="ended by SIGSEGV")
    campaign = _campaign(tmp_path, children)
    found = campaign.result(ENTRY)
    assert campaign.timed(ENTRY) == found
    assert [one[0] for one in children.started] == ["make", "measure"]


def test_a_result_is_not_found_out_again(tmp_path: Path) -> None:
    _campaign(tmp_path, Children(tmp_path)).result(ENTRY)
    children = Children(tmp_path)
    assert _campaign(tmp_path, children).result(ENTRY) == MEASURED
    assert children.started == []


def test_a_forgotten_result_is_measured_again_with_the_same_model(tmp_path: Path) -> None:
    _campaign(tmp_path, Children(tmp_path)).result(ENTRY)
    forget(tmp_path, [ENTRY])
    children = Children(tmp_path)
    _campaign(tmp_path, children).result(ENTRY)
    assert [one[0] for one in children.started] == ["measure"]


@pytest.mark.parametrize(("step", "status"), [("make", "not made"), ("measure", "crashed")])
def test_the_failure_of_a_child_is_a_result_that_is_kept(tmp_path: Path, step: str, status: str) -> None:
    found = _campaign(tmp_path, Children(tmp_path, **{step: "ended by SIGSEGV"})).result(ENTRY)
    assert (found.status, found.reasons) == (status, ("ended by SIGSEGV",))
    assert read(tmp_path / "mlp" / "mlp.qdq_u8s8.json") == found


def test_the_report_is_written_as_a_page_and_as_data(tmp_path: Path) -> None:
    write(tmp_path / "new", [MEASURED], True)
    data = json.loads((tmp_path / "new" / "zoo.json").read_text())
    assert [one["network"] for one in data["results"]] == ["mlp"]
    assert "| mlp | fallback |" in (tmp_path / "new" / "ZOO.md").read_text()


@pytest.mark.parametrize(("status", "wanted"), [("native", 0), ("fallback", 0), ("refused", 1), ("crashed", 1)])
def test_the_exit_status_tells_whether_every_model_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], status: Status, wanted: int
) -> None:
    network = tmp_path / "zoo" / "full" / "mlp"
    network.mkdir(parents=True)
    Result("mlp", "qdq_u8s8", status).write(network / "mlp.qdq_u8s8.json")
    chosen = ["--networks", "mlp", "--flows", "qdq_u8s8", "--no-benchmark"]
    assert main([*chosen, "--folder", str(tmp_path / "zoo"), "--output-dir", str(tmp_path)]) == wanted
    assert capsys.readouterr().out == f"mlp qdq_u8s8: {status}\n"


def test_the_report_alone_has_what_has_a_result(tmp_path: Path) -> None:
    network = tmp_path / "zoo" / "small" / "mlp"
    network.mkdir(parents=True)
    MEASURED.write(network / "mlp.qdq_u8s8.json")
    assert main(["--small", "--report-only", "--folder", str(tmp_path / "zoo"), "--output-dir", str(tmp_path)]) == 0
    data = json.loads((tmp_path / "zoo.json").read_text())
    assert [(one["network"], one["flow"]) for one in data["results"]] == [("mlp", "qdq_u8s8")]


@pytest.mark.parametrize(("times", "started"), [({}, ["time"]), ({"qdialect": 0.5}, [])])
def test_the_command_times_what_has_no_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: dict[str, float], started: list[str]
) -> None:
    assert _command(tmp_path, monkeypatch, replace(MEASURED, times=times), []) == started


def test_times_measures_them_again_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _command(tmp_path, monkeypatch, TIMED, ["--times"]) == ["time"]
    assert "mlp qdq_u8s8: qdialect 1 ms\n" in capsys.readouterr().out
    assert json.loads((tmp_path / "zoo.json").read_text())["results"][0]["times"] == TIMED.times


def _command(folder: Path, monkeypatch: pytest.MonkeyPatch, result: Result, options: list[str]) -> list[str]:
    """The children that the command starts, where there is `result`."""
    network = folder / "full" / "mlp"
    network.mkdir(parents=True)
    result.write(network / "mlp.qdq_u8s8.json")
    children = Children(folder / "full")

    def run(module: str, arguments: list[str], limits: Limits) -> Ended:
        del limits
        return children(module, arguments, LIMITS)

    monkeypatch.setattr("tools.zoo.__main__.Campaign", partial(Campaign, run=run))
    chosen = ["--networks", "mlp", "--flows", "qdq_u8s8", "--folder", str(folder), "--output-dir", str(folder)]
    assert main([*chosen, *options]) == 0
    return [one[0] for one in children.started]


def test_times_alone_without_a_benchmark_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--times", "--no-benchmark"])
    assert "argument --times: not allowed with argument --no-benchmark" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--networks", "--flows"])
def test_an_unknown_name_is_told_with_the_known_ones(capsys: pytest.CaptureFixture[str], option: str) -> None:
    with pytest.raises(SystemExit):
        main([option, "mlp,qdq_u8s8,other"])
    told = capsys.readouterr().err
    assert "but got" in told
    assert ("mobilenet_v2" if option == "--networks" else "pt2e_x86") in told
