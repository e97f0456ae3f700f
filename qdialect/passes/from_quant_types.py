"""`qnn-from-quant-types`: types of upstream's `quant` dialect become attributes of `qnn` ops and of interfaces."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from qdialect.arithmetic import QuantParams
from qdialect.dialect import ClipOp, DequantizeOp, QuantizeOp, ReshapeOp, TransposeOp, build
from qdialect.dialect.type_constraints import ELEMENT_RANGES, element_of, shape_of
from qdialect.ir._mlir import ir, quant
from qdialect.ir.context import functions, note_at
from qdialect.passes import quant_types
from qdialect.passes.pattern import apply_patterns
from qdialect.passes.registry import Pass, register
from qdialect.support.diagnostics import Diagnostic, PassError, Severity

_CASTS = ("quant.qcast", "quant.dcast", "quant.scast")
_QUANTIZE_ATTRIBUTES = ("rounding", "scaling", "nan")


@register
@dataclass(frozen=True)
class FromQuantTypes(Pass):
    """Turn `quant.qcast`, `quant.dcast`, `quant.scast` and `!quant.uniform` types into attributes.

    `quant.qcast` becomes `qnn.quantize` (half even, unless `qnn.rounding` sets another mode), followed by a clamp where
    the storage range is narrower than its type; `quant.dcast` becomes `qnn.dequantize`, of sub-channel types with a row
    for each block, which `qnn-fuse-block-weights` reads where it is constant.  Quantized arguments and results become
    `i8`, `ui8`, `i16`, `ui16` or `i32` ones with `qnn.scale` and `qnn.zero_point`.  Storage casts are removed.

    Every other op on quantized values, a storage type that `qnn` lacks, and an argument or result quantized per axis
    are notes of one error; the module is then unchanged.
    """

    name: ClassVar[str] = "qnn-from-quant-types"
    dependent_dialects = ("quant",)

    def run(self, module: ir.Module) -> None:
        defined = [function for function in functions(module) if len(function.regions[0].blocks) == 1]
        with module.context, ir.Location.unknown():
            unsupported = tuple(one for function in defined for one in _unsupported(function))
            if unsupported:
                message = f"{self.name}: {len(unsupported)} quantized values have no counterpart in qnn"
                raise PassError(message, (Diagnostic(Severity.ERROR, message, notes=unsupported),))
            for function in defined:
                _convert(function)
            apply_patterns(module, ())


def _unsupported(function: ir.Operation) -> Iterator[Diagnostic]:
    block = function.regions[0].blocks[0]
    *body, last = [op.operation for op in block.operations]
    for op in body:
        types = [value.type for value in (*op.operands, *op.results)]
        if any(map(quant_types.is_quantized, types)) and op.name not in _CASTS:
            yield note_at(op, "takes or gives quantized values")
        for type_ in types:
            yield from _unsupported_storage(op, type_)
        if op.name in _CASTS:
            yield from _unsupported_shapes(op, types)
    for value in (*block.arguments, *last.operands):
        yield from _unsupported_storage(function, value.type)
        if quant_types.is_quantized(value.type) and quant_types.parameters_of(value.type) is None:
            yield note_at(function, f"must have an interface that is quantized per tensor, but got {value.type}")


def _unsupported_storage(op: ir.Operation, type_: ir.Type) -> Iterator[Diagnostic]:
    if quant_types.is_quantized(type_) and element_of(quant_types.storage_type(type_)) not in ELEMENT_RANGES:
        yield note_at(op, f"must store quantized values of i8, ui8, i16, ui16 or i32, but got {type_}")


def _unsupported_shapes(op: ir.Operation, types: list[ir.Type]) -> Iterator[Diagnostic]:
    for type_ in types:
        element = quant_types.element_type_of(type_)
        is_static = isinstance(type_, ir.RankedTensorType) and type_.has_static_shape
        is_known = isinstance(element, quant.UniformQuantizedType | quant.UniformQuantizedPerAxisType | None)
        is_read = is_known or (isinstance(element, quant.UniformQuantizedSubChannelType) and op.name != "quant.qcast")
        if not is_static or not is_read:
            yield note_at(op, f"must be on static tensors, quantized per tensor or per axis, but got {type_}")


@dataclass(frozen=True)
class _Stored:
    """The integers that store a value of quantized type, and the type it had."""

    value: ir.Value
    type: ir.Type


def _convert(function: ir.Operation) -> None:
    block = function.regions[0].blocks[0]
    *body, last = [op.operation for op in block.operations]
    for name, ends in (("arg_attrs", block.arguments), ("res_attrs", last.operands)):
        types = [value.type for value in ends]
        if any(map(quant_types.is_quantized, types)):
            function.attributes[name] = quant_types.interface_with_parameters(function, name, types)
    values: dict[ir.Value, _Stored] = {}
    for argument in block.arguments:
        values[argument] = _Stored(argument, argument.type)
        argument.set_type(quant_types.storage_type(argument.type))
    for op in body:
        if op.name in _CASTS:
            with ir.InsertionPoint(op), op.location:
                _convert_cast(op, values)
    for index, operand in enumerate(last.operands):
        last.operands[index] = values[operand].value if operand in values else operand
    for op in reversed(body):
        if op.name in _CASTS:
            op.erase()
    _fold_bitcasts(block)
    types = ir.FunctionType.get([value.type for value in block.arguments], [value.type for value in last.operands])
    function.attributes["function_type"] = ir.TypeAttr.get(types)


def _convert_cast(op: ir.Operation, values: dict[ir.Value, _Stored]) -> None:
    """Record the stored integers of a result of quantized type; any other result is replaced."""
    value, result = op.operands[0], op.results[0]
    if op.name == "quant.qcast":
        values[result] = _Stored(_quantized(op), result.type)
    elif op.name == "quant.dcast":
        result.replace_all_uses_with(_handed_on(op, _dequantized(op, values[value])))
    elif quant_types.is_quantized(result.type):
        stored = quant_types.cast("tensor.bitcast", value, quant_types.storage_type(result.type))
        values[result] = _Stored(stored, result.type)
    else:
        result.replace_all_uses_with(quant_types.cast("tensor.bitcast", values[value].value, result.type))


def _dequantized(op: ir.Operation, source: _Stored) -> ir.Value:
    """The f32 values; of blocks, which become rows with a scale each, brought back to where they were."""
    element = quant_types.element_type_of(source.type)
    if not isinstance(element, quant.UniformQuantizedSubChannelType):
        return build(DequantizeOp, source.value, element="f32", **_parameters(op, source.type)).output
    shape, sizes = shape_of(source.type), dict(zip(element.quantized_dimensions, element.block_sizes, strict=True))
    blocks = [sizes.get(axis, extent) for axis, extent in enumerate(shape)]
    split = [part for extent, size in zip(shape, blocks, strict=True) for part in (extent // size, size)]
    order = (*range(0, len(split), 2), *range(1, len(split), 2))
    count, size = math.prod(shape) // math.prod(blocks), math.prod(blocks)
    scales = np.broadcast_to(np.asarray(element.scales).ravel(), count).tolist()
    points = np.broadcast_to(np.asarray(element.zero_points).ravel(), count).tolist()
    rows = _reshaped(_ordered(_reshaped(source.value, split), order), [count, size])
    f32 = build(DequantizeOp, rows, element="f32", scales=scales, zero_points=points).output
    apart = _reshaped(f32, [split[axis] for axis in order])
    return _reshaped(_ordered(apart, tuple(np.argsort(order).tolist())), shape)


def _reshaped(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    return build(ReshapeOp, value, element=element_of(value.type), shape=tuple(shape)).output


def _ordered(value: ir.Value, order: tuple[int, ...]) -> ir.Value:
    """Transposed, unless that changes only extents of 1."""
    wide = [axis for axis in order if shape_of(value.type)[axis] > 1]
    if wide == sorted(wide):
        return value
    return build(TransposeOp, value, element=element_of(value.type), permutation=order).output


def _quantized(op: ir.Operation) -> ir.Value:
    type_ = op.results[0].type
    given = {name: op.attributes[f"qnn.{name}"] for name in _QUANTIZE_ATTRIBUTES if f"qnn.{name}" in op.attributes}
    attributes: dict[str, Any] = {name: ir.StringAttr(text).value for name, text in given.items()}
    element = element_of(quant_types.storage_type(type_))
    built = build(QuantizeOp, op.operands[0], element=element, **attributes, **_parameters(op, type_))
    value = _handed_on(op, built.output)
    storage = quant_types.element_type_of(type_)
    bounds = (storage.storage_type_min, storage.storage_type_max) if storage is not None else ELEMENT_RANGES[element]
    if bounds == ELEMENT_RANGES[element]:
        return value
    return build(ClipOp, value, element=element, min=bounds[0], max=bounds[1]).output


def _parameters(op: ir.Operation, type_: ir.Type) -> dict[str, Any]:
    """Scales, zero points and axis of a quantized type; the axis of a per-tensor type is an attribute of the cast."""
    element = quant_types.element_type_of(type_)
    if isinstance(element, quant.UniformQuantizedPerAxisType):
        return {
            "scales": tuple(element.scales),
            "zero_points": tuple(element.zero_points),
            "axis": element.quantized_dimension,
        }
    params = quant_types.parameters_of(type_) or QuantParams(1.0, 0)
    axis = ir.IntegerAttr(op.attributes["qnn.axis"]).value if "qnn.axis" in op.attributes else 0
    return {"scales": (params.scale,), "zero_points": (params.zero_point,), "axis": axis}


def _handed_on(op: ir.Operation, value: ir.Value) -> ir.Value:
    """`value` with the discardable attributes of `op` that the two passes did not write."""
    own = {f"qnn.{name}" for name in ("axis", *_QUANTIZE_ATTRIBUTES)}
    for name, attribute in op.attributes.items():
        if "." in name and name not in own:
            quant_types.annotate(value, name, attribute)
    return value


def _fold_bitcasts(block: ir.Block) -> None:
    """Two casts that undo each other are erased."""
    for op in list(block.operations):
        inner = op.operation.operands[0].owner if op.operation.name == "tensor.bitcast" else None
        if not isinstance(inner, ir.Operation | ir.OpView) or inner.name != "tensor.bitcast":
            continue
        source = inner.operation.operands[0]
        if source.type == op.operation.results[0].type:
            op.operation.results[0].replace_all_uses_with(source)
