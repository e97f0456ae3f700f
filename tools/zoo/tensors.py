"""What PyTorch has without full types: its seed, and arrays as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

_UNTYPED: Any = torch


def seed() -> None:
    """Every network draws its weights from the same seed."""
    _UNTYPED.manual_seed(0)


def tensors(arrays: Sequence[NDArray[Any]]) -> tuple[Tensor, ...]:
    """Tensors that share the memory of `arrays`."""
    return tuple(_UNTYPED.from_numpy(array) for array in arrays)
