"""RESCALE: a requantization, or the integer arithmetic that it is."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect import RequantizeOp, build
from qdialect.dialect.type_constraints import shape_of
from qdialect.passes.tosa.binary import joined_operands
from qdialect.passes.tosa.conversion import Conversion, converts
from qdialect.passes.tosa.rescaled_integers import is_requantization, rescaled_integers
from qdialect.passes.tosa.scaling import input_values, plan_of, scaling_of, target_of


@converts("tosa.rescale")
def _rescale(conversion: Conversion, op: ir.Operation) -> ir.Value:
    if not is_requantization(conversion, op):
        return rescaled_integers(conversion, op)
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
