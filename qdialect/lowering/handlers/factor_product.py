"""A product of quantized tensors, one of which repeats: a kernel call of its own computes its factors once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import MulOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.graph import GraphLowering
from qdialect.lowering.handlers.maps import Stored, map_stored
from qdialect.lowering.kernels.elementwise import Emit
from qdialect.lowering.kernels.quantization import Quantization
from qdialect.lowering.memory.storage import NO_HALO
from qdialect.lowering.program import BufferSlot, Kernel
from qdialect.lowering.requantization.factor_product import FactorProduct, factor_product
from qdialect.lowering.requantization.multiply_add_rounding import declare_zero_point, multiply_add, with_sign
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.lowering.tiling.lanes import TILE_LANES
from qdialect.quant_math import IntArray, real_multiplier, requantize, requantize_parameters

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
    is_worth = lowering.program.strategy.requantizer_forms.multiply_adds and _size(factor) * _LEAST_USES <= _size(
        op.output
    )
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
    return factor_product(quantized, left, right, output.zero_point, bounds, float(multiplier[0]))


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
        slot = lowering.program.buffer(replace(source.storage, element="f32", halo=NO_HALO))
        shape = shape_of(factor.type)
        map_stored(lowering, Stored(slot, shape), [Stored(source, shape)], self._declare_factor, "factors", TILE_LANES)
        return slot

    def _declare_factor(self, kernel: Kernel) -> Emit:
        offset = _declare_offset(kernel, self.factor)
        multiplier = kernel.number("multiplier", float(self.numbers.multiplier), "f32")
        return lambda body, values: body.multiply(body.cast("arith.sitofp", offset(body, values[0]), "f32"), multiplier)

    def declare(self, kernel: Kernel) -> Emit:
        """What computes the product of a stored value and a factor."""
        offset, shift = _declare_offset(kernel, self.data), self.output.shift
        rest = kernel.number("rest", int(self.numbers.rest.view(np.int32)), "i32")
        zero_point = declare_zero_point(kernel, self.output.stored_zero_point)
        bounds = zip(("low", "high"), (self.op.output_min, self.op.output_max), strict=True)
        low, high = (kernel.number(name, bound + shift, "i32") for name, bound in bounds)

        def emit(body: Body, values: Sequence[Value]) -> Value:
            data = sign = offset(body, values[0])
            if self.factor.stored_zero_point:
                sign = body.binary("arith.xori", data, body.cast("arith.bitcast", values[1], "i32"))
            quantized = multiply_add(body, data, values[1], with_sign(body, rest, sign), zero_point)
            return body.narrow(body.clamp(quantized, low, high))

        return emit


def _declare_offset(kernel: Kernel, own: Quantization) -> Callable[[Body, Value], Value]:
    """Emit the offset (i32) of a stored value from its zero point."""
    point = kernel.number("own_zero_point", own.stored_zero_point, "i32") if own.stored_zero_point else None

    def emit(body: Body, stored: Value) -> Value:
        value = body.cast("arith.extui", stored, "i32")
        return value if point is None else body.subtract(value, point)

    return emit
