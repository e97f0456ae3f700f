"""Plans SOFTMAX of 8 and 16 bits and LOG_SOFTMAX of 8 bits, over the last dimension."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qdialect.arithmetic import Rounding, activations, multiply_by_quantized_multiplier, quantize_multiplier
from qdialect.arithmetic.choices import SoftmaxArithmetic
from qdialect.arithmetic.softmax_tables import softmax_tables
from qdialect.arithmetic.tflite_tables import lines_of, table_of
from qdialect.dialect import DynamicGatherOp, IntMaxOp, IntSumOp, SoftmaxOp
from qdialect.dialect.type_constraints import ELEMENT_RANGES
from qdialect.frontends.building.checks import Array, Shape, check_scale, require
from qdialect.frontends.building.op_builder import Arithmetic
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators import checks, fixed_point
from qdialect.frontends.tflite.operators.registry import Emission, Emitter, built, imports, imports_i16
from qdialect.ir._mlir import ir

_OUTPUT_SCALE = 1 / 256
# In the kernel's Q5.26 the scaled distance of two quantized values must not vanish.
_SMALLEST_FACTOR = 2.0**-26


@imports("SOFTMAX")
def _softmax(operator: Operator) -> Emission:
    beta = operator.option("Beta")
    # A larger scale has the same factor, the largest of the kernel's.
    data = checks.bounded(checks.operands(operator, 1)[0])
    output = checks.eight_bit_ends(operator, data)
    checks.check_parameters(output, _OUTPUT_SCALE, checks.quantized_range(output)[0])
    check_scale(beta, "beta")
    factor = data.scale * beta
    require(factor > _SMALLEST_FACTOR, f"input scale times beta must exceed 2^-26, but got {factor}")
    require(len(data.shape) >= 1, "input must have at least 1 dimension")
    how = {"axis": len(data.shape) - 1, "beta": beta, "arithmetic": SoftmaxArithmetic.TFLITE_FIXED}
    scales = {"input_scale": data.scale, "output_scale": output.scale, "output_zero_point": output.zero_point}
    return built(SoftmaxOp, data, element=output.element, **how, **scales)


# LOG_SOFTMAX of 8-bit quantized values over the last dimension, in the fixed point of TFLite's reference kernel.

_LOG_SCALE = 16 / 256
_BITS, _SUM_BITS, _OUTPUT_BITS = 5, 12, 4
"""Before the point: of scaled distances, of the sum of exponentials and of results."""
_SMALLEST_SCALE = 2.0**-26
# Sums of more of the largest exponentials leave their format.
_MAX_DEPTH = 2**12 - 1


@imports("LOG_SOFTMAX")
def _log_softmax(operator: Operator) -> Emission:
    """Zero is the largest quantized value, the smallest one stands for -16 and below."""
    (data,) = checks.operands(operator, 1)
    output = checks.eight_bit_ends(operator, data)
    largest = checks.quantized_range(output)[1]
    checks.check_parameters(output, _LOG_SCALE, largest)
    require(data.scale > _SMALLEST_SCALE, f"input scale must exceed 2^-26, but got {data.scale}")
    require(len(data.shape) >= 1, "input must have at least 1 dimension")
    depth = data.shape[-1]
    require(depth <= _MAX_DEPTH, f"last dimension must have at most {_MAX_DEPTH} elements, but got {depth}")
    how = _Scaling.of(data.scale)
    return lambda emitter: _emit_log_softmax(emitter, data, how, (largest - 255, largest))


@dataclass(frozen=True)
class _Scaling:
    """The distances 0..255 of values from the largest of their row."""

    addends: Array
    """Exponentials of the negative distances, as the sum takes them; i64[256]."""
    distances: Array
    """The negative distances of the input's scale, i64[256]."""
    farthest: int
    """The last distance that is added up."""
    reverse: tuple[int, int]
    """Multiplier and shift from scaled distances back."""

    @classmethod
    def of(cls, scale: float) -> _Scaling:
        q, e = quantize_multiplier(min(scale * 2.0 ** (31 - _BITS), 2.0**31 - 1))
        farthest = (((1 << _BITS) - 1) << (31 - _BITS)) >> e
        # Farther ones are never looked at; their products would saturate.
        steps = np.minimum(np.arange(256), farthest)
        distances = multiply_by_quantized_multiplier(-steps, q, e, Rounding.FIXED32_DOUBLE)
        addends = softmax_tables(scale, 1.0).addends.astype(np.int64)
        return cls(addends, distances, farthest, quantize_multiplier(2.0 ** (31 - e) / q))


def _emit_log_softmax(emitter: Emitter, data: Tensor, how: _Scaling, bounds: tuple[int, int]) -> ir.Value:
    is_unsigned, over = data.element == "ui8", {"axes": (len(data.shape) - 1,), "keep_dims": True}
    s = Arithmetic(emitter, is_unsigned)
    value = s.resize(emitter.without_sign(emitter.value(data)), "i32")
    top = emitter.broadcast(emitter.build(IntMaxOp, value, element="i32", **over), data.shape)
    distance = s.op("arith.subi", top, value)
    signed = Arithmetic(emitter)
    total = emitter.build(IntSumOp, _looked_up(emitter, how.addends, distance), element="i64", **over)
    log = fixed_point.logarithm(signed, total, _SUM_BITS, _BITS)
    limit = emitter.broadcast(_limit(signed, log, how), data.shape)
    scaled = signed.op("arith.subi", _looked_up(emitter, how.distances, distance), emitter.broadcast(log, data.shape))
    rounded = signed.op("arith.addi", fixed_point.shifted_right(signed, scaled, 31 - _BITS - _OUTPUT_BITS), bounds[1])
    is_near = signed.compare("lt", signed.resize(distance, "i64"), limit)
    result = signed.resize(signed.select(is_near, fixed_point.clamped(signed, rounded, bounds), bounds[0]), "i8")
    return signed.convert("tensor.bitcast", result, "ui8") if is_unsigned else result


def _limit(s: Arithmetic, log: ir.Value, how: _Scaling) -> ir.Value:
    """The first distance of which the result is the smallest one."""
    q, e = how.reverse
    lowest = s.op("arith.subi", log, 2**31)
    reached = fixed_point.shifted_right(s, fixed_point.product(s, lowest, q), -e)
    return s.op("arith.minsi", s.op("arith.muli", reached, -1), how.farthest + 1)


def _looked_up(emitter: Emitter, table: Array, at: ir.Value) -> ir.Value:
    return emitter.build(DynamicGatherOp, emitter.constant(table), at, element="i64", axis=0)


# SOFTMAX of 16-bit values over the last dimension: two tables, one of exponentials and one of 1 / (1 + x).

_SHARE_SCALE, _SCALE_TOLERANCE = 2.0**-15, 0.001
_INT16 = ELEMENT_RANGES["i16"]
_RANGE = 2**16 - 1
# Exponentials of [-10, 0]; below that they count as nothing.
_REACH = 10.0
_MAX_I16_DEPTH = 2**16


@imports_i16("SOFTMAX")
def _softmax_i16(operator: Operator) -> Emission:
    beta = operator.option("Beta")
    data, output = checks.one_input(operator)
    holds = abs(output.scale - _SHARE_SCALE) <= _SCALE_TOLERANCE * _SHARE_SCALE
    require(holds, f"output scale must be 2^-15, but got {output.scale}")
    require(len(data.shape) >= 1, "input must have at least 1 dimension")
    require(
        data.shape[-1] <= _MAX_I16_DEPTH, f"last dimension must be at most {_MAX_I16_DEPTH}, but got {data.shape[-1]}"
    )
    check_scale(beta, "beta")
    product = float(np.float32(data.scale) * np.float32(beta))
    factor = fixed_point.FixedPoint.of(product / (_REACH / _RANGE))
    return lambda emitter: _emit_softmax(emitter, emitter.value(data), data.shape, factor)


def _emit_softmax(emitter: Emitter, value: ir.Value, shape: Shape, factor: fixed_point.FixedPoint) -> ir.Value:
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
    centered = fixed_point.clamped(s, s.op("arith.addi", scaled, _INT16[1]), _INT16)
    return fixed_point.i16_lookup(emitter, centered, lines_of(entries))


def _inverse(emitter: Emitter, total: ir.Value, zeros: ir.Value) -> ir.Value:
    """``1 / total`` without its exponent: the total as 1 + x, x in 16 bits (reference_ops::SoftmaxInt16)."""
    s = Arithmetic(emitter)
    entries = table_of(lambda x: 1.0 / (1.0 + x), 1.0 / _RANGE, 2.0 / _RANGE, _INT16[0], np.float64)
    wide = s.op("arith.shli", s.resize(total, "i64"), s.resize(s.op("arith.addi", zeros, -1), "i64"))
    shifted = s.resize(s.op("arith.shrsi", s.op("arith.addi", wide, 1 << 13), 14), "i32")
    centered = fixed_point.clamped(s, s.op("arith.addi", shifted, -((1 << 15) + (1 << 16))), _INT16)
    return fixed_point.i16_lookup(emitter, centered, lines_of(entries))


def _ratio(s: Arithmetic, exponentials: ir.Value, inverse: ir.Value, count: ir.Value, ones: ir.Value) -> ir.Value:
    """``exponentials * inverse / 2^count``, ties up, in [0, 2^15)."""
    product = s.op("arith.muli", s.resize(exponentials, "i64"), s.resize(inverse, "i64"))
    wide = s.resize(count, "i64")
    half = s.op("arith.shrsi", s.op("arith.shli", ones, wide), 1)
    quotient = s.op("arith.shrsi", s.op("arith.addi", product, half), wide)
    return s.resize(fixed_point.clamped(s, s.resize(quotient, "i32"), (0, _INT16[1])), "i16")
