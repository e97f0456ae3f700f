"""`qnn-to-quant-types`: moves scales and zero points from attributes into types of upstream's `quant` dialect."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from qdialect.dialect import DequantizeOp, QnnOp, QuantizeOp
from qdialect.ir._mlir import ir
from qdialect.ir.context import functions
from qdialect.passes.quant_types import annotate, cast, quantized, quantized_type, storage_of
from qdialect.passes.registry import Pass, register

_KEPT = ("axis", "rounding", "scaling", "nan")


@register
@dataclass(frozen=True)
class ToQuantTypes(Pass):
    """Write scales and zero points into `!quant.uniform` types.

    Arguments and results with `qnn.scale` and `qnn.zero_point` take quantized types instead.  `qnn.quantize` becomes
    `quant.qcast`, `qnn.dequantize` `quant.dcast`; parameters that their types cannot express stay attributes
    (`qnn.rounding`).  The results of other ops that know their quantization pass through a `quant.scast` to its type
    and back, so that a tool which reads types sees it at every such value.

    The ops themselves stay on integers, with all their attributes: the attributes of a `qnn` op define it completely,
    ops that are defined in Python cannot take part in type conversion, and the intermediate stages of a kernel have
    parameters but are not values with a type.  `quant.scast` takes signless integers, so `ui8` passes through
    `tensor.bitcast`. `qnn-from-quant-types` converts back to the same module.

    Parameters that no such type can express stay attributes: zero points outside the storage type, fewer scales than
    zero points or the other way round, a scale below float32's normal numbers.
    """

    name: ClassVar[str] = "qnn-to-quant-types"
    dependent_dialects = ("quant",)

    def run(self, module: ir.Module) -> None:
        with module.context, ir.Location.unknown():
            for function in functions(module):
                if len(function.regions[0].blocks) == 1:
                    _convert(function)


def _convert(function: ir.Operation) -> None:
    block = function.regions[0].blocks[0]
    operations = [op.operation for op in block.operations]
    for op, following in pairwise(operations):
        with ir.InsertionPoint(following), op.location:
            _convert_op(op)
    last = operations[-1]
    with ir.InsertionPoint(last), last.location:
        for index, type_ in _interface(function, "res_attrs", [value.type for value in last.operands]).items():
            last.operands[index] = _typed(last.operands[index], type_)
    arguments = list(block.arguments)
    with ir.InsertionPoint.at_block_begin(block):
        for index, type_ in _interface(function, "arg_attrs", [value.type for value in arguments]).items():
            _retype(arguments[index], type_)
    types = ir.FunctionType.get([value.type for value in arguments], [value.type for value in last.operands])
    function.attributes["function_type"] = ir.TypeAttr.get(types)


def _convert_op(op: ir.Operation) -> None:
    view = op.opview
    if isinstance(view, QuantizeOp):
        type_ = quantized_type(view.output.type, view.scales, view.zero_points, view.axis)
        if type_ is not None:
            _replace(op, storage_of(_cast_with_attributes("quant.qcast", op, view.input, type_, _KEPT)))
    elif isinstance(view, DequantizeOp):
        type_ = quantized_type(view.input.type, view.scales, view.zero_points, view.axis)
        if type_ is not None:
            values = _typed(view.input, type_)
            _replace(op, _cast_with_attributes("quant.dcast", op, values, view.output.type, _KEPT[:1]))
    elif isinstance(view, QnnOp):
        _show(view)


def _cast_with_attributes(
    name: str, op: ir.Operation, value: ir.Value, type_: ir.Type, kept: tuple[str, ...]
) -> ir.Value:
    result = cast(name, value, type_)
    for key, attribute in op.attributes.items():
        if key in kept or "." in key:
            annotate(result, key if "." in key else f"qnn.{key}", attribute)
    return result


def _replace(op: ir.Operation, value: ir.Value) -> None:
    op.results[0].replace_all_uses_with(value)
    op.erase()


def _show(op: QnnOp) -> None:
    """Let the users of the result see its quantized type on the way."""
    values = op.attribute_values()
    result = op.operation.results[0]
    if "output_scale" not in values or "output_zero_point" not in values:
        return
    type_ = quantized_type(result.type, [values["output_scale"]], [values["output_zero_point"]])
    if type_ is None or next(iter(result.uses), None) is None:
        return
    users = [(use.owner.operation, use.operand_number) for use in result.uses]
    values = storage_of(quantized(result, type_))
    for user, index in users:
        user.operands[index] = values


def _typed(values: ir.Value, type_: ir.Type) -> ir.Value:
    """The quantized values as a value of `type_`: the operand of their cast, if it has that type."""
    value = values
    while isinstance(value.owner, ir.Operation | ir.OpView) and value.owner.name in ("tensor.bitcast", "quant.scast"):
        value = value.owner.operation.operands[0]
        if value.type == type_:
            return value
    return quantized(values, type_)


def _retype(argument: ir.Value, type_: ir.Type) -> None:
    users = [(use.owner.operation, use.operand_number) for use in argument.uses]
    ir.BlockArgument(argument).set_type(type_)
    if not users:
        return
    values = storage_of(argument)
    for user, index in users:
        user.operands[index] = values


def _interface(function: ir.Operation, name: str, types: list[ir.Type]) -> dict[int, ir.Type]:
    """The quantized types that the attributes of an interface give; their attributes are taken off."""
    if name not in function.attributes:
        return {}
    found: dict[int, ir.Type] = {}
    kept: list[ir.DictAttr] = []
    for index, (attribute, type_) in enumerate(zip(ir.ArrayAttr(function.attributes[name]), types, strict=True)):
        notes = {named.name: named.attr for named in ir.DictAttr(attribute)}
        if "qnn.scale" in notes and "qnn.zero_point" in notes:
            scale, zero_point = ir.FloatAttr(notes["qnn.scale"]).value, ir.IntegerAttr(notes["qnn.zero_point"]).value
            quantized_ = quantized_type(type_, [scale], [zero_point])
            if quantized_ is not None:
                found[index] = quantized_
                del notes["qnn.scale"], notes["qnn.zero_point"]
        kept.append(ir.DictAttr.get(notes))
    function.attributes[name] = ir.ArrayAttr.get(kept)
    return found
