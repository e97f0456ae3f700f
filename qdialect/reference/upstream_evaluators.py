"""Evaluators of the upstream ops that networks may have next to `qnn` ops: all but `tensor.concat` element-wise.

f32 values are float32, every operation rounded once; transcendental functions are those of kernels, or rounded from
float64 where the op is defined so (`qdialect.dialect.f32_ops`). Integers wrap; an i1 is 0 or, where it has a sign,
-1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from qdialect.arithmetic import machine
from qdialect.arithmetic.expressions import FLOAT_FUNCTIONS
from qdialect.arithmetic.transcendental import OF_LIBRARY, evaluate
from qdialect.dialect.constants import constant_value
from qdialect.dialect.f32_ops import is_in_float64
from qdialect.dialect.type_constraints import NUMPY_DTYPES, element_of
from qdialect.ir._mlir import ir
from qdialect.reference.evaluators import EVALUATORS, Array, Arrays


def _signed(x: Array) -> Array:
    return -x.astype(np.int8) if x.dtype == np.bool_ else x


def _unsigned(x: Array) -> Array:
    return x.astype(np.uint8) if x.dtype == np.bool_ else x.view(f"u{x.itemsize}")


def _evaluator(
    function: machine.ArrayFunction, prepare: Callable[[Array], Array] = np.asarray
) -> Callable[[Any, Arrays], Array]:
    def evaluate(op: ir.OpView, operands: Arrays) -> Array:
        with np.errstate(all="ignore"):
            value = function(*(prepare(operand) for operand in operands))
        is_bit = element_of(op.operation.results[0].type) == "i1"
        return value & 1 if is_bit and value.dtype != np.bool_ else value

    return evaluate


def _float_evaluator(name: str) -> Callable[[Any, Arrays], Array]:
    in_kernel = _evaluator(FLOAT_FUNCTIONS[name])
    if name not in OF_LIBRARY:
        return in_kernel
    in_float64 = _evaluator(partial(evaluate, OF_LIBRARY[name]))
    return lambda op, operands: (in_float64 if is_in_float64(op) else in_kernel)(op, operands)


def _compare(op: ir.OpView, operands: Arrays) -> Array:
    names = machine.FLOAT_PREDICATES if op.operation.name == "arith.cmpf" else machine.INTEGER_PREDICATES
    predicate = names[ir.IntegerAttr(op.operation.attributes["predicate"]).value]
    return machine.NUMPY.compare(predicate, *(_signed(operand) for operand in operands))


def _constant(op: ir.OpView, _: Arrays) -> Array:
    value = constant_value(op.operation.results[0])
    if value is None:
        raise ValueError(f"arith.constant must have dense elements, but got {op.operation.attributes['value']}")
    return value


for _name in FLOAT_FUNCTIONS:
    EVALUATORS.add([_name], _float_evaluator(_name))
for _name, _function in machine.SIGNED_FUNCTIONS.items():
    EVALUATORS.add([_name], _evaluator(_function, _signed))
for _name, _function in machine.UNSIGNED_FUNCTIONS.items():
    EVALUATORS.add([_name], _evaluator(_function, _unsigned))
EVALUATORS.add(["arith.bitcast"], lambda op, x: x[0].view(NUMPY_DTYPES[element_of(op.operation.results[0].type)]))
EVALUATORS.add(["arith.cmpf", "arith.cmpi"], _compare)
EVALUATORS.add(["arith.constant"], _constant)
EVALUATORS.add(["tensor.concat"], lambda op, x: np.concatenate(x, ir.IntegerAttr(op.operation.attributes["dim"]).value))
