"""Tensors that broadcast: arithmetic, quantized, in float32 or integers, comparisons, logic and Where; and Cast."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np

from qdialect import arithmetic
from qdialect.arithmetic import activations, torch_activations
from qdialect.arithmetic.expressions import Expression, Input
from qdialect.arithmetic.profiles import ORT
from qdialect.dialect import AddOp, DivOp, MaximumOp, MinimumOp, MulOp, PreluOp, SubOp
from qdialect.dialect.elementwise_ops import BinaryOp, binary_attributes
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NUMPY_DTYPES, SMALL_FLOATS, shape_of
from qdialect.frontends.building.checks import require
from qdialect.frontends.onnx.model import F32, element_name
from qdialect.frontends.onnx.operators.quantization import f32_values_of, quantized_by
from qdialect.frontends.onnx.operators.registry import Call, Quantized, imports, imports_integers, part_of, value_of
from qdialect.frontends.onnx.qdq_groups import GroupKernel
from qdialect.frontends.planning import elementwise, tensors
from qdialect.frontends.planning.elementwise import INTEGERS, Pointwise, common_element, element_type, unary
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import EIGHT_BIT, Constant, F32Tensor, Plan, QuantizedTensorType, Table, Tensor
from qdialect.ir._mlir import ir

# Functions of two tensors that broadcast, and their QLinear forms.

OFFSET = 128
"""From i8 to the ui8 that stand for the same."""
_OF_ONE_TYPE = ("Add", "Mul")
_LEFT, _RIGHT = Input(0), Input(1)
_ARITHMETIC: dict[str, Expression] = {
    "Add": _LEFT + _RIGHT,
    "Sub": _LEFT - _RIGHT,
    "Mul": _LEFT * _RIGHT,
    "Div": _LEFT / _RIGHT,
}
_POWER = _LEFT.apply("math.powf", _RIGHT)
_MULTIPLIED_POWERS = {2.0: _LEFT * _LEFT, 3.0: _LEFT * _LEFT * _LEFT}
"""By exponents that are one number: ONNX Runtime's kernel multiplies."""
_EXTREMES: dict[str, Expression] = {
    "Max": _LEFT.apply("arith.maximumf", _RIGHT),
    "Min": _LEFT.apply("arith.minimumf", _RIGHT),
}
_PRELU = (-_LEFT).where_positive(_LEFT * _RIGHT, _LEFT)
"""Zeros stay, whatever the slope is."""
_FUNCTIONS = {**_ARITHMETIC, **_EXTREMES, "Pow": _POWER, "PRelu": _PRELU}
_INTEGER_OPS: dict[str, tuple[type[BinaryOp], dict[str, Any]]] = {
    "Add": (AddOp, {"arithmetic": ORT.addition}),
    "Mul": (MulOp, {"rounding": arithmetic.Rounding.F32_RNE_ZP_FIRST, "multiplier": arithmetic.Multiplier.F32}),
    "Sub": (SubOp, {"arithmetic": arithmetic.SubArithmetic.FLOAT}),
    "Div": (DivOp, {"arithmetic": arithmetic.PairArithmetic.FLOAT}),
    "PRelu": (PreluOp, {"arithmetic": arithmetic.PairArithmetic.FLOAT}),
    "Max": (MaximumOp, {}),
    "Min": (MinimumOp, {}),
}
"""Sums and products have an integer kernel in ONNX Runtime; the others compute in float32 and quantize the result."""


@dataclass(frozen=True, eq=False)
class Binary(Pointwise):
    """A function of two tensors: of two quantized ones an integer op, else it runs in float32."""

    kind: str
    kernel: GroupKernel = GroupKernel.OF_TYPE

    def _quantized(self, plan: Plan, name: str, to: QuantizedTensorType) -> Value:
        if self._has_infinite_factor(to):
            return tensors.filled(plan, name, self.shape, to.minimum, to.element)
        pair = self._integer_operands(to)
        if pair is None:
            return super()._quantized(plan, name, to)
        (lhs, rhs), sides = pair, [one.parameters for one in pair]
        op_class, choices = _INTEGER_OPS[self.kind]
        # A product does not depend on where its zero points are.
        is_shifted = self.kernel is GroupKernel.UNSIGNED and self.kind == "Add" and to.element == "i8"
        left, right, result = (_unsigned(one) if is_shifted else one for one in (*sides, to))
        bounds = (result.minimum, result.maximum)
        attributes = binary_attributes(arithmetic.BinaryQuantization(left.params, right.params, result.params, bounds))

        def emit(emitter: Emitter) -> Emitted:
            operands, is_channels_last = emitter.alike((lhs.values, rhs.values))
            if is_shifted:
                operands = [shifted(emitter, operand, "ui8") for operand in operands]
            built = emitter.build(op_class, *operands, element=result.element, **attributes, **choices)
            return shifted(emitter, built, "i8") if is_shifted else built, is_channels_last

        return plan.compute(name, self.shape, to.element, emit)

    def _has_infinite_factor(self, to: QuantizedTensorType) -> bool:
        """Whether an integer kernel multiplies by a quotient of scales that is no number: all sums are NaN for it."""
        if self.kernel is GroupKernel.F32 or self.kind not in _OF_ONE_TYPE or to.element not in EIGHT_BIT:
            return False
        plain = [one for one in self.operands if isinstance(one, elementwise.PlainlyDequantized)]
        values = [one.quantized_values for one in plain]
        values += [one.values for one in self.operands if isinstance(one, Quantized)]
        is_of_type = [value.element for value in values] == [to.element] * 2
        return is_of_type and any(not math.isfinite(one.scale) for one in plain)

    def _integer_operands(self, to: QuantizedTensorType) -> tuple[Quantized, Quantized] | None:
        lhs, rhs = self.operands
        if self.kernel is GroupKernel.F32 or self.kind not in _INTEGER_OPS:
            return None
        if not isinstance(lhs, Quantized) or not isinstance(rhs, Quantized):
            return None
        elements = (lhs.values.element, rhs.values.element, to.element)
        per_tensor = len(lhs.scales) == len(rhs.scales) == 1
        # ONNX Runtime has integer kernels for tensors of one type alone.
        fits = self.kind not in _OF_ONE_TYPE or len(set(elements)) == 1
        return (lhs, rhs) if per_tensor and fits and all(element in EIGHT_BIT for element in elements) else None


def _unsigned(of: QuantizedTensorType) -> QuantizedTensorType:
    """Of the ui8 that stand for the same as i8 with the parameters `of`."""
    return QuantizedTensorType.full_range(ORT, "ui8", of.scale, of.zero_point + OFFSET)


def shifted(emitter: Emitter, values: ir.Value, element: str) -> ir.Value:
    """i8 plus 128 as ui8, or ui8 less 128 as i8: the highest bit is the other one."""
    highest = emitter.broadcast(emitter.constant(np.array(-OFFSET, np.int8)), shape_of(values.type))
    flipped = emitter.upstream("arith.xori", emitter.without_sign(values), highest)
    return flipped if element == "i8" else emitter.convert("tensor.bitcast", flipped, element)


def binary_tensor(kind: str, lhs: F32Tensor, rhs: F32Tensor, kernel: GroupKernel = GroupKernel.OF_TYPE) -> Binary:
    """The function that the operator `kind` computes of two tensors."""
    return Binary(elementwise.broadcast_shape(lhs.shape, rhs.shape), (lhs, rhs), _FUNCTIONS[kind], kind, kernel)


@imports(*_ARITHMETIC)
def _float_binary(call: Call) -> Tensor:
    return binary_tensor(call.node.kind, call.f32(0), call.f32(1), call.kernel)


@imports("Pow")
def _power(call: Call) -> Tensor:
    base, exponent, known = call.f32(0), _exponent(call), tensors.known_array(call.tensor(1))
    one = None if known is None or known.size != 1 else float(known.item())
    formula = _POWER if one is None else _MULTIPLIED_POWERS.get(one, _POWER)
    return Binary(
        elementwise.broadcast_shape(base.shape, exponent.shape), (base, exponent), formula, "Pow", call.kernel
    )


def _exponent(call: Call) -> F32Tensor:
    """Input 1, which may be integers."""
    if element_type(call.tensor(1)) == "f32":
        return call.f32(1)
    exponent = part_of(call, "Cast", [call.tensor(1)], to=F32)
    return call.with_input(1, exponent).f32(1)


@imports(*_EXTREMES, "Mean", "Sum")
def _of_many(call: Call) -> Tensor:
    """Of any number of tensors; only the Max and Min of two are one op: no integer kernel of ONNX Runtime is a Sum."""
    count, is_extreme = len(call.inputs), call.node.kind in _EXTREMES
    kind, kernel = (call.node.kind, GroupKernel.OF_TYPE) if is_extreme else ("Add", GroupKernel.F32)
    total = reduce(lambda lhs, rhs: binary_tensor(kind, lhs, rhs, kernel), map(call.f32, range(count)))
    return Pointwise(total.shape, (total,), _LEFT / float(count)) if call.node.kind == "Mean" else total


@imports("Mod")
def _remainder(call: Call) -> Tensor:
    """Of floats, with the sign of the dividend."""
    require(call.flag("fmod", 0), "fmod must be 1 where the inputs are floats, but got 0")
    lhs, rhs = call.f32(0), call.f32(1)
    return Pointwise(elementwise.broadcast_shape(lhs.shape, rhs.shape), (lhs, rhs), torch_activations.fmod)


@imports("PRelu")
def _prelu(call: Call) -> Tensor:
    """Slopes broadcast to the data; one number is a function of the data alone."""
    data, slope = call.f32(0), call.tensor(1)
    if isinstance(slope, Constant) and slope.array.size == 1 and isinstance(data, Quantized) and data.is_eight_bit:
        return Table(data.shape, data, activations.leaky_relu(call.number(1)))
    slopes = call.f32(1)
    qdq_group = binary_tensor("PRelu", data, slopes)
    require(qdq_group.shape == data.shape, f"slope must broadcast to {list(data.shape)}, but got {list(slopes.shape)}")
    return qdq_group


@imports("com.microsoft.QLinearAdd", "com.microsoft.QLinearMul")
def _qlinear_binary(call: Call) -> Tensor:
    call.count(7, 8)
    kind = call.node.kind.removeprefix("com.microsoft.QLinear")
    qdq_group = binary_tensor(kind, f32_values_of(call, 0, 1), f32_values_of(call, 3, 4))
    return quantized_by(call, qdq_group, 6, call.value(0).element)


# Arithmetic of integers that stand for themselves: it wraps around, and quotients are cut towards zero.
#
# A quotient by zero, for which ONNX Runtime ends the process, is 0.

_OF_INTEGERS = {
    "Add": "add",
    "Div": "trunc_divide",
    "Mul": "mul",
    "Sub": "sub",
    "Max": "maximum",
    "Min": "minimum",
    "Sum": "add",
}


@imports_integers(*_OF_INTEGERS)
def _of_integers(call: Call) -> Tensor:
    return _integers(call, _OF_INTEGERS[call.node.kind])


def _integers(call: Call, name: str) -> Tensor:
    """The function `name` of two of all inputs after the other."""
    values = [value_of(call, index) for index in range(len(call.inputs))]
    function = elementwise.PAIRS_OF_INTEGERS[name]

    def build(s: elementwise.Arithmetic, *operands: ir.Value) -> ir.Value:
        return reduce(partial(function, s), operands)

    return elementwise.elementwise(call, values, common_element(values, INTEGERS), build)


@imports_integers("Abs", "Neg", "Sign")
def _integers_of_one(call: Call) -> Tensor:
    value = value_of(call, 0)
    is_signed = not value.element.startswith("u")
    require(is_signed or call.node.kind != "Neg", f"input 0 must be signed, but got {value.element}")
    return unary(call, value, common_element([value], INTEGERS), elementwise.OF_ONE_INTEGER[call.node.kind.lower()])


def clipped_integers(call: Call) -> Tensor:
    """Input 0 between inputs 1 and 2, integers of its type, each where it is given; the upper bound wins."""
    bounds = [(name, index) for name, index in (("arith.max{s}i", 1), ("arith.min{s}i", 2)) if call.optional(index)]
    values = [value_of(call, index) for index in (0, *(index for _, index in bounds))]
    element = common_element(values, INTEGERS)
    for value in values[1:]:
        require(math.prod(value.shape) == 1, f"bounds must have 1 element, but got {list(value.shape)}")
    known = [tensors.known_array(call.tensor(index)) for index in (0, *(index for _, index in bounds))]
    arrays = [array for array in known if array is not None]
    if len(arrays) == len(known):
        lower, upper = (tensors.known_array(call.optional(index)) for index in (1, 2))
        return Constant(np.clip(arrays[0], lower, upper).reshape(arrays[0].shape))

    def build(s: elementwise.Arithmetic, found: ir.Value, *limits: ir.Value) -> ir.Value:
        for (name, _), limit in zip(bounds, limits, strict=True):
            found = s.op(name, found, limit)
        return found

    return elementwise.elementwise(call, values, element, build)


@imports_integers("Mod")
def _integer_mod(call: Call) -> Tensor:
    """The remainder has the sign of the divisor, with fmod that of the dividend."""
    is_of_dividend = call.flag("fmod", 0)
    is_wide = value_of(call, 0).element == "i64"
    require(not (is_of_dividend and is_wide), "fmod of i64 must be 0: ONNX Runtime computes it in float64")
    return _integers(call, "fmod" if is_of_dividend else "remainder")


# Pow where a base or an exponent is integers; the exponent of integers must be known.


@imports_integers("Pow")
def _integer_power(call: Call) -> Tensor:
    """The type is that of the base; ONNX Runtime multiplies, and wraps around, for squares and cubes alone.

    Of a base with one element it computes those in float64 too.
    """
    value, exponent = value_of(call, 0), call.number(1)
    require(math.prod(value.shape) > 1, "base of integers must have several elements, but has 1")
    exact = {"i32": (0, 1, 2, 3), "i64": (0, 2, 3)}[common_element([value], ("i32", "i64"))]
    require(exponent in exact, f"exponent of {value.element} must be one of {exact}, but got {exponent:g}")
    return elementwise.tensor_of(
        unary(call, value, value.element, lambda s, x: elementwise.whole_power(s, x, int(exponent)))
    )


# Comparisons, logic of booleans and bits, shifts, and Where.

_PREDICATES = {"Equal": "eq", "Greater": "gt", "GreaterOrEqual": "ge", "Less": "lt", "LessOrEqual": "le"}


@imports(*_PREDICATES)
def _comparison(call: Call) -> Tensor:
    """Of floats no comparison with NaN holds."""
    values, predicate = [value_of(call, 0), value_of(call, 1)], _PREDICATES[call.node.kind]
    common_element(values, (*INTEGERS, "f32", *(("i1",) if predicate == "eq" else ())))
    return elementwise.binary(call, values, "i1", lambda s, lhs, rhs: s.compare(predicate, lhs, rhs))


@imports("IsNaN")
def _is_nan(call: Call) -> Tensor:
    value = value_of(call, 0)
    common_element([value], ("f32",))
    return unary(call, value, "i1", lambda s, x: s.compare("ne", x, x))


@imports("IsInf")
def _is_inf(call: Call) -> Tensor:
    value = value_of(call, 0)
    common_element([value], ("f32",))
    signs = {"detect_negative": -math.inf, "detect_positive": math.inf}
    asked = [number for name, number in signs.items() if call.flag(name, 1)]
    require(bool(asked), "detect_negative and detect_positive must not both be 0")

    def build(s: elementwise.Arithmetic, x: ir.Value) -> ir.Value:
        return s.compare("eq", s.op("math.absf", x) if len(asked) > 1 else x, asked[-1])

    return unary(call, value, "i1", build)


# And, Or, Xor and Not of booleans, and the same of the bits of integers.

_LOGIC = {"And": "arith.andi", "Or": "arith.ori", "Xor": "arith.xori"}


def _of_bits(call: Call) -> tuple[str, ...]:
    return INTEGERS if call.node.kind.startswith("Bitwise") else ("i1",)


@imports(*_LOGIC, *(f"Bitwise{kind}" for kind in _LOGIC))
def _logic(call: Call) -> Tensor:
    values, name = [value_of(call, 0), value_of(call, 1)], _LOGIC[call.node.kind.removeprefix("Bitwise")]
    element = common_element(values, _of_bits(call))
    return elementwise.binary(call, values, element, lambda s, lhs, rhs: s.op(name, lhs, rhs))


@imports("Not", "BitwiseNot")
def _not(call: Call) -> Tensor:
    value = value_of(call, 0)
    element = common_element([value], _of_bits(call))
    ones = 1 if element == "i1" else -1
    return unary(call, value, element, lambda s, x: s.op("arith.xori", x, ones))


# BitShift: the bits of unsigned integers, moved; a shift by their width or more leaves none.

_WIDTHS = {"ui8": 8, "ui16": 16}
_SHIFTS = {"LEFT": "arith.shli", "RIGHT": "arith.shrui"}


@imports("BitShift")
def _bit_shift(call: Call) -> Tensor:
    values, direction = [value_of(call, 0), value_of(call, 1)], call.attribute("direction", "")
    require(direction in _SHIFTS, f"direction must be LEFT or RIGHT, but got {direction}")
    element = common_element(values, tuple(_WIDTHS))

    def build(s: elementwise.Arithmetic, bits: ir.Value, amount: ir.Value) -> ir.Value:
        # More than the width is undefined in an op.
        moved = s.op(_SHIFTS[direction], bits, s.op("arith.minui", amount, _WIDTHS[element] - 1))
        return s.select(s.compare("lt", amount, _WIDTHS[element]), moved, 0)

    return elementwise.binary(call, values, element, build)


# Where and QLinearWhere: one of two tensors, element by element.


@imports("Where")
def _where(call: Call) -> Tensor:
    """ONNX Runtime adds what is chosen of each tensor, with zeros elsewhere: a float -0 of the first becomes +0."""
    condition = value_of(call, 0)
    require(condition.element == "i1", f"condition must be i1, but got {condition.element}")
    values = [value_of(call, 1), value_of(call, 2)]
    element = common_element(values, (*INTEGERS, "i1", "f32"))

    def chosen(s: elementwise.Arithmetic, holds: ir.Value, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        return s.select(holds, s.op("arith.addf", lhs, 0.0) if element == "f32" else lhs, rhs)

    return elementwise.tensor_of(elementwise.ternary(call, [condition, *values], element, chosen))


@imports("com.microsoft.QLinearWhere")
def _qlinear_where(call: Call) -> Tensor:
    """Both tensors are quantized as the result before one is chosen."""
    call.count(9)
    condition = value_of(call, 0)
    require(condition.element == "i1", f"condition must be i1, but got {condition.element}")
    element = call.value(1).element
    values = [quantized_by(call, f32_values_of(call, index, index + 1), 7, element) for index in (1, 4)]
    return elementwise.ternary(
        call, [condition, *values], element, lambda s, holds, lhs, rhs: s.select(holds, lhs, rhs)
    )


# Cast and CastLike between integers, booleans and float32, as ONNX Runtime casts on x86-64.

_OF_EIGHT_BIT_FLOATS = ("saturate", "round_mode")


@imports("Cast")
def _cast(call: Call) -> Tensor:
    call.ignore(*_OF_EIGHT_BIT_FLOATS)
    return _to(call, element_name(call.attribute("to", 0)))


@imports("CastLike")
def _cast_like(call: Call) -> Tensor:
    """To the type of input 1, whose numbers do not matter."""
    call.ignore(*_OF_EIGHT_BIT_FLOATS)
    return _to(call, element_type(call.tensor(1)))


def _to(call: Call, target: str) -> Tensor:
    source = call.tensor(0)
    found = element_type(source)
    if found == target:
        return source
    require(target in NUMPY_DTYPES, f"must cast to one of {', '.join(NUMPY_DTYPES)}, but casts to {target}")
    array = tensors.known_array(source) if target in SMALL_FLOATS else None
    if array is not None:
        source = Constant(array)
    if isinstance(source, Constant):
        call.plan.budget.spend_constant(source.shape, NUMPY_DTYPES[target].itemsize)
        array = source.array.astype(np.float32) if found in SMALL_FLOATS or target in SMALL_FLOATS else source.array
        return Constant(elementwise.cast_array(array, target))
    if target in SMALL_FLOATS:
        wide = call.with_input(0, _to(call, "f32")).f32(0)
        return tensors.in_small_float(call.plan, call.name, wide.f32(call.plan, call.name), target)
    if found in SMALL_FLOATS:
        return _to(call.with_input(0, tensors.in_f32(call.plan, value_of(call, 0))), target)
    if target == "f32" and found in ELEMENT_RANGES:
        return Quantized(source.shape, value_of(call, 0), (1.0,), (0,))
    value = value_of(call, 0)
    return elementwise.tensor_of(unary(call, value, target, lambda s, x: elementwise.converted(s, x, found, target)))
