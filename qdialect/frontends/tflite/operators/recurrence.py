"""Builds what recurrent operators share: time steps, products of rows, activations of cells, tensors of an LSTM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import tflite

from qdialect import dialect as qnn
from qdialect.arithmetic import Multiplier, activations
from qdialect.arithmetic.expressions import Expression, Input
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import Array, Shape, require, required
from qdialect.frontends.building.op_builder import Arithmetic
from qdialect.frontends.building.slices import Slice, take_slices
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import check_rescale, check_scales, constant, eight_bit
from qdialect.frontends.tflite.operators.hybrid import asymmetric, symmetric
from qdialect.frontends.tflite.operators.registry import Building, Emission, Emitter, imports
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
            total = emitter.build(
                qnn.F32MatmulOp, rows, emitter.constant(matrix.T), element="f32", rounded_products=True
            )
            s = emitter.f32
            return total if bias is None else s("addf", total, emitter.constant(bias))
        scales = tuple(scale for weight in self.weights for scale in weight.scales * weight.shape[0])
        row = (asymmetric if self.is_asymmetric else symmetric)(emitter, rows, (1,))
        start = None if bias is None else emitter.constant(bias)
        parts = (row.values, emitter.constant(matrix), row.scale, row.zero_point, start)
        return emitter.build(qnn.DynamicDenseOp, *parts, element="f32", weight_scales=scales)


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
INPUT_COUNTS = (20, 24)
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
        inputs = (*given, *(None,) * (INPUT_COUNTS[1] - len(given)))
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


# Weights are of float32, or of i8 ("hybrid"); the operations are those of TFLite's RnnBatchStep.

_RNN_INPUTS = 5
# Of BIDIRECTIONAL_SEQUENCE_RNN: weights, recurrent weights and bias of each direction, and the auxiliary input.
_FORWARD, _BACKWARD, _AUXILIARY, _BOTH = slice(1, 4), slice(5, 8), 9, 12
_FIELDS = ("FusedActivationFunction", "AsymmetricQuantizeInputs")


@dataclass(frozen=True)
class _RnnCell:
    """``activation(x W + b + h R)``, checked."""

    data: Tensor
    steps: Steps
    given: RowProduct
    recurrent: RowProduct
    bias: Array
    activation: Expression

    @classmethod
    def of(
        cls, data: Tensor, parts: Sequence[Tensor | None], steps: Steps, activation: Expression, is_asymmetric: bool
    ) -> _RnnCell:
        """`parts` are weights, recurrent weights and bias; raises `UnsupportedError`."""
        weight, recurrence = (required(part, "weights must be given") for part in parts[:2])
        require(data.element == "f32", f"input must be f32, but got {data.element}")
        require(len(weight.shape) == 2, f"weight must have 2 dimensions, but got {len(weight.shape)}")
        units = weight.shape[0]
        check_matrix(weight, (units, data.shape[-1]), "weight")
        check_matrix(recurrence, (units, units), "recurrent weight")
        start = required(f32_vector(parts[2], units, "bias"), "bias must be given")
        given, recurrent = RowProduct((weight,), is_asymmetric), RowProduct((recurrence,), is_asymmetric)
        return cls(data, steps, given, recurrent, start, activation)

    def rows(self, emitter: Emitter) -> list[ir.Value]:
        """The state [B, H] after each step of the sequence."""
        count, batch, depth = self.steps.count, self.steps.batch, self.data.shape[-1]
        shape = (count, batch, depth) if self.steps.is_time_major else (batch, count, depth)
        value = self.steps.time_first(emitter, emitter.reshape(emitter.value(self.data), shape))
        value = emitter.reshape(value, (count * batch, depth))
        total = self.given.emit(emitter, value, self.bias)
        sums = emitter.reshape(total, (count, batch, len(self.bias)))

        def step(before: ir.Value | None, index: int) -> tuple[ir.Value | None, ir.Value]:
            row = self.steps.row(emitter, sums, index)
            if before is not None:
                row = emitter.f32("addf", row, self.recurrent.emit(emitter, before))
            after = emitter.expression(self.activation, row)
            return after, after

        return self.steps.run(None, step)


def _rnn_input(operator: Operator, count: int, dimensions: int) -> Tensor:
    found = len(operator.inputs)
    require(found == count, f"must have {count} inputs, but got {found}")
    data = required(operator.inputs[0], f"input must have {dimensions} dimensions")
    require(len(data.shape) == dimensions, f"input must have {dimensions} dimensions")
    return data


@imports("RNN", "UNIDIRECTIONAL_SEQUENCE_RNN")
def _one_way(operator: Operator) -> Building:
    """RNN is one step."""
    if operator.kind == "RNN":
        activation, is_asymmetric = operator.options(*_FIELDS)
        data = _rnn_input(operator, _RNN_INPUTS, 2)
        steps = Steps(1, data.shape[0], is_time_major=True)
    else:
        activation, is_asymmetric, is_time_major = operator.options(*_FIELDS, "TimeMajor")
        data = _rnn_input(operator, _RNN_INPUTS, 3)
        steps = Steps.of(data, is_time_major)
    cell = _RnnCell.of(data, operator.inputs[_FORWARD], steps, cell_activation(activation), is_asymmetric)
    require(len(operator.outputs) == 1, f"must have 1 output, but got {len(operator.outputs)}")
    emitter = yield
    rows = cell.rows(emitter)
    return rows[0] if operator.kind == "RNN" else steps.joined(emitter, rows)


@imports("BIDIRECTIONAL_SEQUENCE_RNN")
def _both(operator: Operator) -> Emission:
    kind, is_asymmetric, is_time_major, is_merged = operator.options(*_FIELDS, "TimeMajor", "MergeOutputs")
    data, activation = _rnn_input(operator, _BOTH, 3), cell_activation(kind)
    auxiliary = auxiliary_of(operator, _AUXILIARY, _BOTH, is_merged)
    steps = Steps.of(data, is_time_major)
    forward = _RnnCell.of(data, operator.inputs[_FORWARD], steps, activation, is_asymmetric)
    behind = replace(steps, is_reverse=True)
    backward = _RnnCell.of(auxiliary or data, operator.inputs[_BACKWARD], behind, activation, is_asymmetric)
    require(backward.data.shape[:2] == data.shape[:2], "auxiliary input must have the input's steps and batch")
    return lambda emitter: of_both(emitter, steps, [forward.rows(emitter), backward.rows(emitter)], is_merged)


# SVDF: filters over the features of this call and of those before, of which a call that starts anew has none.
#
# With all of the state zero but what this call adds, a filter over time is one product: with the last time weight.

_SVDF_INPUTS = 5


@dataclass(frozen=True)
class _Svdf:
    """The tensors of a node, shapes checked."""

    data: Tensor
    feature: Tensor
    """Weights [units * rank, depth]."""
    time: Tensor
    """Weights [units * rank, memory]."""
    bias: Tensor | None
    state: Tensor
    output: Tensor
    rank: int
    activation: int
    is_asymmetric: bool

    @property
    def filters(self) -> int:
        """How many there are."""
        return self.feature.shape[0]

    @property
    def units(self) -> int:
        """Outputs, each the sum of `rank` filters."""
        return self.filters // self.rank

    def last_weights(self) -> Array:
        """The time weight that meets this call's features, of each filter."""
        return np.ascontiguousarray(constant(self.time, "time weight")[:, -1])


@imports("SVDF")
def _svdf(operator: Operator) -> Building:
    how = operator.options("Rank", *_FIELDS)
    found = len(operator.inputs)
    require(found == _SVDF_INPUTS, f"must have {_SVDF_INPUTS} inputs, but got {found}")
    require(len(operator.outputs) == 1, f"must have 1 output, but got {len(operator.outputs)}")
    data, feature, time, bias, state = operator.inputs
    held = [tensor for tensor in (data, feature, time, state) if tensor is not None]
    require(len(held) == _SVDF_INPUTS - 1, "input, weights and state must be given")
    node = _Svdf(held[0], held[1], held[2], bias, held[3], operator.outputs[0], *how)
    matrices = (node.data, node.feature, node.time)
    require(all(len(tensor.shape) == 2 for tensor in matrices), "input and weights must have 2 dimensions")
    fits = node.rank >= 1 and node.filters % max(node.rank, 1) == 0
    require(fits, f"filters must be a multiple of rank {node.rank}, but got {node.filters}")
    check_matrix(node.feature, (node.filters, node.data.shape[1]), "feature weight")
    check_matrix(node.time, (node.filters, node.time.shape[1]), "time weight")
    return _f32(node) if node.data.element == "f32" else _integers(node)


def _f32(node: _Svdf) -> Building:
    """``activation(bias + sum over ranks of time_weight * (x W))``."""
    activation = cell_activation(node.activation)
    product = RowProduct((node.feature,), node.is_asymmetric)
    bias = f32_vector(node.bias, node.units, "bias")
    last = node.last_weights()
    if node.time.element != "f32":
        check_scales(node.time, "time weight")
        require(node.time.element == "i8", f"time weight must be f32 or i8, but got {node.time.element}")
        require(not any(node.time.zero_points), "i8 time weight must have zero point 0")
        last = last.astype(np.float32) * np.float32(node.time.scale)
    emitter = yield
    s = emitter.f32
    seen = s("mulf", product.emit(emitter, emitter.value(node.data)), emitter.constant(last))
    ranks = emitter.reshape(seen, (node.data.shape[0], node.units, node.rank))
    total = emitter.build(qnn.F32SumOp, ranks, element="f32", axes=(2,), in_order=True)
    total = total if bias is None else s("addf", total, emitter.constant(bias))
    return emitter.expression(activation, total)


def _integers(node: _Svdf) -> Building:
    """Features are rescaled to i16, their sums over ranks to i8 (TFLite svdf.h, EvalIntegerSVDF)."""
    eight_bit(node.data, "input")
    eight_bit(node.output, "output")
    types = (node.data.element, node.feature.element, node.output.element)
    require(set(types) == {"i8"}, f"input, feature weight and output must be i8, but got {', '.join(types)}")
    for tensor, what in ((node.time, "time weight"), (node.state, "state")):
        require(tensor.element == "i16", f"{what} must be i16, but got {tensor.element}")
    for tensor, what in ((node.feature, "feature weight"), (node.time, "time weight"), (node.state, "state")):
        check_scales(tensor, what)
        require(len(tensor.scales) == 1, f"{what} must have one scale, but got {len(tensor.scales)}")
        require(tensor.zero_point == 0, f"{what} must have zero point 0, but got {tensor.zero_point}")
    check_rescale(node.data.scale, node.feature.scales, node.state.scale, Multiplier.F32)
    check_rescale(node.state.scale, node.time.scales, node.output.scale, Multiplier.F32)
    is_relu = node.activation == tflite.ActivationFunctionType.RELU
    require(is_relu, f"fused activation must be RELU, but got {node.activation}")
    bias = None if node.bias is None else constant(node.bias, "bias")
    fits = node.bias is None or (node.bias.element == "i32" and node.bias.shape == (node.units,))
    require(fits, f"bias must be {node.units} i32 entries")
    feature, last = constant(node.feature, "feature weight"), node.last_weights().astype(np.int32)
    emitter = yield
    how: dict[str, Any] = {"input_scale": node.data.scale, "input_zero_point": node.data.zero_point}
    weights = emitter.constant(feature)
    total = emitter.build(
        qnn.DenseOp, emitter.value(node.data), weights, element="i32", weight_scales=node.feature.scales, **how
    )
    state = emitter.requantize(total, node.state, node.data.scale, Multiplier.F32, weight_scales=node.feature.scales)
    s = Arithmetic(emitter)
    spread = emitter.constant(np.ascontiguousarray(np.broadcast_to(last, (node.data.shape[0], node.filters))))
    seen = s.op("arith.muli", s.resize(state, "i32"), spread)
    ranks = emitter.reshape(seen, (node.data.shape[0], node.units, node.rank))
    total = emitter.build(qnn.IntSumOp, ranks, element="i32", axes=(2,), keep_dims=False)
    if bias is not None:
        start = np.ascontiguousarray(np.broadcast_to(bias, (node.data.shape[0], node.units)))
        total = s.op("arith.addi", total, emitter.constant(start))
    return emitter.requantize(total, node.output, node.state.scale, Multiplier.F32, weight_scales=node.time.scales)
