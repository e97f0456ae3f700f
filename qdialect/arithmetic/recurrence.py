"""One time step of recurrent cells in float32, every operation rounded.

Formulas are those of ONNX's LSTM, GRU and RNN without peepholes, which PyTorch and Keras share; the products with the
hidden state have been added to the gates already, each gate limited to [-clip, clip] before its activation.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from qdialect.arithmetic import activations
from qdialect.arithmetic.expressions import Expression, Input, Number


class CellActivation(StrEnum):
    """A function in a recurrent cell."""

    SIGMOID = "sigmoid"
    """1 / (1 + e^-x)."""
    TANH = "tanh"
    """Hyperbolic tangent."""
    RELU = "relu"
    """max(x, 0)."""


CELL_FUNCTIONS: Mapping[CellActivation, Expression] = {
    CellActivation.SIGMOID: activations.sigmoid,
    CellActivation.TANH: activations.tanh,
    CellActivation.RELU: activations.relu,
}
"""The function of each activation."""


def gate_function(activation: CellActivation, clip: float) -> Expression:
    """The function of a gate: the limit, where `clip` is above 0, and the activation."""
    limited = Input().at_least(-clip).at_most(clip) if clip > 0 else Input()
    return CELL_FUNCTIONS[activation].of(limited)


def lstm_cell(gate: Expression, candidate: Expression) -> Expression:
    """The cell state ``f * c + i * g`` of the gates i, f, g and the cell state c before."""
    i, f, g, c = (Input(index) for index in range(4))
    return gate.of(f) * c + gate.of(i) * candidate.of(g)


def lstm_hidden(gate: Expression, output: CellActivation) -> Expression:
    """The hidden state ``o * output(c)`` of the gate o and the new cell state c."""
    o, c = Input(0), Input(1)
    return gate.of(o) * CELL_FUNCTIONS[output].of(c)


_LARGEST = 255.0


def state_scale() -> Expression:
    """``(max - min) / 255`` of the range [min, max] of a hidden state, which holds 0; 1 where both are 0."""
    extent = Input(1) - Input(0)
    return extent.where_positive(extent / _LARGEST, Number(1.0))


def state_point() -> Expression:
    """The zero point ``half_even(clamp(0 - min / scale))`` of a state's least number and its scale."""
    exact = Number(0.0) - Input(0) / Input(1)
    return _bounded(exact, Number(0.0), Number(_LARGEST)).apply("math.roundeven")


def quantized_state() -> Expression:
    """The quantized value ``clamp(half_even(x / scale) + zero point)`` of a number, by a scale and a zero point."""
    x, scale, point = (Input(index) for index in range(3))
    # Bounds are integers: clamping first gives the same.
    return _bounded(x / scale, Number(0.0) - point, Number(_LARGEST) - point).apply("math.roundeven") + point


def state_product() -> Expression:
    """The input of a gate from a sum of products: ``sum * (scale * scale of the weights) + gate``."""
    total, scale, weight_scale, gate = (Input(index) for index in range(4))
    return total * (scale * weight_scale) + gate


def _bounded(x: Expression, low: Expression, high: Expression) -> Expression:
    """`x` clamped to [low, high], NaN to `low`: a difference that is NaN is not positive."""
    raised = (x - low).where_positive(x, low)
    return (high - raised).where_positive(raised, high)


def gru_hidden(candidate: Expression) -> Expression:
    """The hidden state ``(1 - z) * candidate(n) + z * h`` of the update z, the gate n and the hidden state h before."""
    z, n, h = (Input(index) for index in range(3))
    return (Number(1.0) - z) * candidate.of(n) + z * h
