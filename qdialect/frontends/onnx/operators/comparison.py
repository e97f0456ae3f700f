"""Comparisons, IsNaN and IsInf: booleans of numbers of any type."""

from __future__ import annotations

import math

from qdialect._mlir import ir
from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.registry import Call, imports, value_of
from qdialect.frontends.planning.plain import INTEGERS, Arithmetic, binary, common_element, unary
from qdialect.frontends.planning.tensors import Tensor

_PREDICATES = {"Equal": "eq", "Greater": "gt", "GreaterOrEqual": "ge", "Less": "lt", "LessOrEqual": "le"}


@imports(*_PREDICATES)
def _comparison(call: Call) -> Tensor:
    """Of floats no comparison with NaN holds."""
    call.count(2)
    values, predicate = [value_of(call, 0), value_of(call, 1)], _PREDICATES[call.node.kind]
    common_element(values, (*INTEGERS, "f32", *(("i1",) if predicate == "eq" else ())))
    return binary(call, values, "i1", lambda s, lhs, rhs: s.compare(predicate, lhs, rhs))


@imports("IsNaN")
def _is_nan(call: Call) -> Tensor:
    call.count(1)
    value = value_of(call, 0)
    common_element([value], ("f32",))
    return unary(call, value, "i1", lambda s, x: s.compare("ne", x, x))


@imports("IsInf")
def _is_inf(call: Call) -> Tensor:
    call.count(1)
    value = value_of(call, 0)
    common_element([value], ("f32",))
    signs = {"detect_negative": -math.inf, "detect_positive": math.inf}
    asked = [number for name, number in signs.items() if call.flag(name, 1)]
    require(bool(asked), "detect_negative and detect_positive must not both be 0")

    def build(s: Arithmetic, x: ir.Value) -> ir.Value:
        return s.compare("eq", s.op("math.absf", x) if len(asked) > 1 else x, asked[-1])

    return unary(call, value, "i1", build)
