"""SOFTMAX of 16-bit values over the last dimension: two tables, one of exponentials and one of 1 / (1 + x)."""

from __future__ import annotations

import numpy as np
import tflite

from qdialect._mlir import ir
from qdialect.dialect import BroadcastOp, IntMaxOp, IntSumOp
from qdialect.dialect.type_constraints import element_of
from qdialect.frontends.arithmetic import Arithmetic
from qdialect.frontends.common import check_scale, require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Shape
from qdialect.frontends.tflite.operators.i16.checks import one_input
from qdialect.frontends.tflite.operators.i16.fixed_point import FixedPoint, clamped
from qdialect.frontends.tflite.operators.i16.lut import i16_lookup
from qdialect.frontends.tflite.operators.registry import Emission, imports_i16
from qdialect.frontends.tflite.reader import read_options
from qdialect.quant_math import FloatArray, real_functions
from qdialect.quant_math.i16_tables import lines_of, table_of

_OUTPUT_SCALE, _TOLERANCE = 2.0**-15, 0.001
_INT16 = (-(2**15), 2**15 - 1)
_RANGE = 2**16 - 1
# Exponentials of [-10, 0]; below that they count as nothing.
_REACH = 10.0
_MAX_DEPTH = 2**16


@imports_i16("SOFTMAX")
def _softmax(operator: Operator) -> Emission:
    beta = read_options(operator, tflite.SoftmaxOptions, lambda options: options.Beta())
    data, output = one_input(operator)
    holds = abs(output.scale - _OUTPUT_SCALE) <= _TOLERANCE * _OUTPUT_SCALE
    require(holds, f"output scale must be 2^-15, but got {output.scale}")
    require(len(data.shape) >= 1, "input must have at least 1 dimension")
    require(data.shape[-1] <= _MAX_DEPTH, f"last dimension must be at most {_MAX_DEPTH}, but got {data.shape[-1]}")
    check_scale(beta, "beta")
    product = float(np.float32(data.scale) * np.float32(beta))
    factor = FixedPoint.of(product / (_REACH / _RANGE))
    return lambda emitter: _emit(emitter, emitter.value(data), data.shape, factor)


def _emit(emitter: Emitter, value: ir.Value, shape: Shape, factor: FixedPoint) -> ir.Value:
    s = Arithmetic(emitter)
    over = {"axes": (len(shape) - 1,), "keep_dims": True}
    x = s.resize(value, "i32")
    largest = emitter.build(IntMaxOp, x, element="i32", **over)
    distance = s.op("arith.subi", x, _spread(emitter, largest, shape))
    exponentials = _exponentials(emitter, factor.scaled(s, distance))
    total = emitter.build(IntSumOp, exponentials, element="i32", **over)
    zeros = s.op("math.ctlz", total)
    inverse = _spread(emitter, _inverse(emitter, total, zeros), shape)
    count = _spread(emitter, s.op("arith.subi", s.op("arith.addi", s.op("arith.xori", zeros, -1), 1), -31), shape)
    ones = emitter.constant(np.broadcast_to(np.int64(1), shape))
    return _ratio(s, exponentials, inverse, count, ones)


def _exponentials(emitter: Emitter, scaled: ir.Value) -> ir.Value:
    """Of 16 bits, for distances of which [-65535, 0] stands for [-10, 0]."""
    s = Arithmetic(emitter)
    entries = table_of(real_functions.exp, _REACH / _RANGE, 2.0 / _RANGE, _INT16[1], np.float64)
    centered = clamped(s, s.op("arith.addi", scaled, _INT16[1]), _INT16)
    return i16_lookup(emitter, centered, lines_of(entries))


def _inverse(emitter: Emitter, total: ir.Value, zeros: ir.Value) -> ir.Value:
    """``1 / total`` without its exponent: the total as 1 + x, x in 16 bits (reference_ops::SoftmaxInt16)."""
    s = Arithmetic(emitter)
    entries = table_of(_one_over_one_plus, 1.0 / _RANGE, 2.0 / _RANGE, _INT16[0], np.float64)
    wide = s.op("arith.shli", s.resize(total, "i64"), s.resize(s.op("arith.addi", zeros, -1), "i64"))
    shifted = s.resize(s.op("arith.shrsi", s.op("arith.addi", wide, 1 << 13), 14), "i32")
    centered = clamped(s, s.op("arith.addi", shifted, -((1 << 15) + (1 << 16))), _INT16)
    return i16_lookup(emitter, centered, lines_of(entries))


def _one_over_one_plus(x: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + x)


def _ratio(s: Arithmetic, exponentials: ir.Value, inverse: ir.Value, count: ir.Value, ones: ir.Value) -> ir.Value:
    """``exponentials * inverse / 2^count``, ties up, in [0, 2^15)."""
    product = s.op("arith.muli", s.resize(exponentials, "i64"), s.resize(inverse, "i64"))
    wide = s.resize(count, "i64")
    half = s.op("arith.shrsi", s.op("arith.shli", ones, wide), 1)
    quotient = s.op("arith.shrsi", s.op("arith.addi", product, half), wide)
    return s.resize(clamped(s, s.resize(quotient, "i32"), (0, _INT16[1])), "i16")


def _spread(emitter: Emitter, value: ir.Value, shape: Shape) -> ir.Value:
    return emitter.build(BroadcastOp, value, element=element_of(value.type), shape=shape)
