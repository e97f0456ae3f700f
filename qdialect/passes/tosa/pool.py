"""Windows: means and maxima."""

from __future__ import annotations

from typing import Any

from qdialect._mlir import ir
from qdialect.dialect import AvgPool2DOp, MaxPool2DOp, RequantizeOp, build
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of
from qdialect.passes.tosa.conversion import Conversion, converts, padding, require, window
from qdialect.quant_math import Division, Rounding

# Up to there TOSA's reciprocal is exact, see `qdialect.reference.pool`.
_MAX_KERNEL_ELEMENTS = 2**20


@converts("tosa.max_pool2d")
def _max_pool2d(conversion: Conversion, op: ir.Operation) -> ir.Value:
    value = conversion.value(op.operands[0])
    return build(MaxPool2DOp, value, element=element_of(value.type), **_window(conversion, op, value)).output


@converts("tosa.avg_pool2d")
def _avg_pool2d(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """The mean lies within the range of the data; another zero point of the result moves it, and clamps."""
    value = conversion.value(op.operands[0])
    before, after = (
        conversion.zero_point(op.operands[1 + i], name) for i, name in enumerate(("input_zp", "output_zp"))
    )
    height, width = window(op, "kernel")
    elements = f"kernel must have at most {_MAX_KERNEL_ELEMENTS} elements, but got {height * width}"
    require(height * width <= _MAX_KERNEL_ELEMENTS, elements)
    element = element_of(value.type)
    how: dict[str, Any] = {"division": Division.HALF_AWAY_CENTERED, "zero_point": before}
    mean = build(AvgPool2DOp, value, element=element, **_window(conversion, op, value), **how).output
    if before == after:
        return mean
    scale = conversion.scale(op.results[0])
    moved: dict[str, Any] = {"input_scale": scale, "output_scale": scale, "rounding": Rounding.FIXED64_UP}
    moved |= {"input_zero_points": (before,), "output_zero_point": after}
    return build(RequantizeOp, mean, element=element, **moved).output


def _window(conversion: Conversion, op: ir.Operation, value: ir.Value) -> dict[str, Any]:
    element = element_of(value.type)
    require(element in ("i8", "ui8"), f"must be on 8-bit quantized values, but got {element}")
    low, high = ELEMENT_RANGES[element]
    shape = {"kernel": window(op, "kernel"), "strides": window(op, "stride"), "padding": padding(op)}
    return {**shape, "output_min": low, "output_max": high}
