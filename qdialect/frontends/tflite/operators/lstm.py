"""Plans UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM: states are zero at the start of a call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tflite

from qdialect import dialect as qnn
from qdialect.arithmetic import Multiplier, QuantParams, Rounding, activations
from qdialect.arithmetic.expressions import Expression
from qdialect.arithmetic.fixed_point_functions import FixedPointFunction
from qdialect.dialect.i16_ops import FixedPointFunctionOp, I16LayerNormOp
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of, shape_of
from qdialect.frontends.building.checks import Array, require
from qdialect.frontends.building.op_builder import F32, Arithmetic
from qdialect.frontends.building.slices import Slice, take_slices
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators import recurrence
from qdialect.frontends.tflite.operators.checks import check_rescale, check_scales, constant
from qdialect.frontends.tflite.operators.recurrence import Gate, LstmTensors, RowProduct, Steps
from qdialect.frontends.tflite.operators.registry import Building, Emission, Emitter, imports
from qdialect.ir._mlir import ir

# Of BIDIRECTIONAL_SEQUENCE_LSTM: where the tensors of each direction stand, as the operator of one direction has them.
_FORWARD = (0, *range(1, 18), 35, 36)
_BACKWARD = (0, *range(18, 35), 37, 38)
_AUXILIARY, _BOTH = 39, 48
_FIELDS = ("FusedActivationFunction", "CellClip", "ProjClip", "AsymmetricQuantizeInputs", "TimeMajor")


@imports("UNIDIRECTIONAL_SEQUENCE_LSTM")
def _lstm(operator: Operator) -> Emission:
    fields = (*_FIELDS, "DiagonalRecurrentTensors")
    activation, cell_clip, projection_clip, is_asymmetric, is_time_major, is_diagonal = operator.options(*fields)
    require(not is_diagonal, "diagonals in place of recurrent weights are not supported")
    found = len(operator.inputs)
    counts = recurrence.INPUT_COUNTS
    require(found in counts, f"must have {counts[0]} or {counts[1]} inputs, but got {found}")
    require(len(operator.outputs) == 1, f"must have 1 output, but got {len(operator.outputs)}")
    tensors = LstmTensors.of(operator.inputs)
    steps = Steps.of(tensors.data, is_time_major)
    if tensors.data.element == "f32":
        how = LstmOptions(recurrence.cell_activation(activation), cell_clip, projection_clip, is_asymmetric)
        return FloatLstm.of(tensors, steps, how).emit
    is_tanh = activation == tflite.ActivationFunctionType.TANH
    require(is_tanh, f"fused activation must be TANH, but got {activation}")
    return IntegerLstm.of(tensors, operator.intermediates, steps, cell_clip, projection_clip).emit


@imports("BIDIRECTIONAL_SEQUENCE_LSTM")
def _bidirectional(operator: Operator) -> Building:
    fields = (*_FIELDS, "MergeOutputs")
    activation, cell_clip, projection_clip, is_asymmetric, is_time_major, is_merged = operator.options(*fields)
    how = LstmOptions(recurrence.cell_activation(activation), cell_clip, projection_clip, is_asymmetric)
    auxiliary = recurrence.auxiliary_of(operator, _AUXILIARY, _BOTH, is_merged)
    forward, backward = (LstmTensors.of([operator.inputs[index] for index in order]) for order in (_FORWARD, _BACKWARD))
    if auxiliary is not None:
        backward = replace(backward, data=auxiliary)
        backward.check_shapes()
    steps = Steps.of(forward.data, is_time_major)
    cells = FloatLstm.of(forward, steps, how), FloatLstm.of(backward, replace(steps, is_reverse=True), how)
    emitter = yield
    return recurrence.of_both(
        emitter, steps, [cell.rows(emitter, emitter.value(cell.tensors.data)) for cell in cells], is_merged
    )


# Long short-term memory of float32 activations: weights of float32, or of i8 ("hybrid").
#
# The operations and their order are those of TFLite's lstm_eval.cc, LstmStepFloat and LstmStepHybrid.

# Keeps the deviation of a normalization from zero.
_EPSILON = 1e-8


@dataclass(frozen=True)
class LstmOptions:
    """How an operator computes; a clip of 0 limits nothing."""

    activation: Expression
    cell_clip: float
    projection_clip: float
    is_asymmetric: bool


@dataclass(frozen=True)
class _FloatCell:
    """The state after a time step: h f32 [B, P] and c f32 [B, H]."""

    hidden: ir.Value
    cell: ir.Value


@dataclass(frozen=True)
class FloatLstm:
    """An operator's tensors, checked."""

    tensors: LstmTensors
    steps: Steps
    options: LstmOptions
    given: RowProduct
    """Of the sequence."""
    recurrent: RowProduct
    projection: RowProduct | None

    @classmethod
    def of(cls, tensors: LstmTensors, steps: Steps, options: LstmOptions) -> FloatLstm:
        """Raises `UnsupportedError`."""
        for tensor in (tensors.data, tensors.hidden_state, tensors.cell_state):
            require(tensor.element == "f32", f"'{tensor.name}' must be f32, but got {tensor.element}")
        for gate in tensors.gates:
            recurrence.f32_vector(gate.bias, tensors.cells, "bias")
            recurrence.f32_vector(gate.norm, tensors.cells, "normalization")
            _peephole(gate)
        recurrence.f32_vector(tensors.projection_bias, tensors.width, "projection bias")
        gates, is_asymmetric = tensors.gates, options.is_asymmetric
        given = RowProduct(tuple(gate.weight for gate in gates), is_asymmetric)
        recurrent = RowProduct(tuple(gate.recurrence for gate in gates), is_asymmetric)
        projection = None if tensors.projection is None else RowProduct((tensors.projection,), is_asymmetric)
        return cls(tensors, steps, options, given, recurrent, projection)

    def emit(self, emitter: Emitter) -> ir.Value:
        """The sequence of hidden states."""
        return self.steps.joined(emitter, self.rows(emitter, emitter.value(self.tensors.data)))

    def rows(self, emitter: Emitter, data: ir.Value) -> list[ir.Value]:
        """The hidden state [B, P] after each step of a sequence."""
        count, batch, tensors = self.steps.count, self.steps.batch, self.tensors
        value = emitter.reshape(self.steps.time_first(emitter, data), (count * batch, tensors.data.shape[2]))
        bias = None if self.tensors.gates[0].norm is not None else self._biases()
        width = tensors.cells * len(tensors.gates)
        sums = emitter.reshape(self.given.emit(emitter, value, bias), (count, batch, width))

        def step(before: _FloatCell | None, index: int) -> tuple[_FloatCell | None, ir.Value]:
            after = self._step(emitter, self.steps.row(emitter, sums, index), before)
            return after, after.hidden

        return self.steps.run(None, step)

    def _biases(self) -> Array:
        cells = self.tensors.cells
        found = [recurrence.f32_vector(gate.bias, cells, "bias") for gate in self.tensors.gates]
        return np.concatenate([np.zeros(cells, np.float32) if bias is None else bias for bias in found])

    def _step(self, emitter: Emitter, sums: ir.Value, before: _FloatCell | None) -> _FloatCell:
        """States start at zero, where products with them are zero too."""
        if before is not None:
            sums = emitter.f32("addf", sums, self.recurrent.emit(emitter, before.hidden))
        *early, last = self.tensors.gates
        count = len(self.tensors.gates)
        parts = [recurrence.columns(emitter, sums, index, count) for index in range(count)]
        old = None if before is None else before.cell
        gates = [self._gate(emitter, gate, part, old) for gate, part in zip(early, parts[:-1], strict=True)]
        cell = self._cell(emitter, gates, old)
        return _FloatCell(self._hidden(emitter, self._gate(emitter, last, parts[-1], cell), cell), cell)

    def _gate(self, emitter: Emitter, gate: Gate, sums: ir.Value, cell: ir.Value | None) -> ir.Value:
        s, peephole = emitter.f32, _peephole(gate)
        if peephole is not None and cell is not None:
            sums = s("addf", sums, s("mulf", emitter.constant(peephole), cell))
        if gate.norm is not None:
            scaled = s("mulf", _normalized(emitter, sums), emitter.value(gate.norm))
            sums = scaled if gate.bias is None else s("addf", scaled, emitter.value(gate.bias))
        return emitter.expression(self.options.activation if gate.is_cell else activations.sigmoid, sums)

    def _cell(self, emitter: Emitter, gates: Sequence[ir.Value], before: ir.Value | None) -> ir.Value:
        """``f * c + i * g``, limited; without i, ``1 - f`` is that."""
        *first, forget, candidate = gates
        s = emitter.f32
        taken = first[0] if first else s("subf", 1.0, forget)
        fresh = s("mulf", candidate, taken)
        cell = fresh if before is None else s("addf", s("mulf", forget, before), fresh)
        return _limited(s, cell, self.options.cell_clip)

    def _hidden(self, emitter: Emitter, gate: ir.Value, cell: ir.Value) -> ir.Value:
        """``o * activation(c)``, projected."""
        s = emitter.f32
        value = s("mulf", gate, emitter.expression(self.options.activation, cell))
        if self.projection is None:
            return value
        bias = recurrence.f32_vector(self.tensors.projection_bias, self.tensors.width, "projection bias")
        value = self.projection.emit(emitter, value, bias)
        return _limited(emitter.f32, value, self.options.projection_clip)


def _peephole(gate: Gate) -> Array | None:
    """The numbers that its weights stand for."""
    tensor: Tensor | None = gate.peephole
    if tensor is None or tensor.element == "f32":
        return None if tensor is None else constant(tensor, "peephole")
    require(tensor.element == "i8", f"peephole must be f32 or i8, but got {tensor.element}")
    check_scales(tensor, "peephole")
    require(not any(tensor.zero_points), "i8 peephole must have zero point 0")
    return constant(tensor, "peephole").astype(np.float32) * np.float32(tensor.scale)


def _limited(s: F32, value: ir.Value, clip: float) -> ir.Value:
    return s("maximumf", s("minimumf", value, clip), -clip) if clip > 0 else value


def _normalized(emitter: Emitter, value: ir.Value) -> ir.Value:
    """``(x - mean) / sqrt(variance + epsilon)`` of each row."""
    shape = shape_of(value.type)
    s = emitter.f32

    def mean(of: ir.Value) -> ir.Value:
        total = emitter.build(qnn.F32SumOp, of, element="f32", axes=(1,), keep_dims=True, in_order=True)
        return s("divf", total, float(shape[1]))

    centered = s("subf", value, mean(value))
    variance = mean(s("mulf", centered, centered))
    root = s("divf", 1.0, s("sqrt", s("addf", variance, _EPSILON)))
    return s("mulf", centered, root)


_GATE_BITS = 3
"""Before the point of what a gate's function is taken of."""
_GATE_SCALE, _FUNCTION_BITS = 2.0**-12, 15
_ONE = 2**15 - 1
# Log2 of the cell state's scale: its function takes 0 to 6 bits before the point.
_CELL_EXPONENTS = range(-15, -8)
_HIDDEN = 4
"""Which intermediate tensor has the scale of the hidden state before its projection; those before are the gates'."""
_GUARD = np.float32(10000)
"""The least variance of a normalization, in steps of the scale of its coefficients."""


@dataclass(frozen=True)
class _Cell:
    """The state after a time step: h i8 [B, P] and c i16 [B, H]."""

    hidden: ir.Value
    cell: ir.Value


@dataclass(frozen=True)
class IntegerLstm:
    """An operator's tensors, checked, and its clips of quantized values, 0 for one that it lacks."""

    tensors: LstmTensors
    gate_scales: tuple[float, ...]
    """Of the sums of each gate."""
    hidden: Tensor
    steps: Steps
    cell_clip: int
    projection_clip: int
    cell_exponent: int

    @classmethod
    def of(
        cls, tensors: LstmTensors, between: Sequence[Tensor], steps: Steps, cell_clip: float, projection_clip: float
    ) -> IntegerLstm:
        """Raises `UnsupportedError`."""
        require(len(between) > _HIDDEN, f"must have {_HIDDEN + 1} intermediate tensors, but got {len(between)}")
        gate_scales = tuple(_gate_scale(gate, between) for gate in tensors.gates)
        hidden, state, cell = between[_HIDDEN], tensors.hidden_state, tensors.cell_state
        for tensor, element in ((tensors.data, "i8"), (hidden, "i8"), (state, "i8"), (cell, "i16")):
            _check(tensor, element)
        exponent = _exponent(cell.scale)
        require(exponent in _CELL_EXPONENTS, f"cell state scale must be in [2^-15, 2^-9], but got {cell.scale}")
        for gate, scale in zip(tensors.gates, gate_scales, strict=True):
            _check_gate(tensors, gate, scale)
        if tensors.projection is not None:
            _check_weight(tensors.projection)
            # The kernel takes this zero point away and adds it to the products, where others are added first.
            hidden = replace(hidden, zero_points=(-hidden.zero_point,))
            _check(hidden, "i8")
            check_rescale(hidden.scale, tensors.projection.scales, state.scale, Multiplier.F32)
        _check_integers(tensors.projection_bias, "i32")
        has_peepholes = any(gate.peephole is not None for gate in tensors.gates)
        # The kernel reads behind the end of these weights.
        is_apart = steps.batch == 1 or not steps.is_time_major or tensors.width <= tensors.cells
        message = f"peepholes of a time-major batch must be at least {tensors.width}, but got {tensors.cells}"
        require(is_apart or not has_peepholes, message)
        clips = (_quantized(cell_clip, cell), _quantized(projection_clip, state))
        return cls(tensors, gate_scales, hidden, steps, *clips, exponent)

    def emit(self, emitter: Emitter) -> ir.Value:
        """The sequence of hidden states."""
        data, gates = self.tensors.data, self.tensors.gates
        value = self.steps.time_first(emitter, emitter.value(data))
        # A normalized gate has its bias behind the normalization.
        biases = [gate.bias if gate.norm is None else None for gate in gates]
        given = _product(emitter, value, data, [gate.weight for gate in gates], biases)
        sums = self._of_gates(emitter, given, "i16", data.scale, [gate.weight.scales for gate in gates])

        def step(before: _Cell | None, index: int) -> tuple[_Cell | None, ir.Value]:
            after = self._step(emitter, self.steps.row(emitter, sums, index), before)
            return after, after.hidden

        return self.steps.joined(emitter, self.steps.run(None, step))

    def _step(self, emitter: Emitter, sums: ir.Value, before: _Cell | None) -> _Cell:
        """States start at zero, where products with them are zero too."""
        if before is not None:
            sums = _sum(emitter, sums, self._recurrent(emitter, before.hidden))
        *early, last = self.tensors.gates
        count = len(self.tensors.gates)
        parts = [recurrence.columns(emitter, sums, index, count) for index in range(count)]
        old = None if before is None else before.cell
        gates = [self._gate(emitter, gate, part, old) for gate, part in zip(early, parts[:-1], strict=True)]
        cell = self._cell(emitter, gates, old)
        return _Cell(self._hidden(emitter, self._gate(emitter, last, parts[-1], cell), cell), cell)

    def _recurrent(self, emitter: Emitter, hidden: ir.Value) -> ir.Value:
        state, gates = self.tensors.hidden_state, self.tensors.gates
        total = _product(emitter, hidden, state, [gate.recurrence for gate in gates])
        return self._of_gates(emitter, total, "i32", state.scale, [gate.recurrence.scales for gate in gates])

    def _of_gates(
        self, emitter: Emitter, total: ir.Value, element: str, scale: float, scales: Sequence[tuple[float, ...]]
    ) -> ir.Value:
        """Products with the weights of all gates, side by side, as sums of the gates."""
        cells, axis = self.tensors.cells, len(shape_of(total.type)) - 1
        if len(set(self.gate_scales)) == 1:
            output = QuantParams(self.gate_scales[0], 0)
            return _rescaled(emitter, total, element, scale, [s for one in scales for s in one * cells], output)
        parts: list[ir.Value] = []
        for index, (own, output_scale) in enumerate(zip(scales, self.gate_scales, strict=True)):
            whole = [Slice(0, 1, extent) for extent in shape_of(total.type)[:-1]]
            part = take_slices(emitter, total, [*whole, Slice(index * cells, 1, cells)])
            parts.append(_rescaled(emitter, part, element, scale, own, QuantParams(output_scale, 0)))
        return emitter.concatenate(parts, axis)

    def _gate(self, emitter: Emitter, gate: Gate, sums: ir.Value, cell: ir.Value | None) -> ir.Value:
        if gate.peephole is not None and cell is not None:
            weights = emitter.constant(self._peephole(gate.peephole))
            seen = _multiplied(emitter, weights, cell)
            output = QuantParams(self.gate_scales[self.tensors.gates.index(gate)], 0)
            scale = self.tensors.cell_state.scale
            sums = _sum(emitter, sums, _rescaled(emitter, seen, "i32", scale, gate.peephole.scales, output))
        if gate.norm is not None:
            bias = np.zeros(gate.norm.shape, np.int32) if gate.bias is None else constant(gate.bias, "bias")
            guard = max(1, int(_GUARD * np.float32(gate.norm.scale)))
            how: dict[str, Any] = {"element": "i16", "scale": gate.norm.scale, "variance_guard": guard}
            sums = emitter.build(I16LayerNormOp, sums, emitter.value(gate.norm), emitter.constant(bias), **how)
        function = FixedPointFunction.TANH if gate.is_cell else FixedPointFunction.SIGMOID
        return emitter.build(FixedPointFunctionOp, sums, element="i16", function=function, integer_bits=_GATE_BITS)

    def _peephole(self, tensor: Tensor) -> Array:
        """The factor of each cell [B, H].

        The kernel counts P elements of a row: the others have no part, and the rows of a batch that it takes together,
        which are those of a time-major sequence, start P elements apart.
        """
        batch, cells, width = self.steps.batch, self.tensors.cells, self.tensors.width
        taken = constant(tensor, "peephole")[:width]
        rows = np.zeros((batch, cells), np.int16)
        if self.steps.is_time_major:
            rows.reshape(-1)[: batch * len(taken)] = np.tile(taken, batch)
        else:
            rows[:, : len(taken)] = taken
        return rows

    def _cell(self, emitter: Emitter, gates: Sequence[ir.Value], before: ir.Value | None) -> ir.Value:
        """``f * c + i * g``, limited; without i, ``1 - f`` is that."""
        *first, forget, candidate = gates
        s = Arithmetic(emitter)
        # A gate's 15 bits flipped are one minus the gate.
        taken = first[0] if first else s.op("arith.xori", forget, _ONE)
        fresh = _shifted(emitter, _multiplied(emitter, taken, candidate), 2 * _FUNCTION_BITS + self.cell_exponent)
        low, high = ELEMENT_RANGES["i16"] if self.cell_clip <= 0 else (-self.cell_clip, self.cell_clip)
        if before is not None:
            kept = _shifted(emitter, _multiplied(emitter, forget, before), _FUNCTION_BITS)
            return _sum(emitter, kept, s.resize(fresh, "i32"), (low, high))
        return fresh if self.cell_clip <= 0 else emitter.build(qnn.ClipOp, fresh, element="i16", min=low, max=high)

    def _hidden(self, emitter: Emitter, gate: ir.Value, cell: ir.Value) -> ir.Value:
        """``o * tanh(c)``, projected."""
        bits = _FUNCTION_BITS + self.cell_exponent
        how = {"function": FixedPointFunction.TANH, "integer_bits": bits}
        product = _multiplied(emitter, gate, emitter.build(FixedPointFunctionOp, cell, element="i16", **how))
        hidden = self.hidden
        value = _rescaled(emitter, product, "i8", 2.0 ** (-2 * _FUNCTION_BITS), (1.0,), hidden.params)
        projection = self.tensors.projection
        if projection is None:
            return value
        total = _product(emitter, value, hidden, [projection], [self.tensors.projection_bias])
        scales = projection.scales * self.tensors.width
        value = _rescaled(emitter, total, "i8", hidden.scale, scales, self.tensors.hidden_state.params)
        clip = self.projection_clip
        return value if clip <= 0 else emitter.build(qnn.ClipOp, value, element="i8", min=-clip, max=clip)


def _check(tensor: Tensor, element: str) -> None:
    require(tensor.element == element, f"'{tensor.name}' must be {element}, but got {tensor.element}")
    require(len(tensor.scales) == 1, f"'{tensor.name}' must have one scale, but got {len(tensor.scales)}")
    check_scales(tensor, f"'{tensor.name}'")
    low, high = ELEMENT_RANGES[element]
    holds = low <= tensor.zero_point <= high
    require(holds, f"'{tensor.name}' zero point must be in [{low}, {high}], but got {tensor.zero_point}")


def _gate_scale(gate: Gate, between: Sequence[Tensor]) -> float:
    """That of the sums of a gate: Q3.12, or an intermediate tensor's where they are normalized."""
    if gate.norm is None:
        return _GATE_SCALE
    found = between[gate.index]
    require(len(found.scales) == 1, f"'{found.name}' must have one scale, but got {len(found.scales)}")
    check_scales(found, f"'{found.name}'")
    return found.scale


def _check_gate(tensors: LstmTensors, gate: Gate, output_scale: float) -> None:
    for weight, scale in ((gate.weight, tensors.data.scale), (gate.recurrence, tensors.hidden_state.scale)):
        _check_weight(weight)
        check_rescale(scale, weight.scales, output_scale, Multiplier.F32)
    _check_integers(gate.bias, "i32")
    if gate.norm is not None:
        _check(gate.norm, "i16")
        _check_integers(gate.norm, "i16")
    if gate.peephole is not None:
        _check(gate.peephole, "i16")
        _check_integers(gate.peephole, "i16")
        check_rescale(tensors.cell_state.scale, gate.peephole.scales, output_scale, Multiplier.F32)


def _check_weight(weight: Tensor) -> None:
    _check(weight, "i8")
    constant(weight, f"'{weight.name}'")
    require(weight.zero_point == 0, f"'{weight.name}' must have zero point 0, but got {weight.zero_point}")


def _check_integers(tensor: Tensor | None, element: str) -> None:
    if tensor is not None:
        require(tensor.element == element, f"'{tensor.name}' must be {element}, but got {tensor.element}")
        constant(tensor, f"'{tensor.name}'")


def _exponent(scale: float) -> int:
    """Log2 of a scale that has to be a power of two."""
    fraction, exponent = math.frexp(scale)
    require(fraction == 0.5, f"cell state scale must be a power of two, but got {scale}")
    return exponent - 1


def _quantized(clip: float, tensor: Tensor) -> int:
    """A limit in steps of a scale, cut to the type (TFLite PopulateQuantizedLstmParams8x8_16)."""
    low, high = ELEMENT_RANGES[tensor.element]
    with np.errstate(all="ignore"):
        steps = float(np.float32(clip) / np.float32(tensor.scale))
    return int(min(max(steps, low), high)) if math.isfinite(steps) else 0


def _product(
    emitter: Emitter, value: ir.Value, of: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor | None] = ()
) -> ir.Value:
    """i32 products of the values of a tensor with the rows of all `weights`, biases added."""
    matrix = np.concatenate([constant(weight, "weight") for weight in weights])
    pairs = zip(weights, biases or [None] * len(weights), strict=True)
    starts = [np.zeros(weight.shape[0], np.int32) if bias is None else constant(bias, "bias") for weight, bias in pairs]
    how: dict[str, Any] = {
        "input_scale": of.scale,
        "input_zero_point": of.zero_point,
        "weight_scales": tuple(scale for weight in weights for scale in weight.scales * weight.shape[0]),
    }
    return emitter.build(
        qnn.DenseOp, value, emitter.constant(matrix), emitter.constant(np.concatenate(starts)), element="i32", **how
    )


def _rescaled(
    emitter: Emitter, value: ir.Value, element: str, scale: float, scales: Sequence[float], output: QuantParams
) -> ir.Value:
    """i32 numbers of a scale as those of an output; channels last."""
    how: dict[str, Any] = {"rounding": Rounding.FIXED32_DOUBLE, "multiplier": Multiplier.F32}
    how |= {"input_scale": scale, "weight_scales": tuple(scales), "axis": len(shape_of(value.type)) - 1}
    how |= {"output_scale": output.scale, "output_zero_point": output.zero_point}
    return emitter.build(qnn.RequantizeOp, value, element=element, **how)


def _shifted(emitter: Emitter, value: ir.Value, bits: int) -> ir.Value:
    """``value / 2^bits`` as i16, ties away from zero."""
    how: dict[str, Any] = {"rounding": Rounding.FIXED64_NEAREST, "output_scale": 1.0, "output_zero_point": 0}
    return emitter.build(qnn.RequantizeOp, value, element="i16", input_scale=2.0**-bits, **how)


def _multiplied(emitter: Emitter, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """i32 products of i16 numbers."""
    s = Arithmetic(emitter)
    return s.op("arith.muli", s.resize(lhs, "i32"), s.resize(rhs, "i32"))


def _sum(emitter: Emitter, lhs: ir.Value, rhs: ir.Value, bounds: tuple[int, int] = ELEMENT_RANGES["i16"]) -> ir.Value:
    """An i16 and an i32 number added up, limited to `bounds`, as i16."""
    s = Arithmetic(emitter)
    # A sum of two rescaled numbers may need more than 32 bits where scales are extreme.
    wide = s.op("arith.addi", s.resize(lhs, "i64"), s.resize(rhs, "i64"))
    limited = s.op("arith.minsi", s.op("arith.maxsi", wide, bounds[0]), bounds[1])
    assert element_of(limited.type) == "i64"
    return s.resize(limited, "i16")
