"""In which precision an upstream op of the dialect `math` evaluates a transcendental function of f32 values.

Without the attribute it is a sequence of float32 operations (`qdialect.quant_math.float32`), at most one unit of the
last place from the truth.  With it the function is evaluated in float64 and rounded to float32 once, for operators
whose framework gives the nearest float32 number:

    %y = math.exp %x {qnn.in_float64} : tensor<4xf32>
"""

from __future__ import annotations

from qdialect._mlir import ir

IN_FLOAT64 = "qnn.in_float64"
"""Name of the unit attribute."""


def is_in_float64(op: ir.Operation | ir.OpView) -> bool:
    """Whether `op` evaluates its function in float64."""
    return IN_FLOAT64 in op.operation.attributes
