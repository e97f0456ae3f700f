"""Partitioned models on the commands: what is said, what is refused, and the regions in their tables."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_graphs import ModelBuilder

from qdialect.cli import import_model, run

X = (0.04, 117)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A convolution, what is not supported, and a convolution."""
    b = ModelBuilder()
    weights = np.random.default_rng(0).integers(-127, 128, (4, 4, 3, 3)).astype(np.int8)
    value = b.dequantize(b.quantize(b.input("x", (1, 4, 16, 16)), X), X)
    value = b.dequantize(b.quantize(b.node("Conv", value, b.weight(weights, 0.01)), X), X)
    value = b.dequantize(b.quantize(b.node("Hardmax", value), X), X)
    value = b.dequantize(b.quantize(b.node("Conv", value, b.weight(weights, 0.01)), X), X)
    path = tmp_path_factory.mktemp("models") / "model.onnx"
    path.write_bytes(b.finish(value, dtype=np.float32))
    return str(path)


def test_a_run_says_in_one_line_what_the_framework_runs(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([model]) == 0
    said = capsys.readouterr()
    assert said.err.splitlines() == [
        "qdialect-run: warning: ONNX Runtime runs 2 of 13 nodes and 0 % of the multiply-accumulates: "
        "node 6 Hardmax ('t6'), node 7 QuantizeLinear ('t7')"
    ]
    rows = [line.split() for line in said.out.splitlines() if line.startswith("#")]
    assert [row[1] for row in rows] == ["qdialect", "ONNX", "qdialect"]


def test_a_fallback_that_was_asked_for_is_silent(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([model, "--fallback", "framework"]) == 0
    assert capsys.readouterr().err == ""


def test_a_benchmark_has_the_time_of_every_region(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([model, "--benchmark", "--fallback", "framework"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (header,) = (line for line in lines if line.startswith("region"))
    assert header.endswith("time ms")
    assert all(float(line.split()[-1]) > 0 for line in lines if line.startswith("#"))


def test_no_fallback_is_an_error(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([model, "--fallback", "none"]) == 1
    assert "note: node 6 Hardmax ('t6'): operator is not supported" in capsys.readouterr().err.splitlines()


@pytest.mark.parametrize("options", [["--reference"], ["--benchmark", "--profile-ops"]])
def test_what_needs_a_whole_network(model: str, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([model, *options]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"error: {options[-1]} must be given for a network that is compiled as a whole"


def test_a_report_has_the_region_of_every_node(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert import_model.main([model, "--report", "--fallback", "framework"]) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert "node 3 Conv ('t3')                #0 qdialect" in lines
    assert "node 6 Hardmax ('t6')             #1 ONNX Runtime" in lines
    assert lines[-2] == "  node 6 Hardmax ('t6'): operator is not supported"


def test_a_report_without_fallback_refuses(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert import_model.main([model, "--report"]) == 1
    assert "1 of 13 nodes are not supported" in capsys.readouterr().out


def test_a_module_has_no_regions(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert import_model.main([model, "--fallback", "framework"]) == 1
    assert "--fallback framework must be given with --report" in capsys.readouterr().err
