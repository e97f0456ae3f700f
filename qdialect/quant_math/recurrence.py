"""One time step of recurrent cells in float32, every operation rounded: written once for NumPy and for kernels.

Formulas are those of ONNX's LSTM, GRU and RNN without peepholes, which PyTorch and Keras share; the products with the
hidden state have been added to the gates already, each gate limited to [-clip, clip] before its activation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math.chains import Activation, activate

FloatArray = NDArray[np.float32]
T = TypeVar("T")


class CellActivation(StrEnum):
    """A function in a recurrent cell."""

    SIGMOID = "sigmoid"
    """1 / (1 + e^-x)."""
    TANH = "tanh"
    """Hyperbolic tangent."""
    RELU = "relu"
    """max(x, 0)."""


class CellArithmetic(Protocol[T]):
    """Float32 operations on the values of a cell."""

    def constant(self, value: float) -> T:
        """A number."""
        ...

    def add(self, a: T, b: T) -> T:
        """``a + b``."""
        ...

    def subtract(self, a: T, b: T) -> T:
        """``a - b``."""
        ...

    def multiply(self, a: T, b: T) -> T:
        """``a * b``."""
        ...

    def at_least(self, a: T, b: T) -> T:
        """``max(a, b)``, NaN where one is."""
        ...

    def at_most(self, a: T, b: T) -> T:
        """``min(a, b)``, NaN where one is."""
        ...

    def chain(self, activation: Activation, x: T) -> T:
        """A function of `qdialect.quant_math.chains`."""
        ...


@dataclass(frozen=True)
class GateFunction:
    """What a gate passes through: the limit, where `clip` is above 0, and the activation."""

    activation: CellActivation
    clip: float = 0.0

    def apply(self, m: CellArithmetic[T], x: T) -> T:
        """The function of `x`."""
        if self.clip > 0:
            x = m.at_most(m.at_least(x, m.constant(-self.clip)), m.constant(self.clip))
        return applied(m, self.activation, x)


def applied(m: CellArithmetic[T], activation: CellActivation, x: T) -> T:
    """`activation` of `x`."""
    if activation is CellActivation.RELU:
        return m.at_least(x, m.constant(0.0))
    return m.chain(Activation(activation.value), x)


def lstm_cell(m: CellArithmetic[T], gate: GateFunction, candidate: GateFunction, gates: Sequence[T], cell: T) -> T:
    """The cell state ``f * c + i * g`` from the gates i, f and g."""
    kept = m.multiply(gate.apply(m, gates[1]), cell)
    return m.add(kept, m.multiply(gate.apply(m, gates[0]), candidate.apply(m, gates[2])))


def lstm_hidden(m: CellArithmetic[T], gate: GateFunction, output: CellActivation, o: T, cell: T) -> T:
    """The hidden state ``o * output(c)`` from the gate o and the new cell state."""
    return m.multiply(gate.apply(m, o), applied(m, output, cell))


def gru_hidden(m: CellArithmetic[T], update: T, candidate: T, hidden: T) -> T:
    """The hidden state ``(1 - z) * n + z * h``."""
    return m.add(m.multiply(m.subtract(m.constant(1.0), update), candidate), m.multiply(update, hidden))


class ArrayCell:
    """The operations on float32 arrays."""

    def constant(self, value: float) -> Any:
        """See `CellArithmetic`."""
        return np.float32(value)

    def add(self, a: Any, b: Any) -> Any:
        """See `CellArithmetic`."""
        return np.add(a, b)

    def subtract(self, a: Any, b: Any) -> Any:
        """See `CellArithmetic`."""
        return np.subtract(a, b)

    def multiply(self, a: Any, b: Any) -> Any:
        """See `CellArithmetic`."""
        return np.multiply(a, b)

    def at_least(self, a: Any, b: Any) -> Any:
        """See `CellArithmetic`."""
        return np.maximum(a, b)

    def at_most(self, a: Any, b: Any) -> Any:
        """See `CellArithmetic`."""
        return np.minimum(a, b)

    def chain(self, activation: Activation, x: Any) -> Any:
        """See `CellArithmetic`."""
        return activate(activation, 0.0, x)
