"""POW of f32 values."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.passes.tosa.conversion import Conversion, converts
from qdialect.passes.tosa.integers import operands_of_result
from qdialect.passes.tosa.upstream import apply


@converts("tosa.pow")
def _power(conversion: Conversion, op: ir.Operation) -> ir.Value:
    return apply("math.powf", *operands_of_result(conversion, op, 2))
