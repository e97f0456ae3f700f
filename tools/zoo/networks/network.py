"""What a float network is to the zoo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

Draw = Callable[[int, int], tuple[Array, ...]]
"""A batch size and a seed to the inputs of one call."""


@dataclass(frozen=True)
class Built:
    """A network whose weights are set: a `torch.nn.Module` in evaluation mode or a `keras.Model`."""

    model: Any
    draw: Draw


@dataclass(frozen=True)
class Network:
    """A network that can be built; with `is_small` given, on inputs small enough for a quick check."""

    name: str
    build: Callable[[bool], Built]
    exporter: str = "dynamo"
    """Which of PyTorch's two ONNX exporters takes it: ``dynamo`` or ``torchscript``."""
