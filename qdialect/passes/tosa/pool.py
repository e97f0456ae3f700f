"""Windows: means and maxima."""

from __future__ import annotations

from typing import Any

from qdialect._mlir import ir
from qdialect.dialect import AvgPool2DOp, MaxPool2DOp, RequantizeOp, build
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of, shape_of
from qdialect.passes.tosa import window_pool
from qdialect.passes.tosa.conversion import Conversion, converts, mode, require, window
from qdialect.passes.tosa.window_pool import Windows
from qdialect.quant_math import Division, Rounding

# Up to there TOSA's reciprocal is exact, see `qdialect.reference.pool`.
_MAX_KERNEL_ELEMENTS = 2**20
_WINDOW = ("kernel", "stride", "pad")


@converts("tosa.max_pool2d", "tosa.max_pool2d_adaptive")
def _max_pool2d(conversion: Conversion, op: ir.Operation) -> ir.Value:
    value = conversion.value(op.operands[0])
    kernel, strides, pad = _lengths(conversion, op, first_operand=1)
    element = element_of(value.type)
    if element not in ("i8", "ui8"):
        windows = _windows(op, kernel, strides, pad)
        return window_pool.maximum(value, windows, ignores_nan=mode(op, "nan_mode") == "IGNORE")
    return build(MaxPool2DOp, value, element=element, **_attributes(element, kernel, strides, pad)).output


@converts("tosa.avg_pool2d", "tosa.avg_pool2d_adaptive")
def _avg_pool2d(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """The mean lies within the range of the data; another zero point of the result moves it, and clamps."""
    value = conversion.value(op.operands[0])
    kernel, strides, pad = _lengths(conversion, op, first_operand=3)
    element = element_of(value.type)
    if element == "f32":
        return window_pool.average_floats(value, _windows(op, kernel, strides, pad))
    before, after = (
        conversion.zero_point(op.operands[1 + i], name) for i, name in enumerate(("input_zp", "output_zp"))
    )
    if element == "i16":
        return window_pool.average_integers(value, _windows(op, kernel, strides, pad), before, after)
    elements = f"kernel must have at most {_MAX_KERNEL_ELEMENTS} elements, but got {kernel[0] * kernel[1]}"
    require(kernel[0] * kernel[1] <= _MAX_KERNEL_ELEMENTS, elements)
    how: dict[str, Any] = {"division": Division.HALF_AWAY_CENTERED, "zero_point": before}
    mean = build(AvgPool2DOp, value, element=element, **_attributes(element, kernel, strides, pad), **how).output
    if before == after:
        return mean
    scale = conversion.scale(op.results[0])
    moved: dict[str, Any] = {"input_scale": scale, "output_scale": scale, "rounding": Rounding.FIXED64_UP}
    moved |= {"input_zero_points": (before,), "output_zero_point": after}
    return build(RequantizeOp, mean, element=element, **moved).output


def _lengths(conversion: Conversion, op: ir.Operation, first_operand: int) -> list[tuple[int, ...]]:
    """Kernel, strides and padding: attributes, or the last operands of a pool that is called adaptive."""
    if "kernel" in op.attributes:
        return [window(op, name) for name in _WINDOW]
    return [conversion.integers(op.operands[first_operand + i], name) for i, name in enumerate(_WINDOW)]


def _windows(op: ir.Operation, kernel: tuple[int, ...], strides: tuple[int, ...], pad: tuple[int, ...]) -> Windows:
    _, height, width, _ = shape_of(op.results[0].type)
    return Windows(kernel, strides, (pad[0], pad[2]), (height, width))


def _attributes(element: str, kernel: tuple[int, ...], strides: tuple[int, ...], pad: tuple[int, ...]) -> Any:
    low, high = ELEMENT_RANGES[element]
    top, bottom, left, right = pad
    shape = {"kernel": kernel, "strides": strides, "padding": (top, left, bottom, right)}
    return {**shape, "output_min": low, "output_max": high}
