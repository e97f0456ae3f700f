"""Upstream's element-wise ops on integers, booleans and f32 values.

Of a function whose last place TOSA leaves open, the op does not say how it is rounded: `qnn.in_float64` is dropped.
"""

from __future__ import annotations

import numpy as np

from qdialect.dialect.type_constraints import element_of
from qdialect.ir._mlir import ir
from qdialect.passes.tosa_export.builder import apply, cast, filled, select
from qdialect.passes.tosa_export.export import EXPORTERS, Export, require

_SAME = {
    "arith.addf": "add",
    "arith.maximumf": "maximum",
    "arith.minimumf": "minimum",
    "arith.mulf": "mul",
    "arith.negf": "negate",
    "arith.subf": "sub",
    "math.absf": "abs",
    "math.ceil": "ceil",
    "math.cos": "cos",
    "math.erf": "erf",
    "math.exp": "exp",
    "math.floor": "floor",
    "math.log": "log",
    "math.powf": "pow",
    "math.rsqrt": "rsqrt",
    "math.sin": "sin",
    "math.tanh": "tanh",
}
_OF_WORDS = {
    "arith.addi": "add",
    "arith.maxsi": "maximum",
    "arith.minsi": "minimum",
    "arith.muli": "mul",
    "arith.subi": "sub",
    "math.absi": "abs",
    "math.ctlz": "clz",
}
_BITS = {"arith.andi": "and", "arith.ori": "or", "arith.xori": "xor"}
# Comparison, whether operands change sides, whether the result is the opposite.
_INTEGER_PREDICATES = {
    0: ("equal", False, False),
    1: ("equal", False, True),
    2: ("greater", True, False),
    3: ("greater_equal", True, False),
    4: ("greater", False, False),
    5: ("greater_equal", False, False),
}
# The unordered ones are opposites of ordered ones.
_FLOAT_PREDICATES = {
    1: ("equal", False, False),
    2: ("greater", False, False),
    3: ("greater_equal", False, False),
    4: ("greater", True, False),
    5: ("greater_equal", True, False),
    9: ("greater_equal", True, True),
    10: ("greater", True, True),
    11: ("greater_equal", False, True),
    12: ("greater", False, True),
    13: ("equal", False, True),
}


def _operands(export: Export, op: ir.OpView) -> list[ir.Value]:
    return [export.value(operand) for operand in op.operation.operands]


def _result(op: ir.OpView) -> str:
    return element_of(op.operation.results[0].type)


EXPORTERS.register(*_SAME)(lambda export, op: apply(_SAME[op.operation.name], *_operands(export, op)))


@EXPORTERS.register(*_OF_WORDS)
def _of_words(export: Export, op: ir.OpView) -> ir.Value:
    require(_result(op) == "i32", f"must be on i32, but got {_result(op)}")
    return apply(_OF_WORDS[op.operation.name], *_operands(export, op))


@EXPORTERS.register(*_BITS)
def _bits(export: Export, op: ir.OpView) -> ir.Value:
    kind = "logical" if _result(op) == "i1" else "bitwise"
    return apply(f"{kind}_{_BITS[op.operation.name]}", *_operands(export, op))


@EXPORTERS.register("arith.divf")
def _division(export: Export, op: ir.OpView) -> ir.Value:
    """By a power of two: a product.  TOSA's reciprocal is not rounded once, and a product with it twice."""
    lhs, rhs = op.operation.operands
    divisor = export.constant(rhs, "divisor")
    fractions = np.abs(np.frexp(divisor.astype(np.float32))[0])
    found = divisor[fractions != 0.5]
    require(not found.size, f"divisor must be powers of two, since TOSA has no division, but got {found[:1]}")
    return apply("mul", export.value(lhs), np.float32(1) / divisor)


@EXPORTERS.register("arith.cmpi", "arith.cmpf")
def _comparison(export: Export, op: ir.OpView) -> ir.Value:
    predicate = ir.IntegerAttr(op.operation.attributes["predicate"]).value
    known = _FLOAT_PREDICATES if op.operation.name == "arith.cmpf" else _INTEGER_PREDICATES
    require(predicate in known, f"predicate must be a signed or an ordered comparison, but got number {predicate}")
    name, swaps, is_opposite = known[predicate]
    # Comparisons are of i32 and f32; a boolean's sign bit is its only one.
    values = _operands(export, op)
    found = element_of(values[0].type)
    require(found in ("i8", "i16", "i32", "f32"), f"operands must be i8, i16, i32 or f32, but got {found}")
    lhs, rhs = [value if element_of(value.type) == "f32" else cast(value, "i32") for value in values]
    holds = apply(name, rhs, lhs) if swaps else apply(name, lhs, rhs)
    return apply("logical_not", holds) if is_opposite else holds


EXPORTERS.register("arith.select")(lambda export, op: select(*_operands(export, op)))


@EXPORTERS.register("arith.extsi", "arith.sitofp", "arith.uitofp", "arith.extui", "arith.trunci")
def _cast(export: Export, op: ir.OpView) -> ir.Value:
    """An integer's sign is kept, a boolean is 0 or 1."""
    (value,) = _operands(export, op)
    is_boolean = element_of(value.type) == "i1"
    reads_bit = op.operation.name in ("arith.uitofp", "arith.extui")
    names = {True: "of i1", False: "of a wider integer"}
    require(is_boolean == reads_bit, f"operand must be {names[reads_bit]}, but got {element_of(value.type)}")
    if _result(op) != "i1":
        return cast(value, _result(op))
    return apply("equal", apply("bitwise_and", cast(value, "i32"), 1), 1)


@EXPORTERS.register("arith.fptosi")
def _whole(export: Export, op: ir.OpView) -> ir.Value:
    """Towards zero."""
    (value,) = _operands(export, op)
    is_negative = apply("greater", filled(0, value), value)
    return cast(select(is_negative, apply("ceil", value), apply("floor", value)), _result(op))


@EXPORTERS.register("arith.shli", "arith.shrsi", "arith.shrui")
def _shift(export: Export, op: ir.OpView) -> ir.Value:
    """By constants below the width."""
    amounts = export.constant(op.operation.operands[1], "amount")
    width = amounts.itemsize * 8
    holds = bool(((amounts >= 0) & (amounts < width)).all())
    require(holds, f"amount must be in [0, {width}), but got {amounts.min()} to {amounts.max()}")
    (value, amount), name = _operands(export, op), op.operation.name
    if name == "arith.shrsi":
        return apply("arithmetic_right_shift", value, amount, round=False)
    return apply("logical_left_shift" if name == "arith.shli" else "logical_right_shift", value, amount)
