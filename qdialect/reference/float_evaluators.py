"""Evaluators of upstream ops, what a network computes beside `qnn` ops: all but `tensor.concat` element-wise.

f32 values are float32, every operation rounded once. Integers wrap; an i1 is 0 or, where it has a sign, -1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import NUMPY_DTYPES, element_of
from qdialect.quant_math import FloatRounding, activations, round_f32
from qdialect.reference.evaluators import EVALUATORS, Array, Arrays

_Function = Callable[..., Array]

# By the number of the predicate; the unordered ones hold where an operand is NaN.
_ORDERED: dict[int, _Function] = {
    1: np.equal,
    2: np.greater,
    3: np.greater_equal,
    4: np.less,
    5: np.less_equal,
    6: np.not_equal,
}
_ORDERED_PREDICATE, _UNORDERED_PREDICATE, _TRUE_PREDICATE, _TO_UNORDERED = 7, 14, 15, 7
_INTEGER_COMPARISONS: tuple[_Function, ...] = (
    *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
    *(np.less, np.less_equal, np.greater, np.greater_equal),
)
_FIRST_UNSIGNED = 6


def _larger(x: Array, y: Array) -> Array:
    """IEEE 754 maximum: NaN where an operand is, and plus zero is larger than minus zero."""
    return np.where((x == 0) & (y == 0), x + y, np.maximum(x, y))


def _smaller(x: Array, y: Array) -> Array:
    return -_larger(-x, -y)


def _larger_number(x: Array, y: Array) -> Array:
    """As `_larger`, but the other operand where one is NaN."""
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, _larger(x, y)))


def _smaller_number(x: Array, y: Array) -> Array:
    return -_larger_number(-x, -y)


def _half_away(x: Array) -> Array:
    return round_f32(x, FloatRounding.HALF_AWAY)


def _truncated_quotient(x: Array, y: Array) -> Array:
    """x / y rounded towards zero, where NumPy's rounds down."""
    return x // y + ((x % y != 0) & ((x < 0) != (y < 0)))


def _raised_quotient(x: Array, y: Array) -> Array:
    return x // y + (x % y != 0)


def _as_unsigned_integer(x: Array) -> Array:
    """The whole part of a float, whose low bits the interpreter's conversion to the result's type keeps."""
    return np.where(x < 2.0**63, np.trunc(x).astype(np.int64).view(np.uint64), np.trunc(x).astype(np.uint64))


def _signed(x: Array) -> Array:
    return -x.astype(np.int8) if x.dtype == np.bool_ else x


def _unsigned(x: Array) -> Array:
    return x.astype(np.uint8) if x.dtype == np.bool_ else x.view(f"u{x.itemsize}")


FLOAT_FUNCTIONS: Mapping[str, _Function] = {
    "arith.addf": np.add,
    "arith.andi": np.bitwise_and,
    "arith.divf": np.divide,
    "arith.fptosi": np.trunc,
    "arith.fptoui": _as_unsigned_integer,
    "arith.maximumf": _larger,
    "arith.maxnumf": _larger_number,
    "arith.minimumf": _smaller,
    "arith.minnumf": _smaller_number,
    "arith.mulf": np.multiply,
    "arith.negf": np.negative,
    "arith.ori": np.bitwise_or,
    "arith.select": np.where,
    "arith.subf": np.subtract,
    "arith.xori": np.bitwise_xor,
    "math.absf": np.abs,
    "math.absi": np.abs,
    "math.ceil": np.ceil,
    "math.copysign": np.copysign,
    "math.erf": activations.erf,
    "math.exp": activations.exp,
    "math.exp2": activations.exp2,
    "math.expm1": activations.expm1,
    "math.floor": np.floor,
    "math.log": activations.log,
    "math.log10": activations.log10,
    "math.log1p": activations.log1p,
    "math.log2": activations.log2,
    "math.powf": activations.power,
    "math.round": _half_away,
    "math.roundeven": np.rint,
    "math.rsqrt": activations.rsqrt,
    "math.sqrt": activations.sqrt,
    "math.tanh": activations.tanh,
    "math.trunc": np.trunc,
    "tensor.bitcast": np.asarray,
}
"""Element-wise ops on floats by their names; those on bits stand among them."""
_ON_SIGNED: dict[str, _Function] = {
    "arith.addi": np.add,
    "arith.ceildivsi": _raised_quotient,
    "arith.divsi": _truncated_quotient,
    "arith.floordivsi": np.floor_divide,
    "arith.extsi": np.asarray,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.muli": np.multiply,
    "arith.remsi": np.fmod,
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
    "arith.sitofp": np.asarray,
    "arith.subi": np.subtract,
    # The interpreter's conversion to the result's type keeps the low bits.
    "arith.trunci": np.asarray,
}
_ON_UNSIGNED: dict[str, _Function] = {
    "arith.ceildivui": _raised_quotient,
    "arith.divui": np.floor_divide,
    "arith.extui": np.asarray,
    "arith.maxui": np.maximum,
    "arith.minui": np.minimum,
    "arith.remui": np.remainder,
    "arith.shrui": np.right_shift,
    "arith.uitofp": np.asarray,
}


def _evaluator(function: _Function, prepare: Callable[[Array], Array] = np.asarray) -> Callable[[Any, Arrays], Array]:
    def evaluate(op: ir.OpView, operands: Arrays) -> Array:
        with np.errstate(all="ignore"):
            value = function(*(prepare(operand) for operand in operands))
        is_bit = element_of(op.operation.results[0].type) == "i1"
        return value & 1 if is_bit and value.dtype != np.bool_ else value

    return evaluate


def _compare(op: ir.OpView, operands: Arrays) -> Array:
    lhs, rhs = operands
    predicate = _predicate(op)
    unordered = np.isnan(lhs) | np.isnan(rhs)
    if predicate in (_ORDERED_PREDICATE, _UNORDERED_PREDICATE):
        return unordered == (predicate == _UNORDERED_PREDICATE)
    if predicate in _ORDERED:
        return _ORDERED[predicate](lhs, rhs) & ~unordered
    if predicate - _TO_UNORDERED in _ORDERED:
        return _ORDERED[predicate - _TO_UNORDERED](lhs, rhs) | unordered
    return np.full(lhs.shape, predicate == _TRUE_PREDICATE)


def _compare_integers(op: ir.OpView, operands: Arrays) -> Array:
    predicate = _predicate(op)
    prepare = _signed if predicate < _FIRST_UNSIGNED else _unsigned
    return _INTEGER_COMPARISONS[predicate](*(prepare(operand) for operand in operands))


def _predicate(op: ir.OpView) -> int:
    return ir.IntegerAttr(op.operation.attributes["predicate"]).value


def _bitcast(op: ir.OpView, operands: Arrays) -> Array:
    return operands[0].view(NUMPY_DTYPES[element_of(op.operation.results[0].type)])


def _concatenate(op: ir.OpView, operands: Arrays) -> Array:
    return np.concatenate(operands, axis=ir.IntegerAttr(op.operation.attributes["dim"]).value)


def _constant(op: ir.OpView, _: Arrays) -> Array:
    value = constant_value(op.operation.results[0])
    if value is None:
        raise ValueError(f"arith.constant must have dense elements, but got {op.operation.attributes['value']}")
    return value


for _name, _function in FLOAT_FUNCTIONS.items():
    EVALUATORS.add([_name], _evaluator(_function))
for _name, _function in _ON_SIGNED.items():
    EVALUATORS.add([_name], _evaluator(_function, _signed))
for _name, _function in _ON_UNSIGNED.items():
    EVALUATORS.add([_name], _evaluator(_function, _unsigned))
EVALUATORS.add(["arith.bitcast"], _bitcast)
EVALUATORS.add(["arith.cmpf"], _compare)
EVALUATORS.add(["arith.cmpi"], _compare_integers)
EVALUATORS.add(["arith.constant"], _constant)
EVALUATORS.add(["tensor.concat"], _concatenate)
