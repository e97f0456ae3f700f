"""Functions of tensors as programs, and whether compiled ones give what PyTorch does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as pytree
from together import check_compiled
from tolerances import assert_floats_within
from torch import Tensor, nn

from qdialect.frontends.torch import import_torch
from qdialect.reference.interpreter import run


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


class Function(nn.Module):
    """A function of tensors, as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *given: Tensor) -> Any:
        return self.function(*given)


def check(function: Callable[..., Any], *given: Tensor) -> None:
    """The reference and compiled code give what PyTorch does, and with its types."""
    module = import_torch(torch.export.export(Function(function), given))
    arrays = [one.numpy() for one in given]
    wanted: list[Tensor] = pytree.tree_leaves(function(*given))
    results = run(module, arrays)
    check_compiled(module, "host", [arrays], [results])
    for one, tensor in zip(results, wanted, strict=True):
        assert one.dtype == tensor.numpy().dtype
        if one.dtype == np.float32:
            assert_floats_within(one, tensor.numpy(), "layer")
        else:
            assert np.array_equal(one, tensor.numpy())
