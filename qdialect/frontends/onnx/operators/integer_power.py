"""Pow where a base or an exponent is integers; the exponent of integers must be known."""

from __future__ import annotations

import numpy as np

from qdialect._mlir import ir
from qdialect.frontends.common import require
from qdialect.frontends.onnx.operators.registry import Call, imports_integers, value_of
from qdialect.frontends.planning.plain import Arithmetic, common_element, tensor_of, unary
from qdialect.frontends.planning.tensors import Tensor


@imports_integers("Pow")
def _power(call: Call) -> Tensor:
    """The type is that of the base; products wrap around."""
    call.count(2)
    value, exponent = value_of(call, 0), call.number(1)
    common_element([value], ("i32", "i64"))
    is_whole = exponent.is_integer() and 0 <= exponent < np.iinfo(np.int32).max
    require(is_whole, f"exponent of integers must be a whole number of at least 0, but got {exponent}")

    def build(s: Arithmetic, x: ir.Value) -> ir.Value:
        """By squaring: one product for each bit, and one for each bit that is 1."""
        found: ir.Value | None = None
        for bit in f"{int(exponent):b}":
            squared = None if found is None else s.op("arith.muli", found, found)
            found = squared if bit == "0" else x if squared is None else s.op("arith.muli", squared, x)
        return s.op("arith.ori", s.op("arith.andi", x, 0), 1) if found is None else found

    return tensor_of(unary(call, value, value.element, build))
