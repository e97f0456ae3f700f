"""LSTM, GRU and RNN over whole sequences, and their cells: the gates by one product, then a cell over time.

A product of a quantized sequence and constant quantized weights is one of integers, as everywhere; the cell is float32.
A layer with projections is left to PyTorch's own decomposition, which has the operators of every time step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from qdialect.arithmetic.recurrence import CellActivation
from qdialect.dialect import F32GruOp, F32LstmOp, F32RecurrentOp, F32RnnOp
from qdialect.frontends.building.checks import Array, Shape, UnsupportedError, require
from qdialect.frontends.planning.contraction import ordered_weight
from qdialect.frontends.planning.movement import Reshaping
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.recurrence import Cell, States, last_of, sequence_of
from qdialect.frontends.planning.tensors import EIGHT_BIT, Computation, F32Tensor, Tensor, known_array, product
from qdialect.frontends.torch.operators.contraction import dense
from qdialect.frontends.torch.operators.movement import moved, part_of, transposed
from qdialect.frontends.torch.operators.registry import Call, as_f32, imports
from qdialect.frontends.torch.operators.tensors import Quantized


@dataclass(frozen=True)
class _Kind:
    """An operator: its op, where each gate of the op stands among PyTorch's, and the op's attributes."""

    op_class: type[F32RecurrentOp]
    gates: tuple[int, ...]
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])


_GRU = _Kind(F32GruOp, (1, 0, 2), {"reset_after": True})
_KINDS = {
    "lstm": _Kind(F32LstmOp, (0, 1, 2, 3)),
    "gru": _GRU,
    "rnn_tanh": _Kind(F32RnnOp, (0,), {"activation": CellActivation.TANH}),
    "rnn_relu": _Kind(F32RnnOp, (0,), {"activation": CellActivation.RELU}),
}


@imports(*(f"{name}.input" for name in _KINDS))
def _layers(call: Call) -> Result:
    """All hidden states of the last layer, then the last of each state of all layers, [layers * directions, B, H]."""
    require(not (call.argument("train") and call.argument("dropout")), "dropout must not train")
    kind = _KINDS[call.node.kind.split(".")[1]]
    count, directions = call.argument("num_layers"), 2 if call.argument("bidirectional") else 1
    per_cell = 4 if call.argument("has_biases") else 2
    parameters = call.tensors("params")
    wanted = count * directions * per_cell
    require(len(parameters) == wanted, f"params must have {wanted} tensors, without projections, not {len(parameters)}")
    is_batch_first, initial = bool(call.argument("batch_first")), _initial(call)
    sequence = call.f32("input")
    require(len(sequence.shape) == 3, f"input must have 3 dimensions, but got {len(sequence.shape)}")
    if is_batch_first:
        sequence = _f32(transposed(call, sequence, (1, 0, 2)))
    last = [list[F32Tensor]() for _ in initial]
    for layer in range(count):
        cells: list[States] = []
        for direction in range(directions):
            index = layer * directions + direction
            own = parameters[index * per_cell : (index + 1) * per_cell]
            starts = tuple(_row(call, state, index) for state in initial)
            cells.append(_cell(call, kind, sequence, own, starts, is_reverse=direction == 1))
        for state, found in enumerate(last):
            found.append(last_of(tuple(cells), state))
        sequence = _side_by_side(call, tuple(cells))
    hidden = _f32(transposed(call, sequence, (1, 0, 2))) if is_batch_first else sequence
    return (hidden, *(_stacked(call, states) for states in last))


@imports("lstm_cell.default", "gru_cell.default", "rnn_tanh_cell.default", "rnn_relu_cell.default")
def _one_step(call: Call) -> Result:
    """One time step: each state [B, H]."""
    kind = _KINDS[call.node.kind.split(".")[1].removesuffix("_cell")]
    source, initial = call.f32("input"), _initial(call)
    require(len(source.shape) == 2, f"input must have 2 dimensions, but got {len(source.shape)}")
    given = [call.result(name) for name in ("w_ih", "w_hh", "b_ih", "b_hh")]
    own = [one for one in given if one is not None and not isinstance(one, tuple)]
    require(len(own) in (2, 4), "cell must have two biases or none")
    sequence = _f32(moved(call, source, Reshaping((1, *source.shape))))
    states = (_cell(call, kind, sequence, own, initial, is_reverse=False),)
    found = tuple(moved(call, last_of(states, state), Reshaping(initial[state].shape)) for state in range(len(initial)))
    return found if call.node.kind.startswith("aten.lstm") else next(iter(found))


@imports("lstm.data", "gru.data", "rnn_tanh.data", "rnn_relu.data")
def _packed(_: Call) -> Result:
    raise UnsupportedError("sequences must not be packed: their lengths are known when the network runs")


def _initial(call: Call) -> tuple[F32Tensor, ...]:
    """The initial states, one or those of an LSTM."""
    given = call.given("hx")
    tensors = call.tensors("hx") if isinstance(given, tuple) else (call.tensor("hx"),)
    return tuple(as_f32("hx", tensor) for tensor in tensors)


def _f32(tensor: Tensor) -> F32Tensor:
    return as_f32("input", tensor)


def _row(call: Call, tensor: F32Tensor, index: int) -> F32Tensor:
    """The initial state [B, H] of a direction of a layer."""
    holds = len(tensor.shape) == 3 and index < tensor.shape[0]
    require(holds, f"hx must have 3 dimensions and an entry for each layer, but got {list(tensor.shape)}")
    return _f32(moved(call, part_of(call, tensor, 0, index, index + 1), Reshaping(tensor.shape[1:])))


def _cell(
    call: Call,
    kind: _Kind,
    sequence: F32Tensor,
    parameters: Sequence[Tensor],
    initial: tuple[F32Tensor, ...],
    *,
    is_reverse: bool,
) -> States:
    """A direction of a layer; `parameters` are its weights, those of its states, and the biases of both."""
    recurrence = _constant(parameters[1])
    require(recurrence.ndim == 2, f"weights of states must have 2 dimensions, but got {recurrence.ndim}")
    hidden, gates = recurrence.shape[1], len(kind.gates)
    steps, batch, inputs = sequence.shape
    wanted: list[Shape] = [(gates * hidden, inputs), (gates * hidden, hidden), (gates * hidden,), (gates * hidden,)]
    for tensor, shape in zip(parameters, wanted, strict=False):
        require(tensor.shape == shape, f"params must have shape {list(shape)}, but got {list(tensor.shape)}")
    for state in initial:
        require(
            state.shape == (batch, hidden), f"hx must have {[batch, hidden]} for a cell, but got {list(state.shape)}"
        )
    rows: list[Array] = [np.arange(gate * hidden, (gate + 1) * hidden) for gate in kind.gates]
    order: Array = np.concatenate(rows)
    biases = [_constant(one)[order] for one in parameters[2:]]
    own, inner = biases or np.zeros((2, len(order)), np.float32)
    attributes = {**kind.attributes, "reverse": is_reverse}
    cell = Cell(kind.op_class, own + inner, np.ascontiguousarray(recurrence[order].T), attributes)
    if kind is _GRU:
        split = 2 * hidden
        cell = replace(cell, bias=np.concatenate([(own + inner)[:split], own[split:]]), inner_bias=inner[split:])
    products = _products(call, sequence, parameters[0], order)
    return States.of(products, initial, cell, (steps,) * batch)


def _constant(tensor: Tensor) -> Array:
    """Known f32 numbers."""
    array = known_array(tensor)
    if array is None:
        raise UnsupportedError("weights and biases must be constant")
    require(array.dtype == np.float32, f"weights and biases must be f32, but got {array.dtype}")
    return array


def _products(call: Call, sequence: F32Tensor, weights: Tensor, order: Array) -> F32Tensor:
    """The sequence times the rows of `weights` in an `order`: of integers where both are quantized."""
    quantized = weights if isinstance(weights, Quantized) and weights.values.element in EIGHT_BIT else None
    if isinstance(sequence, Quantized) and sequence.is_eight_bit and quantized is not None:
        return dense(call.name, sequence, ordered_weight(_ordered(quantized, order), (0, 1), 0), None)
    return product(sequence, np.ascontiguousarray(_constant(weights)[order].T))


def _ordered(weights: Quantized, order: Array) -> Quantized:
    """The rows of constant weights in an order, with their scales."""
    array = weights.values.data
    assert array is not None, "the weights are known by now"
    scales, points = weights.scales, weights.zero_points
    if len(scales) > 1 and weights.axis == 0:
        rows: list[int] = order.tolist()
        scales, points = tuple(scales[i] for i in rows), tuple(points[i] for i in rows)
    return replace(weights, values=replace(weights.values, data=array[order]), scales=scales, zero_points=points)


def _side_by_side(call: Call, cells: tuple[States, ...]) -> F32Tensor:
    """The hidden states of all directions: [T, B, D * H]."""
    states = sequence_of(cells)
    steps, count, batch, hidden = states.shape
    if count == 1:
        return _f32(moved(call, states, Reshaping((steps, batch, hidden))))
    sequences_first = transposed(call, states, (0, 2, 1, 3))
    return _f32(moved(call, sequences_first, Reshaping((steps, batch, count * hidden))))


def _stacked(call: Call, parts: Sequence[F32Tensor]) -> F32Tensor:
    """States of layers, one behind the other."""
    if len(parts) == 1:
        return parts[0]
    shape = (sum(part.shape[0] for part in parts), *parts[0].shape[1:])
    return Computation(shape, tuple(parts), lambda emitter, operands: emitter.concatenate(operands, 0), name=call.name)
