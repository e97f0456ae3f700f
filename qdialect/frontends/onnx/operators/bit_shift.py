"""BitShift: the bits of unsigned integers, moved; a shift by their width or more leaves none."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.registry import Call, imports, value_of
from qdialect.frontends.planning.plain import Arithmetic, binary, common_element
from qdialect.frontends.planning.tensors import Tensor

_WIDTHS = {"ui8": 8, "ui16": 16}
_OPS = {"LEFT": "arith.shli", "RIGHT": "arith.shrui"}


@imports("BitShift")
def _bit_shift(call: Call) -> Tensor:
    call.count(2)
    values, direction = [value_of(call, 0), value_of(call, 1)], call.attribute("direction", "")
    require(direction in _OPS, f"direction must be LEFT or RIGHT, but got {direction}")
    element = common_element(values, tuple(_WIDTHS))

    def build(s: Arithmetic, bits: ir.Value, amount: ir.Value) -> ir.Value:
        # More than the width is undefined in an op.
        moved = s.op(_OPS[direction], bits, s.op("arith.minui", amount, _WIDTHS[element] - 1))
        return s.select(s.compare("lt", amount, _WIDTHS[element]), moved, 0)

    return binary(call, values, element, build)
