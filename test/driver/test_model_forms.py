"""Models in the forms that users hold: content, objects of frameworks, and what must be exported first."""

import gc
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch_models
from onnx import ModelProto, TensorProto, helper
from tflite_graphs import small_network

import qdialect
from qdialect.cli import import_model, run
from qdialect.support.diagnostics import ImportModelError

X = np.linspace(-3, 3, 8, dtype=np.float32).reshape(2, 4)
TEXT = "func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> { return %x : tensor<4xi8> }"


def onnx_model(*operators: str) -> ModelProto:
    names = [f"t{index}" for index in range(len(operators) + 1)]
    nodes = [helper.make_node(name, [names[i]], [names[i + 1]]) for i, name in enumerate(operators)]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ("n", 4)) for name in (names[0], names[-1])]
    graph = helper.make_graph(nodes, "graph", ports[:1], ports[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


class OfPath:
    """A path of another package."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where files of models in memory are made."""
    found = tmp_path / "temporary"
    found.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(found))
    return found


def test_names_of_files_may_be_odd(
    folder: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Names that are no UTF-8, as of old archives, spaces, and suffixes of other systems."""
    program = torch.export.export(torch.nn.ReLU(), (torch.zeros(2, 4),))
    torch.export.save(program, folder / "relu.pt2")
    contents = {
        ".tflite": small_network(),
        ".onnx": onnx_model("Relu").SerializeToString(),
        ".mlir": TEXT.encode(),
        ".pt2": (folder / "relu.pt2").read_bytes(),
    }
    for suffix, content in contents.items():
        for path in (
            Path(os.fsdecode(os.fsencode(folder) + b"/a \xe8" + suffix.encode())),
            folder / f"a{suffix.upper()}",
        ):
            path.write_bytes(content)
            executable = qdialect.compile(path)
            executable.save(path.with_suffix(".so"))
            assert qdialect.load(path.with_suffix(".so")).inputs == executable.inputs
            before = path.read_bytes()
            assert import_model.main([str(path), "-o", str(path)]) == 1
            assert run.main([str(path), "--benchmark", "--trace", str(path)]) == 1
            assert path.read_bytes() == before
    assert r"'a \udce8.onnx' has no quantized node" in caplog.text
    assert "\udce8" not in caplog.text


def test_empty_content_and_text_are_refused() -> None:
    with pytest.raises(ImportModelError, match="model must be the content of a file, but got 0 bytes"):
        qdialect.compile(b"")
    text: Any = TEXT
    with pytest.raises(
        qdialect.PipelineError, match=r"a module, which qdialect.parse makes .*, but got an object of str"
    ):
        qdialect.PassManager.parse("fuse-qnn").run(text)


def test_a_model_in_every_form(folder: Path) -> None:
    model = onnx_model("Relu")
    content = model.SerializeToString()
    path = folder / "model.onnx"
    path.write_bytes(content)
    for one in (path, str(path), OfPath(path), model, content, bytearray(content), memoryview(content)):
        executable = qdialect.compile(one, batch=2)
        np.testing.assert_array_equal(executable(t0=X), np.maximum(X, 0))
        # Another shape is compiled from the file, which is there for as long as that can be.
        np.testing.assert_array_equal(executable(X[:1]), np.maximum(X[:1], 0))
        del executable
        gc.collect()
        assert not list(folder.glob("qdialect-*"))


def test_a_model_in_memory_for_any_batch_and_in_parts(folder: Path) -> None:
    anything: Any = qdialect.compile(onnx_model("Relu"), batch="dynamic")
    parts: Any = qdialect.compile(onnx_model("Relu", "Hardmax", "Neg"), fallback="framework", batch=2)
    gc.collect()
    assert anything(np.repeat(X, 5, 0)).shape == (10, 4)
    np.testing.assert_array_equal(parts(X).argmin(1), [0, 3])
    assert parts(X[:1]).shape == (1, 4)


OTHERS: dict[str, Callable[[], Any]] = {
    ".tflite": small_network,
    ".pt2": lambda: torch_models.content_of(torch_models.program()),
    "program": torch_models.program,
    ".mlir": TEXT.encode,
}


@pytest.mark.parametrize("name", OTHERS)
def test_contents_are_told_apart(name: str, folder: Path) -> None:
    path = folder / f"model{name if name.startswith('.') else '.pt2'}"
    model = OTHERS[name]()
    path.write_bytes(model if isinstance(model, bytes) else torch_models.content_of(model))
    assert str(qdialect.read_model(model)) == str(qdialect.read_model(path))
    gc.collect()
    assert not list(folder.glob("qdialect-*"))


JIT: Any = torch.jit


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


REFUSED: dict[str, Callable[[], Any]] = {
    "must be exported, but got an nn.Module of class Net": Net,
    "must be exported, but got a GraphModule of class": lambda: torch.fx.symbolic_trace(Net()),
    "must be exported, but got TorchScript of class": lambda: JIT.trace(Net(), torch.zeros(1)),
    "must be exported, but got TorchScript of class ScriptFunction": lambda: JIT.trace(torch.relu, torch.zeros(1)),
    "model must be a path, the content of a file, .* but got an object of int": lambda: 42,
    "bytes must be the content of a file of kind .mlir, .tflite": lambda: b"\xff\xfe\x00model",
}


@pytest.mark.parametrize("message", REFUSED)
@pytest.mark.filterwarnings("ignore:.*jit.*:DeprecationWarning")
def test_objects_that_are_no_models_are_refused_with_advice(message: str, folder: Path) -> None:
    with pytest.raises(ImportModelError, match=message) as error:
        qdialect.compile(REFUSED[message]())
    has_lines = "executable = qdialect.compile(program)" in str(error.value)
    assert has_lines == ("exported" in message)
    assert not list(folder.glob("qdialect-*"))
