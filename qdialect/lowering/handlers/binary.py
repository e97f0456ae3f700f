"""Sum and product of two quantized tensors that broadcast."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from qdialect.dialect import AddOp, MulOp, SubOp
from qdialect.dialect.elementwise_ops import BinaryOp
from qdialect.lowering.graph import GraphLowering, lowers
from qdialect.lowering.handlers.factor_product import lower_factor_product
from qdialect.lowering.handlers.maps import map_values
from qdialect.lowering.kernels.addition import Addition
from qdialect.lowering.kernels.elementwise import Emit
from qdialect.lowering.kernels.quantization import Quantization
from qdialect.lowering.kernels.rescaling import Rescaling
from qdialect.lowering.memory.storage import signed_shift
from qdialect.lowering.program import Kernel
from qdialect.lowering.requantization.arithmetic import requantization
from qdialect.lowering.requantization.forms import RequantizerForms
from qdialect.lowering.requantization.requantizer import requantizer_of
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.lowering.tiling.lanes import TILE_LANES
from qdialect.quant_math import AddArithmetic, real_multiplier, requantize_parameters

_LARGEST_STORED = 255


@lowers(AddOp, takes_arrays=True)
def _add(lowering: GraphLowering, op: AddOp) -> None:
    add_or_subtract(lowering, op, op.arithmetic)


def stored_quantizations(op: BinaryOp) -> tuple[Quantization, Quantization, Quantization]:
    """The quantization of stored values of lhs, rhs and the result."""
    lhs, rhs, output = (
        Quantization(own.scale, own.zero_point, signed_shift(value.type))
        for own, value in zip(op.quantization.params, (op.lhs, op.rhs, op.output), strict=True)
    )
    return lhs, rhs, output


def add_or_subtract(lowering: GraphLowering, op: AddOp | SubOp, arithmetic: AddArithmetic) -> None:
    """Lower a sum or a difference in an arithmetic that both have."""
    addition = Addition(
        *stored_quantizations(op),
        op.quantization.bounds,
        arithmetic,
        op.rounding,
        op.multiplier,
        is_difference=isinstance(op, SubOp),
    )

    def declare(kernel: Kernel) -> Emit:
        add = addition.declare(kernel)

        def emit(body: Body, values: Sequence[Value]) -> Value:
            quantized = add(body, body.cast("arith.extui", values[0], "i32"), values[1])
            return body.narrow(quantized)

        return emit

    map_values(lowering, op.output, [op.lhs, op.rhs], declare, op.operation.name, TILE_LANES)


@lowers(MulOp, takes_arrays=True)
def _mul(lowering: GraphLowering, op: MulOp) -> None:
    if lower_factor_product(lowering, op, stored_quantizations(op)):
        return
    lhs, rhs, _ = stored_quantizations(op)
    points = (lhs.stored_zero_point, rhs.stored_zero_point)
    forms = lowering.program.strategy.requantizer_forms

    def declare(kernel: Kernel) -> Emit:
        zero_points = [kernel.number(f"{n}_zero_point", z, "i32") for n, z in zip(("lhs", "rhs"), points, strict=True)]
        quantized_of = _declare_product(kernel, op, points, forms)

        def offset(body: Body, quantized: Value, zero_point: Value) -> Value:
            return body.subtract(body.cast("arith.extui", quantized, "i32"), zero_point)

        def emit(body: Body, values: Sequence[Value]) -> Value:
            left, right = (offset(body, quantized, z) for quantized, z in zip(values, zero_points, strict=True))
            return quantized_of(body, body.multiply(left, right))

        return emit

    map_values(lowering, op.output, [op.lhs, op.rhs], declare, op.operation.name, TILE_LANES)


def _declare_product(
    kernel: Kernel, op: MulOp, points: Sequence[int], forms: RequantizerForms
) -> Callable[[Body, Value], Value]:
    """Emit the stored value of a product of offsets from the zero points of stored quantized values."""
    f32 = real_multiplier(op.lhs_scale, [op.rhs_scale], op.output_scale, op.multiplier)
    parameters, shift = requantize_parameters(op.rounding, f32), signed_shift(op.output.type)
    bounds, ends = (op.output_min, op.output_max), [(-point, _LARGEST_STORED - point) for point in points]
    products = np.multiply.outer(*(np.array(pair, dtype=np.int64) for pair in ends)).reshape(-1, 1)
    accumulator_range = products.min(axis=0), products.max(axis=0)
    requantizer = requantizer_of(op.rounding, parameters, op.output_zero_point, bounds, shift, accumulator_range, forms)
    if requantizer is None:
        how = requantization(op.rounding, parameters, _LARGEST_STORED * _LARGEST_STORED)
        rescaling = Rescaling(how, op.output_zero_point, bounds, shift, "i8")
        rescale, scalars = rescaling.declare(kernel), rescaling.scalars(kernel)
        return lambda body, product: rescale(body, product, scalars)
    emit_requantize, start = requantizer.declare(kernel), kernel.number("offset", requantizer.offset[0], "i32")
    numbers = [kernel.number(p.name, p.values[0], p.element) for p in requantizer.parameters]
    low, high = (kernel.number(n, b + shift, "i32") for n, b in zip(("low", "high"), bounds, strict=True))

    def emit(body: Body, product: Value) -> Value:
        quantized = emit_requantize(body, body.add(product, start), numbers)
        return body.narrow(body.clamp(quantized, low, high))

    return emit
