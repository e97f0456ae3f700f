"""Quantization and dequantization by a scale that no integer arithmetic can hold, in plain float32 arithmetic.

Masks of attention are the smallest float32 numbers, whose quantizer writes scales around 1e36, or -inf, whose quantizer
writes infinite ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect.attribute_kinds import is_scale
from qdialect.dialect.type_constraints import ELEMENT_RANGES, NARROW_ELEMENTS
from qdialect.frontends.common import require
from qdialect.frontends.planning.emitter import Value
from qdialect.frontends.planning.plain import Arithmetic, Site, unary
from qdialect.frontends.planning.tensors import Computed, Constant, Tensor
from qdialect.quant_math.choices import Scaling


@dataclass(frozen=True, eq=False)
class PlainlyDequantized(Computed):
    """F32 values with what they are computed from."""

    quantized_values: Value
    scale: float
    zero_point: int


def wide_scale_of(tensor: Tensor) -> float | None:
    """A tensor where it is one scale that is a number, but none of the dialect's."""
    scale = unbounded_scale_of(tensor)
    return scale if scale is not None and math.isfinite(scale) else None


def unbounded_scale_of(tensor: Tensor) -> float | None:
    """As `wide_scale_of`, with infinity and NaN too, of which float32 arithmetic makes what it makes."""
    if not isinstance(tensor, Constant) or tensor.array.size != 1 or tensor.array.dtype.kind != "f":
        return None
    scale = float(tensor.array.ravel()[0])
    return None if scale <= 0 or is_scale(scale) else scale


def plainly_quantized(
    call: Site, value: Value, element: str, scale: float, zero_point: int, scaling: Scaling = Scaling.DIVIDE
) -> Value:
    """``round(x / scale) + zero_point`` to even, within the range of `element`; NaN is the smallest.

    With the scaling by reciprocals ``x * (1 / scale)`` is rounded.
    """
    require(element in NARROW_ELEMENTS, f"output must be {' or '.join(NARROW_ELEMENTS)}, but got {element}")
    low, high = (bound - zero_point for bound in ELEMENT_RANGES[element])

    def build(s: Arithmetic, x: ir.Value) -> ir.Value:
        is_product = scaling is Scaling.RECIPROCAL
        scaled = s.op("arith.mulf", x, 1 / scale) if is_product else s.op("arith.divf", x, scale)
        rounded = s.op("math.roundeven", scaled)
        raised = s.select(s.compare("gt", rounded, low), rounded, float(low))
        limited = s.select(s.compare("lt", raised, high), raised, float(high))
        whole = s.op("arith.addi", s.convert("arith.fptosi", limited, "i32"), zero_point)
        return s.resize(whole, element.removeprefix("u"))

    return unary(call, value, element, build)


def plainly_dequantized(call: Site, value: Value, scale: float, zero_point: int) -> Tensor:
    """``(q - zero_point) * scale``."""
    if value.data is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            return Constant((value.data.astype(np.int32) - zero_point).astype(np.float32) * np.float32(scale))

    def build(s: Arithmetic, x: ir.Value) -> ir.Value:
        offset = s.op("arith.subi", s.resize(x, "i32"), zero_point)
        return s.op("arith.mulf", s.convert("arith.sitofp", offset, "f32"), scale)

    return PlainlyDequantized(value.shape, unary(call, value, "f32", build), value, scale, zero_point)
