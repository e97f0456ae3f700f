"""What PyTorch runs of programs in narrow floats, with graphs inside of graphs, and with memory of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.utils._pytree as pytree
from tolerances import assert_floats_within
from torch import Tensor, nn
from torch_functions import Function, drawn
from torch_models import dequantized, quantized

import qdialect
from qdialect.frontends.torch import import_torch
from qdialect.support.diagnostics import ImportModelError

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
    results = executable(*map(array, given))
    wanted = pytree.tree_leaves(model(*given))
    for found, tensor in zip(results if isinstance(results, tuple) else [results], wanted, strict=True):
        assert found.dtype == array(tensor).dtype
        np.testing.assert_array_equal(found, array(tensor))
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
    "beside": (
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


@pytest.mark.parametrize("lowers", [False, True])
def test_buffers_keep_what_calls_write(lowers: bool, tmp_path: Path) -> None:
    steps = [(drawn(seed, 2, 32), torch.tensor([seed, 7 - seed])) for seed in (0, 1, 2)]
    executable = compiled(tmp_path / "model.pt2", Cache(), *steps[0], lowers=lowers)
    model, kept = Cache(), list[Any]()
    for given in steps:
        kept.append((executable(*map(array, given)), [one.numpy().copy() for one in model(*given)]))
    for found, wanted in kept:
        assert [one.tolist() for one in found] == [one.tolist() for one in wanted]
    assert {region.runner for region in executable.regions} == {"PyTorch"}


class Written(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x.add_(1)
        return x * 2


def test_inputs_are_not_written_to(tmp_path: Path) -> None:
    with pytest.raises(ImportModelError, match=r"it writes to an input of the program"):
        compiled(tmp_path / "model.pt2", Written(), torch.ones(3))


def test_what_is_no_program_is_told_what_to_pass() -> None:
    model = nn.Linear(2, 2)
    with pytest.warns(DeprecationWarning, match="torch.jit"):
        script = TORCH.jit.script(model)
    sources: list[Any] = [model, torch.fx.symbolic_trace(model), script, model.state_dict(), None]
    for source in sources:
        with pytest.raises(ImportModelError, match=r"must be .*torch.export.export\(model.eval\(\), example_inputs\)"):
            import_torch(source)
