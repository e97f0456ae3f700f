"""``torch.compile`` with models that write to memory or share it, models that train, and types the dialect lacks."""

import random
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils._pytree as pytree
from tolerances import assert_floats_within
from torch import Tensor, nn

import qdialect
from qdialect.driver import torch_backend, torch_constants
from qdialect.driver.torch_backend import compile_captured

COMPILE: Any = import_module("torch").compile


@pytest.fixture(autouse=True)
def fresh_dynamo() -> Iterator[None]:
    dynamo: Any = import_module("torch._dynamo")
    dynamo.reset()
    with torch.enable_grad():
        yield
    dynamo.reset()


def rows(seed: int = 0) -> Tensor:
    return torch.tensor(np.random.default_rng(seed).normal(size=(3, 5)), dtype=torch.float32)


def compiled(model: Any, *, fallback: str | None = "none") -> Any:
    return COMPILE(model, backend=compile_captured, options={} if fallback is None else {"fallback": fallback})


def assert_near(found: Tensor, wanted: Tensor) -> None:
    one, other = (tensor.detach().float().numpy() for tensor in (found, wanted))
    assert_floats_within(one, other, "layer")


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


def _write_copy(x: Tensor) -> Tensor:
    y = x.clone()
    y[:, :2] = y[:, :2] * 2 + 1
    y[..., 3] = 0
    return y


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


@pytest.mark.parametrize("model", [_write_part, _write_copy, _write_twice, _share, _write_all])
@pytest.mark.parametrize("fallback", ["none", "framework"])
def test_inputs_that_are_written_and_shared(model: Callable[[Tensor], Any], fallback: str) -> None:
    check(model, rows(), fallback=fallback)


def test_writes_around_nodes_that_pytorch_runs() -> None:
    def model(x: Tensor) -> tuple[Tensor, ...]:
        before = torch.logcumsumexp(x, 1)
        x[:, 1] = before[:, 2]
        middle = x.amax(1)
        x.relu_()
        return middle, torch.logcumsumexp(x, 0) * 2, x.t()

    check(model, rows(), fallback="framework")


def _turned(x: Any) -> tuple[Any, ...]:
    return x.permute(0, 2, 3, 1) + 1, torch.relu(x.mT)


def _views(x: Any) -> tuple[Any, ...]:
    return x.t(), x[1:], x + 1


def test_strides_that_change_from_call_to_call() -> None:
    """Dynamo takes them for open where they have changed; views of an argument have its strides."""
    model = compiled(_views)
    memory = torch.arange(200, dtype=torch.float32)
    for strides in ((7, 1), (1, 5), (1, 6), (1, 9), (14, 2)):
        x = memory.as_strided((5, 7), strides)
        transposed, rows, _ = model(x)
        assert torch.equal(transposed, x.t())
        assert torch.equal(rows, x[1:])


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


def _log_rows(x: Tensor) -> Tensor:
    return torch.logcumsumexp(x, 1)


def _squares(x: Tensor) -> Tensor:
    return (x * x, x.detach(), x > 0)[0]


@pytest.mark.parametrize("last", [_log_rows, _squares])
def test_gradients_are_those_of_eager_mode(last: Callable[[Tensor], Tensor]) -> None:
    model = nn.Sequential(nn.Linear(5, 5), nn.Hardtanh(), nn.Linear(5, 5)).eval()

    def whole(x: Tensor) -> Tensor:
        return last(model(x))

    fast = compiled(whole, fallback="framework")
    found: list[Any] = []
    for function in (whole, fast):
        result: Any = function(rows())
        result.sum().backward()
        found.append([result.detach(), *(one.grad for one in model.parameters())])
        model.zero_grad()
    for one, other in zip(*found, strict=True):
        assert_near(one, other)


def test_gradients_under_casts() -> None:
    model = nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 2))
    found: list[Any] = []
    for function in (model, compiled(model, fallback="framework")):
        with torch.autocast("cpu", torch.bfloat16):
            result = function(rows())
        result.float().square().sum().backward()
        found.append([one.grad for one in model.parameters()])
        model.zero_grad()
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_a_model_that_learns_is_not_stale() -> None:
    """A step writes to its parameters, which are constants of compiled code."""
    losses: list[list[float]] = []
    for is_compiled in (False, True):
        model = nn.Linear(5, 3)
        with torch.no_grad():
            model.weight.fill_(0.25)
            model.bias.zero_()
        fast = compiled(model, fallback="framework") if is_compiled else model
        learning: Any = import_module("torch.optim").SGD(model.parameters(), lr=0.1)
        found: list[float] = []
        for _ in range(6):
            loss = fast(rows()).square().mean()
            loss.backward()
            learning.step()
            learning.zero_grad()
            found.append(loss.item())
        losses.append(found)
    assert_floats_within(np.array(losses[0]), np.array(losses[1]), "sum")


def _replace(model: Any) -> None:
    model.inner = nn.Linear(5, 5)


def _swap(model: Any) -> None:
    import_module("torch.utils").swap_tensors(model.outer.weight, nn.Parameter(torch.ones(3, 5)))


def _write_to_array(model: Any) -> None:
    model.outer.bias.detach().numpy()[:] = 5


_CHANGES: list[Callable[[Any], object]] = [
    lambda model: model.load_state_dict(Two().state_dict()),
    lambda model: model.outer.weight.data.copy_(torch.ones(3, 5)),
    lambda model: model.outer.weight.data.mul_(3),
    lambda model: setattr(model.outer.weight, "data", torch.ones(3, 5)),
    lambda model: setattr(model.outer, "weight", nn.Parameter(torch.ones(3, 5))),
    lambda model: setattr(model, "scale", torch.tensor(3.0)),
    lambda model: model.scale.data.fill_(7),
    lambda model: model.turned.data.add_(7),
    lambda model: nn.init.ones_(model.outer.weight),
    _replace,
    _swap,
    _write_to_array,
]


class Two(nn.Module):
    """Parameters and buffers of several layouts."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(5, 5), nn.Linear(5, 3)
        self.scale = nn.Buffer(torch.tensor(2.0))
        self.turned = nn.Buffer(torch.arange(9, dtype=torch.float32).reshape(3, 3).t())
        self.empty = nn.Buffer(torch.zeros(0, 3))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.outer(self.inner(x)) * self.scale + self.turned, self.empty])


@pytest.mark.parametrize(("is_recorded", "has_loop"), [(False, True), (True, False)])
def test_parameters_that_change_are_read_again(
    is_recorded: bool, has_loop: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By machine code that looks into PyTorch's objects, and by their attributes."""
    if has_loop:
        assert torch_constants.machine_loop() is not None
    else:
        monkeypatch.setattr(torch_constants, "machine_loop", lambda: None)
    monkeypatch.setattr(torch_backend, "_MAX_CHANGES", len(_CHANGES))
    model = Two().eval()
    fast = compiled(model, fallback="framework")
    caplog.set_level("INFO", logger="qdialect")
    again = "'torch.compile' compiles again: parameters or buffers hold other values"
    with torch.set_grad_enabled(is_recorded):
        for count, change in enumerate((lambda _: None, *_CHANGES)):
            change(model)
            for _ in range(2):
                assert_near(fast(rows()), model(rows()))
            assert [one.message for one in caplog.records].count(again) == count


def _write_first(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x.add_(1), y * 2


def _write_second(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return y.mul_(2), x.sum(-1)


@pytest.mark.parametrize("model", [_write_first, _write_second])
def test_arguments_that_share_memory(model: Callable[..., Any]) -> None:
    fast = compiled(model, fallback="framework")
    for part in (slice(None), slice(1, None)):
        ours, theirs = rows(), rows()
        # First in memory of their own: the same code is called then.
        fast(rows(), rows(1)[part])
        assert list(map(values, fast(ours, ours[part]))) == list(map(values, model(theirs, theirs[part])))
        assert values(ours) == values(theirs)


def _several_views(x: Tensor) -> tuple[Tensor, ...]:
    y = x * 2
    return y, y[1:], y.t(), x + 1


def _parts_of_one(x: Tensor) -> list[Tensor]:
    return [part.add_(1) for part in (x * 1).chunk(2, -1)]


@pytest.mark.parametrize("model", [_several_views, _parts_of_one])
def test_results_that_share_memory(model: Callable[[Tensor], Any]) -> None:
    found, wanted = list(compiled(model)(rows())), list(model(rows()))
    for one, other in zip(found, wanted, strict=True):
        assert [memory(one) == memory(same) for same in found] == [memory(other) == memory(same) for same in wanted]
        one.mul_(3)
        other.mul_(3)
    assert list(map(values, found)) == list(map(values, wanted))
    assert [one.stride() for one in found] == [one.stride() for one in wanted]


def _parts(x: Tensor) -> tuple[Tensor, ...]:
    y = x * 2
    return y[::2, ::3], y[:, :1].expand(3, 4), (x + 1)[:, 1:], y.unfold(1, 3, 1)


def test_results_with_gaps_or_repetitions() -> None:
    found, wanted = compiled(_parts)(rows()), _parts(rows())
    assert list(map(values, found)) == list(map(values, wanted))
    assert [one.stride() for one in found] == [one.stride() for one in wanted]


def _doubled(row: Tensor) -> Tensor:
    return row * 2 + row.sum()


def _mapped(x: Tensor) -> Any:
    return import_module("torch.func").vmap(_doubled)(x)


def _raised(x: Tensor) -> Tensor:
    return x + 1


def _lowered(x: Tensor) -> Tensor:
    return x - 1


def _chosen(x: Tensor) -> Any:
    choose: Any = vars(torch)["cond"]
    return choose(x.sum() > 0, _raised, _lowered, (x,))


@pytest.mark.parametrize("model", [_mapped, _chosen])
def test_graphs_that_are_not_traced_or_read(
    model: Callable[[Tensor], Tensor], caplog: pytest.LogCaptureFixture
) -> None:
    check(model, rows(), fallback="framework")
    assert not [one for one in caplog.records if one.name == "qdialect" and one.exc_info]


def test_a_view_of_another_type_is_left_to_pytorch() -> None:
    def model(x: Tensor) -> Tensor:
        return x.view(torch.int32)

    check(model, rows(), fallback="framework")


class Casts(nn.Module):
    """Casts that are on, and off again, in the model."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(5, 5), nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            y = self.first(x)
            with torch.autocast("cpu", enabled=False):
                z = self.second(y.float())
        return y, z @ z.t()


@pytest.mark.parametrize("model", [Casts(), nn.Sequential(nn.Linear(5, 4), nn.Softmax(-1)), nn.ReLU()])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, None])
def test_casts_are_those_of_eager_mode(model: nn.Module, dtype: Any) -> None:
    with torch.no_grad(), torch.autocast("cpu", dtype, enabled=dtype is not None):
        wanted = pytree.tree_leaves(model(rows()))
        found = pytree.tree_leaves(compiled(model, fallback="framework")(rows()))
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype
        assert_near(one, other)


def test_graphs_that_fail_in_the_backend_are_left_to_pytorch(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*given: object, **named: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("qdialect.driver.torch_backend.read_captured", fails)
    with pytest.warns(qdialect.FallbackWarning, match="PyTorch runs the whole graph: internal error: KeyError: 'lost'"):
        assert values(compiled(nn.ReLU(), fallback=None)(rows())) == values(rows().relu())
    assert any(one.exc_info for one in caplog.records)
    with pytest.raises(Exception, match="lost"):
        compiled(nn.Sigmoid())(rows())


def test_types_that_the_dialect_lacks_are_left_to_pytorch() -> None:
    model, dtype = nn.Linear(5, 4).to(torch.float64).eval(), torch.float64
    with pytest.warns(qdialect.FallbackWarning, match=r"PyTorch runs 1 of 1 nodes: node 'linear'"):
        found = compiled(model, fallback=None)(rows().to(dtype))
    assert found.dtype == dtype
    assert values(found) == values(model(rows().to(dtype)))
    assert values(found) == values(compiled(model, fallback="framework")(rows().to(dtype)))


_FLOATS, _INTS = (0.5, 0.25, 0.75, -3.3, 0.001), (2, 3, 300, -5, 7)
_OF_NUMBERS: dict[str, tuple[Callable[[Any, Any], Any], tuple[Any, ...], torch.dtype, bool]] = {
    "product": (lambda x, n: x * n, _FLOATS, torch.float32, True),
    "arithmetic of Python": (lambda x, n: (x * n + n * 3).relu() - (1 / n - x) * 0.1, _FLOATS, torch.float32, True),
    "ints": (lambda x, n: x * n + n // 2 - 1 / (n + 0.5), _INTS, torch.float32, True),
    "float16": (lambda x, n: n - x * n, _FLOATS, torch.float16, True),
    "int8": (lambda x, n: x * n + (x > n), _INTS, torch.int8, True),
    "int32 and floats": (lambda x, n: x * n + x.clamp(n, 5), _FLOATS, torch.int32, True),
    "choices": (lambda x, n: torch.where(x > n, x.clamp_min(n), n).masked_fill(x > 1, n), _FLOATS, torch.float32, True),
    "filled": (lambda x, n: torch.full((3, 5), n) + x, _FLOATS, torch.float32, True),
    "in place": (lambda x, n: x.mul_(n), _FLOATS, torch.float32, True),
    "results": (lambda x, n: (x * n, n * 3, [n > 0.3, -n, max(n, 0.7)], 1 / n), _FLOATS, torch.float32, True),
    "results that are ints": (lambda x, n: {"a": x + 1, "b": (n**3 // 2, n < 3)}, (2, 2**40 + 1, -5), torch.int8, True),
    "partly": (lambda x, n: (x.double().cumprod(0), x.relu() + n, n - 0.1), _FLOATS, torch.float32, True),
    "slice": (lambda x, n: (x[:, :n] * 2, n * 2), (1, 3, 4), torch.float32, False),
    "attribute": (lambda x, n: torch.nn.functional.leaky_relu(x, abs(n)), _FLOATS, torch.float32, False),
    "extent": (lambda x, n: (x * n).view(n, -1), (1, 3, 5, 15), torch.float32, False),
}


@pytest.mark.parametrize("name", _OF_NUMBERS)
def test_numbers_that_change(name: str) -> None:
    """Where a model only computes with them, the first is a constant, and code for any is compiled once."""
    model, numbers, dtype, is_open = _OF_NUMBERS[name]
    graphs: list[int] = []

    def backend(*captured: Any) -> Any:
        graphs.append(1)
        return compile_captured(*captured, options={"fallback": "framework" if name == "partly" else "none"})

    fast = COMPILE(model, backend=backend)
    for number in numbers:
        ours, theirs = rows().mul(3).to(dtype), rows().mul(3).to(dtype)
        found, wanted = fast(ours, number), model(theirs, number)
        assert [*map(type, pytree.tree_leaves(found))] == [*map(type, pytree.tree_leaves(wanted))]
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(ours, theirs)
    assert (len(graphs) <= 2) == is_open


def test_numbers_that_are_drawn() -> None:
    """Dynamo gives them as float64 tensors, of which its examples are float32."""

    def model(x: Tensor, half: Tensor, generator: random.Random) -> Tensor:
        return x * generator.random() + half + generator.randint(1, 5)

    half = torch.tensor(0.5, dtype=torch.float16)
    assert_near(compiled(model)(rows(), half, random.Random(3)), model(rows(), half, random.Random(3)))
