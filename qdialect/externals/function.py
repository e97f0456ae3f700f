"""What a function of another library is told: the ops that it computes, with all their attributes and constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.externals.external_call import ExternalCall
from qdialect.interface import Port

Value = int | float | str | tuple[int, ...] | tuple[float, ...] | NDArray[np.uint8]
"""An attribute: a number, several, a text, or the 256 entries of a table. A bool is 0 or 1."""


class Source(IntEnum):
    """Where the values of an operand come from."""

    CONSTANT = 1
    INPUT = 2
    OPERATION = 3


@dataclass(frozen=True)
class ExternalOperand:
    """An operand of an op; `tensor` is its shape and dtype, with scale and zero point where the op tells them."""

    tensor: Port
    source: Source
    index: int = 0
    """Of the function's input, or of the earlier op whose result it is."""
    data: NDArray[Any] | None = None
    """The elements of a constant, read-only."""


@dataclass(frozen=True)
class ExternalStage:
    """A stage of a fused op's epilogue, such as ``requantize``, everything said that its text may leave out."""

    name: str
    attributes: Mapping[str, Value]


@dataclass(frozen=True)
class ExternalOperation:
    """An op: `operands` by their names, the attributes but the epilogue, and the stages of that."""

    name: str
    """Such as ``qnn.fused_conv2d``."""
    operands: Mapping[str, ExternalOperand]
    attributes: Mapping[str, Value]
    stages: tuple[ExternalStage, ...]
    result: Port


@dataclass(frozen=True)
class ExternalFunction:
    """A function that another library computes: its ops in order, of which the last computes the output."""

    name: str
    """Of the outlined function."""
    target: str
    symbol: str
    """The C function that is called."""
    nodes: str
    """Names of the model's nodes, with commas between them."""
    location: str
    """``file:line:column``; empty where it is unknown."""
    inputs: tuple[Port, ...]
    output: Port
    operations: tuple[ExternalOperation, ...]

    @property
    def call(self) -> ExternalCall:
        """What messages tell of it."""
        node = f" at node '{self.nodes}'" if self.nodes else ""
        kind = f"'{self.operations[0].name}' op" if len(self.operations) == 1 else "region"
        return ExternalCall(f"{kind} '{self.name}'{node}", self.target, self.symbol, self.location)
