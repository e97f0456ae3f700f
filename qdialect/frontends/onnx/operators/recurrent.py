"""LSTM, GRU and RNN: the gates of the whole sequence by one product, then a cell over time.

A product of a quantized sequence and constant quantized weights is one of integers, as everywhere; the cell is float32.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from qdialect.dialect import F32GruOp, F32LstmOp, F32RecurrentOp, F32RnnOp
from qdialect.frontends.common import Array, require
from qdialect.frontends.onnx.operators.cell_functions import CellFunction, cell_functions
from qdialect.frontends.onnx.operators.matmul import product_by_rows
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.computation import product
from qdialect.frontends.planning.emitter import Value
from qdialect.frontends.planning.movement import Reshaping, Slicing, Transposition, move
from qdialect.frontends.planning.ragged_recurrence import Ragged
from qdialect.frontends.planning.recurrence import Cell, DynamicLstmCell, States, last_of, sequence_of
from qdialect.frontends.planning.tensors import Computed, F32Tensor, Tensor
from qdialect.frontends.planning.unrolled_recurrence import MAX_STEPS, UnrolledCell
from qdialect.frontends.slices import Slice
from qdialect.quant_math.recurrence import CellActivation

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True)
class _Kind:
    """An operator: its op, where each gate of the op stands among ONNX's, and its functions by their attributes."""

    op_class: type[F32RecurrentOp]
    gates: tuple[int, ...]
    functions: tuple[tuple[str, CellActivation], ...]


_SIGMOID, _TANH = CellActivation.SIGMOID, CellActivation.TANH
KINDS = {
    "LSTM": _Kind(
        F32LstmOp,
        (0, 2, 3, 1),
        (("gate_activation", _SIGMOID), ("cell_activation", _TANH), ("output_activation", _TANH)),
    ),
    "GRU": _Kind(F32GruOp, (0, 1, 2), (("gate_activation", _SIGMOID), ("cell_activation", _TANH))),
    "RNN": _Kind(F32RnnOp, (0,), (("activation", _TANH),)),
}
_SEQUENCE_LENS, _INITIAL, _PEEPHOLES = 4, 5, 7


@imports(*KINDS)
def _recurrent(call: Call) -> tuple[Tensor, ...]:
    call.count(3, 8 if call.node.kind == "LSTM" else 6)
    return Layer(call, KINDS[call.node.kind]).results(call.constant(1), call.constant(2))


@dataclass(frozen=True)
class Layer:
    """A node whose inputs are those of an operator of `kind`."""

    call: Call
    kind: _Kind

    def results(self, weights: Array, recurrence: Array) -> tuple[Tensor, ...]:
        """All hidden states, then the last of each state; weights are [D, G * H, I], of the states [D, G * H, H]."""
        self._check(weights, recurrence)
        directions = self._directions
        states = tuple(self._states(i, is_reverse, weights, recurrence) for i, is_reverse in enumerate(directions))
        counts, ragged = range(self.kind.op_class.state_count), self._ragged
        if ragged is None:
            sequence, last = sequence_of(states), [last_of(states, state) for state in counts]
        else:
            sequence = ragged.sequence_of(states, directions)
            last = [ragged.last_of(states, state) for state in counts]
        return self._arranged(sequence, (2, 0, 1, 3)), *(self._arranged(one, (1, 0, 2)) for one in last)

    @property
    def _directions(self) -> tuple[bool, ...]:
        """Of each, whether time runs backwards."""
        direction: str = self.call.attribute("direction", "forward")
        require(direction in _DIRECTIONS, f"direction must be {', '.join(_DIRECTIONS)}, but got {direction}")
        return _DIRECTIONS[direction]

    @property
    def _sequence(self) -> F32Tensor:
        """[T, B, I]."""
        data = self.call.f32(0)
        require(len(data.shape) == 3, f"input 0 must have 3 dimensions, but got {len(data.shape)}")
        return _f32(self._moved(data, (1, 0, 2))) if self._is_batch_first else data

    @property
    def _is_batch_first(self) -> bool:
        return self.call.flag("layout", 0)

    @property
    def _ragged(self) -> Ragged | None:
        """The lengths of sequences that are known at run time."""
        lengths = self.call.optional(_SEQUENCE_LENS)
        if not isinstance(lengths, Value):
            return None
        steps, batch = self._sequence.shape[:2]
        holds = lengths.element == "i32" and lengths.shape == (batch,)
        found = f"{lengths.element} of {list(lengths.shape)}"
        require(holds, f"sequence_lens must be i32 of shape [{batch}], but got {found}")
        return Ragged(lengths, steps)

    def _moved(self, tensor: Tensor, order: tuple[int, ...]) -> Tensor:
        return move(self.call.plan, self.call.name, tensor, Transposition.of(tensor.shape, order))

    def _arranged(self, tensor: Tensor, order: tuple[int, ...]) -> Tensor:
        return self._moved(tensor, order) if self._is_batch_first else tensor

    def _check(self, weights: Array, recurrence: Array) -> None:
        count = len(self._directions)
        hidden: int = self.call.attribute("hidden_size", recurrence.shape[-1])
        require(hidden == recurrence.shape[-1], f"hidden_size must be {recurrence.shape[-1]}, but got {hidden}")
        inputs = self._sequence.shape[2]
        require(recurrence.ndim == 3, f"input 2 must have 3 dimensions, but got {recurrence.ndim}")
        width = len(self.kind.gates) * recurrence.shape[2]
        for index, array, last in ((1, weights, inputs), (2, recurrence, recurrence.shape[2])):
            wanted = (count, width, last)
            require(array.dtype == np.float32, f"input {index} must be f32, but got {array.dtype}")
            require(array.shape == wanted, f"input {index} must hold {list(wanted)}, but got {list(array.shape)}")

    def _states(self, index: int, is_reverse: bool, weights: Array, recurrence: Array) -> States:
        call, hidden = self.call, recurrence.shape[2]
        order = np.arange(int(recurrence.shape[1])).reshape(-1, hidden)[list(self.kind.gates)].ravel()
        sequence = self._sequence
        products = self.products(sequence, weights[index][order], index, order)
        ragged = self._ragged
        if ragged is not None and is_reverse:
            products, is_reverse = ragged.reversed(call.plan, call.name, products), False
        attributes = {"reverse": is_reverse, "clip": self._clip}
        own, inner = self._bias(index, order)
        matrix = np.ascontiguousarray(recurrence[index][order].T)
        cell = self.cell(Cell(self.kind.op_class, own + inner, matrix, attributes), index, order)
        if call.node.kind == "GRU" and call.flag("linear_before_reset", 0):
            last = slice(2 * hidden, None)
            gates = np.concatenate([(own + inner)[: 2 * hidden], own[last]])
            cell = replace(cell, bias=gates, inner_bias=inner[last], attributes={**attributes, "reset_after": True})
        initial = tuple(self._initial(_INITIAL + i, index, hidden) for i in range(self.kind.op_class.state_count))
        cell = self._of_functions(cell, index)
        return States.of(products, initial, cell, self._lengths(sequence.shape[0], sequence.shape[1]))

    def cell(self, cell: Cell, index: int, order: Array) -> Cell:
        """The `cell` of a direction, perhaps with weights of another kind, in the order of the gates."""
        del index, order
        return cell

    def products(self, sequence: F32Tensor, rows: Array, index: int, order: Array) -> F32Tensor:
        """The sequence times the transpose of `rows`, those of a direction: of integers where both are quantized."""
        weights = self.call.tensor(1)
        if isinstance(sequence, Quantized) and isinstance(weights, Quantized) and sequence.is_eight_bit:
            return product_by_rows(sequence, _rows_of(weights, index, order))
        return product(sequence, np.ascontiguousarray(rows.T))

    @property
    def _clip(self) -> float:
        if "clip" not in self.call.node.attributes:
            return 0.0
        clip: float = self.call.attribute("clip", 0.0)
        require(0 < clip < np.inf, f"clip must be more than 0, but got {clip}")
        return clip

    def _functions(self, index: int) -> list[CellFunction]:
        """Of a direction."""
        count = len(self.kind.functions)
        found = cell_functions(self.call, [one for _, one in self.kind.functions], len(self._directions))
        return found[index * count : (index + 1) * count]

    def _of_functions(self, cell: Cell, index: int) -> Cell:
        """`cell` with its functions, its peepholes and its coupled gates: the dialect's where that has them."""
        functions, peepholes = self._functions(index), self._peepholes(index, cell.hidden)
        is_coupled = self.call.flag("input_forget", 0)
        known = [one.activation for one in functions]
        if None not in known and peepholes is None and not is_coupled:
            names = [name for name, _ in self.kind.functions]
            return replace(cell, attributes={**cell.attributes, **dict(zip(names, known, strict=True))})
        steps = self._sequence.shape[0]
        require(steps <= MAX_STEPS, f"cell must have at most {MAX_STEPS} time steps, but got {steps}")
        is_quantized = isinstance(cell, DynamicLstmCell)
        require(not is_quantized, "a quantized hidden state must have no peepholes and functions of the dialect")
        parts: dict[str, Any] = {field.name: getattr(cell, field.name) for field in fields(cell)}
        return UnrolledCell(
            **parts, functions=tuple(one.expression for one in functions), peepholes=peepholes, is_coupled=is_coupled
        )

    def _peepholes(self, index: int, hidden: int) -> Array | None:
        """Of the gates i, f and o; the model has those of i, o and f."""
        if self.call.optional(_PEEPHOLES) is None or not np.any(given := self.call.constant(_PEEPHOLES)):
            return None
        wanted = (len(self._directions), 3 * hidden)
        holds = given.dtype == np.float32 and given.shape == wanted
        require(holds, f"input 7 must be f32 of shape {list(wanted)}, but got {given.dtype} {list(given.shape)}")
        return given[index].reshape(3, hidden)[[0, 2, 1]].ravel()

    def _bias(self, index: int, order: Array) -> tuple[Array, Array]:
        """Of the sequence's products and of those with the hidden state."""
        if self.call.optional(3) is None:
            return np.zeros(len(order), np.float32), np.zeros(len(order), np.float32)
        bias, wanted = self.call.constant(3), (len(self._directions), 2 * len(order))
        holds = bias.dtype == np.float32 and bias.shape == wanted
        require(holds, f"input 3 must be f32 of shape {list(wanted)}, but got {bias.dtype} {list(bias.shape)}")
        return bias[index][: len(order)][order], bias[index][len(order) :][order]

    def _initial(self, position: int, index: int, hidden: int) -> F32Tensor:
        """The initial states of a direction, [B, H]: zeros where the input is omitted."""
        call, batch = self.call, self._sequence.shape[1]
        if call.optional(position) is None:
            zeros = np.zeros((batch, hidden), np.float32)
            return Computed(zeros.shape, Value(call.name, zeros.shape, "f32", data=zeros))
        given = self._arranged(call.f32(position), (1, 0, 2))
        wanted = (len(self._directions), batch, hidden)
        require(given.shape == wanted, f"input {position} must hold {list(wanted)}, but got {list(given.shape)}")
        slices = (Slice(index, 1, 1), Slice(0, 1, batch), Slice(0, 1, hidden))
        own = move(call.plan, call.name, given, Slicing.of(slices))
        return _f32(move(call.plan, call.name, own, Reshaping((batch, hidden))))

    def _lengths(self, steps: int, batch: int) -> tuple[int, ...]:
        """Of each sequence; all time steps where the input is omitted or not known yet."""
        if isinstance(self.call.optional(_SEQUENCE_LENS), Value | None):
            return (steps,) * batch
        lengths = self.call.integers(_SEQUENCE_LENS)
        holds = len(lengths) == batch and all(1 <= length <= steps for length in lengths)
        require(holds, f"sequence_lens must be {batch} integers in [1, {steps}], but got {list(lengths)}")
        return lengths


def _rows_of(weights: Quantized, index: int, order: Array) -> Quantized:
    """The rows of a direction in the order of the op's gates, by one scale or one for each of them."""
    array = weights.values.data
    assert array is not None, "the weights are known by now"
    rows = array[index][order]
    scales, points = weights.scales, weights.zero_points
    if len(scales) > 1:
        chosen: list[int] = [index] if weights.axis == 0 else order.tolist()
        scales, points = tuple(scales[i] for i in chosen), tuple(points[i] for i in chosen)
    return Quantized(rows.shape, replace(weights.values, shape=rows.shape, data=rows), scales, points)


def _f32(tensor: Tensor) -> F32Tensor:
    assert isinstance(tensor, F32Tensor)
    return tensor
