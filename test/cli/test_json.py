"""Reports of commands as JSON, for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper

from qdialect.cli import cache, import_model, run


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (2, 4)) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Log", ["x"], ["y"])], "graph", ports[:1], ports[1:])
    path = tmp_path_factory.mktemp("model") / "model.onnx"
    content = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10).SerializeToString()
    path.write_bytes(content)
    return str(path)


def report(command: Callable[[Sequence[str]], int], *arguments: str, capsys: pytest.CaptureFixture[str]) -> Any:
    assert command(arguments) == 0
    return json.loads(capsys.readouterr().out)


def test_reports(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = report(run.main, model, "--json", "--output-dir", str(tmp_path), capsys=capsys)
    assert found["inputs"] == [{"name": "x", "shape": [2, 4], "dtype": "float32", "scale": None, "zero_point": None}]
    assert found["results"][0]["shape"] == [2, 4]
    assert found["regions"][0]["runner"] == "qdialect"
    assert found["speed"] is None
    assert (tmp_path / "output0.npy").exists()
    found = report(run.main, model, "--json", "--benchmark", capsys=capsys)
    assert found["speed"]["seconds"] > 0
    found = report(import_model.main, model, "--report", "--json", capsys=capsys)
    assert found["nodes"][0]["node"]["kind"] == "Log"
    assert found["calls"][found["nodes"][0]["calls"][0]]["kernel"] == 0
    assert report(cache.main, "info", "--json", capsys=capsys)["limit"] > 0


REFUSED: list[tuple[Callable[[Sequence[str]], int], list[str], str]] = [
    (run.main, ["--reference"], "--reference must be given without --json"),
    (run.main, ["--benchmark", "--profile-ops"], "--profile-ops must be given without --json"),
    (import_model.main, [], "--json must be given with --report"),
]


@pytest.mark.parametrize(("command", "flags", "message"), REFUSED)
def test_what_has_no_json(
    command: Callable[[Sequence[str]], int],
    flags: list[str],
    message: str,
    model: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command([model, "--json", *flags]) == 1
    assert message in capsys.readouterr().err
