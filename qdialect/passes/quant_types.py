"""`!quant.uniform` types: storage types, parameters, and casts between stored integers and values of such types."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect.arithmetic import QuantParams
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of, shape_of
from qdialect.ir._mlir import ir, quant

# What float32, the type that quantized values express, holds without loss.
_MIN_SCALE = 2.0**-126
_SIGNED = 1


def is_quantized(type_: ir.Type) -> bool:
    """Whether it is a tensor of a quantized element type."""
    return isinstance(type_, ir.RankedTensorType) and isinstance(type_.element_type, quant.QuantizedType)


def element_type_of(type_: ir.Type) -> quant.QuantizedType | None:
    """The quantized element type of a tensor; None for other types."""
    if not isinstance(type_, ir.RankedTensorType) or not isinstance(type_.element_type, quant.QuantizedType):
        return None
    return type_.element_type


def storage_type(type_: ir.Type) -> ir.Type:
    """The tensor type of the quantized values: `ui8` where a quantized type stores unsigned ones; other types stay."""
    element = element_type_of(type_)
    if element is None:
        return type_
    width = element.storage_type_integral_width
    stored = ir.IntegerType.get_signless(width) if element.is_signed else ir.IntegerType.get_unsigned(width)
    return ir.RankedTensorType.get(list(shape_of(type_)), stored)


def parameters_of(type_: ir.Type) -> QuantParams | None:
    """Scale and zero point of a tensor that is quantized per tensor."""
    element = element_type_of(type_)
    return QuantParams(element.scale, element.zero_point) if isinstance(element, quant.UniformQuantizedType) else None


def quantized_type(
    values: ir.Type, scales: Sequence[float], zero_points: Sequence[int], axis: int = 0
) -> ir.Type | None:
    """The quantized type that stores `values`, per-tensor for one scale; None where MLIR cannot express it."""
    element = element_of(values)
    if element not in ELEMENT_RANGES or len(scales) != len(zero_points):
        return None
    low, high = ELEMENT_RANGES[element]
    if min(scales) < _MIN_SCALE or not low <= min(zero_points) <= max(zero_points) <= high:
        return None
    storage = ir.IntegerType.get_signless(ir.IntegerType(ir.RankedTensorType(values).element_type).width)
    of = (0 if element.startswith("u") else _SIGNED, storage, ir.F32Type.get())
    element_type: ir.Type
    if len(scales) == 1:
        element_type = quant.UniformQuantizedType.get(*of, scales[0], zero_points[0], low, high)
    else:
        element_type = quant.UniformQuantizedPerAxisType.get(*of, list(scales), list(zero_points), axis, low, high)
    return ir.RankedTensorType.get(list(shape_of(values)), element_type)


def quantized(values: ir.Value, type_: ir.Type) -> ir.Value:
    """`quantized values` as a value of a quantized type; `quant.scast` takes signless integers alone."""
    return cast("quant.scast", signless(values), type_)


def storage_of(value: ir.Value) -> ir.Value:
    """The quantized values of a quantized value."""
    values = storage_type(value.type)
    return cast("tensor.bitcast", cast("quant.scast", value, _signless_type(values)), values)


def signless(value: ir.Value) -> ir.Value:
    """Unsigned integers as signless ones of the same bits; others stay."""
    return cast("tensor.bitcast", value, _signless_type(value.type))


def cast(name: str, value: ir.Value, type_: ir.Type) -> ir.Value:
    """`value` through the cast `name`, at the current insertion point; itself where it has the type."""
    if value.type == type_:
        return value
    return ir.Operation.create(name, results=[type_], operands=[value]).results[0]


def annotate(value: ir.Value, name: str, attribute: ir.Attribute) -> None:
    """Write an attribute on the op that gives `value`."""
    if isinstance(value.owner, ir.Operation | ir.OpView):
        value.owner.attributes[name] = attribute


def _signless_type(type_: ir.Type) -> ir.Type:
    width = ir.IntegerType(ir.RankedTensorType(type_).element_type).width
    return ir.RankedTensorType.get(list(shape_of(type_)), ir.IntegerType.get_signless(width))


def interface_with_parameters(function: ir.Operation, name: str, types: Sequence[ir.Type]) -> ir.ArrayAttr:
    """`arg_attrs` or `res_attrs` of a function with the `qnn.scale` and `qnn.zero_point` that `types` give."""
    known: Sequence[ir.Attribute] = [ir.DictAttr.get({})] * len(types)
    if name in function.attributes:
        known = list(ir.ArrayAttr(function.attributes[name]))
    pairs = zip(known, types, strict=True)
    return ir.ArrayAttr.get([_with_parameters(ir.DictAttr(one), type_) for one, type_ in pairs])


def _with_parameters(attributes: ir.DictAttr, type_: ir.Type) -> ir.DictAttr:
    parameters = parameters_of(type_)
    if parameters is None:
        return attributes
    found = {named.name: named.attr for named in attributes}
    found["qnn.scale"] = ir.FloatAttr.get(ir.F64Type.get(), parameters.scale)
    found["qnn.zero_point"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), parameters.zero_point)
    return ir.DictAttr.get(found)
