"""Evaluators of the element-wise upstream ops that stand between `qnn.dequantize` and `qnn.quantize`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect.constants import constant_value
from qdialect.quant_math import activations
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

_FUNCTIONS: dict[str, _Function] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.negf": np.negative,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.addi": np.add,
    "arith.select": np.where,
    "arith.sitofp": np.asarray,
    "arith.uitofp": np.asarray,
    "arith.fptosi": np.trunc,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    # The interpreter's conversion to the result's type keeps the low bits, as these two do.
    "arith.trunci": np.asarray,
    "tensor.bitcast": np.asarray,
    "math.absf": np.abs,
    "math.erf": activations.erf,
    "math.exp": activations.exp,
    "math.expm1": activations.expm1,
    "math.floor": np.floor,
    "math.log": activations.log,
    "math.rsqrt": activations.rsqrt,
    "math.sqrt": activations.sqrt,
    "math.tanh": activations.tanh,
}


def _evaluator(function: _Function) -> Callable[[Any, Arrays], Array]:
    def evaluate(_: Any, operands: Arrays) -> Array:
        with np.errstate(all="ignore"):
            return function(*operands)

    return evaluate


def _compare(op: ir.OpView, operands: Arrays) -> Array:
    lhs, rhs = operands
    predicate = ir.IntegerAttr(op.operation.attributes["predicate"]).value
    unordered = np.isnan(lhs) | np.isnan(rhs)
    if predicate in (_ORDERED_PREDICATE, _UNORDERED_PREDICATE):
        return unordered == (predicate == _UNORDERED_PREDICATE)
    if predicate in _ORDERED:
        return _ORDERED[predicate](lhs, rhs) & ~unordered
    if predicate - _TO_UNORDERED in _ORDERED:
        return _ORDERED[predicate - _TO_UNORDERED](lhs, rhs) | unordered
    return np.full(lhs.shape, predicate == _TRUE_PREDICATE)


def _constant(op: ir.OpView, _: Arrays) -> Array:
    value = constant_value(op.operation.results[0])
    if value is None:
        raise ValueError(f"arith.constant must have dense elements, but got {op.operation.attributes['value']}")
    return value


EVALUATORS.update({name: _evaluator(function) for name, function in _FUNCTIONS.items()})
EVALUATORS["arith.cmpf"] = _compare
EVALUATORS["arith.constant"] = _constant
