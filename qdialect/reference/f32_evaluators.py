"""Evaluators of reductions, of f32 values (every operation rounded to float32) and others, and of f32 contractions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from qdialect import dialect as qnn
from qdialect.arithmetic import IntArray, QuantizedArray, recurrence
from qdialect.arithmetic.choices import Order
from qdialect.arithmetic.convolution import windows
from qdialect.arithmetic.fixed_point_functions import inverse_roots, scaled_by_root
from qdialect.arithmetic.float32.machine import row_sum
from qdialect.arithmetic.machine import NUMPY, multiply_add
from qdialect.arithmetic.std_order import Numbers, std_order
from qdialect.dialect.recurrent_ops import LstmOp
from qdialect.dialect.type_constraints import dtype_of, shape_of
from qdialect.reference.evaluators import Array, Arrays, evaluates, last_axis


@evaluates(qnn.F32SumOp)
def _f32_sum(op: qnn.F32SumOp, operands: Arrays) -> Array:
    with np.errstate(all="ignore"):
        return _shaped(op, row_sum(operands[0], op.axes, in_order=op.in_order))


@evaluates(qnn.F32ProdOp)
def _product(op: qnn.F32ProdOp, operands: Arrays) -> Array:
    rows = _rows(operands[0], op.axes)
    with np.errstate(all="ignore"):
        return _shaped(op, np.multiply.accumulate(rows, axis=-1, dtype=np.float32)[..., -1])


@evaluates(qnn.F32MaxOp)
def _max(op: qnn.F32MaxOp, operands: Arrays) -> Array:
    rows = _counted(op, operands[0])
    if op.from_zero:
        return _shaped(op, rows.view(np.int32).max(axis=-1, initial=0).view(np.float32))
    return _shaped(op, _largest(rows))


@evaluates(qnn.F32MinOp)
def _min(op: qnn.F32MinOp, operands: Arrays) -> Array:
    rows = _counted(op, operands[0])
    if op.from_zero:
        bits = rows.view(np.uint32).max(axis=-1, initial=0).view(np.int32)
        return _shaped(op, np.minimum(bits, np.int32(0)).view(np.float32))
    return _shaped(op, -_largest(-rows))


def _counted(op: qnn.F32ExtremeOp, data: Array) -> Array:
    rows = _rows(data, op.axes)
    if not op.nan_as_zero:
        return rows
    beyond = rows > 0 if isinstance(op, qnn.F32MaxOp) else rows < 0
    return np.where(beyond if op.from_zero else ~np.isnan(rows), rows, np.float32(0))


def _rows(data: Array, axes: Sequence[int]) -> Array:
    """The reduced axes as one, the last."""
    kept = [i for i in range(data.ndim) if i not in axes]
    moved = data.transpose([*kept, *axes])
    return moved.reshape(*moved.shape[: len(kept)], -1)


def _largest(rows: Array) -> Array:
    """Plus zero is larger than minus zero."""
    largest = rows.max(axis=-1)
    has_plus = ((rows == 0) & ~np.signbit(rows)).any(axis=-1)
    return np.where((largest == 0) & has_plus, np.float32(0), largest)


def _shaped(op: qnn.F32ReduceOp, value: Array) -> Array:
    return np.asarray(value).reshape(shape_of(op.output.type))


def _step(op: qnn.F32MatmulOp | qnn.F32Conv2DOp) -> Callable[[Array, Array, Array], Array]:
    """The function that adds a product to a sum."""
    return (lambda a, b, total: total + a * b) if op.rounded_products else multiply_add


def _start(op: qnn.F32MatmulOp | qnn.F32Conv2DOp, bias: Arrays) -> Array:
    """What sums start from, in the shape of the result."""
    return np.broadcast_to(bias[0] if bias else np.float32(0), shape_of(op.output.type))


@evaluates(qnn.F32MatmulOp)
def _matmul(op: qnn.F32MatmulOp, operands: Arrays) -> Array:
    data, matrix, *bias = operands
    total, add_product = _start(op, bias), _step(op)
    with np.errstate(all="ignore"):
        for k in range(data.shape[-1]):
            total = add_product(data[..., k, np.newaxis], matrix[..., k, np.newaxis, :], total)
    return total


@evaluates(qnn.F32Conv2DOp)
def _conv2d(op: qnn.F32Conv2DOp, operands: Arrays) -> Array:
    data, weight, *bias = operands
    batch, height, width, channels = shape_of(op.output.type)
    _, rows, columns, depth = weight.shape
    groups, add_product = op.groups, _step(op)
    total = _start(op, bias).reshape(batch, height, width, groups, channels // groups)
    taps = weight.reshape(groups, channels // groups, rows, columns, depth)
    with np.errstate(all="ignore"):
        for (i, j), window in windows(data, (rows, columns), (height, width), op.strides, op.dilation):
            for c in range(depth):
                total = add_product(window[..., c::depth, np.newaxis], taps[:, :, i, j, c], total)
    return total.reshape(batch, height, width, channels)


def arg_max(values: QuantizedArray, axis: int, keep_dims: bool, last: bool) -> IntArray:
    """Index along `axis` of the largest value, int64; of equal ones the first, or the last with `last`.

    TFLite ARG_MAX takes the first, ONNX ArgMax the one that `select_last_index` names.
    """
    if not last:
        return np.argmax(values, axis=axis, keepdims=keep_dims)
    return values.shape[axis] - 1 - np.argmax(np.flip(values, axis), axis=axis, keepdims=keep_dims)


def arg_min(values: QuantizedArray, axis: int, keep_dims: bool, last: bool) -> IntArray:
    """`arg_max` of the quantized values in reverse order."""
    return arg_max(-values.astype(np.int64), axis, keep_dims, last)


def l2_normalize(values: QuantizedArray, zero_point: int) -> IntArray:
    """TFLite L2_NORMALIZATION along the last axis: 128 * (x - z_x) times the fixed-point 1 / sqrt(sum of squares).

    Quantized values of scale 1/128, around 128 or 0, int64.
    """
    info = np.iinfo(values.dtype.name)
    offsets = values.astype(np.int64) - zero_point
    totals = (offsets**2).sum(axis=-1, keepdims=True)
    is_signed = info.min < 0
    scaled = scaled_by_root(NUMPY, offsets, *inverse_roots(totals), is_signed=is_signed)
    return np.clip(scaled + (0 if is_signed else 128), info.min, info.max)


evaluates(qnn.ArgMaxOp)(lambda op, x: arg_max(x[0], op.axis, op.keep_dims, op.last))
evaluates(qnn.ArgMinOp)(lambda op, x: arg_min(x[0], op.axis, op.keep_dims, op.last))
evaluates(qnn.ReduceMaxOp, qnn.IntMaxOp)(lambda op, x: x[0].max(axis=op.axes, keepdims=op.keep_dims))
evaluates(qnn.ReduceMinOp, qnn.IntMinOp)(lambda op, x: x[0].min(axis=op.axes, keepdims=op.keep_dims))
evaluates(qnn.L2NormalizeOp)(lambda op, x: l2_normalize(x[0], op.input_zero_point))


evaluates(qnn.IntSumOp)(lambda op, x: x[0].sum(axis=op.axes, keepdims=op.keep_dims, dtype=dtype_of(op.output.type)))
evaluates(qnn.IntProdOp)(lambda op, x: x[0].prod(axis=op.axes, keepdims=op.keep_dims, dtype=x[0].dtype))


@evaluates(qnn.CumSumOp)
def _cumsum(op: qnn.CumSumOp, operands: Arrays) -> Array:
    def sums(rows: Array) -> Array:
        rows = rows[..., ::-1] if op.reverse else rows
        if op.exclusive:
            rows = np.concatenate([np.zeros_like(rows[..., :1]), rows[..., :-1]], axis=-1)
        with np.errstate(all="ignore"):
            total: Array = np.add.accumulate(rows, axis=-1, dtype=rows.dtype)
        return total[..., ::-1] if op.reverse else total

    return last_axis(operands[0], op.axis, sums)


@evaluates(qnn.TopKOp)
def _top_k(op: qnn.TopKOp, operands: Arrays) -> Array:
    # The complement turns the order around and, unlike the negative, overflows nowhere.
    if op.order is Order.STABLE:
        return last_axis(operands[0], op.axis, lambda rows: np.argsort(~rows, axis=-1, kind="stable")[..., : op.count])

    def places(row: Array) -> Array:
        numbers = Numbers(row.tolist(), list(range(len(row))))
        std_order(numbers, len(row), op.count, op.order)
        return np.array(numbers.places[: op.count])

    return last_axis(operands[0], op.axis, lambda rows: np.apply_along_axis(places, -1, rows))


Step = Callable[[Array, Array], Array]
"""(gates [B, G * H], state before [B, S * H]) -> state after."""


@evaluates(qnn.F32LstmOp)
def _lstm(op: qnn.F32LstmOp, operands: Arrays) -> Array:
    return _states(op, operands, _lstm_step(op, lambda hidden, gates: product(hidden, operands[1]) + gates))


@evaluates(qnn.DynamicLstmOp)
def _dynamic_lstm(op: qnn.DynamicLstmOp, operands: Arrays) -> Array:
    _, matrix, _, scales = operands
    weights = matrix.astype(np.int64) - np.array(op.weight_zero_points)
    return _states(op, operands, _lstm_step(op, lambda hidden, gates: _quantized_sum(hidden, weights, scales, gates)))


def _lstm_step(op: LstmOp, sums: Step) -> Step:
    """A step whose gates are `sums` of the hidden state before and of what the sequence gives to them."""
    gate, candidate = (recurrence.gate_function(one, op.clip) for one in (op.gate_activation, op.cell_activation))

    def step(gates: Array, state: Array) -> Array:
        hidden, cell = state[:, : op.hidden], state[:, op.hidden :]
        i, f, g, o = np.split(sums(hidden, gates), 4, axis=1)
        after = recurrence.lstm_cell(gate, candidate).in_kernel(i, f, g, cell)
        return np.concatenate([recurrence.lstm_hidden(gate, op.output_activation).in_kernel(o, after), after], axis=1)

    return step


@evaluates(qnn.F32GruOp)
def _gru(op: qnn.F32GruOp, operands: Arrays) -> Array:
    gate, candidate = (recurrence.gate_function(one, op.clip) for one in (op.gate_activation, op.cell_activation))
    matrix, width = operands[1], op.hidden
    bias = operands[3] if len(operands) > 3 else np.zeros(width, np.float32)

    def step(gates: Array, state: Array) -> Array:
        z, r = (
            gate.in_kernel(one)
            for one in np.split(product(state, matrix[:, : 2 * width]) + gates[:, : 2 * width], 2, axis=1)
        )
        own, last = gates[:, 2 * width :], matrix[:, 2 * width :]
        inner = r * (product(state, last) + bias) if op.reset_after else product(r * state, last)
        return recurrence.gru_hidden(candidate).in_kernel(z, inner + own, state)

    return _states(op, operands, step)


@evaluates(qnn.F32RnnOp)
def _rnn(op: qnn.F32RnnOp, operands: Arrays) -> Array:
    gate = recurrence.gate_function(op.activation, op.clip)
    return _states(op, operands, lambda gates, state: gate.in_kernel(product(state, operands[1]) + gates))


def product(rows: Array, matrix: Array) -> Array:
    """``rows @ matrix`` in float32: fused multiply-adds in ascending order from zero."""
    total = np.zeros((rows.shape[0], matrix.shape[1]), np.float32)
    for k in range(matrix.shape[0]):
        total = multiply_add(rows[:, k, np.newaxis], matrix[k], total)
    return total


def _quantized_sum(hidden: Array, weights: Array, scales: Array, gates: Array) -> Array:
    """The gates of a hidden state that is quantized by its range, with int64 weights less their zero points."""
    zero = np.float32(0)
    low, high = np.minimum(hidden.min(), zero), np.maximum(hidden.max(), zero)
    scale = recurrence.state_scale()(low, high)
    point = recurrence.state_point()(low, scale)
    offsets = recurrence.quantized_state()(hidden, scale, point).astype(np.int64) - np.int64(point)
    total = (offsets @ weights).astype(np.uint64).astype(np.uint32).view(np.int32)
    return recurrence.state_product()(total.astype(np.float32), scale, scales, gates)


def _states(op: qnn.F32RecurrentOp, operands: Arrays, step: Step) -> Array:
    gates, _, initial = operands[:3]
    states = np.empty(shape_of(op.output.type), np.float32)
    steps = gates.shape[0]
    order = range(steps - 1, -1, -1) if op.reverse else range(steps)
    before, after = (1, 0) if op.reverse else (0, 1)
    states[steps if op.reverse else 0] = initial
    with np.errstate(all="ignore"):
        for t in order:
            states[t + after] = step(gates[t], states[t + before])
    return states
