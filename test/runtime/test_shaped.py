"""Open extents of PyTorch programs, .tflite files and ONNX models: each shape is compiled once, and few are kept."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
import tflite
import torch
from onnx_graphs import Array, ModelBuilder
from tflite_graphs import options_of
from torch_models import PROGRAM, graph_of, members_of, packed

import qdialect
from qdialect.driver import fallback
from qdialect.frontends.tflite.flatbuffer.writer import ModelWriter
from qdialect.frontends.torch import import_torch
from qdialect.runtime import Executable, shaped
from qdialect.support.diagnostics import ImportModelError, InputError

KIND = tflite.BuiltinOperator


class Rows(torch.nn.Module):
    """Two sequences that share their length; sizes go through arithmetic on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        flat = (x + y).reshape(batch * length, width)
        return torch.relu(self.linear(flat)).reshape(batch, length, 4)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    batch, length = torch.export.Dim("batch", max=64), torch.export.Dim("length", max=512)
    sizes = {"x": {0: batch, 1: length}, "y": {0: batch, 1: length}}
    exported = torch.export.export(Rows(), (torch.zeros(2, 5, 8), torch.zeros(2, 5, 8)), dynamic_shapes=sizes)
    path = tmp_path / "rows.pt2"
    torch.export.save(exported, path)
    return path


def called(executable: Executable, *arrays: Array) -> Array:
    found = executable(*arrays)
    assert isinstance(found, np.ndarray)
    return found


def drawn(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def test_a_program_of_open_sizes(program: Path) -> None:
    module = torch.export.load(program).module()
    executable = qdialect.compile(program, dims={"x:1": 5}, fallback="none")
    assert [port.shape for port in executable.inputs] == [(1, 5, 8), (1, 5, 8)]
    for shape in ((1, 5, 8), (3, 7, 8), (2, 1, 8), (3, 7, 8)):
        x, y = drawn(*shape), drawn(*shape) + 1
        wanted = module(torch.tensor(x), torch.tensor(y)).detach().numpy()
        np.testing.assert_allclose(called(executable, x, y), wanted, rtol=1e-5, atol=1e-6)
    assert executable.for_shape({"x:0": 4}).outputs[0].shape == (4, 5, 4)


def symbols(program: Path) -> list[str]:
    with pytest.raises(ImportModelError) as caught:
        qdialect.compile(program)
    return sorted({part for part in str(caught.value).split("'") if part.startswith("s") and part[1:].isdigit()})


def test_a_size_that_stays_open_is_named(program: Path) -> None:
    (length,) = symbols(program)
    wanted = f"extent 1 of input 'x' is open: dims must say how much '{length}' is"
    with pytest.raises(ImportModelError, match=wanted):
        qdialect.compile(program)
    assert qdialect.compile(program, dims={length: 6}).inputs[1].shape == (1, 6, 8)


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ({"x:1": 700}, r"extent 's\d+' must be in \[\d+, 512\], but got 700"),
        ({"x:1": 4, "y:1": 5}, r"extent 's\d+' must be one for all inputs, but got 4 and 5"),
        ({"x:1": 4, "width": 5}, "dims must name open extents of inputs, but got width"),
        ({"x:1": -1}, "dim 'x:1' must be at least 0, but got -1"),
    ],
)
def test_sizes_that_a_program_cannot_have(program: Path, dims: Mapping[str, int], message: str) -> None:
    with pytest.raises(ImportModelError, match=message):
        qdialect.compile(program, dims=dims)


HOSTILE = [
    "__import__('os').system('touch MARKER')",
    "Symbol('s0').__class__",
    "Mul(" * 200 + "1" + ")" * 200,
    "Pow(Integer(9), Integer(999999999))",
    "FloorDiv(Integer(1), Integer(0))",
    "1" * 5000,
    "Mod(Integer(1), Integer(2), Integer(3))",
    "",
]


@pytest.mark.parametrize("expression", HOSTILE)
def test_an_expression_is_not_evaluated_as_python(program: Path, expression: str, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    members = members_of(program.read_bytes())
    held = json.loads(members[PROGRAM])
    graph = graph_of(held)
    (name,) = [name for name, value in graph["sym_int_values"].items() if "Mul" in value["as_expr"]["expr_str"]]
    graph["sym_int_values"][name]["as_expr"]["expr_str"] = expression.replace("MARKER", str(marker))
    content = packed({**members, PROGRAM: json.dumps(held).encode()})
    with pytest.raises(ImportModelError, match="'mul' must have known extents: ex"):
        import_torch(content, dims={"x:1": 5})
    assert not marker.exists()


def differences(signature: tuple[int, ...] = (-1, -1)) -> bytes:
    """relu(x - y) of two inputs whose extents may be others than those of the file."""
    writer = ModelWriter("rows")
    x, y, total, result = (
        writer.tensor(name, (1, 3), np.float32, signature=signature) for name in ("x", "y", "total", "result")
    )
    writer.operator(KIND.SUB, [x, y], total, *options_of("Sub", 0))
    writer.operator(KIND.RELU, [total], result)
    return writer.finish([x, y], [result])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.tflite"
    path.write_bytes(differences())
    return path


def test_a_file_of_open_extents(file: Path) -> None:
    executable = qdialect.compile(file, fallback="none")
    assert executable.inputs[0].shape == (1, 3)
    for shape in ((1, 3), (4, 3), (2, 7), (4, 3)):
        x, y = drawn(*shape), drawn(*shape)[::-1].copy()
        np.testing.assert_array_equal(called(executable, x, y), np.maximum(x - y, 0))
    assert qdialect.compile(file, batch=5, dims={"x:1": 4, "y:1": 4}).outputs[0].shape == (5, 4)
    with pytest.raises(ImportModelError, match="dims must name open extents of inputs, but got x:2"):
        qdialect.compile(file, dims={"x:2": 4})


def test_a_file_without_open_extents_has_one_shape(tmp_path: Path) -> None:
    path = tmp_path / "rows.tflite"
    path.write_bytes(differences(signature=()))
    with pytest.raises(InputError, match="network has one shape"):
        qdialect.compile(path).for_shape({"x:0": 3})
    with pytest.raises(ImportModelError, match="dims must name open extents of inputs, but got x:0"):
        qdialect.compile(path, dims={"x:0": 3})


def test_inputs_of_an_onnx_model_share_an_extent(tmp_path: Path) -> None:
    path = onnx_file(tmp_path)
    executable = qdialect.compile(path, dims={"x:1": 6}, batch=2)
    assert [port.shape for port in executable.inputs] == [(2, 6), (2, 6)]
    assert executable.for_shape({"y:0": 3}).outputs[0].shape == (3, 6)
    with pytest.raises(ImportModelError, match="extent 'length' must be one for all inputs, but got 6 and 5"):
        qdialect.compile(path, dims={"x:1": 6, "y:1": 5})


def onnx_file(folder: Path) -> Path:
    b = ModelBuilder()
    lhs, rhs = (b.input(name, ("batch", "length"), np.float32) for name in ("x", "y"))
    path = folder / "rows.onnx"
    path.write_bytes(b.finish(b.node("Relu", b.node("Sub", lhs, rhs))))
    return path


def test_calls_with_a_known_shape_and_with_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = qdialect.compile(onnx_file(tmp_path), dims={"length": 3})
    x, y, outputs = drawn(4, 2), drawn(4, 2) + 1, [np.empty((4, 2), np.float32)]
    executable.run([x, y], outputs)
    np.testing.assert_array_equal(outputs[0], np.maximum(x - y, 0))
    call = executable.bind([x, y], outputs)
    monkeypatch.setattr(fallback, "compile_tuned", None)
    y[:] = 0
    call()
    np.testing.assert_array_equal(outputs[0], np.maximum(x, 0))
    with pytest.raises(InputError, match="extent 'length' must be one for all inputs, but got 2 and 1"):
        executable(x, y[:, :1])
    with pytest.raises(InputError, match=r"input 'x' must be float32\[1, 3\], but got float32\[4\]"):
        executable(x[:, 0], y)
    with pytest.raises(InputError, match="network must be called with 2 inputs, but got 1"):
        executable(x)


def test_few_shapes_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shaped, "KEPT", 1)
    executable = qdialect.compile(onnx_file(tmp_path), dims={"length": 5})
    first = executable.for_shape({"length": 6})
    assert executable.for_shape({"length": 6}) is first
    executable.for_shape({"length": 7})
    assert executable.for_shape({"length": 6}) is not first


def test_threads_share_what_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = onnx_file(tmp_path)
    executable = qdialect.compile(path, dims={"length": 3})
    compiled: list[None] = []
    compile_tuned = fallback.compile_tuned

    def counted(*arguments: Any, **how: Any) -> Executable:
        compiled.append(None)
        return compile_tuned(*arguments, **how)

    monkeypatch.setattr(fallback, "compile_tuned", counted)
    shapes = [(1 + index % 4, 3 + index % 4) for index in range(32)]
    start = Barrier(8)

    def call(worker: int) -> None:
        start.wait()
        for shape in shapes[worker::8] + shapes[:4]:
            x, y = drawn(*shape), drawn(*shape) + 1
            np.testing.assert_array_equal(called(executable, x, y), np.maximum(x - y, 0))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(call, range(8)))
    # One shape was there before.
    assert len(compiled) == 3
