"""The tensors of a long short-term memory operator, by what they are for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qdialect.frontends.common import require
from qdialect.frontends.tflite.model import Tensor
from qdialect.frontends.tflite.operators.sequence import check_matrix

# Where the inputs of UNIDIRECTIONAL_SEQUENCE_LSTM stand: the first of four gates i, f, g and o, or of three.
_WEIGHTS, _RECURRENCES, _PEEPHOLES, _BIASES, _NORMS = 1, 5, 9, 12, 20
_PROJECTION, _PROJECTION_BIAS, _HIDDEN_STATE, _CELL_STATE = 16, 17, 18, 19
SHORTEST, LONGEST = 20, 24
"""Inputs without and with coefficients of normalizations."""
_INPUT, _FORGET, _CELL, _OUTPUT = range(4)
_PEEPHOLE_OF = {_INPUT: 0, _FORGET: 1, _OUTPUT: 2}


@dataclass(frozen=True)
class Gate:
    """One gate: weights [H, I] and [H, P], vectors of [H]."""

    index: int
    """Among i, f, g and o."""
    weight: Tensor
    recurrence: Tensor
    peephole: Tensor | None
    """What the cell state is multiplied by."""
    bias: Tensor | None
    norm: Tensor | None
    """The coefficients of its normalization."""

    @property
    def is_cell(self) -> bool:
        """Whether it is g, the one that is not a sigmoid."""
        return self.index == _CELL


@dataclass(frozen=True)
class LstmTensors:
    """All of an operator."""

    data: Tensor
    gates: tuple[Gate, ...]
    """i, f, g and o; without i where that is ``1 - f``."""
    projection: Tensor | None
    """[P, H]"""
    projection_bias: Tensor | None
    hidden_state: Tensor
    """[B, P]"""
    cell_state: Tensor
    """[B, H]"""

    @classmethod
    def of(cls, given: Sequence[Tensor | None]) -> LstmTensors:
        """Those of UNIDIRECTIONAL_SEQUENCE_LSTM's inputs, of shapes that fit together; raises `UnsupportedError`."""
        inputs = (*given, *(None,) * (LONGEST - len(given)))
        present = [index for index in range(4) if inputs[_WEIGHTS + index] is not None]
        require(present in ([0, 1, 2, 3], [1, 2, 3]), "must have weights for the gates f, g and o")
        gates = tuple(_gate(inputs, index) for index in present)
        data, hidden, cell = (_given(inputs, index) for index in (0, _HIDDEN_STATE, _CELL_STATE))
        tensors = cls(data, gates, inputs[_PROJECTION], inputs[_PROJECTION_BIAS], hidden, cell)
        tensors.check_shapes()
        return tensors

    @property
    def cells(self) -> int:
        """H."""
        return self.gates[0].weight.shape[0]

    @property
    def width(self) -> int:
        """P, the extent of the hidden state."""
        return self.gates[0].recurrence.shape[1]

    def check_shapes(self) -> None:
        """Raises `UnsupportedError` where shapes do not fit together."""
        two = all(len(tensor.shape) == 2 for gate in self.gates for tensor in (gate.weight, gate.recurrence))
        require(two, "weights must have 2 dimensions")
        cells, width, depth = self.cells, self.width, self.data.shape[-1] if self.data.shape else 0
        for gate in self.gates:
            check_matrix(gate.weight, (cells, depth), "input weight")
            check_matrix(gate.recurrence, (cells, width), "recurrent weight")
            for tensor, what in ((gate.peephole, "peephole"), (gate.bias, "bias"), (gate.norm, "normalization")):
                if tensor is not None:
                    check_matrix(tensor, (cells,), what)
        if self.projection is None:
            require(width == cells, f"recurrent weights must have {cells} columns, but got {width}")
        else:
            check_matrix(self.projection, (width, cells), "projection")
        if self.projection_bias is not None:
            check_matrix(self.projection_bias, (width,), "projection bias")
        norms = {gate.norm is None for gate in self.gates}
        require(len(norms) == 1, "normalization must be of all gates or of none of them")


def _gate(inputs: tuple[Tensor | None, ...], index: int) -> Gate:
    peephole = inputs[_PEEPHOLES + _PEEPHOLE_OF[index]] if index in _PEEPHOLE_OF else None
    weight, recurrence = _given(inputs, _WEIGHTS + index), _given(inputs, _RECURRENCES + index)
    return Gate(index, weight, recurrence, peephole, inputs[_BIASES + index], inputs[_NORMS + index])


def _given(inputs: tuple[Tensor | None, ...], index: int) -> Tensor:
    tensor = inputs[index]
    require(tensor is not None, f"input {index} must be given")
    assert tensor is not None
    return tensor
