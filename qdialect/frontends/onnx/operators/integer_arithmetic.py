"""Arithmetic of integers that stand for themselves: it wraps around, and quotients are cut towards zero.

A quotient by zero, for which ONNX Runtime ends the process, is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from qdialect._mlir import ir
from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.registry import Call, imports_integers, value_of
from qdialect.frontends.planning.plain import INTEGERS, Arithmetic, OfOne, binary, common_element, elementwise, unary
from qdialect.frontends.planning.tensors import Constant, Tensor, known_array

_BINARY = {"Add": "arith.addi", "Sub": "arith.subi", "Mul": "arith.muli", "Div": "arith.div{s}i"}
_OF_MANY = {"Max": "arith.max{s}i", "Min": "arith.min{s}i", "Sum": "arith.addi"}


def _sign(s: Arithmetic, x: ir.Value) -> ir.Value:
    return s.op("arith.min{s}i", s.op("arith.max{s}i", x, -1), 1)


_UNARY: dict[str, OfOne] = {
    "Abs": lambda s, x: s.op("math.absi", x),
    "Neg": lambda s, x: s.op("arith.addi", s.op("arith.xori", x, -1), 1),
    "Sign": _sign,
}


@imports_integers(*_BINARY)
def _of_two(call: Call) -> Tensor:
    call.count(2)
    values, name = [value_of(call, 0), value_of(call, 1)], _BINARY[call.node.kind]
    return binary(call, values, common_element(values, INTEGERS), lambda s, lhs, rhs: s.op(name, lhs, rhs))


@imports_integers(*_OF_MANY)
def _of_many(call: Call) -> Tensor:
    values, name = [value_of(call, index) for index in range(len(call.inputs))], _OF_MANY[call.node.kind]
    element = common_element(values, INTEGERS)
    return elementwise(call, values, element, lambda s, x: reduce(lambda lhs, rhs: s.op(name, lhs, rhs), x))


@imports_integers(*_UNARY)
def _of_one(call: Call) -> Tensor:
    call.count(1)
    value = value_of(call, 0)
    require(not value.element.startswith("u"), f"input 0 must be signed, but got {value.element}")
    return unary(call, value, common_element([value], INTEGERS), _UNARY[call.node.kind])


def clipped_integers(call: Call) -> Tensor:
    """Input 0 between inputs 1 and 2, integers of its type, each where it is given; the upper bound wins."""
    bounds = [(name, index) for name, index in (("arith.max{s}i", 1), ("arith.min{s}i", 2)) if call.optional(index)]
    values = [value_of(call, index) for index in (0, *(index for _, index in bounds))]
    element = common_element(values, INTEGERS)
    for value in values[1:]:
        require(math.prod(value.shape) == 1, f"bounds must have 1 element, but got {list(value.shape)}")
    known = [known_array(call.tensor(index)) for index in (0, *(index for _, index in bounds))]
    arrays = [array for array in known if array is not None]
    if len(arrays) == len(known):
        lower, upper = (known_array(call.optional(index)) for index in (1, 2))
        return Constant(np.clip(arrays[0], lower, upper).reshape(arrays[0].shape))

    def build(s: Arithmetic, operands: Sequence[ir.Value]) -> ir.Value:
        found, *limits = operands
        for (name, _), limit in zip(bounds, limits, strict=True):
            found = s.op(name, found, limit)
        return found

    return elementwise(call, values, element, build)


@imports_integers("Mod")
def _mod(call: Call) -> Tensor:
    """The remainder has the sign of the divisor, with fmod that of the dividend."""
    call.count(2)
    values, keeps_sign = [value_of(call, 0), value_of(call, 1)], call.flag("fmod", 0)
    element = common_element(values, INTEGERS)

    def build(s: Arithmetic, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        rest = s.op("arith.rem{s}i", lhs, rhs)
        if keeps_sign or element.startswith("u"):
            return rest
        differs = s.compare("lt", s.op("arith.xori", rest, rhs), 0)
        is_other = s.op("arith.andi", s.compare("ne", rest, 0), differs)
        return s.select(is_other, s.op("arith.addi", rest, rhs), rest)

    return binary(call, values, element, build)
