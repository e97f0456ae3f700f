"""Types of `tosa` values as those of `qnn`: quantized element types become what they are stored in."""

from __future__ import annotations

from qdialect._mlir import ir, quant


def is_quantized(type_: ir.Type) -> bool:
    """Whether it is a tensor of a quantized element type."""
    return isinstance(type_, ir.RankedTensorType) and isinstance(type_.element_type, quant.QuantizedType)


def storage_type(type_: ir.Type) -> ir.Type:
    """The tensor type of the codes: `ui8` where a quantized type stores unsigned ones; other types stay."""
    if not isinstance(type_, ir.RankedTensorType) or not isinstance(type_.element_type, quant.QuantizedType):
        return type_
    element = type_.element_type
    width = element.storage_type_integral_width
    stored = ir.IntegerType.get_signless(width) if element.is_signed else ir.IntegerType.get_unsigned(width)
    return ir.RankedTensorType.get(list(type_.shape), stored)


def parameters_of(type_: ir.Type) -> tuple[float, int] | None:
    """Scale and zero point of a tensor that is quantized as a whole."""
    if not isinstance(type_, ir.RankedTensorType) or not isinstance(type_.element_type, quant.UniformQuantizedType):
        return None
    return type_.element_type.scale, type_.element_type.zero_point
