"""Sums, means and maxima of rows of a table, against PyTorch."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as nnf
from torch import Tensor
from torch_functions import Function, check, drawn

from qdialect.frontends.torch import import_torch
from qdialect.support.diagnostics import ImportModelError

EXPORT: Any = import_module("torch.export")
TABLE = drawn(1, 9, 6)
BAGS = torch.tensor(np.random.default_rng(2).integers(0, 9, (4, 3)))


def test_bags_of_one_size() -> None:
    def bags(indices: Tensor) -> tuple[Tensor, ...]:
        starts = torch.arange(0, 12, 3)
        modes = (nnf.embedding_bag(indices, TABLE, mode=mode) for mode in ("sum", "mean", "max"))
        weighted = nnf.embedding_bag(indices, TABLE, mode="sum", per_sample_weights=drawn(3, 4, 3))
        return *modes, weighted, nnf.embedding_bag(indices.flatten(), TABLE, starts, mode="sum")

    check(bags, BAGS)


def test_bags_of_many_sizes_are_named() -> None:
    def bags(indices: Tensor) -> Tensor:
        return nnf.embedding_bag(indices.flatten(), TABLE, torch.tensor([0, 5, 9]), mode="sum")

    program: Any = EXPORT.export(Function(bags), (BAGS,))
    with pytest.raises(ImportModelError, match=r"bags must have the same number of indices, but got \[3, 4, 5\]"):
        import_torch(program)
