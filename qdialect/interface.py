"""What a compiled network is to whoever calls it: its inputs and outputs, and the kernel calls that it makes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Port:
    """An input or output of a network; scale and zero point where it is quantized."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    scale: float | None
    zero_point: int | None


@dataclass(frozen=True)
class Tunable:
    """A kernel whose code can be written in several ways, all with the same results."""

    kernel: str
    """What it computes, in the terms that its speed depends on: kernels of one text are tuned as one."""
    own: str
    """What the cost model chose."""
    candidates: tuple[str, ...]
    """The variants that the model finds best beside that, the best first."""
    variant: str = ""
    """The one of `candidates` that this code is; empty for what the model chose."""


@dataclass(frozen=True)
class KernelCall:
    """A call as it is reported: what it computes, by which kernel, and the names of the model's nodes."""

    label: str
    kernel: int
    names: tuple[str, ...]
    macs: int = 0
    """Products that it sums up, those with padding included."""
    bytes_moved: int = 0
    """Size of what it reads and of what it writes, constants included."""
    tunable: Tunable | None = None
    """How its kernel can be written, where the network was lowered to be tuned."""
