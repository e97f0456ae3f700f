"""``torch.compile`` with this backend: results, shapes that change, what is refused, and how PyTorch finds it."""

import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils._pytree as pytree
from cached import kept, names, nothing_is_compiled
from tolerances import assert_floats_within
from torch import Tensor, nn
from torch_models import dequantized, quantized

from qdialect.cache.store import Store
from qdialect.driver import fallback
from qdialect.driver.fallback import FallbackWarning
from qdialect.driver.torch_backend import compile_captured
from qdialect.ir._mlir import ir

__all__ = ["kept"]

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


@pytest.fixture
def sizes_compiled(monkeypatch: pytest.MonkeyPatch) -> list[ir.Module]:
    """The modules that are compiled for one size of all inputs."""
    found: list[ir.Module] = []
    compile_one = fallback.compile_tuned

    def counted(module: ir.Module, *arguments: Any, **options: Any) -> Any:
        found.append(module)
        return compile_one(module, *arguments, **options)

    monkeypatch.setattr(fallback, "compile_tuned", counted)
    return found


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


def test_a_graph_that_was_compiled_before_is_found(kept: Store) -> None:
    model = Dense()
    assert compiled(model, options={"cache": False})(rows(4)).tolist() == model(rows(4)).tolist()
    assert names(kept) == set()
    fresh = import_module("torch._dynamo").reset
    fresh()
    compiled(model)(rows(4))
    fresh()
    with nothing_is_compiled():
        assert compiled(model)(rows(4)).tolist() == model(rows(4)).tolist()


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


OF_BATCHES: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "softmax": (lambda x: torch.relu(x).softmax(1), True),
    "views": (lambda x: torch.relu(x).view(x.shape[0], 13, 1).flatten(), True),
    "branch": (lambda x: x * 2 if x.shape[0] > 5 else x * 3, True),
    "slice": (lambda x: (x * 2)[0:5], False),
    "size": (lambda x: x * x.shape[0], False),
    "mean": (lambda x: x - x.mean(0), False),
    "ends": (lambda x: (x * 2)[:-1], False),
    "result": (lambda x: (x * 2, x.shape[0]), False),
}


@pytest.mark.parametrize("name", OF_BATCHES)
def test_any_batch_is_compiled_once_where_entries_are_computed_alone(
    name: str, sizes_compiled: list[ir.Module]
) -> None:
    run, is_open = OF_BATCHES[name]
    fast = COMPILE(run, backend=compile_captured, dynamic=True)
    for count in (5, 3, 12, 9, 2, 6):
        found, wanted = (pytree.tree_leaves(one(rows(count))) for one in (fast, run))
        for own, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(own, other, atol=1e-6)
            assert np.shape(own) == np.shape(other)
    assert (not sizes_compiled) == is_open


def test_extents_that_return_are_compiled_and_a_cache_that_grows_is_left_to_pytorch(
    sizes_compiled: list[ir.Module],
) -> None:
    graphs: list[Any] = []

    def backend(*captured: Any) -> Any:
        graphs.append(captured)
        return compile_captured(*captured)

    def grown(cache: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        joined = torch.cat([cache, x], 1)
        return joined, (x @ joined.transpose(1, 2)).softmax(-1) @ joined + cache.shape[1]

    fast = COMPILE(grown, backend=backend, dynamic=True)
    x = rows(1)[None]

    def check(count: int) -> None:
        cache = rows(count)[None]
        for own, other in zip(fast(cache, x), grown(cache, x), strict=True):
            np.testing.assert_allclose(own, other, atol=1e-6)

    found: list[int] = []
    for count in (3, 4, 3, 5, 4, 4, *range(6, 20), 19, 19, 3, 5, 5):
        check(count)
        found.append(len(sizes_compiled))
    # Those of the first call, of 4 and, as one of the first eight, of 5.
    assert found == [1, 1, 1, 1, 2, 2, *[2] * 14, 2, 2, 2, 3, 3]
    assert len(graphs) == 1


def test_unsupported_nodes_are_in_the_text() -> None:
    class Net(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            special: Any = torch.special
            return special.bessel_j0(quantized(x, 0.1, 0, torch.int8))

    with pytest.raises(Exception, match=r"'torch\.compile' has 1 unsupported operation") as caught:
        compiled(Net(), options={"fallback": "none"})(rows(2))
    assert "node 'special_bessel_j0' aten.special_bessel_j0: operator is not supported" in str(caught.value)


def test_other_devices_are_refused() -> None:
    with pytest.raises(Exception, match="tensors must be on the cpu, but got one on meta"):
        compile_captured(None, [torch.zeros(2, device="meta")])


def test_pytorch_finds_it_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the entry point that the package declares."""
    declared = tomllib.loads(PROJECT.read_text())["project"]["entry-points"]["torch_dynamo_backends"]
    assert declared == {"qdialect": "qdialect.driver.torch_backend:compile_captured"}
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


def check_native(model: Any, *calls: tuple[Any, ...], **named: Any) -> None:
    """Compiled code computes all of a model, and gives what PyTorch does."""
    fast = compiled(model, options={"fallback": "none"})
    for given in calls:
        with torch.no_grad():
            wanted, found = model(*given, **named), fast(*given, **named)
        leaves, spec = pytree.tree_flatten(wanted)
        others, other_spec = pytree.tree_flatten(found)
        assert spec == other_spec
        for one, tensor in zip(others, leaves, strict=True):
            if isinstance(tensor, Tensor):
                assert one.dtype == tensor.dtype
                assert_floats_within(one.numpy(), tensor.numpy(), "layer")
            else:
                assert one == tensor


def images(count: int) -> Tensor:
    return torch.tensor(np.random.default_rng(count).normal(size=(count, 3, 8, 8)), dtype=torch.float32)


def ids(count: int) -> Tensor:
    return torch.tensor(np.random.default_rng(count).integers(0, 10, (2, count)))


class Forms(nn.Module):
    """Keyword arguments, and results in a dictionary with None, numbers and one tensor twice."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(13, 6)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x: Tensor, scale: Any = None, *, is_scaled: bool = False) -> Any:
        y = self.dropout(self.linear(x))
        y = y * scale if is_scaled else y
        return {"y": [y, y], "none": None, "pair": (y.relu(), x.shape[0], 2.5)}


def test_float_models() -> None:
    dense = nn.Sequential(nn.Linear(13, 6), nn.GELU(), nn.LayerNorm(6), nn.Linear(6, 3)).eval()
    check_native(dense, (rows(3),), (rows(5),), (rows(1),), (rows(5),))
    flat = nn.Sequential(nn.Conv2d(3, 4, 3, 2), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(36, 5)).eval()
    check_native(flat, (images(2),), (images(1),))
    check_native(nn.Sequential(nn.Embedding(10, 8), nn.Linear(8, 3)).eval(), (ids(5),), (ids(9),))


def test_forms_of_calls_and_results() -> None:
    model = Forms().eval()
    check_native(model, (rows(3),), (rows(4),), (rows(5),))
    check_native(model, (rows(3), 2.0), (rows(3), torch.tensor(3.0)), is_scaled=True)


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = nn.Buffer(torch.zeros(13))
        self.weight = nn.Parameter(torch.full((13,), 2.0))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight + self.calls.add_(1)


def test_frozen_parameters() -> None:
    frozen: Any = import_module("torch._inductor.config").patch(freezing=True)
    with frozen, torch.no_grad():
        check_native(Dense(), (rows(3),))
        model, plain = Counting(), Counting()
        fast = compiled(model)
        with pytest.warns(FallbackWarning, match="model must not write to buffers that .*freezing"):
            first = fast(rows(3))
        assert torch.equal(first, plain(rows(3)))
        assert torch.equal(fast(rows(4)), plain(rows(4)))
        assert torch.equal(model.calls, plain.calls)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "threads must be an integer from 1 to 256, but got 0"),
        ({"threads": "2"}, "threads must be an integer from 1 to 256, but got '2'"),
        ({"fallback": "eager"}, "'fallback' must be one of 'framework', 'none', but got 'eager'"),
        ({"thread": 2}, "options of torch.compile must be fallback, threads, .*, but got thread"),
    ],
)
def test_options_that_are_none(options: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message):
        compiled(Dense(), options=options)(rows(1))


def test_modes() -> None:
    model, data = Dense(), rows(5)
    assert torch.equal(compiled(model, mode="max-autotune")(data), compiled(model, mode="default")(data))
    with pytest.raises(
        Exception, match=r"mode of torch.compile must be 'default' or 'max-autotune'.*'reduce-overhead'"
    ):
        compiled(model, mode="reduce-overhead")(data)
