"""BITWISE_XOR, RIGHT_SHIFT and BITCAST: operators on the bits of numbers, whatever these stand for."""

from __future__ import annotations

import math

from qdialect._mlir import ir
from qdialect.frontends.arithmetic import Arithmetic
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import operands
from qdialect.frontends.tflite.operators.plain import check_broadcast, check_type, spread
from qdialect.frontends.tflite.operators.registry import Emission, imports

_BITS = {"i8": 8, "ui8": 8, "i16": 16, "i32": 32}
_CASTS = {
    ("f32", "i32"): "arith.bitcast",
    ("i32", "f32"): "arith.bitcast",
    ("i8", "ui8"): "tensor.bitcast",
    ("ui8", "i8"): "tensor.bitcast",
}


@imports("BITWISE_XOR", "RIGHT_SHIFT")
def _pair(operator: Operator) -> Emission:
    """A shift by more bits than there are is one by all but one, and by fewer than 0 is none."""
    sides, output = operands(operator, 2), operator.outputs[0]
    check_type((*sides, output), tuple(_BITS))
    check_broadcast(sides, output.shape)
    is_unsigned, last = output.element == "ui8", _BITS[output.element] - 1

    def emit(emitter: Emitter) -> ir.Value:
        s, signed = Arithmetic(emitter, is_unsigned), Arithmetic(emitter)
        lhs, rhs = (_signless(s, spread(emitter, emitter.value(side), output.shape)) for side in sides)
        if operator.kind == "BITWISE_XOR":
            result = s.op("arith.xori", lhs, rhs)
        else:
            count = s.op("arith.minui", rhs, last) if is_unsigned else _within(signed, rhs, last)
            result = s.op("arith.shr{s}i", lhs, count)
        return s.convert("tensor.bitcast", result, "ui8") if is_unsigned else result

    return emit


def _within(s: Arithmetic, count: ir.Value, last: int) -> ir.Value:
    return s.op("arith.minsi", s.op("arith.maxsi", count, 0), last)


def _signless(s: Arithmetic, value: ir.Value) -> ir.Value:
    return s.convert("tensor.bitcast", value, "i8") if s.is_unsigned else value


@imports("BITCAST")
def _bitcast(operator: Operator) -> Emission:
    (data,), output = operands(operator, 1), operator.outputs[0]
    types = data.element, output.element
    known = types[0] == types[1] or types in _CASTS
    require(known, f"must go between f32 and i32 or between i8 and ui8, but got {types[0]}, {types[1]}")
    found, wanted = math.prod(output.shape), math.prod(data.shape)
    require(found == wanted, f"output must have {wanted} elements, but got {found}")

    def emit(emitter: Emitter) -> ir.Value:
        value = emitter.reshape(emitter.value(data), output.shape)
        return value if types[0] == types[1] else emitter.convert(_CASTS[types], value, types[1])

    return emit
