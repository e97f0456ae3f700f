"""What a model of any format is to the measurement of units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from qdialect.bench.frameworks.runner import Array


@dataclass(frozen=True)
class Cut:
    """A network cut at its quantized tensors."""

    given: tuple[str, ...]
    """What the units read: inputs of the network and quantized tensors, in the order of the model."""
    integer: tuple[str, ...] = ()
    """The quantized tensors that the framework computes with an integer kernel or a table."""


class Network(Protocol):
    """A model with tensors that are computed from its inputs and quantized."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of its inputs."""
        ...

    @property
    def quantized(self) -> tuple[str, ...]:
        """The names of its quantized tensors, as the truth of this format notes them."""
        ...

    def write_exposed(self, path: Path, sample: Sequence[Array]) -> None:
        """Write a model that gives the quantized tensors too, after its own outputs."""
        ...

    def write_units(self, path: Path, tensors: Mapping[str, Array]) -> Cut:
        """Write a model that gives nothing but the quantized tensors, each computed from others that are its inputs.

        `tensors` has inputs and quantized tensors of one run.
        """
        ...
