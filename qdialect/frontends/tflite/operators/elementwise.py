"""Plans functions of two quantized tensors that broadcast, with fused activations where the operator has one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from qdialect import dialect as qnn
from qdialect.arithmetic import BinaryQuantization, Multiplier, PairArithmetic, Rounding, SubArithmetic
from qdialect.arithmetic.profiles import TFLITE
from qdialect.dialect.elementwise_ops import BinaryOp, binary_attributes
from qdialect.dialect.fields import LARGEST_SCALE
from qdialect.frontends.building.checks import Shape, UnsupportedError, require
from qdialect.frontends.building.op_builder import Arithmetic, reduced_numbers
from qdialect.frontends.planning.elementwise import OF_ONE_INTEGER, PAIRS_OF_INTEGERS, Build, OfOne, OfTwo, on_bits
from qdialect.frontends.tflite.flatbuffer.model import Operator, Tensor
from qdialect.frontends.tflite.operators import checks, registry
from qdialect.frontends.tflite.operators.fixed_point import FixedPoint, clamped, f32_quotient, narrowed
from qdialect.frontends.tflite.operators.reduction import reduction_of
from qdialect.ir._mlir import ir

Bounds = tuple[int, int]
# Of a rescale, in the kernel's fixed-point arithmetic.
_SMALLEST_FACTOR = 2.0**-32


@registry.imports("ADD", "SUB")
def _sum(operator: Operator) -> registry.Emission:
    """Both operands meet at twice the larger scale with 20 more bits; the factors are evaluated in double."""
    activation = checks.activation_of(operator)
    lhs, rhs = _checked(operator)
    _check_shifted(operator, lhs, rhs, 20)
    bounds = checks.activation_range(activation, operator.outputs[0])
    if operator.kind == "ADD":
        return _binary(operator, qnn.AddOp, bounds, **TFLITE.sum)
    return _binary(operator, qnn.SubOp, bounds, arithmetic=SubArithmetic.SHIFTED_FIXED, **TFLITE.rescale)


@registry.imports("MUL")
def _mul(operator: Operator) -> registry.Emission:
    """The factor of the product is evaluated in float32; below 2^-32 it is 0."""
    operator = _with_bounded_output(operator)
    activation = checks.activation_of(operator)
    lhs, rhs = _checked(operator)
    checks.check_rescale(lhs.scale, [rhs.scale], operator.outputs[0].scale, Multiplier.F32)
    bounds = checks.activation_range(activation, operator.outputs[0])
    return _binary(operator, qnn.MulOp, bounds, rounding=TFLITE.rounding, multiplier=Multiplier.F32)


def _with_bounded_output(operator: Operator) -> Operator:
    """The same node where the output's scale is within the dialect's, or so large that all products vanish."""
    lhs, rhs = checks.operands(operator, 2)
    limited = checks.bounded(operator.outputs[0])
    vanishes = len(lhs.scales) == len(rhs.scales) == 1 and lhs.scale * rhs.scale < _SMALLEST_FACTOR * LARGEST_SCALE
    return replace(operator, outputs=(limited,)) if vanishes else operator


@registry.imports("DIV")
def _div(operator: Operator) -> registry.Emission:
    """The kernel fails where a divisor is zero; the op gives the end of the range there."""
    activation = checks.activation_of(operator)
    lhs, rhs = _checked(operator)
    checks.check_rescale(lhs.scale / rhs.scale, [1.0], operator.outputs[0].scale, Multiplier.F64)
    bounds = checks.activation_range(activation, operator.outputs[0])
    return _binary(operator, qnn.DivOp, bounds, arithmetic=PairArithmetic.TFLITE_FIXED)


@registry.imports("MAXIMUM", "MINIMUM")
def _extreme(operator: Operator) -> registry.Emission:
    """Quantized values are compared as they are, which means something where all parameters are equal."""
    for tensor in _checked(operator):
        checks.same_quantization(operator, tensor)
    op_class = qnn.MaximumOp if operator.kind == "MAXIMUM" else qnn.MinimumOp
    return _binary(operator, op_class, checks.quantized_range(operator.outputs[0]))


@registry.imports("SQUARED_DIFFERENCE")
def _squared_difference(operator: Operator) -> registry.Emission:
    lhs, rhs = _checked(operator)
    require(lhs.element == "i8", f"input must be i8, but got {lhs.element}")
    _check_shifted(operator, lhs, rhs, 0)
    twice_max, output = 2 * max(lhs.scale, rhs.scale), operator.outputs[0]
    checks.check_rescale(twice_max * twice_max, [2.0**-14], output.scale, Multiplier.F64)
    return _binary(operator, qnn.SquaredDifferenceOp, checks.quantized_range(output))


@registry.imports("PRELU")
def _prelu(operator: Operator) -> registry.Emission:
    """One factor for positive numbers, one with the slope's scale for the others; both evaluated in float32."""
    data, slope = _checked(operator)
    output = operator.outputs[0]
    checks.check_rescale(data.scale, [1.0, slope.scale], output.scale, Multiplier.F32)
    return _binary(operator, qnn.PreluOp, checks.quantized_range(output), arithmetic=PairArithmetic.TFLITE_FIXED)


def _checked(operator: Operator) -> tuple[Tensor, Tensor]:
    """Both operands, of the output's 8-bit type."""
    lhs, rhs = checks.operands(operator, 2)
    checks.eight_bit_ends(operator, lhs, rhs)
    return lhs, rhs


def _check_shifted(operator: Operator, lhs: Tensor, rhs: Tensor, shift: int) -> None:
    """The rescale of operands that meet at twice the larger scale with `shift` more bits."""
    checks.check_rescale(2 * max(lhs.scale, rhs.scale), [2.0**-shift], operator.outputs[0].scale, Multiplier.F64)


def _binary(operator: Operator, op_class: type[BinaryOp], bounds: Bounds, **arithmetic: object) -> registry.Emission:
    lhs, rhs = checks.operands(operator, 2)
    output = operator.outputs[0]
    return registry.built(
        op_class,
        lhs,
        rhs,
        element=output.element,
        **binary_attributes(BinaryQuantization(lhs.params, rhs.params, output.params, bounds)),
        **arithmetic,
    )


# Functions of two 16-bit tensors that broadcast, with fused activations where the operator has one.

# Bits that operands are shifted up by where they meet.
_SHIFT = 15


@registry.imports_i16("ADD", "SUB")
def _sum_i16(operator: Operator) -> registry.Building:
    op = "arith.addi" if operator.kind == "ADD" else "arith.subi"
    # LiteRT takes options that are left out as all zero, unlike the schema.
    is_pot = operator.option("PotScaleInt16") and operator.options_table is not None
    lhs, rhs, output = checks.two_inputs(operator)
    bounds = checks.activation_range(checks.activation_of(operator), output)
    powers = [checks.log2_of(tensor.scale) for tensor in (lhs, rhs, output)]
    known = [power for power in powers if power is not None]
    if is_pot and len(known) == len(powers):
        return _shifted_sum(operator, [known[2] - known[0], known[2] - known[1]], bounds, op)
    return _rescaled_sum(operator, bounds, op)


def _shifted_sum(operator: Operator, shifts: Sequence[int], bounds: tuple[int, int], op: str) -> registry.Building:
    """Scales that are powers of two: one operand has the output's, the other a smaller one and is shifted to it."""
    lhs, rhs, output = checks.two_inputs(operator)
    holds = min(shifts) == 0 and max(shifts) < _SHIFT
    wanted = "operands must have the output's scale or 2^-14 of it at least, one of them the output's own"
    require(holds, f"{wanted}, but got {lhs.scale} and {rhs.scale} for {output.scale}")

    def build(s: Arithmetic, *values: ir.Value) -> ir.Value:
        sides = [_halved(s, s.resize(value, "i32"), shift) for value, shift in zip(values, shifts, strict=True)]
        return narrowed(s, s.op(op, *sides), bounds)

    return binary(operator, (lhs, rhs), build)


def _halved(s: Arithmetic, value: ir.Value, times: int) -> ir.Value:
    """``value / 2^times``, ties away from zero."""
    if times == 0:
        return value
    sign = s.op("arith.shrsi", value, 31)
    return s.op("arith.shrsi", s.op("arith.addi", s.op("arith.addi", value, 1 << (times - 1)), sign), times)


def _rescaled_sum(operator: Operator, bounds: tuple[int, int], op: str) -> registry.Building:
    """Both operands meet at twice the larger scale with 15 more bits; the factors are evaluated in double."""
    lhs, rhs, output = checks.two_inputs(operator)
    twice_max = 2 * max(lhs.scale, rhs.scale)
    factor = twice_max / (2.0**_SHIFT * output.scale)
    require(factor < 1, f"twice the larger scale over the output's must be below 2^15, but got {factor * 2**_SHIFT}")
    left, right, out = (FixedPoint.of(f) for f in (lhs.scale / twice_max, rhs.scale / twice_max, factor))

    def build(s: Arithmetic, x: ir.Value, y: ir.Value) -> ir.Value:
        sides = [
            multiplier.scaled(s, s.op("arith.muli", s.resize(value, "i32"), 1 << _SHIFT))
            for value, multiplier in ((x, left), (y, right))
        ]
        return narrowed(s, out.scaled(s, s.op(op, *sides)), bounds)

    return binary(operator, (lhs, rhs), build)


@registry.imports_i16("MUL")
def _mul_i16(operator: Operator) -> registry.Building:
    """The factor of the product is evaluated in float32."""
    activation = checks.activation_of(operator)
    lhs, rhs, output = checks.two_inputs(operator)
    bounds = checks.activation_range(activation, output)
    factor = FixedPoint.of(f32_quotient(float(np.float32(lhs.scale) * np.float32(rhs.scale)), output.scale))

    def build(s: Arithmetic, x: ir.Value, y: ir.Value) -> ir.Value:
        product = s.op("arith.muli", s.resize(x, "i32"), s.resize(y, "i32"))
        return narrowed(s, factor.scaled(s, product), bounds)

    return binary(operator, (lhs, rhs), build)


@registry.imports_i16("MAXIMUM", "MINIMUM")
def _extreme_i16(operator: Operator) -> registry.Building:
    """Quantized values are compared as they are, which means something where all scales are equal."""
    lhs, rhs, output = checks.two_inputs(operator)
    for tensor in (lhs, rhs):
        checks.same_scale(tensor, output)
    name = "arith.maxsi" if operator.kind == "MAXIMUM" else "arith.minsi"
    return binary(operator, (lhs, rhs), lambda s, x, y: s.op(name, x, y))


@registry.imports_i16("SQUARED_DIFFERENCE")
def _squared_difference_i16(operator: Operator) -> registry.Building:
    """As of bytes, but without bits to spare where the operands meet: LiteRT itself has no kernel for words."""
    lhs, rhs, output = checks.two_inputs(operator)
    twice_max = 2 * max(lhs.scale, rhs.scale)
    left, right = (FixedPoint.of(side.scale / twice_max) for side in (lhs, rhs))
    out, bounds = FixedPoint.of(twice_max * twice_max / output.scale), checks.quantized_range(output)

    def build(s: Arithmetic, x: ir.Value, y: ir.Value) -> ir.Value:
        sides = (factor.scaled(s, s.resize(value, "i32")) for value, factor in ((x, left), (y, right)))
        difference = s.op("arith.subi", *sides)
        return narrowed(s, out.scaled(s, s.op("arith.muli", difference, difference)), bounds)

    return binary(operator, (lhs, rhs), build)


@registry.imports_i16("PRELU")
def _prelu_i16(operator: Operator) -> registry.Building:
    """One factor for positive numbers, one with the slope's scale for the others; both evaluated in float32."""
    data, slope = checks.operands(operator, 2)
    checks.sixteen_bit(data, "input")
    output = checks.output_of(operator)
    holds = slope.element == "i8" and len(slope.scales) == 1
    require(holds, f"slope must be i8 with one scale, but got {slope.element} with {len(slope.scales)}")
    positive = FixedPoint.of(f32_quotient(data.scale, output.scale))
    product = float(np.float32(data.scale) * np.float32(slope.scale))
    negative = FixedPoint.of(f32_quotient(product, output.scale))
    low, high = checks.quantized_range(output)

    def build(s: Arithmetic, x: ir.Value, alpha: ir.Value) -> ir.Value:
        value = s.resize(x, "i32")
        factors = s.op("arith.subi", s.resize(alpha, "i32"), slope.zero_point)
        below = negative.scaled(s, s.op("arith.muli", value, factors))
        chosen = s.select(s.compare("ge", value, 0), positive.scaled(s, value), below)
        return s.resize(clamped(s, chosen, (low, high)), "i16")

    return binary(operator, (data, slope), build)


def elementwise(operator: Operator, tensors: Sequence[Tensor], build: Build) -> registry.Building:
    """`build` of tensors that broadcast to the shape of the operator's output."""
    shape = broadcast_shape(tensors, operator.outputs[0])
    emitter = yield
    values = [emitter.broadcast(emitter.value(tensor), shape) for tensor in tensors]
    return on_bits(emitter, values, operator.outputs[0].element, build)


def unary(operator: Operator, data: Tensor, build: OfOne) -> registry.Building:
    """`elementwise` of one tensor."""
    return elementwise(operator, [data], build)


def binary(operator: Operator, sides: Sequence[Tensor], build: OfTwo) -> registry.Building:
    """`elementwise` of two tensors."""
    return elementwise(operator, sides, build)


def broadcast_shape(tensors: Sequence[Tensor], output: Tensor) -> Shape:
    """The shape to which all tensors together broadcast, which is the output's; raises `UnsupportedError`."""
    shapes = [tensor.shape for tensor in tensors]
    try:
        found = np.broadcast_shapes(*shapes)
    except ValueError:
        found = None
    if found is None or (found != output.shape and not output.is_open):
        raise UnsupportedError(f"inputs must broadcast to {list(output.shape)}, but got {list(map(list, shapes))}")
    return found


def check_type(tensors: Sequence[Tensor], elements: Sequence[str]) -> None:
    """All tensors have one element type, which is one of `elements`."""
    found = {tensor.element for tensor in tensors}
    require(len(found) == 1, f"inputs must be of one type, but got {' and '.join(sorted(found))}")
    (element,) = found
    require(element in elements, f"inputs must be {', '.join(elements)}, but got {element}")


# Comparisons, which give booleans, operators on booleans, and SELECT by them.

COMPARISONS = {
    "EQUAL": "eq",
    "GREATER": "gt",
    "GREATER_EQUAL": "ge",
    "LESS": "lt",
    "LESS_EQUAL": "le",
    "NOT_EQUAL": "ne",
}
"""The predicate of each comparison."""
# Of both sides of a comparison of quantized values.
_FRACTION_BITS = 8
_LOGIC = {"LOGICAL_AND": "arith.andi", "LOGICAL_OR": "arith.ori"}


@registry.imports(*COMPARISONS)
def _comparison(operator: Operator) -> registry.Building:
    """Of floats no comparison with NaN holds but NOT_EQUAL."""
    sides, predicate = checks.operands(operator, 2), COMPARISONS[operator.kind]
    if sides[0].element in checks.EIGHT_BIT:
        return _quantized_comparison(operator, sides, predicate)
    check_type(sides, ("f32", "i32", "i64", *(("i1",) if predicate in ("eq", "ne") else ())))
    return binary(operator, sides, lambda s, lhs, rhs: s.compare(predicate, lhs, rhs))


def _quantized_comparison(operator: Operator, sides: Sequence[Tensor], predicate: str) -> registry.Building:
    """Both sides in steps of 1/256, each rescaled by itself (TFLite ComparisonWithScaling)."""
    for side, what in zip(sides, ("left operand", "right operand"), strict=True):
        checks.eight_bit(side, what)
        require(side.scale < 1, f"{what} scale must be below 1, but got {side.scale}")
    check_type(sides, checks.EIGHT_BIT)
    shape = broadcast_shape(sides, operator.outputs[0])

    def rescaled(emitter: registry.Emitter, side: Tensor) -> ir.Value:
        # The values without their zero point, as i32.
        s, value = Arithmetic(emitter, is_unsigned=side.element == "ui8"), emitter.without_sign(emitter.value(side))
        value = s.op("arith.addi", s.resize(value, "i32"), -side.zero_point)
        value = Arithmetic(emitter).op("arith.muli", value, 1 << _FRACTION_BITS)
        how: dict[str, Any] = {"rounding": Rounding.FIXED32_DOUBLE, "output_scale": 1.0, "output_zero_point": 0}
        return emitter.build(qnn.RequantizeOp, value, element="i32", input_scale=side.scale, **how)

    emitter = yield
    values = [emitter.broadcast(rescaled(emitter, side), shape) for side in sides]
    return Arithmetic(emitter).compare(predicate, *values)


@registry.imports(*_LOGIC)
def _logic(operator: Operator) -> registry.Building:
    sides, name = checks.operands(operator, 2), _LOGIC[operator.kind]
    check_type(sides, ("i1",))
    return binary(operator, sides, lambda s, lhs, rhs: s.op(name, lhs, rhs))


@registry.imports("LOGICAL_NOT")
def _not(operator: Operator) -> registry.Building:
    (data,) = checks.operands(operator, 1)
    check_type([data], ("i1",))
    return unary(operator, data, lambda s, x: s.op("arith.xori", x, 1))


@registry.imports("SELECT", "SELECT_V2")
@registry.imports_i16("SELECT", "SELECT_V2")
def _select(operator: Operator) -> registry.Building:
    """Elements of the first tensor where the condition holds, of the second elsewhere; they keep their numbers.

    Those of 16 bits are copied whatever they stand for: converters give each of the three tensors a scale of its own.
    SELECT takes a condition of one dimension along the first of the others, not along their last.
    """
    condition, first, second = checks.operands(operator, 3)
    require(condition.element == "i1", f"condition must be i1, but got {condition.element}")
    output = operator.outputs[0]
    taken = ("f32", "i8", "ui8", "i1", "i16", "i32", "i64")
    require(output.element in taken, f"output must be {', '.join(taken)}, but got {output.element}")
    for tensor in (first, second):
        if output.element == "i16":
            checks.sixteen_bit(tensor, "operand")
            checks.sixteen_bit(output, "operand")
        else:
            checks.same_content(tensor, output)
    rank = len(first.shape)
    if operator.kind == "SELECT" and len(condition.shape) == 1 and rank > 1:
        condition = replace(condition, shape=(*condition.shape, *(1,) * (rank - 1)))
    tensors = (condition, first, second)
    shape = broadcast_shape(tensors, output)
    emitter = yield
    values = [emitter.broadcast(emitter.reshape(emitter.value(t), t.shape), shape) for t in tensors]
    return on_bits(emitter, values, output.element, Arithmetic.select)


# Comparisons of 16-bit values.


@registry.imports_i16(*COMPARISONS)
def _comparison_i16(operator: Operator) -> registry.Building:
    """Quantized values are compared as they are, which means something where both scales are equal."""
    lhs, rhs = checks.operands(operator, 2)
    found = [checks.sixteen_bit(side, "input").scale for side in (lhs, rhs)]
    require(found[0] == found[1], f"inputs must have one scale, but got {found[0]} and {found[1]}")
    predicate = COMPARISONS[operator.kind]
    return binary(operator, (lhs, rhs), lambda s, x, y: s.compare(predicate, x, y))


# REDUCE_ANY and REDUCE_ALL of booleans over axes.

_LOGICAL_REDUCTIONS = {"REDUCE_ALL": "min", "REDUCE_ANY": "max"}


@registry.imports(*_LOGICAL_REDUCTIONS)
def _logical_reduction(operator: Operator) -> registry.Building:
    """The smallest, or the largest, of 0 for false and 1 for true."""
    data, axes, keep_dims = reduction_of(operator)
    check_type((data, operator.outputs[0]), ("i1",))
    emitter = yield
    s = Arithmetic(emitter)
    number = s.resize(emitter.value(data), "i16")
    return s.compare("ne", reduced_numbers(emitter, _LOGICAL_REDUCTIONS[operator.kind], number, axes, keep_dims), 0)


# Arithmetic of i32 and i64 tensors: it wraps around; DIV cuts quotients towards zero, a quotient by zero is 0.

_INTEGERS = ("i32", "i64")


_NAMES = {"DIV": "trunc_divide", "FLOOR_DIV": "floor_divide", "FLOOR_MOD": "remainder"}
"""Of functions whose name is not the operator's."""


def _square_difference(s: Arithmetic, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    difference = s.op("arith.subi", lhs, rhs)
    return s.op("arith.muli", difference, difference)


@registry.imports_integers("ADD", *_NAMES, "MAXIMUM", "MINIMUM", "MUL", "SQUARED_DIFFERENCE", "SUB")
def _pair(operator: Operator) -> registry.Building:
    sides = checks.operands(operator, 2)
    check_type((*sides, operator.outputs[0]), _INTEGERS)
    checks.check_plain(operator)
    divisor = sides[1].data if operator.kind in _NAMES else None
    require(divisor is None or bool(divisor.all()), "divisor must not be 0")
    is_square = operator.kind == "SQUARED_DIFFERENCE"
    name = _NAMES.get(operator.kind, operator.kind.lower())
    return binary(operator, sides, _square_difference if is_square else PAIRS_OF_INTEGERS[name])


@registry.imports_integers("ABS", "NEG", "SIGN")
def _of_one(operator: Operator) -> registry.Building:
    (data,) = checks.operands(operator, 1)
    check_type((data, operator.outputs[0]), _INTEGERS)
    return unary(operator, data, OF_ONE_INTEGER[operator.kind.lower()])


@registry.imports_integers("MEAN")
def _mean(operator: Operator) -> registry.Building:
    """The sum in 64 bits over the number of elements, cut towards zero."""
    data, axes, keep_dims = reduction_of(operator)
    check_type((data, operator.outputs[0]), _INTEGERS)
    count = math.prod(data.shape[axis] for axis in axes)
    emitter = yield
    s = Arithmetic(emitter)
    wide = s.resize(emitter.value(data), "i64")
    total = reduced_numbers(emitter, "sum", wide, axes, keep_dims)
    return s.resize(s.op("arith.div{s}i", total, count), data.element)


# BITWISE_XOR, RIGHT_SHIFT and BITCAST: operators on the bits of numbers, whatever these stand for.

_BITS = {"i8": 8, "ui8": 8, "i16": 16, "i32": 32}
_CASTS = {
    ("f32", "i32"): "arith.bitcast",
    ("i32", "f32"): "arith.bitcast",
    ("i8", "ui8"): "tensor.bitcast",
    ("ui8", "i8"): "tensor.bitcast",
}


@registry.imports("BITWISE_XOR", "RIGHT_SHIFT")
def _pair_of_bits(operator: Operator) -> registry.Building:
    """A count above the number of bits shifts by all bits but one, and one below 0 by no bits."""
    sides, output = checks.operands(operator, 2), operator.outputs[0]
    check_type((*sides, output), tuple(_BITS))
    last = _BITS[output.element] - 1

    def shifted(s: Arithmetic, bits: ir.Value, count: ir.Value) -> ir.Value:
        held = count if s.is_unsigned else s.op("arith.maxsi", count, 0)
        return s.op("arith.shr{s}i", bits, s.op("arith.min{s}i", held, last))

    if operator.kind == "BITWISE_XOR":
        return binary(operator, sides, lambda s, lhs, rhs: s.op("arith.xori", lhs, rhs))
    return binary(operator, sides, shifted)


@registry.imports("BITCAST")
def _bitcast(operator: Operator) -> registry.Building:
    (data,), output = checks.operands(operator, 1), operator.outputs[0]
    types = data.element, output.element
    known = types[0] == types[1] or types in _CASTS
    require(known, f"must go between f32 and i32 or between i8 and ui8, but got {types[0]}, {types[1]}")
    found, wanted = math.prod(output.shape), math.prod(data.shape)
    require(found == wanted, f"output must have {wanted} elements, but got {found}")
    emitter = yield
    value = emitter.reshape(emitter.value(data), output.shape)
    return value if types[0] == types[1] else emitter.convert(_CASTS[types], value, types[1])


# ADD_N: the sum of any number of tensors, one after another.


@registry.imports("ADD_N")
def _add_n(operator: Operator) -> registry.Building:
    """In the order of the inputs."""
    terms, output = checks.operands(operator, 1, max(1, len(operator.inputs))), operator.outputs[0]
    check_type((*terms, output), ("f32", "i32"))
    for term in terms:
        require(term.shape == output.shape, f"inputs must be {list(output.shape)}, but got {list(term.shape)}")
    name = "arith.addf" if output.element == "f32" else "arith.addi"
    emitter = yield
    s, (total, *others) = Arithmetic(emitter), [emitter.value(term) for term in terms]
    for other in others:
        total = s.op(name, total, other)
    return total
