"""Functions of two quantized tensors that broadcast: in integers, by one fused multiply-add, or in float32."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from qdialect.arithmetic import (
    IntArray,
    PairArithmetic,
    elementwise,
    real_multiplier,
    requantize,
    requantize_parameters,
)
from qdialect.dialect import AddOp, DivOp, MaximumOp, MinimumOp, MulOp, PreluOp, SquaredDifferenceOp, SubOp
from qdialect.dialect.elementwise_ops import BinaryOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.cost.strategy import TILE_LANES, RequantizerForms
from qdialect.lowering.qnn_to_linalg.bodies import multiply_add_rounding, quantization
from qdialect.lowering.qnn_to_linalg.bodies.addition import Addition, declare_function
from qdialect.lowering.qnn_to_linalg.bodies.multiply_add_rounding import FactorProduct
from qdialect.lowering.qnn_to_linalg.bodies.quantization import Quantization, Rescaling, requantizer_of
from qdialect.lowering.qnn_to_linalg.conversions.maps import Declare, Stored, map_stored, map_values
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, lowers
from qdialect.lowering.qnn_to_linalg.program.program import NO_PADS, BufferSlot, Kernel, signed_shift
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Emit, Value

# A product of quantized tensors, one of which repeats: a kernel call of its own computes its factors once.

_LEAST_USES = 8
"""Of a factor, for which it is computed before."""
_VECTORS = 4
"""Of a tile, whose bytes fill a register."""
_STORED = np.arange(256)


def lower_factor_product(
    lowering: GraphLowering, op: MulOp, quantizations: tuple[Quantization, Quantization, Quantization]
) -> bool:
    """Lower `op` where the target and its numbers allow it; whether they do."""
    lhs, rhs, output = quantizations
    data, factor = op.lhs, op.rhs
    if _size(data) < _size(factor):
        data, factor, lhs, rhs = factor, data, rhs, lhs
    is_worth = lowering.program.strategy.forms.multiply_adds and _size(factor) * _LEAST_USES <= _size(op.output)
    numbers = _numbers(op, lhs, rhs, output) if is_worth else None
    if numbers is None:
        return False
    product = _Product(op, lhs, rhs, output, numbers)
    factors = product.store_factors(lowering, factor)
    target = Stored(lowering.result(op.output), shape_of(op.output.type))
    sources = [Stored(lowering.slot(data), shape_of(data.type)), Stored(factors, shape_of(factor.type))]
    map_stored(lowering, target, sources, product.declare, op.operation.name, TILE_LANES, _VECTORS)
    return True


def _size(value: ir.Value) -> int:
    return math.prod(shape_of(value.type))


def _offsets(own: Quantization) -> IntArray:
    return _STORED - own.stored_zero_point


def _numbers(op: MulOp, lhs: Quantization, rhs: Quantization, output: Quantization) -> FactorProduct | None:
    multiplier = real_multiplier(op.lhs_scale, [op.rhs_scale], op.output_scale, op.multiplier)
    parameters, bounds = requantize_parameters(op.rounding, multiplier), (op.output_min, op.output_max)
    left, right = _offsets(lhs), _offsets(rhs)
    products = np.multiply.outer(left, right).reshape(-1, 1)
    quantized = requantize(products, parameters, op.output_zero_point, *bounds, op.rounding).reshape(len(left), -1)
    return multiply_add_rounding.factor_product(quantized, left, right, output.zero_point, bounds, float(multiplier[0]))


@dataclass(frozen=True)
class _Product:
    """A product in the numbers of `factor_product`."""

    op: MulOp
    data: Quantization
    factor: Quantization
    output: Quantization
    numbers: FactorProduct

    def store_factors(self, lowering: GraphLowering, factor: ir.Value) -> BufferSlot:
        """Append the kernel call that stores the factors as float32 numbers."""
        source = lowering.slot(factor)
        slot = lowering.program.buffer(replace(source.storage, element="f32", pads=NO_PADS))
        shape = shape_of(factor.type)
        map_stored(lowering, Stored(slot, shape), [Stored(source, shape)], self._declare_factor, "factors", TILE_LANES)
        return slot

    def _declare_factor(self, kernel: Kernel) -> Emit:
        offset = _declare_offset(kernel, self.factor)
        multiplier = kernel.number("multiplier", float(self.numbers.multiplier), "f32")
        return lambda body, values: body.multiply(body.cast("arith.sitofp", offset(body, values[0]), "f32"), multiplier)

    def declare(self, kernel: Kernel) -> Emit:
        """The function that computes the product of a stored value and a factor."""
        offset, shift = _declare_offset(kernel, self.data), self.output.shift
        rest = kernel.number("rest", int(self.numbers.rest.view(np.int32)), "i32")
        zero_point = multiply_add_rounding.declare_zero_point(kernel, self.output.stored_zero_point)
        low, high = kernel.limits((self.op.output_min + shift, self.op.output_max + shift), "i32")

        def emit(body: Body, values: Sequence[Value]) -> Value:
            data = sign = offset(body, values[0])
            if self.factor.stored_zero_point:
                sign = body.binary("arith.xori", data, body.cast("arith.bitcast", values[1], "i32"))
            quantized = multiply_add_rounding.multiply_add(
                body, data, values[1], multiply_add_rounding.with_sign(body, rest, sign), zero_point
            )
            return body.narrow(body.clamp(quantized, low, high))

        return emit


def _declare_offset(kernel: Kernel, own: Quantization) -> Callable[[Body, Value], Value]:
    """Emit the offset (i32) of a stored value from its zero point."""
    point = kernel.number("own_zero_point", own.stored_zero_point, "i32") if own.stored_zero_point else None

    def emit(body: Body, stored: Value) -> Value:
        value = body.cast("arith.extui", stored, "i32")
        return value if point is None else body.subtract(value, point)

    return emit


# Sum and product of two quantized tensors that broadcast.

_LARGEST_STORED = 255


def stored_quantizations(op: BinaryOp) -> tuple[Quantization, Quantization, Quantization]:
    """The quantization of stored values of lhs, rhs and the result."""
    lhs, rhs, output = (
        Quantization(own.scale, own.zero_point, signed_shift(value.type))
        for own, value in zip(op.quantization.params, (op.lhs, op.rhs, op.output), strict=True)
    )
    return lhs, rhs, output


@lowers(AddOp, SubOp, takes_arrays=True)
def _sum(lowering: GraphLowering, op: AddOp | SubOp) -> None:
    arithmetic = op.arithmetic if isinstance(op, AddOp) else op.arithmetic.addition
    if arithmetic is None:
        _lower_f32(lowering, op, elementwise.difference)
        return
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
    forms = lowering.program.strategy.forms

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
        how = quantization.requantization(op.rounding, parameters, _LARGEST_STORED * _LARGEST_STORED)
        rescaling = Rescaling(how, op.output_zero_point, bounds, shift, "i8")
        rescale, scalars = rescaling.declare(kernel), rescaling.scalars(kernel)
        return lambda body, product: rescale(body, product, scalars)
    emit_requantize, start = requantizer.declare(kernel), kernel.number("offset", requantizer.offset[0], "i32")
    numbers = [kernel.number(p.name, p.values[0], p.element) for p in requantizer.parameters]
    low, high = kernel.limits((op.output_min + shift, op.output_max + shift), "i32")

    def emit(body: Body, product: Value) -> Value:
        quantized = emit_requantize(body, body.add(product, start), numbers)
        return body.narrow(body.clamp(quantized, low, high))

    return emit


# Functions of two quantized tensors other than sum and product.

EmitF32 = Callable[[Body, Value, Value], Value]
"""(body, lhs, rhs) -> result, all f32."""

_BYTES = 64


@lowers(MaximumOp, MinimumOp, takes_arrays=True)
def _extreme(lowering: GraphLowering, op: MaximumOp | MinimumOp) -> None:
    is_max = isinstance(op, MaximumOp)
    shifts = {signed_shift(value.type) for value in (op.lhs, op.rhs, op.output)}
    lhs, rhs, output = op.quantization.params
    low, high = op.quantization.bounds
    if not lhs == rhs == output or len(shifts) > 1:
        _lower_f32(lowering, op, elementwise.larger if is_max else elementwise.smaller)
        return
    (shift,) = shifts

    def declare(kernel: Kernel) -> Emit:
        minimum, maximum = kernel.limits((low + shift, high + shift), "i8")

        def emit(body: Body, values: Sequence[Value]) -> Value:
            found = body.binary("arith.maxui" if is_max else "arith.minui", values[0], values[1])
            return body.binary("arith.minui", body.binary("arith.maxui", found, minimum), maximum)

        return emit

    _lower(lowering, op, declare, _BYTES)


@lowers(PreluOp, takes_arrays=True)
def _prelu(lowering: GraphLowering, op: PreluOp) -> None:
    if op.arithmetic is PairArithmetic.FLOAT:
        _lower_f32(lowering, op, elementwise.with_slope)
        return

    _lower_function(lowering, op, elementwise.prelu(op.quantization.params))


@lowers(SquaredDifferenceOp, takes_arrays=True)
def _squared_difference(lowering: GraphLowering, op: SquaredDifferenceOp) -> None:
    _lower_function(lowering, op, elementwise.squared_difference(op.quantization.params))


def _lower_function(lowering: GraphLowering, op: BinaryOp, function: elementwise.OffsetFunction) -> None:
    def declare(kernel: Kernel) -> Emit:
        emit = declare_function(kernel, function, stored_quantizations(op), op.quantization.bounds)
        return lambda body, values: body.narrow(emit(body, *values))

    _lower(lowering, op, declare)


@lowers(DivOp, takes_arrays=True)
def _div(lowering: GraphLowering, op: DivOp) -> None:
    """The fixed-point quotient is a table of all pairs: its reciprocals are irregular from divisor to divisor."""
    if op.arithmetic is PairArithmetic.FLOAT:
        _lower_f32(lowering, op, elementwise.quotient)
        return
    shifts = [signed_shift(value.type) for value in (op.lhs, op.rhs, op.output)]
    stored = np.arange(256)
    operands = (stored[:, None] - shifts[0], stored[None, :] - shifts[1])
    quantized = elementwise.div_fixed(*operands, op.quantization)
    table = (quantized + shifts[2]).astype(np.uint8).reshape(-1)

    def declare(kernel: Kernel) -> Emit:
        name = kernel.flat_tensor(kernel.data("table", table))

        def emit(body: Body, values: Sequence[Value]) -> Value:
            left, right = (body.cast("arith.extui", value, "i32") for value in values)
            row = body.binary("arith.shli", left, body.constant(8, "i32"))
            index = body.cast("arith.index_castui", body.binary("arith.ori", row, right), "index")
            return body.extract(name, index)

        return emit

    _lower(lowering, op, declare)


def _lower_f32(lowering: GraphLowering, op: BinaryOp, function: EmitF32) -> None:
    quantizations, bounds = stored_quantizations(op), op.quantization.bounds

    def declare(kernel: Kernel) -> Emit:
        pair = quantization.declare_f32_pair(kernel, quantizations, bounds, function)
        return lambda body, values: body.narrow(pair(body, *values))

    _lower(lowering, op, declare)


def _lower(lowering: GraphLowering, op: BinaryOp, declare: Declare, width: int = TILE_LANES) -> None:
    map_values(lowering, op.output, [op.lhs, op.rhs], declare, op.operation.name, width)
