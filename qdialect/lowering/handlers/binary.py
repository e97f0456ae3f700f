"""Sum and product of two quantized tensors that broadcast."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect.dialect import AddOp, MulOp, SubOp
from qdialect.lowering.arithmetic import requantization
from qdialect.lowering.graph import GraphLowering, lowers
from qdialect.lowering.handlers.maps import map_values
from qdialect.lowering.kernel_text import Body
from qdialect.lowering.kernels.addition import Addition, Quantization
from qdialect.lowering.kernels.elementwise import Emit
from qdialect.lowering.kernels.rescaling import Rescaling
from qdialect.lowering.program import Kernel
from qdialect.lowering.storage import signed_shift
from qdialect.quant_math import AddArithmetic, real_multiplier, requantize_parameters

_LANES = 16
_LARGEST_PRODUCT = 255 * 255


@lowers(AddOp, takes_arrays=True)
def _add(lowering: GraphLowering, op: AddOp) -> None:
    add_or_subtract(lowering, op, op.arithmetic)


def add_or_subtract(lowering: GraphLowering, op: AddOp | SubOp, arithmetic: AddArithmetic) -> None:
    """Lower a sum or a difference in an arithmetic that both have."""
    addition = Addition(
        Quantization(op.lhs_scale, op.lhs_zero_point, signed_shift(op.lhs.type)),
        Quantization(op.rhs_scale, op.rhs_zero_point, signed_shift(op.rhs.type)),
        Quantization(op.output_scale, op.output_zero_point, signed_shift(op.output.type)),
        (op.output_min, op.output_max),
        arithmetic,
        op.rounding,
        op.multiplier,
        is_difference=isinstance(op, SubOp),
    )

    def declare(kernel: Kernel) -> Emit:
        add = addition.declare(kernel)

        def emit(body: Body, values: Sequence[str]) -> str:
            code = add(body, body.cast("arith.extui", values[0], "i8", "i32"), values[1])
            return body.cast("arith.trunci", code, "i32", "i8")

        return emit

    map_values(lowering, op.output, [op.lhs, op.rhs], declare, op.operation.name, _LANES)


@lowers(MulOp, takes_arrays=True)
def _mul(lowering: GraphLowering, op: MulOp) -> None:
    real = real_multiplier(op.lhs_scale, [op.rhs_scale], op.output_scale, op.multiplier)
    how = requantization(op.rounding, requantize_parameters(op.rounding, real), _LARGEST_PRODUCT)
    shift = signed_shift(op.output.type)
    rescaling = Rescaling(how, op.output_zero_point, (op.output_min, op.output_max), shift, "i8")
    points = {
        "lhs_zero_point": op.lhs_zero_point + signed_shift(op.lhs.type),
        "rhs_zero_point": op.rhs_zero_point + signed_shift(op.rhs.type),
    }

    def declare(kernel: Kernel) -> Emit:
        zero_points = [kernel.number(name, point, "i32") for name, point in points.items()]
        rescale, parameters = rescaling.declare(kernel), rescaling.scalars(kernel)

        def offset(body: Body, code: str, zero_point: str) -> str:
            return body.binary("arith.subi", body.cast("arith.extui", code, "i8", "i32"), zero_point, "i32")

        def emit(body: Body, values: Sequence[str]) -> str:
            left, right = (offset(body, code, z) for code, z in zip(values, zero_points, strict=True))
            return rescale(body, body.binary("arith.muli", left, right, "i32"), "i32", parameters)

        return emit

    map_values(lowering, op.output, [op.lhs, op.rhs], declare, op.operation.name, _LANES)
