"""The README: its commands run, its Python runs, its targets and links are there."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from onnx_graphs import ModelBuilder
from tflite_graphs import small_network

from qdialect.bench.results import Results
from qdialect.cli import bench, cache, compile, import_model, opt, run

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text()
COMMANDS = {
    "qdialect-bench": bench.main,
    "qdialect-cache": cache.main,
    "qdialect-compile": compile.main,
    "qdialect-import": import_model.main,
    "qdialect-opt": opt.main,
    "qdialect-run": run.main,
}


def test_the_commands_of_the_tour_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.tflite").write_bytes(small_network())
    builder = ModelBuilder()
    relu = builder.node("Relu", builder.input("image", (1, 4)))
    Path("model.onnx").write_bytes(builder.finish(relu, dtype=np.float32))
    lines = re.findall(r"^qdialect-.*$", TEXT, re.MULTILINE)
    assert len(lines) == 13
    for line in lines:
        program, *arguments = shlex.split(line, comments=True)
        assert COMMANDS[program](arguments) == 0, line


def test_the_python_of_the_tour_runs() -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    exec(block, {})


def test_the_speed_is_that_of_the_report() -> None:
    results = Results.from_json((ROOT / "benchmarks" / "results.json").read_text())
    (engines,) = re.findall(r"^\| network \| (.*) \|$", TEXT, re.MULTILINE)
    rows = re.findall(r"^\| [^|]*\(`([\w.]+)`\) \| (.*) \|$", TEXT, re.MULTILINE)
    assert rows
    for name, cells in rows:
        found = results.find(name)
        assert found, name
        for engine, cell in zip(engines.split(" | "), cells.split(" | "), strict=True):
            best = found.best(engine, exact=False)
            star = "" if best is None or best.is_exact else " \\*"
            assert cell.strip() == (f"{best.seconds * 1e3:.3g}{star}" if best else ""), (name, engine)


def test_targets_are_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"\bmake ([a-z]+)\b", TEXT)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_links_and_folders_are_there() -> None:
    for path in re.findall(r"\]\(([\w./-]+)\)|^\| `([\w/]+)/`", TEXT, re.MULTILINE):
        assert (ROOT / "".join(path)).exists(), path
