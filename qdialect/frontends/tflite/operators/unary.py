"""Plans functions of one quantized tensor, of 8 and 16 bits, QUANTIZE, DEQUANTIZE and CAST."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import tflite

from qdialect import arithmetic
from qdialect import dialect as qnn
from qdialect.arithmetic import activations
from qdialect.arithmetic import tflite_tables as tables
from qdialect.arithmetic.choices import HardswishMode, LeakyMode, NanPolicy
from qdialect.arithmetic.profiles import TFLITE, TFLITE_XNNPACK
from qdialect.dialect.type_constraints import NUMPY_DTYPES, element_of
from qdialect.frontends.building.checks import require
from qdialect.frontends.building.op_builder import Arithmetic
from qdialect.frontends.planning.elementwise import on_bits
from qdialect.frontends.planning.tensors import mapping
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators import checks
from qdialect.frontends.tflite.operators.elementwise import unary
from qdialect.frontends.tflite.operators.fixed_point import FixedPoint, f32_quotient, i16_lookup, looked_up, narrowed
from qdialect.frontends.tflite.operators.registry import Building, Emission, Emitter, built, imports, imports_i16
from qdialect.ir._mlir import ir

# Activations as nodes of their own.

_CLAMPS = {
    "RELU": tflite.ActivationFunctionType.RELU,
    "RELU6": tflite.ActivationFunctionType.RELU6,
    "RELU_N1_TO_1": tflite.ActivationFunctionType.RELU_N1_TO_1,
}
_TABLES = {"ABS": tables.tflite_abs_table, "SQRT": tables.tflite_sqrt_table, "RSQRT": tables.tflite_rsqrt_table}


def _input_of(operator: Operator) -> Tensor:
    (data,) = checks.operands(operator, 1)
    checks.eight_bit_ends(operator, data)
    return data


@imports(*_CLAMPS)
def _clamp(operator: Operator) -> Building:
    data, output = _input_of(operator), operator.outputs[0]
    return _rescaled(data, output, checks.activation_range(_CLAMPS[operator.kind], output))


@imports("RELU_0_TO_1")
def _unit_clamp(operator: Operator) -> Building:
    data, output = _input_of(operator), operator.outputs[0]
    return _rescaled(data, output, checks.quantized_bounds(0.0, 1.0, output))


def _rescaled(data: Tensor, output: Tensor, bounds: tuple[int, int]) -> Building:
    """A rescale whose factor is evaluated in float32, and a clamp."""
    checks.check_rescale(data.scale, [1.0], output.scale, arithmetic.Multiplier.F32)
    emitter = yield
    zero_points = [data.zero_point]
    value = emitter.value(data)
    rescaled = emitter.requantize(value, output, data.scale, arithmetic.Multiplier.F32, input_zero_points=zero_points)
    return emitter.clip(rescaled, bounds)


def _tabulated(data: Tensor, output: Tensor, table: arithmetic.Table) -> Emission:
    return built(qnn.LutOp, data, element=output.element, table=table, **mapping(data, output))


@imports(*_TABLES)
def _integer_function(operator: Operator) -> Emission:
    """Each in integers of its own; for i8 alone."""
    data, output = _input_of(operator), operator.outputs[0]
    require(data.element == "i8", f"input must be i8, but got {data.element}")
    if operator.kind == "ABS":
        checks.check_rescale(data.scale, [1.0], output.scale, arithmetic.Multiplier.F32)
    if operator.kind == "RSQRT":
        checks.check_rescale(1.0, [1.0], math.sqrt(data.scale) * output.scale, arithmetic.Multiplier.F64)
    return _tabulated(data, output, _TABLES[operator.kind](_quantization(data), _quantization(output)))


@imports("NEG")
def _negate(operator: Operator) -> Emission:
    """The kernel negates quantized values, which negates numbers where both zero points are opposite."""
    data, output = _input_of(operator), operator.outputs[0]
    require(data.element == "i8", f"input must be i8, but got {data.element}")
    checks.check_parameters(output, data.scale, -data.zero_point)
    return _tabulated(data, output, tables.tflite_negate_table(np.int8))


@imports("GELU")
def _gelu(operator: Operator) -> Emission:
    is_approximate = operator.option("Approximate")
    data, output = _input_of(operator), operator.outputs[0]
    return _tabulated(
        data, output, tables.tflite_gelu_table(is_approximate, _quantization(data), _quantization(output))
    )


def _quantization(tensor: Tensor) -> arithmetic.QuantizedDtype:
    return arithmetic.QuantizedDtype(tensor.scale, tensor.zero_point, NUMPY_DTYPES[tensor.element])


def _unary(operator: Operator, op_class: type[qnn.UnaryOp], attributes: Mapping[str, Any]) -> Emission:
    data, output = _input_of(operator), operator.outputs[0]
    return built(op_class, data, element=output.element, **mapping(data, output), entries=TFLITE.entries, **attributes)


@imports("LOGISTIC")
def _logistic(operator: Operator) -> Emission:
    _input_of(operator)
    checks.check_parameters(operator.outputs[0], 1 / 256, checks.quantized_range(operator.outputs[0])[0])
    return _unary(operator, qnn.SigmoidOp, {})


@imports("TANH")
def _tanh(operator: Operator) -> Emission:
    _input_of(operator)
    checks.check_parameters(operator.outputs[0], 1 / 128, 0 if operator.outputs[0].element == "i8" else 128)
    return _unary(operator, qnn.TanhOp, {})


@imports("ELU")
def _elu(operator: Operator) -> Building:
    """A table, which the delegate fills with ``half_even(elu(x) * (1 / s) + z)`` in float32."""
    data, output = _input_of(operator), operator.outputs[0]
    require(data.element == "i8", f"input must be i8, but got {data.element}")
    own = _unary(operator, qnn.EluOp, {"nan": TFLITE.nan})
    emitter = yield
    if not emitter.is_delegated:
        return own(emitter)
    numbers = _quantization(data).offsets().astype(np.float32) * np.float32(data.scale)
    with np.errstate(all="ignore"):
        scaled = activations.elu(1.0)(numbers) * (1 / np.float32(output.scale)) + np.float32(output.zero_point)
    entries = np.rint(np.clip(scaled, *checks.quantized_range(output))).astype(np.int64)
    return _tabulated(data, output, arithmetic.encode_table(entries, np.int8))(emitter)


@imports("EXP", "LOG")
def _table_function(operator: Operator) -> Emission:
    """Tables exist for i8 alone; the logarithm of a negative number becomes the smallest quantized value."""
    data = _input_of(operator)
    require(data.element == "i8", f"input must be i8, but got {data.element}")
    return _unary(operator, {"EXP": qnn.ExpOp, "LOG": qnn.LogOp}[operator.kind], {"nan": TFLITE.nan})


@imports("HARD_SWISH")
def _hard_swish(operator: Operator) -> Emission:
    data, output = _input_of(operator), operator.outputs[0]
    minimum = arithmetic.hard_swish_bound(data.scale)
    require(output.scale > minimum, f"output scale must be greater than {minimum}, but got {output.scale}")
    # Words are shifted right by 15 bits at most.
    maximum = minimum * 2.0**16
    require(output.scale <= maximum, f"output scale must be at most {maximum}, but got {output.scale}")
    return _unary(operator, qnn.HardswishOp, {"mode": HardswishMode.TFLITE})


@imports("LEAKY_RELU")
def _leaky_relu(operator: Operator) -> Emission:
    alpha = operator.option("Alpha")
    data, output = _input_of(operator), operator.outputs[0]
    checks.check_rescale(data.scale, [1.0], output.scale, arithmetic.Multiplier.F32)
    checks.check_rescale(data.scale, [alpha], output.scale, arithmetic.Multiplier.F32)
    return _unary(operator, qnn.LeakyReluOp, {"alpha": alpha, "mode": LeakyMode.TFLITE})


# Functions of one 16-bit tensor that are computed in integers.

# More than any quantized value.
_BEYOND = 2.0**16
_I16_CLAMPS = {"RELU": tflite.ActivationFunctionType.RELU, "RELU6": tflite.ActivationFunctionType.RELU6}


def _of_i32(operator: Operator, bounds: tuple[int, int], build: Callable[[Arithmetic, ir.Value], ir.Value]) -> Building:
    data, _ = checks.one_input(operator)
    return unary(operator, data, lambda s, x: narrowed(s, build(s, s.resize(x, "i32")), bounds))


@imports_i16(*_I16_CLAMPS)
def _clamp_i16(operator: Operator) -> Building:
    data, output = checks.one_input(operator)
    factor = FixedPoint.of(f32_quotient(data.scale, output.scale))
    return _of_i32(operator, checks.activation_range(_I16_CLAMPS[operator.kind], output), factor.scaled)


@imports_i16("ABS")
def _abs_i16(operator: Operator) -> Building:
    """Rescaled only where the scales differ."""
    data, output = checks.one_input(operator)
    bounds = checks.quantized_range(output)
    if data.scale == output.scale:
        return _of_i32(operator, bounds, lambda s, x: s.op("math.absi", x))
    factor = FixedPoint.of(f32_quotient(data.scale, output.scale))
    return _of_i32(operator, bounds, lambda s, x: factor.scaled(s, s.op("math.absi", x)))


@imports_i16("LEAKY_RELU")
def _leaky_relu_i16(operator: Operator) -> Building:
    """Two factors, both evaluated in float32; that of a negative slope is taken without its sign."""
    alpha = operator.option("Alpha")
    data, output = checks.one_input(operator)
    positive = FixedPoint.of(f32_quotient(data.scale, output.scale))
    product = float(np.float32(data.scale) * np.float32(abs(alpha)))
    negative = FixedPoint.of(f32_quotient(product, output.scale))

    def build(s: Arithmetic, x: ir.Value) -> ir.Value:
        below = negative.scaled(s, x)
        below = s.op("arith.addi", s.op("arith.xori", below, -1), 1) if alpha < 0 else below
        return s.select(s.compare("ge", x, 0), positive.scaled(s, x), below)

    return _of_i32(operator, checks.quantized_range(output), build)


@imports_i16("NEG")
def _negate_i16(operator: Operator) -> Building:
    """The kernel negates quantized values; the smallest one stays what it is."""
    data, output = checks.one_input(operator)
    checks.same_scale(data, output)
    return unary(operator, data, lambda s, x: s.op("arith.addi", s.op("arith.xori", x, -1), 1))


@imports_i16("SQRT")
def _sqrt_i16(operator: Operator) -> Building:
    """In float32, truncated; the kernel fails for a negative number, which counts as zero here."""
    data, output = checks.one_input(operator)

    def build(s: Arithmetic, x: ir.Value) -> ir.Value:
        number = s.convert("arith.sitofp", s.op("arith.maxsi", x, 0), "f32")
        root = s.op("math.sqrt", s.op("arith.mulf", number, data.scale))
        quotient = s.op("arith.minimumf", s.op("arith.divf", root, output.scale), _BEYOND)
        return s.convert("arith.fptosi", quotient, "i32")

    return _of_i32(operator, checks.quantized_range(output), build)


# Functions of 16-bit tensors that the kernels read from tables, with straight lines between the entries.

_FIRST, _LAST = -(2**15), 2**15 - 1
_OUTPUT_SCALE = 2.0**-15


def _interpolated(data: Tensor, output: Tensor, function: tables.Function) -> Building:
    """By a table in float32; a sum that does not fit wraps around, as the kernel's does."""
    lines = tables.lines_of(tables.table_of(function, data.scale, output.scale, 0, np.float32))
    emitter = yield
    s = Arithmetic(emitter)
    return s.resize(i16_lookup(emitter, s.resize(emitter.value(data), "i32"), lines), "i16")


_I16_FUNCTIONS: dict[str, Callable[[float], tables.Function]] = {
    "EXP": lambda _: activations.exp,
    "LOG": lambda scale: lambda x: np.where(x <= 0, np.float32(_FIRST) * np.float32(scale), activations.log(x)),
    "RSQRT": lambda scale: lambda x: np.where(x <= 0, np.float32(_LAST) * np.float32(scale), activations.rsqrt(x)),
}
"""By the scale of the output, of which the smallest quantized value stands for what has no logarithm.

The largest one stands for the root of zero; the kernel fails for a negative number.
"""


@imports_i16(*_I16_FUNCTIONS)
def _function_i16(operator: Operator) -> Building:
    data, output = checks.one_input(operator)
    return _interpolated(data, output, _I16_FUNCTIONS[operator.kind](output.scale))


@imports_i16("GELU")
def _gelu_i16(operator: Operator) -> Building:
    is_approximate = operator.option("Approximate")
    data, output = checks.one_input(operator)
    return _interpolated(data, output, activations.tflite_gelu_tanh if is_approximate else _exact_gelu)


def _exact_gelu(x: arithmetic.FloatArray) -> arithmetic.FloatArray:
    complement = [math.erfc(float(v)) for v in x * np.float32(-math.sqrt(0.5))]
    return np.float32(0.5) * x * np.array(complement, dtype=np.float32)


@imports_i16("LOGISTIC", "TANH")
def _sigmoid_i16(operator: Operator) -> Building:
    """One half of the table serves both, as ``sigmoid(-x) = 1 - sigmoid(x)``; ``tanh(x) = 2 * sigmoid(2 * x) - 1``."""
    data, output = checks.one_input(operator)
    require(output.scale == _OUTPUT_SCALE, f"output scale must be 2^-15, but got {output.scale}")
    is_tanh = operator.kind == "TANH"
    multiplier, scale_shift = _table_multiplier(data.scale, (-12, -11) if is_tanh else (-12,))
    # Beyond the table of LOGISTIC 0x7FFF << 10 is what the kernel takes.
    lines, shift = (tables.sigmoid_lines(8, 2**16 - 1), 8) if is_tanh else (tables.sigmoid_lines(9, 2 * _LAST), 10)
    half = 1 << (shift - 1)
    emitter = yield
    s = Arithmetic(emitter)
    x = _by_multiplier(s, s.resize(emitter.value(data), "i32"), multiplier, scale_shift)
    found = looked_up(emitter, s.op("math.absi", x), lines)
    found = s.op("arith.subi", found, 1 << 23) if is_tanh else found
    below = s.op("arith.addi", s.op("arith.xori", found, -1), half if is_tanh else (1 << 25) + half)
    chosen = s.select(s.compare("ge", x, 0), s.op("arith.addi", found, half), below)
    return s.resize(s.op("arith.shrsi", chosen, shift), "i16")


def _by_multiplier(s: Arithmetic, value: ir.Value, multiplier: int, shift: int) -> ir.Value:
    """``value * multiplier / 2^shift``, ties up."""
    product = s.op("arith.muli", value, multiplier)
    return s.op("arith.shrsi", s.op("arith.addi", product, 1 << (shift - 1)), shift) if shift else product


def _table_multiplier(scale: float, powers: Sequence[int]) -> tuple[int, int]:
    """``scale / (1 / (3 * 4096))`` as a multiplier of 15 bits and a right shift, 31 at most (TFLite SigmoidPrepare).

    A scale of 2 to one of `powers` needs no shift.
    """
    power = checks.log2_of(scale)
    if power is not None and power in powers:
        return 3 << (power + 12), 0
    factor, shift = float(np.float32(scale)) * 4096.0 * 3.0, 0
    while factor <= _LAST / 2.0 and shift <= 30:
        factor, shift = factor * 2, shift + 1
    require(factor < 2.0**16, f"input scale must be below 16/3, but got {scale}")
    return int(factor), shift


# QUANTIZE and DEQUANTIZE, of 8 and 16 bits.

_RESCALED = {"i16": ("i8", "i16", "i32"), "i32": ("i16",), "i8": ("i16",), "ui8": ("i16",)}
"""The type that an input of or to 16 bits is rescaled to, by its element type."""


def _of_floats(emitter: Emitter, data: Tensor, output: Tensor) -> ir.Value:
    """Quantized f32 numbers, by a division with ties away from zero in the reference kernels.

    There a NaN is the lowest of 32 bits, and its sum with a zero point below 0 wraps around to the maximum.  Others
    multiply by the reciprocal and round ties to even; XNNPACK, which leaves 16 bits to LiteRT's own kernel, makes NaN
    the maximum.
    """
    profile = TFLITE_XNNPACK if emitter.is_delegated else TFLITE
    is_highest = output.zero_point < 0 or (emitter.is_delegated and output.element != "i16")
    nan = NanPolicy.MAX if is_highest else NanPolicy.MIN
    how: dict[str, Any] = {"rounding": profile.float_rounding, "scaling": profile.scaling, "nan": nan}
    how |= {"scales": [output.scale], "zero_points": [output.zero_point]}
    return emitter.build(qnn.QuantizeOp, emitter.value(data), element=output.element, **how)


@imports("QUANTIZE")
@imports_i16("QUANTIZE")
def _quantize(operator: Operator) -> Building:
    """From f32 by `_of_floats`; between quantized values by a fixed-point rescale."""
    (data,), output = checks.operands(operator, 1), operator.outputs[0]
    is_i16 = "i16" in (data.element, output.element)
    (checks.per_tensor if is_i16 else checks.eight_bit)(output, "output")
    if data.element == "f32":
        return _of_floats((yield), data, output)
    found = f"{data.element} to {output.element}"
    is_known = not is_i16 or output.element in _RESCALED.get(data.element, ())
    require(is_known, f"must go from i8, ui8, i32 or f32 to i16, or back to i8, but got {found}")
    (checks.per_tensor if is_i16 else checks.eight_bit)(data, "input")
    checks.check_rescale(data.scale, [1.0], output.scale, arithmetic.Multiplier.F64)
    emitter = yield
    value, zero_points = emitter.value(data), [data.zero_point]
    return emitter.requantize(value, output, data.scale, arithmetic.Multiplier.F64, input_zero_points=zero_points)


@imports("DEQUANTIZE")
@imports_i16("DEQUANTIZE")
def _dequantize(operator: Operator) -> Emission:
    (data,), found = checks.operands(operator, 1), operator.outputs[0].element
    (checks.sixteen_bit if data.element == "i16" else checks.eight_bit)(data, "input")
    require(found == "f32", f"output must be f32, but got {found}")
    parameters = {"scales": [data.scale], "zero_points": [data.zero_point]}
    return built(qnn.DequantizeOp, data, element="f32", **parameters)


# CAST: the same number in another type, whatever it stands for; quantization plays no part.

_INTEGERS = ("i1", "i8", "ui8", "i16", "i32", "i64")


@imports("CAST")
def _cast(operator: Operator) -> Building:
    """Integers wrap around, an f32 value loses its fraction and saturates, and every number but 0 is true."""
    (data,) = checks.operands(operator, 1)
    source, target = data.element, operator.outputs[0].element
    is_known = source == target or {source, target} <= {*_INTEGERS, "f32"}
    require(is_known, f"must be from and to {', '.join(_INTEGERS)} or f32, but got {source}, {target}")
    emitter = yield
    value = emitter.value(data)
    if source == target:
        return value
    if source in ("i8", "ui8", "i16", "i32") and target == "f32":
        return emitter.build(qnn.DequantizeOp, value, element=target, scales=[1.0], zero_points=[0])
    return on_bits(emitter, [value], target, partial(_number, target=target))


def _number(s: Arithmetic, x: ir.Value, target: str) -> ir.Value:
    """`x`, integers as their bits, as a number of another type."""
    source = element_of(x.type)
    if target == "i1":
        return s.compare("ne", x, 0)
    if target == "f32":
        return s.convert("arith.uitofp" if source == "i1" else "arith.sitofp", x, target)
    return _saturated(s, x, target) if source == "f32" else s.resize(x, target.removeprefix("u"))


def _saturated(s: Arithmetic, x: ir.Value, target: str) -> ir.Value:
    """Rounded towards zero; NaN, and numbers above all integers, give the largest one, those below the smallest."""
    limits = np.iinfo(NUMPY_DTYPES[target].name)
    least, largest = int(limits.min), int(limits.max)
    is_inside = s.op("arith.andi", s.compare("ge", x, float(least)), s.compare("lt", x, float(largest + 1)))
    whole = s.convert("arith.fptosi", s.select(is_inside, x, 0.0), "i64" if target == "i64" else "i32")
    low, high = (s.select(is_inside, whole, end) for end in (least, largest))
    return s.resize(s.select(s.compare("lt", x, 0.0), low, high), target.removeprefix("u"))
