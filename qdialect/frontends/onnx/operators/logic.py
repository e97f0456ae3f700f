"""And, Or, Xor and Not of booleans, and the same of the bits of integers."""

from __future__ import annotations

from qdialect.frontends.onnx.operators.plain import INTEGERS, binary, common_element, unary, value_of
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.tensors import Tensor

_OPS = {"And": "arith.andi", "Or": "arith.ori", "Xor": "arith.xori"}


def _elements(call: Call) -> tuple[str, ...]:
    return INTEGERS if call.node.kind.startswith("Bitwise") else ("i1",)


@imports(*_OPS, *(f"Bitwise{kind}" for kind in _OPS))
def _logic(call: Call) -> Tensor:
    call.count(2)
    values, name = [value_of(call, 0), value_of(call, 1)], _OPS[call.node.kind.removeprefix("Bitwise")]
    element = common_element(values, _elements(call))
    return binary(call, values, element, lambda s, lhs, rhs: s.op(name, lhs, rhs))


@imports("Not", "BitwiseNot")
def _not(call: Call) -> Tensor:
    call.count(1)
    value = value_of(call, 0)
    element = common_element([value], _elements(call))
    ones = 1 if element == "i1" else -1
    return unary(call, value, element, lambda s, x: s.op("arith.xori", x, ones))
