"""An extern function: its record, which describes the ops that it computes, and how a network calls it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.support.interface import Port

# The record of an extern function: the ops that it computes, with all their attributes and constants.

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
    """A stage of a fused op's epilogue, such as ``requantize``, with the defaults that its text may leave out."""

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
        """Its description in messages."""
        node = f" at node '{self.nodes}'" if self.nodes else ""
        kind = f"'{self.operations[0].name}' op" if len(self.operations) == 1 else "region"
        return ExternalCall(f"{kind} '{self.name}'{node}", self.target, self.symbol, self.location)


# A call of a function of another library: all that a process knows of it which loads a compiled network.


@dataclass(frozen=True)
class ExternalCall:
    """A call of a C function of another library, as messages tell of it."""

    title: str
    target: str
    symbol: str
    location: str
    """``file:line:column``; empty where it is unknown."""

    @property
    def position(self) -> tuple[str, int, int]:
        """File, line and column; empty and zeros where they are unknown."""
        file, *numbers = self.location.rsplit(":", 2)
        return (file, int(numbers[0]), int(numbers[1])) if len(numbers) == 2 else ("", 0, 0)


# The words at the start of the working memory by which external functions are called, 64 bits each.

WORD_BYTES = 8

STATUS = 0
"""The status of the first function that failed; 0 if all succeeded."""

NUMBER = 1
"""The number of the function that was called last, which is the one that failed."""

FIRST_ADDRESS = 2
"""Where the addresses of inputs begin; those of outputs follow."""
