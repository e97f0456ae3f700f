"""Long short-term memory of .tflite graphs in float64, by the formulas of LiteRT's kernels (``lstm_eval.cc``).

States are rounded to the grids of their tensors after each step, and gates not at all.  With i8 weights, float
activations are rounded to the grid of their range first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tflite

from qdialect.bench.frameworks import Array
from qdialect.bench.truth import NoTruthError
from qdialect.bench.truth.tflite_node import Evaluator, Node, activated, is_quantized, on_grid, on_range
from qdialect.frontends.tflite.flatbuffer.model import Tensor

# Operands by where UNIDIRECTIONAL_SEQUENCE_LSTM has them; gates stand in the order i, f, g and o.
_WEIGHTS, _RECURRENCES, _PEEPHOLES, _BIASES, _NORMS = 1, 5, 9, 12, 20
_PROJECTION, _PROJECTION_BIAS, _HIDDEN_STATE, _CELL_STATE = 16, 17, 18, 19
_INPUT, _FORGET, _CELL, _OUTPUT = range(4)
_PEEPHOLE_OF = {_INPUT: 0, _FORGET: 1, _OUTPUT: 2}
# Where BIDIRECTIONAL_SEQUENCE_LSTM has those of its directions.
_FORWARD = (0, *range(1, 18), 35, 36)
_BACKWARD = (0, *range(18, 35), 37, 38)
_AUXILIARY, _AUXILIARY_WEIGHTS = 39, range(40, 48)
_HIDDEN_INTERMEDIATE = 4
_TINY_VARIANCE = 1e-8


@dataclass(frozen=True)
class _Options:
    activation: int
    cell_clip: float
    projection_clip: float
    is_asymmetric: bool
    is_time_major: bool


@dataclass(frozen=True)
class _Direction:
    """The operands of one direction; those that are left out are absent."""

    arrays: Mapping[int, Array]
    tensors: Mapping[int, Tensor]
    before_projection: Tensor | None
    options: _Options

    def run(self, data: Array, *, is_reverse: bool = False) -> Array:
        """Hidden states [T, B, P] of `data` [T, B, I], from states of zero."""
        steps, batch = data.shape[:2]
        cell = np.zeros((batch, self.arrays[_WEIGHTS + _CELL].shape[0]))
        hidden = np.zeros((batch, self.arrays[_RECURRENCES + _CELL].shape[1]))
        found = np.zeros((steps, *hidden.shape))
        for index in reversed(range(steps)) if is_reverse else range(steps):
            cell, hidden = self._next(data[index], cell, hidden)
            found[index] = hidden
        return found

    def _next(self, data: Array, cell: Array, hidden: Array) -> tuple[Array, Array]:
        given = self._rounded(data), self._rounded(hidden)
        forget = _sigmoid(self._gate(_FORGET, *given, cell))
        # Without weights of its own the input gate is coupled to the forget gate.
        entering = _sigmoid(self._gate(_INPUT, *given, cell)) if _WEIGHTS + _INPUT in self.arrays else 1 - forget
        fresh = activated(self.options.activation, self._gate(_CELL, *given, cell))
        cell = on_grid(self.tensors[_CELL_STATE], _clipped(forget * cell + entering * fresh, self.options.cell_clip))
        output = _sigmoid(self._gate(_OUTPUT, *given, cell))
        return cell, self._hidden(output * activated(self.options.activation, cell))

    def _gate(self, gate: int, data: Array, hidden: Array, cell: Array) -> Array:
        total = data @ self.arrays[_WEIGHTS + gate].T + hidden @ self.arrays[_RECURRENCES + gate].T
        peephole = self.arrays.get(_PEEPHOLES + _PEEPHOLE_OF[gate]) if gate in _PEEPHOLE_OF else None
        if peephole is not None:
            total = total + cell * peephole
        norm = self.arrays.get(_NORMS + gate)
        if norm is not None:
            centered = total - total.mean(-1, keepdims=True)
            total = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + _TINY_VARIANCE) * norm
        return total + self._bias(_BIASES + gate, self.tensors[0], self.tensors[_WEIGHTS + gate])

    def _hidden(self, value: Array) -> Array:
        state, projection = self.tensors[_HIDDEN_STATE], self.arrays.get(_PROJECTION)
        if projection is None:
            return on_grid(state, value)
        if self.before_projection is not None and is_quantized(state):
            value = on_grid(self.before_projection, value)
        bias = self._bias(_PROJECTION_BIAS, self.before_projection, self.tensors[_PROJECTION])
        total = self._rounded(value) @ projection.T + bias
        return on_grid(state, _clipped(total, self.options.projection_clip))

    def _bias(self, operand: int, data: Tensor | None, weight: Tensor) -> Array:
        """Integers count in products of the scales of what is multiplied; a file may leave their own scale out."""
        bias = self.arrays.get(operand, np.zeros(()))
        has_scale = (
            operand not in self.tensors or self.tensors[operand].element == "f32" or self.tensors[operand].scales
        )
        return bias if has_scale or data is None else bias * data.scale * weight.scale

    def _rounded(self, data: Array) -> Array:
        is_hybrid = self.tensors[0].element == "f32" and self.tensors[_WEIGHTS + _CELL].element == "i8"
        return on_range(data, (-1,), is_asymmetric=self.options.is_asymmetric) if is_hybrid else data


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _clipped(x: Array, largest: float) -> Array:
    return np.clip(x, -largest, largest) if largest > 0 else x


def _direction(node: Node, order: Sequence[int], options: _Options) -> _Direction:
    held = {operand: index for operand, index in enumerate(order) if node.optional(index) is not None}
    arrays = {operand: node[index] for operand, index in held.items()}
    tensors = {operand: node.tensor(index) for operand, index in held.items()}
    between = node.operator.intermediates
    before = between[_HIDDEN_INTERMEDIATE] if len(between) > _HIDDEN_INTERMEDIATE else None
    return _Direction(arrays, tensors, before, options)


def _turned(data: Array, options: _Options) -> Array:
    """[T, B, I] from the order of the operator, or back."""
    return data if options.is_time_major else data.swapaxes(0, 1)


def _one_direction(node: Node) -> tuple[Array, ...]:
    options = _options(node, tflite.UnidirectionalSequenceLSTMOptions)
    found = _direction(node, range(len(node.arrays)), options).run(_turned(node[0], options))
    return (_turned(found, options),)


def _both_directions(node: Node) -> tuple[Array, ...]:
    if any(node.optional(index) is not None for index in _AUXILIARY_WEIGHTS):
        raise NoTruthError("weights of an auxiliary input have no evaluator in float64")
    options = _options(node, tflite.BidirectionalSequenceLSTMOptions)
    is_merged = node.options(tflite.BidirectionalSequenceLSTMOptions, lambda table: bool(table.MergeOutputs()))
    other = node.optional(_AUXILIARY)
    forward = _direction(node, _FORWARD, options).run(_turned(node[0], options))
    data = _turned(node[0] if other is None else other, options)
    backward = _direction(node, _BACKWARD, options).run(data, is_reverse=True)
    if is_merged:
        return (_turned(np.concatenate([forward, backward], -1), options),)
    return _turned(forward, options), _turned(backward, options)


_Table = type[tflite.UnidirectionalSequenceLSTMOptions] | type[tflite.BidirectionalSequenceLSTMOptions]


def _options(node: Node, table: _Table) -> _Options:
    def read(found: tflite.UnidirectionalSequenceLSTMOptions | tflite.BidirectionalSequenceLSTMOptions) -> _Options:
        clips = found.CellClip(), found.ProjClip()
        kinds = bool(found.AsymmetricQuantizeInputs()), bool(found.TimeMajor())
        return _Options(found.FusedActivationFunction(), *clips, *kinds)

    return node.options(table, read)


LSTMS: dict[str, Evaluator] = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": _both_directions,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _one_direction,
}
