"""Evaluators of the upstream ops that networks may have next to `qnn` ops: all but `tensor.concat` element-wise.

f32 values are float32, every operation rounded once; transcendental functions are those of kernels, or rounded from
float64 where the op is defined so (`qdialect.dialect.f32_ops`). Integers wrap; an i1 is 0 or, where it has a sign,
-1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from qdialect.arithmetic.expressions import FLOAT_FUNCTIONS, TABLE_FUNCTIONS
from qdialect.arithmetic.machine import SIGNED_FUNCTIONS, UNSIGNED_FUNCTIONS, ArrayFunction
from qdialect.dialect.constants import constant_value
from qdialect.dialect.f32_ops import is_in_float64
from qdialect.dialect.type_constraints import NUMPY_DTYPES, element_of
from qdialect.ir._mlir import ir
from qdialect.reference.evaluators import EVALUATORS, Array, Arrays

# By the number of the predicate; the unordered ones hold where an operand is NaN.
_ORDERED: dict[int, ArrayFunction] = {
    1: np.equal,
    2: np.greater,
    3: np.greater_equal,
    4: np.less,
    5: np.less_equal,
    6: np.not_equal,
}
_ORDERED_PREDICATE, _UNORDERED_PREDICATE, _TRUE_PREDICATE, _TO_UNORDERED = 7, 14, 15, 7
_INTEGER_COMPARISONS: tuple[ArrayFunction, ...] = (
    *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
    *(np.less, np.less_equal, np.greater, np.greater_equal),
)
_FIRST_UNSIGNED = 6


def _signed(x: Array) -> Array:
    return -x.astype(np.int8) if x.dtype == np.bool_ else x


def _unsigned(x: Array) -> Array:
    return x.astype(np.uint8) if x.dtype == np.bool_ else x.view(f"u{x.itemsize}")


def _evaluator(
    function: ArrayFunction, prepare: Callable[[Array], Array] = np.asarray
) -> Callable[[Any, Arrays], Array]:
    def evaluate(op: ir.OpView, operands: Arrays) -> Array:
        with np.errstate(all="ignore"):
            value = function(*(prepare(operand) for operand in operands))
        is_bit = element_of(op.operation.results[0].type) == "i1"
        return value & 1 if is_bit and value.dtype != np.bool_ else value

    return evaluate


def _float_evaluator(name: str) -> Callable[[Any, Arrays], Array]:
    in_kernel, in_float64 = _evaluator(FLOAT_FUNCTIONS[name]), _evaluator(TABLE_FUNCTIONS[name])
    return lambda op, operands: (in_float64 if is_in_float64(op) else in_kernel)(op, operands)


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


for _name in FLOAT_FUNCTIONS:
    EVALUATORS.add([_name], _float_evaluator(_name))
for _name, _function in SIGNED_FUNCTIONS.items():
    EVALUATORS.add([_name], _evaluator(_function, _signed))
for _name, _function in UNSIGNED_FUNCTIONS.items():
    EVALUATORS.add([_name], _evaluator(_function, _unsigned))
EVALUATORS.add(["arith.bitcast"], _bitcast)
EVALUATORS.add(["arith.cmpf"], _compare)
EVALUATORS.add(["arith.cmpi"], _compare_integers)
EVALUATORS.add(["arith.constant"], _constant)
EVALUATORS.add(["tensor.concat"], _concatenate)
