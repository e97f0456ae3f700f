"""Plans RNN, UNIDIRECTIONAL_SEQUENCE_RNN, BIDIRECTIONAL_SEQUENCE_RNN and SVDF, with the states of a first call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tflite

from qdialect.arithmetic import Multiplier
from qdialect.arithmetic.expressions import Expression
from qdialect.dialect import DenseOp, F32SumOp, IntSumOp
from qdialect.frontends.building.checks import Array, require, required
from qdialect.frontends.building.op_builder import Arithmetic
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import check_rescale, check_scales, constant, eight_bit
from qdialect.frontends.tflite.operators.recurrence import (
    RowProduct,
    Steps,
    auxiliary_of,
    cell_activation,
    check_matrix,
    f32_vector,
    of_both,
)
from qdialect.frontends.tflite.operators.registry import Building, Emission, Emitter, imports
from qdialect.ir._mlir import ir

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
        count, batch = self.steps.count, self.steps.batch
        value = self.steps.time_first(emitter, emitter.reshape(emitter.value(self.data), self._sequence_shape()))
        value = emitter.reshape(value, (count * batch, self.data.shape[-1]))
        total = self.given.emit(emitter, value, self.bias)
        sums = emitter.reshape(total, (count, batch, len(self.bias)))

        def step(before: ir.Value | None, index: int) -> tuple[ir.Value | None, ir.Value]:
            row = self.steps.row(emitter, sums, index)
            if before is not None:
                row = emitter.f32("addf", row, self.recurrent.emit(emitter, before))
            after = emitter.expression(self.activation, row)
            return after, after

        return self.steps.run(None, step)

    def _sequence_shape(self) -> tuple[int, int, int]:
        count, batch, depth = self.steps.count, self.steps.batch, self.data.shape[-1]
        return (count, batch, depth) if self.steps.is_time_major else (batch, count, depth)


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

    @property
    def batch(self) -> int:
        """Rows."""
        return self.data.shape[0]

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
    ranks = emitter.reshape(seen, (node.batch, node.units, node.rank))
    total = emitter.build(F32SumOp, ranks, element="f32", axes=(2,), in_order=True)
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
        DenseOp, emitter.value(node.data), weights, element="i32", weight_scales=node.feature.scales, **how
    )
    state = emitter.requantize(total, node.state, node.data.scale, Multiplier.F32, weight_scales=node.feature.scales)
    s = Arithmetic(emitter)
    spread = emitter.constant(np.ascontiguousarray(np.broadcast_to(last, (node.batch, node.filters))))
    seen = s.op("arith.muli", s.resize(state, "i32"), spread)
    ranks = emitter.reshape(seen, (node.batch, node.units, node.rank))
    total = emitter.build(IntSumOp, ranks, element="i32", axes=(2,), keep_dims=False)
    if bias is not None:
        start = np.ascontiguousarray(np.broadcast_to(bias, (node.batch, node.units)))
        total = s.op("arith.addi", total, emitter.constant(start))
    return emitter.requantize(total, node.output, node.state.scale, Multiplier.F32, weight_scales=node.time.scales)
