"""Programs of PyTorch as wholes: operators that work in place, folding, and trusted programs."""

import itertools
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
import torch.utils._pytree as pytree
from tolerances import assert_floats_within, assert_within, loosest
from torch import Tensor, nn
from torch.export import Dim
from torch_models import Function, dequantized, drawn, operators_of, quantized, refused

import qdialect
from qdialect.cli import compile as command
from qdialect.driver.report import report
from qdialect.frontends.building.checks import Budget, UnsupportedError
from qdialect.frontends.torch import import_torch
from qdialect.frontends.torch.program.folding import FOLDABLE, evaluate, fold
from qdialect.frontends.torch.program.model import Element, Node, Ref
from qdialect.frontends.torch.program.pytorch_operators import schema_of
from qdialect.reference.interpreter import run
from qdialect.support.diagnostics import ImportModelError
from qdialect.targets import resolve

SHAPES = ((2, 5, 3, 4), (2, 5, 1, 1))


def between(function: Callable[[Any, Any], Any]) -> Function:
    """A function of two tensors between dequantize and quantize."""

    def whole(x: Tensor, y: Tensor) -> Tensor:
        operands = dequantized(x, 0.031, 7, torch.int8), dequantized(y, 0.047, -2, torch.int8)
        return quantized(function(*operands), 0.057, 3, torch.int8)

    return Function(whole)


def _read_before_and_after(x: Tensor, y: Tensor) -> Tensor:
    before = x + 1
    x += y
    return torch.relu_(x).mul(before) + x


def _written_twice(x: Tensor, y: Tensor) -> Tensor:
    product = x * y
    product.add_(x)
    product.mul_(product)
    return product


def _view_read_before(x: Tensor, y: Tensor) -> Tensor:
    total = x + y
    row = total.flatten(1).mean(1)
    total.relu_()
    return total * row.view(2, 1, 1, 1)


def _results_written(x: Tensor, y: Tensor) -> Tensor:
    left, right = torch.unsafe_split(x + y, 2, 2)
    left.relu_()
    return left.add_(1).sum(2, keepdim=True) * right


def _part_assigned(x: Tensor, y: Tensor) -> Tensor:
    total = x + y
    total[:, 1:3] = 0.3
    total[:, 0, 1] = total[:, 2, 2] * 2
    total[..., ::2] *= 0.5
    return total


def _part_written(x: Tensor, y: Tensor) -> Tensor:
    total = x + y
    part = total[:, 1:3]
    part.relu_()
    return total + part.sum(1, keepdim=True)


CASES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "part_assigned": _part_assigned,
    "part_written": _part_written,
    "results_written": _results_written,
    "add": lambda x, y: x.add_(y),
    "mul": lambda x, y: x.mul_(y),
    "sub": lambda x, y: x.sub_(y),
    "dropout": lambda x, y: torch.dropout_(x.mul(y), 0.5, False).relu_(),
    "squeeze_excite": lambda x, y: x.mul_(y.sigmoid_()),
    "residual": lambda x, y: torch.relu_(x.add_(y)),
    "read_before_and_after": _read_before_and_after,
    "written_twice": _written_twice,
    "view_read_before": _view_read_before,
}


def values_of(seed: int) -> tuple[Tensor, ...]:
    generator = np.random.default_rng(seed)
    return tuple(torch.tensor(generator.integers(-128, 128, shape).astype(np.int8)) for shape in SHAPES)


@pytest.mark.parametrize("name", CASES)
def test_in_place(name: str) -> None:
    model, given = between(CASES[name]), values_of(1)
    wanted = model(*(one.clone() for one in given)).numpy()
    exported = torch.export.export(model, given)
    (found,) = run(import_torch(exported), [one.numpy() for one in given])
    assert_within(found, wanted, loosest(".pt2", operators_of(exported)))


def _view_read_after(x: Tensor, y: Tensor) -> Tensor:
    total = x + y
    rows = total.flatten(1)
    total.relu_()
    return total * rows.mean(1).view(2, 1, 1, 1)


def _part_read_after(x: Tensor, y: Tensor) -> Tensor:
    total = x + y
    part = total[:, :2]
    total[:, 1:3].relu_()
    return total + part.sum(1, keepdim=True)


REFUSED: dict[str, Any] = {"view_read_after": _view_read_after, "part_read_after": _part_read_after}


@pytest.mark.parametrize("name", REFUSED)
def test_memory_that_others_read_is_refused(name: str) -> None:
    assert "aten.relu_: operator is not supported" in refused(between(REFUSED[name]), *values_of(1))


# Which operators the front end runs itself: pure ones, by their names.

ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)


def call(kind: str, **arguments: Any) -> Node:
    return Node("node", kind, arguments, (), "")


@pytest.mark.parametrize("kind", sorted(FOLDABLE))
def test_operators_are_pure(kind: str) -> None:
    """They write to no operand, draw no random numbers and are in PyTorch's registry."""
    schema = schema_of(kind)
    assert schema is not None
    assert not schema.is_mutable or kind == "aten.detach_.default"
    package, name, overload = kind.split(".")
    operator: Any = getattr(getattr(getattr(torch.ops, package), name), overload)
    assert torch.Tag.nondeterministic_seeded not in operator.tags
    assert all(argument.name not in ("filename", "generator") for argument in schema.arguments)


def test_operators_without_operands() -> None:
    made = call(
        "aten.full.default", size=(2, 1), fill_value=7, dtype=Element("i8"), layout=None, device="cuda", pin_memory=None
    )
    found = fold(made, {}, Budget.of_file(0))
    assert found.dtype == np.int8
    assert found.tolist() == [[7], [7]]


def test_constants_are_not_written_to() -> None:
    array = ARRAY.copy()
    array.flags.writeable = False
    found = fold(call("aten.relu.default", self=Ref("a")), {"a": array}, Budget.of_file(0))
    assert np.array_equal(found, ARRAY)


def test_other_operators_are_not_run(tmp_path: Path) -> None:
    path = tmp_path / "made"
    mapped = call("aten.from_file.default", filename=str(path), shared=True, size=16)
    for attempt in (lambda: evaluate(mapped, {}), lambda: fold(mapped, {}, Budget.of_file(0))):
        with pytest.raises(UnsupportedError, match="operator is not supported on constants"):
            attempt()
    assert not path.exists()


def test_types_are_checked_before_the_kernel() -> None:
    """PyTorch ends the process where a number is no type of its own."""
    converted = call(
        "aten.to.dtype", self=Ref("a"), dtype=2**63 - 1, non_blocking=False, copy=False, memory_format=None
    )
    with pytest.raises(
        UnsupportedError, match="argument 'dtype' must be of type ScalarType, but got 9223372036854775807"
    ):
        evaluate(converted, {"a": ARRAY})


def test_budget() -> None:
    budget = Budget(maximum=100)
    fold(call("aten.relu.default", self=Ref("a")), {"a": ARRAY}, budget)
    assert budget.spent == 48
    fold(call("aten.relu.default", self=Ref("a")), {"a": ARRAY}, budget)
    with pytest.raises(
        UnsupportedError,
        match=r"^constants that a model makes must have at most 100 bytes, but 4 are left for a constant",
    ):
        fold(call("aten.relu.default", self=Ref("a")), {"a": ARRAY}, budget)


def test_random_numbers_are_not_constants() -> None:
    assert "aten.rand: operator is not supported" in refused(lambda x: x + torch.rand(4), torch.zeros(4))


# What PyTorch runs of programs in narrow floats, with graphs inside of graphs, and with memory of their own.

TORCH: Any = torch
DECOMPOSED: Any = torch.ops.quantized_decomposed
HIGHER_ORDER: Any = torch.ops.higher_order
BF16 = torch.bfloat16


def compiled(path: Path, model: nn.Module, *given: Tensor, lowers: bool = False) -> qdialect.Executable:
    program: Any = torch.export.export(model, given)
    torch.export.save(program.run_decompositions() if lowers else program, path)
    return qdialect.compile(path, fallback="framework", cache=False)


def array(tensor: Tensor) -> np.ndarray[Any, Any]:
    """As callers have it."""
    return (tensor.float() if tensor.dtype in (BF16, torch.float8_e4m3fn) else tensor).numpy()


def check(path: Path, model: nn.Module, *given: Tensor) -> qdialect.Executable:
    """The same bits as PyTorch."""
    executable = compiled(path, model, *given)
    results: Any = executable(*given, returns="torch")
    wanted: list[Any] = pytree.tree_leaves(model(*given))
    leaves: list[Any] = list(cast("tuple[Any, ...]", results)) if isinstance(results, tuple) else [results]
    for found, tensor in zip(leaves, wanted, strict=True):
        # float8 is storage alone.
        assert found.dtype == (torch.float32 if tensor.dtype == torch.float8_e4m3fn else tensor.dtype)
        np.testing.assert_array_equal(array(found), array(tensor))
    return executable


WEIGHT, SCALES = drawn(1, 16, 32), drawn(2, 16).abs() + 0.01
VALUES = (WEIGHT * 40).to(torch.int8)
BIAS = SCALES.to(BF16)
F8 = WEIGHT.to(torch.float8_e4m3fn)
BOUNDS = (-128, 127, torch.int8)


def _of_channels(x: Tensor) -> Tensor:
    points = torch.zeros(16, dtype=torch.int64)
    weight = DECOMPOSED.dequantize_per_channel.default(VALUES, SCALES, points, 0, *BOUNDS, out_dtype=BF16)
    held = DECOMPOSED.dequantize_per_tensor.default(quantized(x, 0.03, 3, torch.int8), 0.03, 3, *BOUNDS, out_dtype=BF16)
    return nn.functional.linear(held, weight)


def _half(x: Tensor) -> Tensor:
    return nn.functional.gelu(x.half() @ WEIGHT.T.half()) + x.half().sum()


def _int4_product(x: Tensor) -> Tensor:
    aten: Any = torch.ops.aten
    packed = aten._convert_weight_to_int4pack_for_cpu(VALUES.to(torch.int32) & 15, 1)
    return aten._weight_int4pack_mm_for_cpu(x, packed, 32, torch.stack([SCALES, SCALES * 3], 1)[None])


NARROW: dict[str, tuple[Callable[[Any], Any], torch.dtype]] = {
    "linear": (lambda x: torch.relu(nn.functional.linear(x, WEIGHT.to(BF16), SCALES.to(BF16))) * 1.7, BF16),
    "widened": (lambda x: nn.functional.linear(x.float(), WEIGHT.to(BF16).float()) + 0.1, BF16),
    "narrowed": (lambda x: (x.to(BF16), x.to(BF16) * 3, x + 1), torch.float32),
    "of_channels": (_of_channels, torch.float32),
    "half": (_half, torch.float32),
    "mixed": (
        lambda x: (x[:, :16] + BIAS, x[0, 0] * BIAS[0], torch.where(x[:, :16] > 0, BIAS, x[:, :16])),
        torch.float32,
    ),
    "rows": (
        lambda x: (BIAS[x[0].long().abs() % 16], torch.cat([x[0], BIAS]), BIAS.long() + x[0, 0].long()),
        torch.float32,
    ),
    "scales": (
        lambda x: DECOMPOSED.dequantize_per_channel.default(VALUES, BIAS.abs(), None, 0, *BOUNDS) + x[0],
        torch.float32,
    ),
    "float8": (lambda x: (x @ F8.float().T, F8.to(BF16).sum(), F8), torch.float32),
    "int8_weights": (lambda x: TORCH._weight_int8pack_mm(x, VALUES, SCALES.to(BF16)), BF16),
    "int4_weights": (_int4_product, torch.float32),
}


@pytest.mark.parametrize("name", NARROW)
def test_of_narrow_floats(name: str, tmp_path: Path) -> None:
    function, dtype = NARROW[name]
    check(tmp_path / "model.pt2", Function(function), drawn(3, 4, 32).to(dtype))


@pytest.mark.parametrize("dtype", [BF16, torch.float16])
def test_pixels_at_coordinates_of_narrow_floats(dtype: torch.dtype, tmp_path: Path) -> None:
    """Those inside of the image, outside of it, and far outside, where the kernel of PyTorch counts in 16 bits."""

    def sampled(image: Tensor, grid: Tensor) -> list[Tensor]:
        forms = itertools.product((0, 1), (0, 1, 2), (False, True))
        return [TORCH.grid_sampler(image, grid, *form) for form in forms]

    image, grid = drawn(5, 2, 5, 12, 7).to(dtype), (drawn(6, 2, 63, 1, 2) * 1.3).to(dtype)
    far = torch.tensor([math.nan, math.inf, -math.inf, 3e3, 1e4, 6e4, -6e4, 1.3e4, 1e5, 1e9, -1e9, 1e30]).to(dtype)
    grid[0, :12, 0, 0], grid[1, 20:32, 0, 1] = far, far
    executable = check(tmp_path / "model.pt2", Function(sampled), image, grid)
    assert all(region.is_compiled for region in executable.regions)


@pytest.mark.parametrize(
    ("shape", "form", "reason"),
    [
        ((1, 1, 182, 182), (0, 0, False), "must have fewer than 32768 elements, but has 33124"),
        ((1, 1, 300, 3), (0, 1, False), "extent must be 1 more than a number of the type, but got 300"),
        ((1, 1, 4, 4), (2, 0, False), "interpolation must be bilinear or nearest"),
    ],
)
def test_pixels_that_pytorch_reads_elsewhere(
    shape: tuple[int, ...], form: tuple[int, int, bool], reason: str, tmp_path: Path
) -> None:
    image, grid = drawn(5, *shape).to(BF16), drawn(6, 1, 4, 4, 2).clamp(-1, 1).to(BF16)

    def sampled(x: Tensor, at: Tensor) -> Tensor:
        return TORCH.grid_sampler(x, at, *form)

    executable = compiled(tmp_path / "model.pt2", Function(sampled), image, grid)
    assert any(reason in text for region in executable.regions for text in region.reasons.values())


def test_an_order_of_narrow_floats(tmp_path: Path) -> None:
    def ordered(x: Tensor) -> list[Tensor]:
        values = [torch.topk(x, 5)[0], torch.topk(x, 3, largest=False)[0], torch.sort(x)[0], torch.kthvalue(x, 3)[0]]
        stable = [*torch.sort(x, stable=True), torch.argsort(x, descending=True, stable=True)]
        return [*values, *stable, *torch.topk(x * 2, 5), torch.argsort(x)]

    executable = check(tmp_path / "model.pt2", Function(ordered), drawn(7, 4, 200).to(BF16))
    assert all(region.is_compiled for region in executable.regions)


def _branches(x: Tensor) -> Tensor:
    product = x @ WEIGHT.T

    def positive(y: Tensor) -> tuple[Tensor]:
        return (torch.relu(y),)

    def other(y: Tensor) -> tuple[Tensor]:
        return (y * 3,)

    return HIGHER_ORDER.cond(x.sum() > 0, positive, other, (product,))[0] + 1


def _loop(x: Tensor) -> Tensor:
    def more(i: Tensor, y: Tensor) -> Tensor:
        del y
        return i < 3

    def body(i: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return i + 1, y * 1.5 + i

    return HIGHER_ORDER.while_loop(more, body, (torch.zeros((), dtype=torch.int64), x), ())[1]


def _autocast(x: Tensor) -> Tensor:
    held = dequantized(quantized(x, 0.03, 3, torch.int8), 0.03, 3, torch.int8)
    with torch.autocast("cpu", dtype=BF16):
        found = nn.functional.linear(held, WEIGHT)
    return found.float() * 3


@pytest.mark.parametrize("function", [_branches, _loop, _autocast])
def test_graphs_inside_of_graphs(function: Callable[[Tensor], Tensor], tmp_path: Path) -> None:
    x, model = drawn(4, 4, 32), Function(function)
    executable = check(tmp_path / "model.pt2", model, x)
    np.testing.assert_array_equal(executable(-x.numpy()), model(-x).numpy())


def test_regions_without_gradients_are_compiled() -> None:
    def function(x: Tensor) -> Tensor:
        with torch.no_grad():
            found, other = nn.functional.linear(x, WEIGHT), x + 1
        return found.sum() + other

    program = torch.export.export(Function(function), (drawn(5, 4, 32),))
    assert any("set_grad_enabled" in str(node.target) for node in program.graph.nodes)
    x = drawn(6, 4, 32)
    found = qdialect.compile(import_torch(program))(x.numpy())
    assert_floats_within(np.asarray(found), function(x).numpy(), "layer")


class Cache(nn.Module):
    """Rows that are written to a cache."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = nn.Buffer(torch.zeros(8, 16))
        self.calls = nn.Buffer(torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor, i: Tensor) -> tuple[Tensor, Tensor]:
        self.cache.index_copy_(0, i, torch.relu(x @ WEIGHT.T))
        self.calls += 1
        return self.cache.sum(0) * 2, self.calls * 10


class PartsOfCache(Cache):
    """One that is written by a view that PyTorch makes of two dimensions, which is not followed."""

    def forward(self, x: Tensor, i: Tensor) -> tuple[Tensor, Tensor]:
        self.cache.view(2, 4, 16)[0].index_copy_(0, i % 4, torch.relu(x @ WEIGHT.T))
        self.calls += 1
        return self.cache.sum(0) * 2, self.calls * 10


class Shifted(nn.Module):
    """Gives what it kept before, and what two buffers hold then."""

    def __init__(self) -> None:
        super().__init__()
        self.last, self.before = nn.Buffer(torch.zeros(2, 32)), nn.Buffer(torch.zeros(2, 32))

    def forward(self, x: Tensor, i: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        del i
        self.before.copy_(self.last)
        self.last.copy_(x)
        return self.before, self.last, self.before + 1


@pytest.mark.parametrize("lowers", [False, True])
@pytest.mark.parametrize(("kind", "runner"), [(Cache, "qdialect"), (Shifted, "qdialect"), (PartsOfCache, "PyTorch")])
def test_buffers_keep_the_values_that_calls_write(
    kind: Callable[[], nn.Module], runner: str, lowers: bool, tmp_path: Path
) -> None:
    steps = [(drawn(seed, 2, 32), torch.tensor([seed, 7 - seed])) for seed in (0, 1, 2)]
    executable = compiled(tmp_path / "model.pt2", kind(), *steps[0], lowers=lowers)
    model, kept = kind(), list[Any]()
    for given in steps:
        kept.append((executable(*map(array, given)), [one.numpy().copy() for one in model(*given)]))
    for found, wanted in kept:
        for one, other in zip(found, wanted, strict=True):
            assert_floats_within(np.asarray(one, np.float64), other.astype(np.float64), "layer")
    if not (lowers and runner == "PyTorch"):
        assert {region.runner for region in executable.regions} == {runner}


def test_networks_with_states_are_compiled_whole(tmp_path: Path) -> None:
    """Where all of it can be; each executable keeps its own."""
    given = drawn(0, 2, 32), torch.tensor([0, 3])
    program = torch.export.export(Cache(), given)
    first, second = (qdialect.compile(program, fallback="none", cache=False) for _ in range(2))
    counts = [int(one(*map(array, given))[1]) for one in (first, first, second)]
    assert counts == [10, 20, 10]
    outputs = [np.empty(16, np.float32), np.empty((), np.int64)]
    first.run([*map(array, given)], outputs)
    assert outputs[1] == 30
    first.save(tmp_path / "model.so")
    saved = [qdialect.load(tmp_path / "model.so"), pickle.loads(pickle.dumps(first))]
    assert [int(one(*map(array, given))[1]) for one in saved] == [10, 10]
    path = tmp_path / "model.pt2"
    torch.export.save(program, path)
    assert report(path, resolve("host")).lowered
    assert command.main([str(path), "-o", str(tmp_path / "other.so")]) == 0
    other = qdialect.load(tmp_path / "other.so")
    assert [int(one(*map(array, given))[1]) for one in (other, other)] == [10, 20]
    unsupported = torch.export.export(PartsOfCache(), given)
    with pytest.raises(ImportModelError):
        qdialect.compile(unsupported, fallback="none", cache=False)


@pytest.mark.parametrize("kind", [Cache, PartsOfCache])
def test_shapes_share_a_state(kind: Callable[[], nn.Module]) -> None:
    steps = Dim("steps", min=1, max=4)
    given = drawn(0, 3, 32), torch.arange(3)
    program = torch.export.export(kind(), given, dynamic_shapes=({0: steps}, {0: steps}))
    executable, model = qdialect.compile(program, batch=3, fallback="framework", cache=False), kind()
    calls = [given, (drawn(1, 1, 32), torch.tensor([3])), (drawn(2, 2, 32), torch.tensor([4, 0])), given]
    if kind is PartsOfCache:
        executable(*map(array, given))
        with pytest.raises(qdialect.InputError, match="PyTorch keeps a state between calls"):
            executable(*map(array, calls[1]))
        return
    for one in calls:
        for found, wanted in zip(executable(*map(array, one)), model(*one), strict=True):
            assert_floats_within(np.asarray(found, np.float64), wanted.numpy().astype(np.float64), "layer")


class Shared(nn.Module):
    """Buffers of one memory, by views that are and are not of the same elements."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = nn.Buffer(torch.zeros(8, 16))
        self.rows, self.turned = nn.Buffer(self.cache[3:]), nn.Buffer(self.cache.T)

    def forward(self, x: Tensor, i: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        self.cache.index_copy_(0, i, torch.relu(x @ WEIGHT.T))
        self.rows.mul_(2)
        return self.cache * 2, self.rows + 1, self.turned.sum(1)


class Beside(Shared):
    """Buffers of one memory that have no element in common."""

    def __init__(self) -> None:
        super().__init__()
        whole = torch.zeros(12, 16)
        self.cache, self.rows, self.turned = nn.Buffer(whole[:8]), nn.Buffer(whole[8:]), nn.Buffer(torch.ones(3, 4))


@pytest.mark.parametrize(("kind", "runner"), [(Shared, "PyTorch"), (Beside, "qdialect")])
def test_buffers_that_share_memory_are_written_together(
    kind: Callable[[], nn.Module], runner: str, tmp_path: Path
) -> None:
    steps = [(drawn(seed, 2, 32), torch.tensor([seed, 7 - seed])) for seed in (0, 1, 2)]
    program, model = torch.export.export(kind(), steps[0]), kind()
    torch.export.save(program, tmp_path / "model.pt2")
    found = [qdialect.compile(one, cache=False, fallback="framework") for one in (program, tmp_path / "model.pt2")]
    for given in steps:
        wanted = [one.numpy().copy() for one in model(*given)]
        for executable in found:
            assert {region.runner for region in executable.regions} == {runner}
            for one, other in zip(executable(*map(array, given)), wanted, strict=True):
                assert_floats_within(np.asarray(one), other, "layer")
    if runner == "PyTorch":
        with pytest.raises(ImportModelError, match=r"'b_cache' is written to and shares memory with 'b_(rows|turned)'"):
            qdialect.compile(program, cache=False, fallback="none")


def test_inputs_are_not_written_to(tmp_path: Path) -> None:
    with pytest.raises(ImportModelError, match=r"it writes to an input of the program"):
        compiled(tmp_path / "model.pt2", Function(lambda x: x.add_(1) * 2), torch.ones(3))


def test_objects_that_are_no_programs_are_refused_with_advice() -> None:
    model = nn.Linear(2, 2)
    with pytest.warns(DeprecationWarning, match="torch.jit"):
        script = TORCH.jit.script(model)
    sources: list[Any] = [model, torch.fx.symbolic_trace(model), script, model.state_dict(), None]
    for source in sources:
        with pytest.raises(ImportModelError, match=r"must be .*torch.export.export\(model.eval\(\), example_inputs\)"):
            import_torch(source)
