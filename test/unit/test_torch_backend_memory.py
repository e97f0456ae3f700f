"""``torch.compile`` with models that write to memory or share it, models that train, and types the dialect lacks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

import qdialect
from qdialect.torch_backend import compile_captured

COMPILE: Any = import_module("torch").compile


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    dynamo: Any = import_module("torch._dynamo")
    dynamo.reset()
    yield
    dynamo.reset()


def rows(seed: int = 0) -> Tensor:
    return torch.tensor(np.random.default_rng(seed).normal(size=(3, 5)), dtype=torch.float32)


def compiled(model: Any, *, fallback: str | None = "none") -> Any:
    return COMPILE(model, backend=compile_captured, options={} if fallback is None else {"fallback": fallback})


def memory(tensor: Any) -> Any:
    return tensor.untyped_storage().data_ptr()


def values(tensor: Any) -> Any:
    return tensor.tolist()


def copied(tensor: Any) -> Any:
    """With the same strides."""
    empty: Any = import_module("torch").empty_strided
    return empty(tensor.shape, tensor.stride(), dtype=tensor.dtype).copy_(tensor)


def check(model: Any, given: Tensor, *, fallback: str | None = "none") -> None:
    """Results, strides, what they share memory with, and what the input holds afterwards are PyTorch's."""
    ours, theirs = copied(given), copied(given)
    wanted, found = model(theirs), compiled(model, fallback=fallback)(ours)
    for one, other in zip(pytree.tree_leaves(found), pytree.tree_leaves(wanted), strict=True):
        assert one.dtype == other.dtype
        assert one.stride() == other.stride()
        assert values(one) == values(other)
        assert (memory(one) == memory(ours)) == (memory(other) == memory(theirs))
    assert values(ours) == values(theirs)


def _write_part(x: Tensor) -> Tensor:
    x[:, 1] = 0
    return x.amax(1)


def _write_all(x: Tensor) -> Tensor:
    return x.add_(1)


def _write_twice(x: Tensor) -> tuple[Tensor, ...]:
    before = x * 2
    x.mul_(3).clamp_(max=1)
    part = x[1:, ::2]
    part += 1
    return before, x + 1, part, x.t()


def _share(x: Tensor) -> tuple[Tensor, ...]:
    return x.view(5, 3), x[1:], x.t(), x + 1, x.unsqueeze(0)[..., 2]


@pytest.mark.parametrize("model", [_write_part, _write_twice, _share, _write_all])
@pytest.mark.parametrize("fallback", ["none", "framework"])
def test_inputs_that_are_written_and_shared(model: Callable[[Tensor], Any], fallback: str) -> None:
    check(model, rows(), fallback=fallback)


def test_writes_around_what_pytorch_runs() -> None:
    def model(x: Tensor) -> tuple[Tensor, ...]:
        before = torch.logcumsumexp(x, 1)
        x[:, 1] = before[:, 2]
        middle = x.amax(1)
        x.relu_()
        return middle, torch.logcumsumexp(x, 0) * 2, x.t()

    check(model, rows(), fallback="framework")


def _turned(x: Any) -> tuple[Any, ...]:
    return x.permute(0, 2, 3, 1) + 1, torch.relu(x.mT)


@pytest.mark.parametrize("memory_format", [torch.channels_last, torch.contiguous_format])
def test_strides_are_those_of_pytorch(memory_format: Any) -> None:
    given = torch.tensor(np.random.default_rng(1).normal(size=(2, 3, 4, 5)), dtype=torch.float32)
    check(nn.Sequential(nn.ReLU(), nn.MaxPool2d(2)), given.contiguous(memory_format=memory_format))
    check(_turned, given)


class Counter(nn.Module):
    """A buffer that every call changes."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = nn.Buffer(torch.zeros(5))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.calls[2] = x[0, 0]
        return x * self.calls


def test_buffers_that_are_written() -> None:
    model, ours = Counter(), Counter()
    fast = compiled(ours)
    for seed in (1, 2, 3):
        assert values(fast(rows(seed))) == values(model(rows(seed)))
    assert values(ours.calls) == values(model.calls)


def test_models_that_train_are_left_to_pytorch() -> None:
    model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.ReLU())
    with pytest.warns(qdialect.FallbackWarning, match=r"PyTorch runs the whole graph: .*evaluation mode.*trains"):
        result = compiled(model, fallback=None)(rows())
    result.sum().backward()
    assert model[0].weight.grad is not None
    with pytest.raises(Exception, match="model must be in evaluation mode, but node 'dropout' trains"):
        compiled(nn.Dropout(0.5))(rows())


def test_inputs_that_require_a_gradient_are_left_to_pytorch() -> None:
    def model(x: Tensor) -> Tensor:
        return x * 3

    given = rows().requires_grad_()
    with pytest.warns(qdialect.FallbackWarning, match="must not require a gradient"):
        compiled(model, fallback=None)(given).sum().backward()
    assert given.grad is not None
    assert values(given.grad) == values(torch.full((3, 5), 3.0))
    with torch.no_grad():
        assert values(compiled(model)(given)) == values(model(given))


def test_parts_that_pytorch_runs_have_no_gradients() -> None:
    """Those of the compiled parts would be missing."""
    model = nn.Sequential(nn.Linear(5, 5), nn.Hardtanh(), nn.Linear(5, 5)).eval()

    def whole(x: Tensor) -> Tensor:
        return torch.logcumsumexp(model(x), 1)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", qdialect.FallbackWarning)
        assert not compiled(whole, fallback=None)(rows()).requires_grad


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_types_that_the_dialect_lacks_are_left_to_pytorch(dtype: Any) -> None:
    model = nn.Linear(5, 4).to(dtype).eval()
    with pytest.warns(qdialect.FallbackWarning, match=r"PyTorch runs 1 of 1 nodes: node 'linear'"):
        found = compiled(model, fallback=None)(rows().to(dtype))
    assert found.dtype == dtype
    assert values(found) == values(model(rows().to(dtype)))
    assert values(found) == values(compiled(model, fallback="framework")(rows().to(dtype)))


def test_numbers_that_change() -> None:
    def model(x: Tensor, factor: float) -> Tensor:
        return x * factor

    fast = compiled(model, fallback="framework")
    for factor in (2, 3, 4.5, 0.25, 7):
        assert values(fast(rows(), factor)) == values(model(rows(), factor))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fallback": "no"}, "'fallback' must be one of 'framework', 'none', but got 'no'"),
        ({"thread": 2}, "options of torch.compile must be fallback, threads, cache, but got thread"),
    ],
)
def test_options_that_are_not_known(options: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message):
        COMPILE(nn.ReLU(), backend=compile_captured, options=options)(rows())
