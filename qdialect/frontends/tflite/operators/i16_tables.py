"""Plans functions of 16-bit tensors that the kernels read from tables, SOFTMAX among them.

There are straight lines between the entries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from qdialect.arithmetic import FloatArray, activations
from qdialect.arithmetic.tflite_tables import Function, Lines, lines_of, sigmoid_lines, table_of
from qdialect.dialect import InterpolatedLutOp, IntMaxOp, IntSumOp
from qdialect.frontends.building.checks import Shape, check_scale, require
from qdialect.frontends.building.op_builder import Arithmetic
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import log2_of, one_input
from qdialect.frontends.tflite.operators.fixed_point import FixedPoint, clamped
from qdialect.frontends.tflite.operators.registry import Building, Emission, Emitter, imports_i16
from qdialect.ir._mlir import ir

_FIRST, _LAST = -(2**15), 2**15 - 1
_OUTPUT_SCALE = 2.0**-15


def looked_up(emitter: Emitter, value: ir.Value, lines: Lines) -> ir.Value:
    """An i32 tensor by a table; the result has the table's fractional bits."""
    bases, slopes = lines.bases.tolist(), lines.slopes.tolist()
    how = {"bases": bases, "slopes": slopes, "fraction": lines.fraction}
    return emitter.build(InterpolatedLutOp, value, element="i32", **how)


def i16_lookup(emitter: Emitter, value: ir.Value, entries: Lines) -> ir.Value:
    """A table of 513 entries at the i32 `value`, which is in the range of int16; an i32 in that range (LUTLookup)."""
    s = Arithmetic(emitter)
    found = looked_up(emitter, s.op("arith.addi", value, -_FIRST), entries)
    return s.op("arith.shrsi", s.op("arith.addi", found, 1 << (entries.fraction - 1)), entries.fraction)


def _tabulated(data: Tensor, output: Tensor, function: Function) -> Building:
    """By a table in float32; a sum that does not fit wraps around, as the kernel's does."""
    lines = lines_of(table_of(function, data.scale, output.scale, 0, np.float32))
    emitter = yield
    s = Arithmetic(emitter)
    return s.resize(i16_lookup(emitter, s.resize(emitter.value(data), "i32"), lines), "i16")


_FUNCTIONS: dict[str, Callable[[float], Function]] = {
    "EXP": lambda _: activations.exp,
    "LOG": lambda scale: lambda x: np.where(x <= 0, np.float32(_FIRST) * np.float32(scale), activations.log(x)),
    "RSQRT": lambda scale: lambda x: np.where(x <= 0, np.float32(_LAST) * np.float32(scale), activations.rsqrt(x)),
}
"""By the scale of the output, of which the smallest quantized value stands for what has no logarithm.

The largest one stands for the root of zero; the kernel fails for a negative number.
"""


@imports_i16(*_FUNCTIONS)
def _function(operator: Operator) -> Building:
    data, output = one_input(operator)
    return _tabulated(data, output, _FUNCTIONS[operator.kind](output.scale))


@imports_i16("GELU")
def _gelu(operator: Operator) -> Building:
    is_approximate = operator.option("Approximate")
    data, output = one_input(operator)
    return _tabulated(data, output, activations.tflite_gelu_tanh if is_approximate else _exact_gelu)


def _exact_gelu(x: FloatArray) -> FloatArray:
    complement = [math.erfc(float(v)) for v in x * np.float32(-math.sqrt(0.5))]
    return np.float32(0.5) * x * np.array(complement, dtype=np.float32)


@imports_i16("LOGISTIC", "TANH")
def _sigmoid(operator: Operator) -> Building:
    """One half of the table serves both, as ``sigmoid(-x) = 1 - sigmoid(x)``; ``tanh(x) = 2 * sigmoid(2 * x) - 1``."""
    data, output = one_input(operator)
    require(output.scale == _OUTPUT_SCALE, f"output scale must be 2^-15, but got {output.scale}")
    is_tanh = operator.kind == "TANH"
    multiplier, scale_shift = _table_multiplier(data.scale, (-12, -11) if is_tanh else (-12,))
    # Beyond the table of LOGISTIC 0x7FFF << 10 is what the kernel takes.
    lines, shift = (sigmoid_lines(8, 2**16 - 1), 8) if is_tanh else (sigmoid_lines(9, 2 * _LAST), 10)
    half = 1 << (shift - 1)
    emitter = yield
    s = Arithmetic(emitter)
    x = _rescaled(s, s.resize(emitter.value(data), "i32"), multiplier, scale_shift)
    found = looked_up(emitter, s.op("math.absi", x), lines)
    found = s.op("arith.subi", found, 1 << 23) if is_tanh else found
    below = s.op("arith.addi", s.op("arith.xori", found, -1), half if is_tanh else (1 << 25) + half)
    chosen = s.select(s.compare("ge", x, 0), s.op("arith.addi", found, half), below)
    return s.resize(s.op("arith.shrsi", chosen, shift), "i16")


def _rescaled(s: Arithmetic, value: ir.Value, multiplier: int, shift: int) -> ir.Value:
    """``value * multiplier / 2^shift``, ties up."""
    product = s.op("arith.muli", value, multiplier)
    return s.op("arith.shrsi", s.op("arith.addi", product, 1 << (shift - 1)), shift) if shift else product


def _table_multiplier(scale: float, powers: Sequence[int]) -> tuple[int, int]:
    """``scale / (1 / (3 * 4096))`` as a multiplier of 15 bits and a right shift, 31 at most (TFLite SigmoidPrepare).

    A scale of 2 to one of `powers` needs no shift.
    """
    power = log2_of(scale)
    if power is not None and power in powers:
        return 3 << (power + 12), 0
    factor, shift = float(np.float32(scale)) * 4096.0 * 3.0, 0
    while factor <= _LAST / 2.0 and shift <= 30:
        factor, shift = factor * 2, shift + 1
    require(factor < 2.0**16, f"input scale must be below 16/3, but got {scale}")
    return int(factor), shift


# SOFTMAX of 16-bit values over the last dimension: two tables, one of exponentials and one of 1 / (1 + x).

_SHARE_SCALE, _SCALE_TOLERANCE = 2.0**-15, 0.001
_INT16 = (-(2**15), 2**15 - 1)
_RANGE = 2**16 - 1
# Exponentials of [-10, 0]; below that they count as nothing.
_REACH = 10.0
_MAX_DEPTH = 2**16


@imports_i16("SOFTMAX")
def _softmax(operator: Operator) -> Emission:
    beta = operator.option("Beta")
    data, output = one_input(operator)
    holds = abs(output.scale - _SHARE_SCALE) <= _SCALE_TOLERANCE * _SHARE_SCALE
    require(holds, f"output scale must be 2^-15, but got {output.scale}")
    require(len(data.shape) >= 1, "input must have at least 1 dimension")
    require(data.shape[-1] <= _MAX_DEPTH, f"last dimension must be at most {_MAX_DEPTH}, but got {data.shape[-1]}")
    check_scale(beta, "beta")
    product = float(np.float32(data.scale) * np.float32(beta))
    factor = FixedPoint.of(product / (_REACH / _RANGE))
    return lambda emitter: _emit_softmax(emitter, emitter.value(data), data.shape, factor)


def _emit_softmax(emitter: Emitter, value: ir.Value, shape: Shape, factor: FixedPoint) -> ir.Value:
    s = Arithmetic(emitter)
    over = {"axes": (len(shape) - 1,), "keep_dims": True}
    x = s.resize(value, "i32")
    largest = emitter.build(IntMaxOp, x, element="i32", **over)
    distance = s.op("arith.subi", x, emitter.broadcast(largest, shape))
    exponentials = _exponentials(emitter, factor.scaled(s, distance))
    total = emitter.build(IntSumOp, exponentials, element="i32", **over)
    zeros = s.op("math.ctlz", total)
    inverse = emitter.broadcast(_inverse(emitter, total, zeros), shape)
    count = emitter.broadcast(s.op("arith.subi", s.op("arith.addi", s.op("arith.xori", zeros, -1), 1), -31), shape)
    ones = emitter.constant(np.broadcast_to(np.int64(1), shape))
    return _ratio(s, exponentials, inverse, count, ones)


def _exponentials(emitter: Emitter, scaled: ir.Value) -> ir.Value:
    """Of 16 bits, for distances of which [-65535, 0] stands for [-10, 0]."""
    s = Arithmetic(emitter)
    entries = table_of(activations.exp, _REACH / _RANGE, 2.0 / _RANGE, _INT16[1], np.float64)
    centered = clamped(s, s.op("arith.addi", scaled, _INT16[1]), _INT16)
    return i16_lookup(emitter, centered, lines_of(entries))


def _inverse(emitter: Emitter, total: ir.Value, zeros: ir.Value) -> ir.Value:
    """``1 / total`` without its exponent: the total as 1 + x, x in 16 bits (reference_ops::SoftmaxInt16)."""
    s = Arithmetic(emitter)
    entries = table_of(lambda x: 1.0 / (1.0 + x), 1.0 / _RANGE, 2.0 / _RANGE, _INT16[0], np.float64)
    wide = s.op("arith.shli", s.resize(total, "i64"), s.resize(s.op("arith.addi", zeros, -1), "i64"))
    shifted = s.resize(s.op("arith.shrsi", s.op("arith.addi", wide, 1 << 13), 14), "i32")
    centered = clamped(s, s.op("arith.addi", shifted, -((1 << 15) + (1 << 16))), _INT16)
    return i16_lookup(emitter, centered, lines_of(entries))


def _ratio(s: Arithmetic, exponentials: ir.Value, inverse: ir.Value, count: ir.Value, ones: ir.Value) -> ir.Value:
    """``exponentials * inverse / 2^count``, ties up, in [0, 2^15)."""
    product = s.op("arith.muli", s.resize(exponentials, "i64"), s.resize(inverse, "i64"))
    wide = s.resize(count, "i64")
    half = s.op("arith.shrsi", s.op("arith.shli", ones, wide), 1)
    quotient = s.op("arith.shrsi", s.op("arith.addi", product, half), wide)
    return s.resize(clamped(s, s.resize(quotient, "i32"), (0, _INT16[1])), "i16")
