"""RESCALE, and the casts that are one."""

from __future__ import annotations

from typing import Any

from qdialect._mlir import ir
from qdialect.dialect import RequantizeOp, build
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.passes.tosa.binary import joined_operands
from qdialect.passes.tosa.conversion import Conversion, converts, require, result_element
from qdialect.passes.tosa.scaling import input_values, plan_of, scaling_of, target_of
from qdialect.quant_math import Rounding


@converts("tosa.rescale")
def _rescale(conversion: Conversion, op: ir.Operation) -> ir.Value:
    scaling, values, target = scaling_of(conversion, op), input_values(conversion, op), target_of(conversion, op)
    joined = joined_operands(conversion, op, target)
    if joined is not None:
        return target.finished(joined)
    source, result = op.operands[0], op.results[0]
    plan = conversion.plans.get(source) or plan_of(conversion.scale(source), scaling, conversion.scale(result))
    rescaled = build(
        RequantizeOp,
        values.value,
        element=target.element,
        input_scale=plan.input_scale,
        weight_scales=plan.weight_scales,
        input_zero_points=(values.zero_point,),
        output_scale=plan.output_scale,
        output_zero_point=target.zero_point,
        axis=max(len(shape_of(values.value.type)) - 1, 0),
        rounding=scaling.rounding,
    )
    return target.finished(rescaled.output)


@converts("tosa.cast")
def _cast(conversion: Conversion, op: ir.Operation) -> ir.Value:
    """To a wider integer: the same number."""
    value, element = conversion.value(op.operands[0]), result_element(op)
    wider = {"i8": ("i16", "i32"), "ui8": ("i16", "i32"), "i16": ("i32",)}
    found = element_of(value.type)
    require(element in wider.get(found, ()), f"must go to a wider integer type, but got {found} to {element}")
    scale = conversion.scale(op.operands[0])
    same: dict[str, Any] = {
        "input_scale": scale,
        "output_scale": scale,
        "output_zero_point": 0,
        "rounding": Rounding.FIXED64_UP,
    }
    return build(RequantizeOp, value, element=element, **same).output
