"""The examples in the help of each command run."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch_archives
from onnx_graphs import ModelBuilder
from tflite_graphs import small_network

import qdialect
from qdialect.cli import bench, cache, compile, import_model, opt, run

MODULE = """
func.func @main(%x: tensor<2x3xi8>, %y: tensor<2xi8>) -> (tensor<2x3xi8>, tensor<2xi8>) {
  %0 = "qnn.clip"(%x) {min = -5 : i64, max = 9 : i64} : (tensor<2x3xi8>) -> tensor<2x3xi8>
  return %0, %y : tensor<2x3xi8>, tensor<2xi8>
}
"""
WITH_EXPECTATION = """
// expected-error @+1 {{custom op 'unknown' is unknown}}
unknown
// -----
func.func @empty() { return }
"""


def parsed(argv: Sequence[str]) -> int:
    """A benchmark takes minutes: of its examples the arguments are parsed."""
    bench.parse(argv)
    return 0


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "qdialect-bench": parsed,
    "qdialect-cache": cache.main,
    "qdialect-compile": compile.main,
    "qdialect-import": import_model.main,
    "qdialect-opt": opt.main,
    "qdialect-run": run.main,
}
HELP: dict[str, Callable[[Sequence[str]], object]] = {**COMMANDS, "qdialect-bench": bench.parse}


def examples_of(command: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The commands of the examples: what stands behind two spaces is a comment."""
    with suppress(SystemExit):
        HELP[command](["--help"])
    _, _, examples = capsys.readouterr().out.partition("examples:\n")
    return [re.split(r" {2,}", line)[0] for line in re.findall(r"^  (qdialect-.*)$", examples, re.MULTILINE)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the files that the examples name."""
    (tmp_path / "model.tflite").write_bytes(small_network())
    np.save(tmp_path / "image.npy", np.zeros((1, 2, 2, 2), np.int8))
    (tmp_path / "model.mlir").write_text(MODULE)
    qdialect.compile(tmp_path / "model.mlir").save(tmp_path / "model.so")
    np.save(tmp_path / "a.npy", np.zeros((2, 3), np.int8))
    np.save(tmp_path / "b.npy", np.zeros(2, np.int8))
    (tmp_path / "test.mlir").write_text(WITH_EXPECTATION)
    builder = ModelBuilder()
    relu = builder.node("Relu", builder.input("image", ("batch", 4)))
    (tmp_path / "model.onnx").write_bytes(builder.finish(relu, dtype=np.float32))
    (tmp_path / "model.pt2").write_bytes(torch_archives.good_content())
    monkeypatch.chdir(tmp_path)


class Stdin:
    """A standard input with this text."""

    def __init__(self, text: str) -> None:
        self.buffer = io.BytesIO(text.encode())


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_run(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    examples = examples_of(command, capsys)
    assert len(examples) > 3
    for example in examples:
        printed = ""
        for part in example.split(" | "):
            program, *arguments = shlex.split(part)
            monkeypatch.setattr("sys.stdin", Stdin(printed))
            status = COMMANDS[program](arguments)
            printed, said = capsys.readouterr()
            assert status == 0, f"{example}\n{said}"
