"""A few steps of training with fake quantization, whose ranges and weights then differ from those of a calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils import _pytree as pytree

_EPOCHS, _RATE = 3, 1e-3


def train(model: Any, teacher: Any, samples: Sequence[tuple[Tensor, ...]]) -> None:
    """Bring the results of `model` nearer to those of the float network `teacher`."""
    wanted = [_results(teacher, sample) for sample in samples]
    optimizer: Any = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], _RATE)
    for _ in range(_EPOCHS):
        for sample, results in zip(samples, wanted, strict=True):
            optimizer.zero_grad()
            found = pytree.tree_leaves(model(*sample))
            losses = [functional.mse_loss(*pair) for pair in zip(found, results, strict=True)]
            loss: Any = torch.stack(losses).sum()
            loss.backward()
            optimizer.step()


def _results(model: Any, sample: tuple[Tensor, ...]) -> list[Tensor]:
    with torch.no_grad():
        return pytree.tree_leaves(model(*sample))
