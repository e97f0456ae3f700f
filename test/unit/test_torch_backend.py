"""``torch.compile`` with this backend: results, shapes that change, what is refused, and how PyTorch finds it."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_models import dequantized, quantized

from qdialect.torch_backend import compile_captured

COMPILE: Any = import_module("torch").compile
PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


class Dense(nn.Module):
    """A quantized layer in the operators that PT2E leaves."""

    def __init__(self) -> None:
        super().__init__()
        drawn = np.random.default_rng(2).integers(-127, 128, (7, 13))
        self.values = nn.Buffer(torch.tensor(drawn).to(torch.int8))

    def forward(self, x: Tensor) -> Tensor:
        linear: Any = torch.ops.aten.linear.default
        relu: Any = torch.ops.aten.relu_.default
        data = dequantized(quantized(x, 0.021, 3, torch.int8), 0.021, 3, torch.int8)
        y = relu(linear(data, dequantized(self.values, 0.013, 0, torch.int8)))
        return dequantized(quantized(y, 0.11, -3, torch.int8), 0.11, -3, torch.int8)


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    dynamo: Any = import_module("torch._dynamo")
    dynamo.reset()
    yield
    dynamo.reset()


def compiled(model: nn.Module, **options: Any) -> Any:
    return COMPILE(model, backend=compile_captured, **options)


def rows(count: int) -> Tensor:
    return torch.tensor(np.random.default_rng(count).normal(size=(count, 13)), dtype=torch.float32)


def test_results() -> None:
    model = Dense()
    fast = compiled(model)
    found = fast(rows(4))
    assert type(found) is Tensor
    assert np.array_equal(found.numpy(), model(rows(4)).numpy())


def test_inputs_that_are_not_contiguous() -> None:
    model = Dense()
    turned = torch.tensor(np.random.default_rng(1).normal(size=(13, 5)), dtype=torch.float32).t()
    assert not turned.is_contiguous()
    assert compiled(model)(turned).tolist() == model(turned).tolist()


@pytest.mark.parametrize("dynamic", [None, True])
def test_other_shapes_compile_again(dynamic: bool | None) -> None:
    model = Dense()
    fast = compiled(model, dynamic=dynamic)
    for count in (2, 3, 6, 2):
        assert fast(rows(count)).tolist() == model(rows(count)).tolist()


def test_unsupported_nodes_are_in_the_text() -> None:
    class Net(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.sin(quantized(x, 0.1, 0, torch.int8))

    with pytest.raises(Exception, match=r"'torch\.compile' has 1 unsupported operation") as caught:
        compiled(Net(), options={"fallback": "none"})(rows(2))
    assert "node 'sin' sin: operator is not supported" in str(caught.value)


def test_other_devices_are_refused() -> None:
    with pytest.raises(Exception, match="tensors must be on the cpu, but got one on meta"):
        compile_captured(None, [torch.zeros(2, device="meta")])


def test_pytorch_finds_it_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the entry point that the package declares."""
    declared = tomllib.loads(PROJECT.read_text())["project"]["entry-points"]["torch_dynamo_backends"]
    assert declared == {"qdialect": "qdialect.torch_backend:compile_captured"}
    metadata = tmp_path / "declared-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: declared\nVersion: 1\n")
    entries = "".join(f"{name} = {target}\n" for name, target in declared.items())
    (metadata / "entry_points.txt").write_text(f"[torch_dynamo_backends]\n{entries}")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    registry: Any = import_module("torch._dynamo.backends.registry")
    registry._discover_entrypoint_backends.cache_clear()
    registry._discover_entrypoint_backends()
    assert registry.lookup_backend("qdialect") is compile_captured
    model = Dense()
    assert COMPILE(model, backend="qdialect")(rows(3)).tolist() == model(rows(3)).tolist()
