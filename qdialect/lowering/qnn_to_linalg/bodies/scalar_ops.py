"""The element-wise upstream ops as scalar bodies: on i1, i8, i16, i32, i64 and float32 numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from qdialect.arithmetic import transcendental
from qdialect.arithmetic.expressions import Alpha, Expression, Input, Node, Number, fold
from qdialect.arithmetic.float32 import ALGORITHMS, BELOW_ZERO, machine
from qdialect.arithmetic.machine import FLOAT_PREDICATES, INTEGER_PREDICATES
from qdialect.arithmetic.small_floats import ROUND, WIDEN
from qdialect.arithmetic.transcendental import IN_FLOAT64, OF_LIBRARY, PAIRS
from qdialect.dialect import BroadcastOp
from qdialect.dialect.constants import constant_value
from qdialect.dialect.f32_ops import is_in_float64
from qdialect.dialect.type_constraints import SMALL_FLOATS, element_name, element_of
from qdialect.ir._mlir import ir
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value

# The algorithms of `qdialect.arithmetic.float32` and `transcendental`, and expressions, as scalar bodies.

_F = "f64"


def emit_float32(body: Body, name: str, x: Value, *, is_below_zero: bool = False) -> Value:
    """The function of the op `name`, one of `ALGORITHMS`, of the float32 number `x`.

    Where `is_below_zero`, the results of positive numbers do not count.
    """
    algorithm = BELOW_ZERO.get(name, ALGORITHMS[name]) if is_below_zero else ALGORITHMS[name]
    return algorithm(machine.Machine(body), x)


def emit_shared(body: Body, name: str, x: Value, *, in_float64: bool = False, is_below_zero: bool = False) -> Value:
    """The function of the op `name`, one of `IN_FLOAT64`, of the float32 number `x`, as a float32 number.

    Functions that have a sequence of float32 operations are evaluated by it, unless `in_float64`.  Where
    `is_below_zero`, the results of positive numbers do not count.
    """
    if name in ALGORITHMS and not in_float64:
        return emit_float32(body, name, x, is_below_zero=is_below_zero)
    wide = body.cast("arith.extf", x, _F)
    return body.cast("arith.truncf", OF_LIBRARY[name](transcendental.Machine(body), wide), "f32")


def emit_pair(body: Body, name: str, x: Value, y: Value) -> Value:
    """The function of the op `name`, one of `PAIRS`, of float32 numbers, as a float32 number."""
    wide = (body.cast("arith.extf", value, _F) for value in (x, y))
    return body.cast("arith.truncf", PAIRS[name](transcendental.Machine(body), *wide), "f32")


# Expressions of `qdialect.arithmetic.expressions` in kernels.

_INPUTS = tuple(map(Input, range(8)))
_BELOW = "below zero: "
"""Before the name of an op whose results of positive numbers do not count."""


def emit_expression(body: Body, expression: Expression, *values: Value, alpha: Value | float | None = None) -> Value:
    """The function of f32 values, with the bits that it has of arrays; `alpha` is its parameter."""

    def number(value: float) -> Value:
        return body.constant(float(np.float32(value)), "f32")

    parameter = number(alpha) if isinstance(alpha, int | float) else alpha
    return fold(guarded(expression), values, parameter, number, partial(_emit_node, body))


def guarded(expression: Expression) -> Expression:
    """`expression` with what is chosen where x is not positive named so; `emit_function` knows these names."""

    def node(op: str, operands: Sequence[Expression]) -> Expression:
        if op == "arith.select" and isinstance(test := operands[0], Node) and test.operands[1:] == (Number(0.0),):
            return Node(op, (test, operands[1], _below_zero(operands[2], test.operands[0])))
        return Node(op, tuple(operands))

    return fold(expression, _INPUTS, Alpha(), Number, node)


def _below_zero(expression: Expression, x: Expression) -> Expression:
    if not isinstance(expression, Node):
        return expression
    name = _BELOW + expression.op if expression.op in BELOW_ZERO and expression.operands == (x,) else expression.op
    return Node(name, tuple(_below_zero(operand, x) for operand in expression.operands))


def emit_function(body: Body, name: str, x: Value) -> Value:
    """The transcendental function of an op of a tree, `guarded` or not."""
    return emit_shared(body, name.removeprefix(_BELOW), x, is_below_zero=name.startswith(_BELOW))


def _emit_node(body: Body, op: str, operands: Sequence[Value]) -> Value:
    if op.removeprefix(_BELOW) in IN_FLOAT64:
        return emit_function(body, op, operands[0])
    if op == "arith.cmpf":
        return body.compare("ogt", *operands)
    if op == "arith.select":
        return body.select(*operands)
    if op == "math.fma":
        return body.multiply_add(*operands)
    return body.unary(op, *operands) if len(operands) == 1 else body.binary(op, *operands)


Emitter = Callable[[Body, ir.Operation, Sequence[Value]], Value]

_SAME_TYPE = (
    *("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.negf", "arith.maximumf", "arith.minimumf"),
    *("arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.ori", "arith.xori"),
    *("arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui"),
    *("math.absf", "math.absi", "math.ceil", "math.copysign", "math.ctlz", "math.floor", "math.roundeven"),
    *("math.sqrt", "math.trunc"),
)
_SHIFTS = ("arith.shli", "arith.shrui")
_CASTS = (
    *("arith.bitcast", "arith.extsi", "arith.extui", "arith.trunci"),
    *("arith.sitofp", "arith.uitofp", "arith.fptosi"),
)
_COMPARISONS = {"arith.cmpf": FLOAT_PREDICATES, "arith.cmpi": INTEGER_PREDICATES}


def scalar_type(value: ir.Value) -> str:
    """How a kernel holds an element of a tensor: as upstream ops see it, bits without a sign; a small float as bits."""
    element = ir.RankedTensorType(value.type).element_type
    if isinstance(element, ir.IntegerType):
        return f"i{element.width}"
    name = element_name(element)
    return "i16" if name in SMALL_FLOATS else name


def _compare(body: Body, op: ir.Operation, values: Sequence[Value]) -> Value:
    predicate = _COMPARISONS[op.name][ir.IntegerAttr(op.attributes["predicate"]).value]
    return body.compare(predicate, *values)


def _divide(body: Body, op: ir.Operation, values: Sequence[Value]) -> Value:
    """Of integers: a quotient by zero is 0, that of the smallest number by -1 wraps around to itself."""
    quotient, is_zero = _quotient(body, op.name, *values)
    return body.select(is_zero, body.constant(0, quotient.type), quotient)


def _remainder(body: Body, op: ir.Operation, values: Sequence[Value]) -> Value:
    """Of integers: that of a division by zero is 0."""
    quotient, is_zero = _quotient(body, op.name.replace("rem", "div"), *values)
    rest = body.subtract(values[0], body.multiply(quotient, values[1]))
    return body.select(is_zero, body.constant(0, rest.type), rest)


def _quotient(body: Body, name: str, lhs: Value, rhs: Value) -> tuple[Value, Value]:
    """The quotient, which is any number where `rhs` is zero, and whether it is."""
    zero, one = body.constant(0, rhs.type), body.constant(1, rhs.type)
    is_zero = body.compare("eq", rhs, zero)
    if name == "arith.divui":
        return body.binary(name, lhs, body.select(is_zero, one, rhs)), is_zero
    # The CPU traps where a quotient does not fit.
    is_minus_one = body.compare("eq", rhs, body.constant(-1, rhs.type))
    quotient = body.binary(name, lhs, body.select(body.binary("arith.ori", is_zero, is_minus_one), one, rhs))
    return body.select(is_minus_one, body.subtract(zero, lhs), quotient), is_zero


def _shift(body: Body, op: ir.Operation, values: Sequence[Value]) -> Value:
    """By an unsigned amount: from the width on every bit is gone, which the CPU's own shifts need not do."""
    value, amount = values
    is_inside = body.compare("ult", amount, body.constant(value.bits, amount.type))
    shifted = body.binary(op.name, value, body.select(is_inside, amount, body.constant(0, amount.type)))
    return body.select(is_inside, shifted, body.constant(0, value.type))


def _shift_signed(body: Body, op: ir.Operation, values: Sequence[Value]) -> Value:
    """By an unsigned amount: from the width on every bit is the sign."""
    value, amount = values
    return body.binary(op.name, value, body.binary("arith.minui", amount, body.constant(value.bits - 1, amount.type)))


def _rsqrt(body: Body, _: ir.Operation, values: Sequence[Value]) -> Value:
    root = body.unary("math.sqrt", values[0])
    return body.divide(body.constant(1.0, "f32"), root)


def _transcendental(body: Body, op: ir.Operation, values: Sequence[Value]) -> Value:
    is_below_zero = counts_below_zero(op)
    return emit_shared(body, op.name, values[0], in_float64=is_in_float64(op), is_below_zero=is_below_zero)


def counts_below_zero(op: ir.Operation) -> bool:
    """Whether the result of the unary `op` is chosen where its operand is not positive, and nowhere else.

    This is ``select(x > 0, ..., op(x))``, where the result may be multiplied before.
    """
    value = op.results[0]
    user = _only_user(value)
    if user is not None and user.name == "arith.mulf":
        value = user.results[0]
        user = _only_user(value)
    if user is None or user.name != "arith.select" or user.operands[2] != value or user.operands[1] == value:
        return False
    condition = user.operands[0].owner
    return isinstance(condition, ir.Operation | ir.OpView) and _is_positive(condition.operation, op.operands[0])


def _only_user(value: ir.Value) -> ir.Operation | None:
    users = {use.owner.operation for use in value.uses}
    return next(iter(users)) if len(users) == 1 else None


def _is_positive(condition: ir.Operation, value: ir.Value) -> bool:
    """Whether `condition` is ``value > 0`` or ``value >= 0``, false of NaN."""
    if condition.name != "arith.cmpf" or condition.operands[0] != value:
        return False
    bound = condition.operands[1]
    owner = bound.owner
    if isinstance(owner, ir.Operation | ir.OpView) and owner.name == BroadcastOp.OPERATION_NAME:
        bound = owner.operands[0]
    number = constant_value(bound)
    predicate = FLOAT_PREDICATES[ir.IntegerAttr(condition.attributes["predicate"]).value]
    return predicate in ("ogt", "oge") and number is not None and not np.any(number)


SCALAR_OPS: dict[str, Emitter] = {
    **dict.fromkeys(_SAME_TYPE, lambda body, op, v: (body.unary if len(v) == 1 else body.binary)(op.name, *v)),
    **dict.fromkeys(_CASTS, lambda body, op, values: body.cast(op.name, values[0], scalar_type(op.results[0]))),
    **dict.fromkeys(_COMPARISONS, _compare),
    **dict.fromkeys(IN_FLOAT64, _transcendental),
    **dict.fromkeys(_SHIFTS, _shift),
    **dict.fromkeys(("arith.divsi", "arith.divui"), _divide),
    **dict.fromkeys(("arith.remsi", "arith.remui"), _remainder),
    "arith.extf": lambda body, op, values: WIDEN[element_of(op.operands[0].type)](body, values[0]),
    "arith.select": lambda body, op, values: body.select(*values),
    "arith.truncf": lambda body, op, values: ROUND[element_of(op.results[0].type)](body, values[0]),
    "arith.shrsi": _shift_signed,
    **dict.fromkeys(PAIRS, lambda body, op, values: emit_pair(body, op.name, *values)),
    "math.fma": lambda body, _, values: body.multiply_add(*values),
    "math.rsqrt": _rsqrt,
    "tensor.bitcast": lambda _, __, values: values[0],
}
"""By op name: ``emit(body, op, values of its operands)`` gives the value of its result."""
