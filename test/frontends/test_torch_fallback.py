"""PyTorch programs that are compiled in parts: the same bits as PyTorch on the whole."""

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_models import dequantized, quantized

import qdialect
from qdialect.driver.fallback import compile_parts
from qdialect.driver.torch_backend import compile_captured
from qdialect.frontends.building.checks import Interface
from qdialect.frontends.torch.division import TorchDivision
from qdialect.frontends.torch.program.model import Graph, Node, Output, Ref
from qdialect.support.diagnostics import ImportModelError

COMPILE: Any = import_module("torch").compile
EXPORT: Any = import_module("torch.export")
SIZE = 64


class Net(nn.Module):
    """Quantized layers; `unsupported` is what nobody compiles."""

    def __init__(self) -> None:
        super().__init__()
        drawn = np.random.default_rng(2).integers(-127, 128, (SIZE, SIZE))
        self.weight = nn.Buffer(torch.tensor(drawn).to(torch.int8))

    def quantized(self, x: Tensor) -> Tensor:
        return dequantized(quantized(x, 0.03, 3, torch.int8), 0.03, 3, torch.int8)

    def layer(self, x: Tensor) -> Tensor:
        linear: Any = torch.ops.aten.linear.default
        return self.quantized(linear(x, dequantized(self.weight, 0.0021371, 0, torch.int8)))

    def unsupported(self, x: Tensor) -> Tensor:
        return self.quantized(torch.logcumsumexp(x, -1))


class Middle(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(self.unsupported(self.layer(self.quantized(x))))


class Beginning(Net):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(self.unsupported(x))


class End(Net):
    def forward(self, x: Tensor) -> Tensor:
        return torch.logcumsumexp(self.layer(self.quantized(x)), -1)


class Diamond(Net):
    def forward(self, x: Tensor) -> Tensor:
        top = self.layer(self.quantized(x))
        return self.quantized(self.layer(top) + self.unsupported(top))


class ManyResults(Net):
    """Both sides give results, and one has several under one name."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        top = self.layer(self.quantized(x))
        values, positions = torch.cummax(top, -1)
        return self.layer(self.quantized(values)), positions, top


NETWORKS: list[Callable[[], Net]] = [Middle, Beginning, End, Diamond, ManyResults]


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    dynamo: Any = import_module("torch._dynamo")
    dynamo.reset()
    yield
    dynamo.reset()


def rows(seed: int = 0) -> Tensor:
    return torch.tensor(np.random.default_rng(seed).normal(size=(5, SIZE)), dtype=torch.float32)


def saved(folder: Path, model: nn.Module) -> Path:
    path = folder / "model.pt2"
    EXPORT.save(EXPORT.export(model, (rows(),)), path)
    return path


def listed(results: Any) -> list[list[Any]]:
    found = cast("tuple[Any, ...]", results) if isinstance(results, tuple) else (results,)
    return [one.tolist() for one in found]


@pytest.mark.parametrize("network", NETWORKS)
def test_an_archive_that_is_compiled_in_parts(network: Callable[[], Net], tmp_path: Path) -> None:
    model = network()
    executable = qdialect.compile(saved(tmp_path, model), fallback="framework")
    assert {region.runner for region in executable.regions} == {"qdialect", "PyTorch"}
    for seed in (1, 2):
        assert listed(executable(rows(seed).numpy())) == listed(model(rows(seed)))


@pytest.mark.parametrize("network", NETWORKS)
def test_a_captured_model_that_is_compiled_in_parts(network: Callable[[], Net]) -> None:
    model = network()
    fast = COMPILE(model, backend=compile_captured)
    with pytest.warns(
        qdialect.FallbackWarning, match="PyTorch runs .* of the multiply-accumulates: node 'logcumsumexp|cummax"
    ):
        fast(rows())
    for seed in (1, 2):
        assert listed(fast(rows(seed))) == listed(model(rows(seed)))


def test_an_operator_that_reads_a_file_is_not_run(tmp_path: Path) -> None:
    """A program is a stranger's: it may name what computes, and nothing else."""
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(64))
    given = {"filename": str(secret), "shared": False, "size": 16, "dtype": None, "layout": None, "device": "cpu"}
    nodes = (
        Node("read", "aten.from_file.default", {**given, "pin_memory": None}, (Output((16,), "f32"),), ""),
        Node(
            "sum", "aten.add.Tensor", {"self": Ref("read"), "other": Ref("x"), "alpha": 1}, (Output((16,), "f32"),), ""
        ),
    )
    graph = Graph(nodes, (Interface("x", (16,), "f32"),), ("sum",), {})
    with pytest.raises(ImportModelError, match=r"PyTorch must not run node 'read' aten.from_file: it must be"):
        compile_parts(TorchDivision(graph))


def test_an_operator_that_writes_is_not_run() -> None:
    arguments = {"self": Ref("x"), "other": Ref("x"), "alpha": 1}
    nodes = (Node("sum", "aten.add_.Tensor", arguments, (Output((16,), "f32"),), ""),)
    graph = Graph(nodes, (Interface("x", (16,), "f32"),), ("sum",), {})
    with pytest.raises(ImportModelError, match="PyTorch must not run node 'sum'"):
        compile_parts(TorchDivision(graph))


class Positions(torch.nn.Module):
    """A convolution and where its results are positive: their number depends on the data."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nonzero(self.convolution(x) > 0)


@pytest.mark.parametrize("trust", [False, True])
def test_sizes_that_depend_on_data_stay_with_pytorch(tmp_path: Path, trust: bool) -> None:
    module, x = Positions().eval(), torch.randn(1, 8, 16, 16)
    path = tmp_path / "positions.pt2"
    torch.export.save(torch.export.export(module, (x,)), path)
    executable = qdialect.compile(path, fallback="framework", trust=trust)
    assert executable.regions[0].runner == "qdialect"
    assert executable.outputs[0].shape == (-1, 4)
    found = executable(x.numpy())
    assert isinstance(found, np.ndarray)
    assert found.shape[1] == 4
    reasons = {name: reason for region in executable.regions for name, reason in region.reasons.items()}
    assert any("aten.nonzero" in name for name in reasons)
