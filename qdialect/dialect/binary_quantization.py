"""The quantization of a binary op as its attributes."""

from __future__ import annotations

from typing import Any

from qdialect.quant_math import BinaryQuantization


def attributes_of(quantization: BinaryQuantization) -> dict[str, Any]:
    """The attributes of a `BinaryOp` of this quantization, by name."""
    attributes = {"output_min": quantization.bounds[0], "output_max": quantization.bounds[1]}
    for name, own in zip(("lhs", "rhs", "output"), quantization.params, strict=True):
        attributes |= {f"{name}_scale": own.scale, f"{name}_zero_point": own.zero_point}
    return attributes
