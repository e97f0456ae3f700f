"""LSTM, GRU, RNN and DynamicQuantizeLSTM: the gates of the whole sequence by one product, then a cell over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from qdialect.arithmetic import activations, onnx_activations
from qdialect.arithmetic.expressions import Expression, Input
from qdialect.arithmetic.recurrence import CELL_FUNCTIONS, CellActivation
from qdialect.dialect import DynamicLstmOp, F32GruOp, F32LstmOp, F32RecurrentOp, F32RnnOp
from qdialect.frontends.building.checks import Array, require, required
from qdialect.frontends.building.slices import Slice
from qdialect.frontends.onnx.operators.dynamic_quantization import dynamic_product
from qdialect.frontends.onnx.operators.matmul import product_of
from qdialect.frontends.onnx.operators.registry import Call, Quantized, imports
from qdialect.frontends.planning import recurrence as cells
from qdialect.frontends.planning.emitter import Value
from qdialect.frontends.planning.movement import Reshaping, Slicing, Transposition, move
from qdialect.frontends.planning.tensors import Computed, Constant, F32Tensor, Tensor, product

# A product of a quantized sequence and constant quantized weights is one of integers, as everywhere; the cell is
# float32.

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
            sequence, last = cells.sequence_of(states), [cells.last_of(states, state) for state in counts]
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
    def _ragged(self) -> cells.Ragged | None:
        """The lengths of sequences that are known at run time."""
        lengths = self.call.optional(_SEQUENCE_LENS)
        if not isinstance(lengths, Value):
            return None
        steps, batch = self._sequence.shape[:2]
        holds = lengths.element == "i32" and lengths.shape == (batch,)
        found = f"{lengths.element} of {list(lengths.shape)}"
        require(holds, f"sequence_lens must be i32 of shape [{batch}], but got {found}")
        return cells.Ragged(lengths, steps)

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

    def _states(self, index: int, is_reverse: bool, weights: Array, recurrence: Array) -> cells.States:
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
        cell = self.cell(cells.Cell(self.kind.op_class, own + inner, matrix, attributes), index, order)
        if call.node.kind == "GRU" and call.flag("linear_before_reset", 0):
            last = slice(2 * hidden, None)
            gates = np.concatenate([(own + inner)[: 2 * hidden], own[last]])
            cell = replace(cell, bias=gates, inner_bias=inner[last], attributes={**attributes, "reset_after": True})
        initial = tuple(self._initial(_INITIAL + i, index, hidden) for i in range(self.kind.op_class.state_count))
        cell = self._of_functions(cell, index)
        return cells.States.of(products, initial, cell, self._lengths(sequence.shape[0], sequence.shape[1]))

    def cell(self, cell: cells.Cell, index: int, order: Array) -> cells.Cell:
        """The `cell` of a direction, perhaps with weights of another kind, in the order of the gates."""
        del index, order
        return cell

    def products(self, sequence: F32Tensor, rows: Array, index: int, order: Array) -> F32Tensor:
        """The sequence times the transpose of `rows`, those of a direction: of integers where both are quantized."""
        weights = self.call.tensor(1)
        if isinstance(sequence, Quantized) and isinstance(weights, Quantized) and sequence.is_eight_bit:
            return product_of(sequence, _rows_of(weights, index, order), by_rows=True)
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

    def _of_functions(self, cell: cells.Cell, index: int) -> cells.Cell:
        """`cell` with its functions, its peepholes and its coupled gates: the dialect's where that has them."""
        functions, peepholes = self._functions(index), self._peepholes(index, cell.hidden)
        is_coupled = self.call.flag("input_forget", 0)
        known = [one.activation for one in functions]
        if None not in known and peepholes is None and not is_coupled:
            names = [name for name, _ in self.kind.functions]
            return replace(cell, attributes={**cell.attributes, **dict(zip(names, known, strict=True))})
        steps = self._sequence.shape[0]
        require(steps <= cells.MAX_STEPS, f"cell must have at most {cells.MAX_STEPS} time steps, but got {steps}")
        is_quantized = isinstance(cell, cells.DynamicLstmCell)
        require(not is_quantized, "a quantized hidden state must have no peepholes and functions of the dialect")
        parts: dict[str, Any] = {field.name: getattr(cell, field.name) for field in fields(cell)}
        return cells.UnrolledCell(
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


# The functions of recurrent cells: attributes activations, activation_alpha and activation_beta.


@dataclass(frozen=True)
class _Function:
    """A function with its default parameters, which it takes from the lists alpha and beta; None: without default."""

    build: Callable[..., Expression]
    defaults: tuple[float | None, ...] = ()


_X = Input()


def _affine(alpha: float, beta: float) -> Expression:
    return _X * alpha + beta


def _scaled_tanh(alpha: float, beta: float) -> Expression:
    return activations.tanh.of(_X * beta) * alpha


def _without_parameters(expression: Expression) -> _Function:
    return _Function(lambda: expression)


_FUNCTIONS: Mapping[str, _Function] = {
    **{one.value: _without_parameters(CELL_FUNCTIONS[one]) for one in CellActivation},
    "affine": _Function(_affine, (1.0, 0.0)),
    "leakyrelu": _Function(activations.leaky_relu, (0.01,)),
    "thresholdedrelu": _Function(onnx_activations.thresholded, (1.0,)),
    "scaledtanh": _Function(_scaled_tanh, (None, None)),
    "hardsigmoid": _Function(onnx_activations.hard_sigmoid, (0.2, 0.5)),
    "elu": _Function(onnx_activations.elu, (1.0,)),
    "softsign": _without_parameters(onnx_activations.softsign),
    "softplus": _without_parameters(onnx_activations.softplus),
}


@dataclass(frozen=True)
class CellFunction:
    """A function of a cell: one that the dialect's cells have, and as an expression."""

    activation: CellActivation | None
    expression: Expression


def cell_functions(call: Call, defaults: Sequence[CellActivation], directions: int) -> list[CellFunction]:
    """The functions of all directions, one after the other; raises `UnsupportedError`.

    The lists of parameters are used up by the functions that take them, in order; one that is given has all of them.
    """
    names: Sequence[str] = call.attribute("activations", [""])
    if not any(names):
        return [CellFunction(one, CELL_FUNCTIONS[one]) for one in defaults] * directions
    count = len(defaults) * directions
    require(len(names) == count, f"activations must have {count} entries, but got {len(names)}")
    parameters = [_Parameters(call, name) for name in ("activation_alpha", "activation_beta")]
    return [_function(name, parameters) for name in names]


class _Parameters:
    """A list of parameters that functions use up."""

    def __init__(self, call: Call, name: str) -> None:
        self._name = name
        self._is_given = name in call.node.attributes
        self._left: Iterator[float] = iter(call.attribute(name, [0.0]) if self._is_given else ())

    def next(self, default: float | None) -> float | None:
        """The next one; `default` without a list."""
        found = next(self._left, None)
        require(found is not None or not self._is_given, f"{self._name} must have an entry for each function with one")
        return default if found is None else found


def _function(name: str, parameters: Sequence[_Parameters]) -> CellFunction:
    found = required(
        _FUNCTIONS.get(name.lower()), f"activations must be functions of ONNX's recurrent operators, but got {name}"
    )
    values = [given.next(default) for given, default in zip(parameters, found.defaults, strict=False)]
    require(None not in values, f"{name} must have an activation_alpha and an activation_beta")
    activation = CellActivation(name.lower()) if name.lower() in set(CellActivation) else None
    return CellFunction(activation, found.build(*values))


# DynamicQuantizeLSTM: products of quantized weights with data and hidden states that each call quantizes.
#
# ONNX Runtime quantizes the sequence by the range of all of it, and the hidden states of all sequences in each time
# step.

_WEIGHTS, _RECURRENCE = (1, 8), (2, 10)
"""The inputs with weights and with their scales."""


@imports("com.microsoft.DynamicQuantizeLSTM")
def _dynamic_quantize_lstm(call: Call) -> tuple[Tensor, ...]:
    """Weights are [D, I, 4 * H] and [D, H, 4 * H]."""
    call.count(12)
    # A sequence that has ended would still count for the range of the hidden states.
    require(call.optional(4) is None, "input 4, sequence_lens, must be omitted")
    weights, recurrence = (_Matrices.of(call, *indices).whole_numbers() for indices in (_WEIGHTS, _RECURRENCE))
    return _DynamicLayer(call, KINDS["LSTM"]).results(weights.transpose(0, 2, 1), recurrence.transpose(0, 2, 1))


class _Matrices:
    """Quantized matrices [D, K, N] with parameters of each direction, or of each of its columns."""

    def __init__(self, values: Array, scales: Array, points: Array) -> None:
        self.values, self.scales, self.points = values, scales, points

    @classmethod
    def of(cls, call: Call, index: int, parameters: int) -> _Matrices:
        """Input `index`, with scales from input `parameters` and zero points from the next."""
        values, scale, points = (call.constant(i) for i in (index, parameters, parameters + 1))
        require(values.ndim == 3, f"input {index} must have 3 dimensions, but got {values.ndim}")
        holds = scale.dtype == np.float32 and points.dtype == values.dtype and str(values.dtype) in ("int8", "uint8")
        require(holds, f"input {index} must be i8 or ui8 with a zero point of its type and an f32 scale")
        wanted = [(values.shape[0],), (values.shape[0], values.shape[2])]
        require(scale.shape in wanted and points.shape in wanted, f"scale must have the shape {list(wanted[0])}")
        return cls(values, *(one.reshape(values.shape[0], -1) for one in (scale, points)))

    def whole_numbers(self) -> Array:
        """``quantized value - zero point`` as f32."""
        return (self.values.astype(np.int32) - self.points[:, np.newaxis].astype(np.int32)).astype(np.float32)


class _DynamicLayer(Layer):
    """A layer whose weights are quantized."""

    def cell(self, cell: cells.Cell, index: int, order: Array) -> cells.Cell:
        own = _Matrices.of(self.call, *_RECURRENCE)
        scales = np.broadcast_to(own.scales[index], order.shape)[order]
        points = np.broadcast_to(own.points[index], order.shape)[order]
        attributes = {**cell.attributes, "weight_zero_points": tuple(points.tolist())}
        return cells.DynamicLstmCell(
            DynamicLstmOp,
            cell.bias,
            np.ascontiguousarray(own.values[index][:, order]),
            attributes,
            scales=np.ascontiguousarray(scales),
        )

    def products(self, sequence: F32Tensor, rows: Array, index: int, order: Array) -> F32Tensor:
        del rows
        own = _Matrices.of(self.call, *_WEIGHTS)
        matrix = np.ascontiguousarray(own.values[index][:, order])
        scales, points = (one[index][order] if one.shape[1] > 1 else one[index] for one in (own.scales, own.points))
        constants = (Constant(array) for array in (matrix, np.ascontiguousarray(scales), np.ascontiguousarray(points)))
        return dynamic_product(replace(self.call, inputs=(sequence, *constants)))
