"""Builds what recurrent operators share: time steps, products of rows, activations of cells, tensors of an LSTM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import tflite

from qdialect.arithmetic import activations
from qdialect.arithmetic.expressions import Expression, Input
from qdialect.dialect import DynamicDenseOp, F32MatmulOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import Array, Shape, require, required
from qdialect.frontends.building.slices import Slice, take_slices
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import check_scales, constant
from qdialect.frontends.tflite.operators.hybrid import asymmetric, symmetric
from qdialect.frontends.tflite.operators.registry import Emitter
from qdialect.ir._mlir import ir

# The time steps of recurrent operators: one after another, each with ops of its own.
#
# Kernels of equal steps are compiled once, so that a step costs little more than its calls.

State = TypeVar("State")
MAX_STEPS = 256
"""Of one operator: more would take long to compile."""


@dataclass(frozen=True)
class Steps:
    """How the sequences of an operator lie: time or the batch first, time running forwards or backwards."""

    count: int
    batch: int
    is_time_major: bool
    is_reverse: bool = False

    @classmethod
    def of(cls, data: Tensor, is_time_major: bool) -> Steps:
        """Those of an input [T, B, I] or [B, T, I]; raises `UnsupportedError`."""
        require(len(data.shape) == 3, f"input must have 3 dimensions, but got {len(data.shape)}")
        count, batch = data.shape[:2] if is_time_major else data.shape[1::-1]
        require(count >= 1 and batch >= 1, f"input must have time steps and a batch, but got {list(data.shape)}")
        require(count <= MAX_STEPS, f"input must have at most {MAX_STEPS} time steps, but got {count}")
        return cls(count, batch, is_time_major)

    def time_first(self, emitter: Emitter, value: ir.Value) -> ir.Value:
        """A sequence as [T, B, I]."""
        if self.is_time_major:
            return value
        if self.batch == 1:
            return emitter.reshape(value, (self.count, 1, shape_of(value.type)[2]))
        return emitter.transpose(value, (1, 0, 2))

    def row(self, emitter: Emitter, value: ir.Value, step: int) -> ir.Value:
        """[B, I] of a sequence [T, B, I]."""
        width = shape_of(value.type)[2]
        part = take_slices(emitter, value, (Slice(step, 1, 1), Slice(0, 1, self.batch), Slice(0, 1, width)))
        return emitter.reshape(part, (self.batch, width))

    def joined(self, emitter: Emitter, rows: Sequence[ir.Value]) -> ir.Value:
        """The sequence of [B, P] after each step, as it lies in the file."""
        width = shape_of(rows[0].type)[1]
        axis, shape = (0, (1, self.batch, width)) if self.is_time_major else (1, (self.batch, 1, width))
        return emitter.concatenate([emitter.reshape(row, shape) for row in rows], axis)

    def run(self, start: State, step: Callable[[State, int], tuple[State, ir.Value]]) -> list[ir.Value]:
        """The result of each step, in the order of time; `step` gets the state before and the number of the step."""
        order, state = range(self.count), start
        given: list[ir.Value] = []
        for index in reversed(order) if self.is_reverse else order:
            state, row = step(state, index)
            given.append(row)
        return given[::-1] if self.is_reverse else given


def auxiliary_of(operator: Operator, first: int, count: int, is_merged: bool) -> Tensor | None:
    """Input `first` of `count`, what the direction that runs backwards reads instead of input 0."""
    found, wanted = len(operator.outputs), 1 if is_merged else 2
    require(found == wanted, f"must have {wanted} outputs, but got {found}")
    require(len(operator.inputs) == count, f"must have {count} inputs, but got {len(operator.inputs)}")
    auxiliary, *weights = operator.inputs[first:]
    has_weights = any(weight is not None for weight in weights)
    require(not has_weights, "weights of an auxiliary input are not supported")
    return auxiliary


def of_both(
    emitter: Emitter, steps: Steps, directions: Sequence[Sequence[ir.Value]], is_merged: bool
) -> list[ir.Value]:
    """The sequences of two directions: side by side in one where they are merged."""
    if is_merged:
        return [steps.joined(emitter, [emitter.concatenate(pair, 1) for pair in zip(*directions, strict=True)])]
    return [steps.joined(emitter, rows) for rows in directions]


def columns(emitter: Emitter, value: ir.Value, index: int, count: int) -> ir.Value:
    """Part `index` of `count` equal parts of the last dimension of [B, N]."""
    rows, width = shape_of(value.type)
    return take_slices(emitter, value, (Slice(0, 1, rows), Slice(index * (width // count), 1, width // count)))


def check_matrix(tensor: Tensor, shape: Shape, what: str) -> None:
    """`tensor` has a shape; raises `UnsupportedError`."""
    require(tensor.shape == shape, f"{what} must have the shape {list(shape)}, but got {list(tensor.shape)}")


# Products of float32 rows with constant matrices: of float32, or of i8 with rows quantized when the network runs.

_ROW_TYPES = ("f32", "i8")


@dataclass(frozen=True)
class RowProduct:
    """``rows [N, K] x weights [C, K]`` of several weights side by side, each row quantized by itself."""

    weights: tuple[Tensor, ...]
    is_asymmetric: bool
    """Whether rows are quantized around a zero point."""

    def __post_init__(self) -> None:
        elements = {weight.element for weight in self.weights}
        one = len(elements) == 1 and elements < set(_ROW_TYPES)
        require(one, f"weights must be all f32 or all i8, but got {', '.join(sorted(elements))}")
        for weight in self.weights:
            constant(weight, f"'{weight.name}'")
            if weight.element == "i8":
                check_scales(weight, f"'{weight.name}'")
                found = len(weight.scales)
                require(found == 1, f"'{weight.name}' must have one scale, but got {found}")
                require(weight.zero_point == 0, f"'{weight.name}' must have zero point 0, but got {weight.zero_point}")

    def emit(self, emitter: Emitter, rows: ir.Value, bias: Array | None = None) -> ir.Value:
        """f32 [N, C], with a bias [C] added where one is given."""
        matrix = np.concatenate([constant(weight, "weight") for weight in self.weights])
        if self.weights[0].element == "f32":
            total = emitter.build(F32MatmulOp, rows, emitter.constant(matrix.T), element="f32", rounded_products=True)
            s = emitter.f32
            return total if bias is None else s("addf", total, emitter.constant(bias))
        scales = tuple(scale for weight in self.weights for scale in weight.scales * weight.shape[0])
        row = (asymmetric if self.is_asymmetric else symmetric)(emitter, rows, (1,))
        start = None if bias is None else emitter.constant(bias)
        parts = (row.values, emitter.constant(matrix), row.scale, row.zero_point, start)
        return emitter.build(DynamicDenseOp, *parts, element="f32", weight_scales=scales)


def f32_vector(tensor: Tensor | None, entries: int, what: str) -> Array | None:
    """The entries of a constant f32 vector, if it is given."""
    if tensor is None:
        return None
    require(tensor.element == "f32", f"{what} must be f32, but got {tensor.element}")
    require(tensor.shape == (entries,), f"{what} must have {entries} entries, but got {list(tensor.shape)}")
    return constant(tensor, what)


# The functions that recurrent operators may ask for.

_KIND = tflite.ActivationFunctionType
_FUNCTIONS: dict[int, Expression] = {
    _KIND.NONE: Input(),
    _KIND.RELU: activations.relu,
    _KIND.RELU_N1_TO_1: Input().at_least(-1.0).at_most(1.0),
    _KIND.RELU6: activations.relu6,
    _KIND.TANH: activations.tanh,
}


def cell_activation(activation: int) -> Expression:
    """The function of a fused activation; raises `UnsupportedError`."""
    require(activation in _FUNCTIONS, f"fused activation {activation} is not supported")
    return _FUNCTIONS[activation]


# The tensors of a long short-term memory operator, by what they are for.

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
    """The factor of the cell state."""
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
    return required(inputs[index], f"input {index} must be given")
