"""Operators that work in place: whoever reads a tensor afterwards reads what was written over it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tolerances import assert_within, loosest
from torch import Tensor, nn
from torch_models import dequantized, operators_of, quantized

from qdialect.frontends.torch import import_torch
from qdialect.reference.interpreter import run
from qdialect.support.diagnostics import ImportModelError

SHAPES = ((2, 5, 3, 4), (2, 5, 1, 1))


class Between(nn.Module):
    """A function of two tensors between dequantize and quantize."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        operands = dequantized(x, 0.031, 7, torch.int8), dequantized(y, 0.047, -2, torch.int8)
        return quantized(self.function(*operands), 0.057, 3, torch.int8)


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
    model, given = Between(CASES[name]), values_of(1)
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
    with pytest.raises(ImportModelError) as caught:
        import_torch(torch.export.export(Between(REFUSED[name]), values_of(1)))
    assert "aten.relu_: operator is not supported" in caught.value.render()
