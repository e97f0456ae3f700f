"""tools/zoo: models are made and measured once, failures are results, and the command writes its report."""

import json
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
    times={"qdialect": 0.001},
    notes=("truth: absent",),
)


class Children:
    """Stands for child processes: making writes a model, measuring a result, unless told to fail."""

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
            MEASURED.write(self._folder / "mlp.qdq_u8s8.json")
        return Ended("")


def _campaign(folder: Path, children: Children, *, is_small: bool = False, is_timed: bool = False) -> Campaign:
    return Campaign(folder, LIMITS, is_small, is_timed, children)


def test_a_model_is_made_and_then_measured(tmp_path: Path) -> None:
    children = Children(tmp_path)
    assert _campaign(tmp_path, children).result(ENTRY) == MEASURED
    assert children.started == [["make", "mlp", "qdq_u8s8"], ["measure", "mlp", "qdq_u8s8"]]


def test_size_and_timing_are_passed_on(tmp_path: Path) -> None:
    children = Children(tmp_path)
    _campaign(tmp_path, children, is_small=True, is_timed=True).result(ENTRY)
    assert [one[3:] for one in children.started] == [["small"], ["timed"]]


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
    chosen = ["--networks", "mlp", "--flows", "qdq_u8s8"]
    assert main([*chosen, "--folder", str(tmp_path / "zoo"), "--output-dir", str(tmp_path)]) == wanted
    assert capsys.readouterr().out == f"mlp qdq_u8s8: {status}\n"


def test_the_report_alone_has_what_has_a_result(tmp_path: Path) -> None:
    network = tmp_path / "zoo" / "small" / "mlp"
    network.mkdir(parents=True)
    MEASURED.write(network / "mlp.qdq_u8s8.json")
    assert main(["--small", "--report-only", "--folder", str(tmp_path / "zoo"), "--output-dir", str(tmp_path)]) == 0
    data = json.loads((tmp_path / "zoo.json").read_text())
    assert [(one["network"], one["flow"]) for one in data["results"]] == [("mlp", "qdq_u8s8")]


@pytest.mark.parametrize("option", ["--networks", "--flows"])
def test_an_unknown_name_is_told_with_the_known_ones(capsys: pytest.CaptureFixture[str], option: str) -> None:
    with pytest.raises(SystemExit):
        main([option, "mlp,qdq_u8s8,other"])
    told = capsys.readouterr().err
    assert "but got" in told
    assert ("mobilenet_v2" if option == "--networks" else "pt2e_x86") in told
