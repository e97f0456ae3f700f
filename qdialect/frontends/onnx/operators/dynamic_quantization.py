"""DynamicQuantizeLinear and DynamicQuantizeMatMul: parameters that are computed from the data at run time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from qdialect.dialect import DequantizeOp, F32MaxOp, F32MinOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import Shape, require
from qdialect.frontends.onnx.operators.matmul import integer_product
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.emitter import Emission, Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import Computed, Tensor
from qdialect.ir._mlir import ir

_LARGEST = 255.0


@imports("DynamicQuantizeLinear")
def _dynamic_quantize_linear(call: Call) -> tuple[Tensor, ...]:
    names = [name or call.name for name in call.node.outputs]
    require(len(names) == 3, f"must have 3 outputs, but got {len(names)}")
    return dynamic_quantization(call, names)


def dynamic_quantization(call: Call, names: Sequence[str]) -> tuple[Value, Computed, Value]:
    """Quantized values, scale and zero point of input 0, which are called by `names`.

    From the range [min(x, 0), max(x, 0)] of the whole tensor, as ONNX Runtime computes it in float32:
    ``scale = (max - min) / 255``, 1 where both are 0; ``zero_point = half_even(clamp(0 - min / scale))`` and
    ``quantized values = clamp(half_even(x / scale) + zero_point)``, both within 0..255.
    """
    data = call.f32(0).f32(call.plan, call.name)
    require(len(data.shape) >= 1, "input must have at least 1 dimension, but got 0")
    minimum = call.plan.compute(names[1], (), "f32", _extreme(data, F32MinOp))
    maximum = call.plan.compute(names[1], (), "f32", _extreme(data, F32MaxOp))

    def scale_of(emitter: Emitter) -> tuple[ir.Value, bool]:
        s, low, high = emitter.f32, emitter.to_channels_first(minimum), emitter.to_channels_first(maximum)
        extent = s("subf", high, low)
        return emitter.select(emitter.compare("eq", extent, 0.0), 1.0, s("divf", extent, _LARGEST)), False

    scale = call.plan.compute(names[1], (), "f32", scale_of)

    def point_of(emitter: Emitter) -> tuple[ir.Value, bool]:
        s = emitter.f32
        exact = s("subf", 0.0, s("divf", emitter.to_channels_first(minimum), emitter.to_channels_first(scale)))
        # Of an infinite range it is NaN, which becomes the larger bound.
        limited = emitter.select(emitter.compare("lt", exact, _LARGEST), exact, _LARGEST)
        return s("roundeven", emitter.select(emitter.compare("gt", limited, 0.0), limited, 0.0)), False

    point = call.plan.compute(names[2], (), "f32", point_of)

    def quantize(emitter: Emitter) -> tuple[ir.Value, bool]:
        held, is_channels_last = emitter.either(data)
        shape = shape_of(held.type)
        s = emitter.f32
        ratio = s("divf", held, emitter.broadcast(emitter.to_channels_first(scale), shape))
        zero_point = emitter.broadcast(emitter.to_channels_first(point), shape)
        # Bounds are integers: clamping first keeps what is converted small.  NaN becomes a bound.
        low, high = s("subf", 0.0, zero_point), s("subf", _LARGEST, zero_point)
        raised = emitter.select(emitter.compare("gt", ratio, low), ratio, low)
        limited = emitter.select(emitter.compare("lt", raised, high), raised, high)
        whole, offset = (emitter.convert("arith.fptosi", one, "i32") for one in (s("roundeven", limited), zero_point))
        return _narrowed(emitter, emitter.upstream("arith.addi", whole, offset)), is_channels_last

    values = call.plan.compute(names[0], data.shape, "ui8", quantize)

    def narrow_point(emitter: Emitter) -> tuple[ir.Value, bool]:
        return _narrowed(emitter, emitter.convert("arith.fptosi", emitter.to_channels_first(point), "i32")), False

    return values, Computed((), scale), call.plan.compute(names[2], (), "ui8", narrow_point)


def _extreme(data: Value, op_class: type[F32MinOp] | type[F32MaxOp]) -> Emission:
    """The smallest or largest of the numbers and zero; most of ONNX Runtime's lanes forget a NaN."""

    def emit(emitter: Emitter) -> tuple[ir.Value, bool]:
        axes, (held, _) = tuple(range(len(data.shape))), emitter.either(data)
        return emitter.build(
            op_class, held, element="f32", axes=axes, keep_dims=False, from_zero=True, nan_as_zero=True
        ), False

    return emit


def _narrowed(emitter: Emitter, value: ir.Value) -> ir.Value:
    """Integers in 0..255 as `ui8`."""
    return emitter.convert("tensor.bitcast", emitter.convert("arith.trunci", value, "i8"), "ui8")


# DynamicQuantizeMatMul and MatMulIntegerToFloat: integer products with f32 results.


@imports("com.microsoft.DynamicQuantizeMatMul")
def _dynamic_quantize_matmul(call: Call) -> Computed:
    return dynamic_product(call)


def dynamic_product(call: Call) -> Computed:
    """Data f32, matrix, its scale, its zero point and a bias; the data is quantized by DynamicQuantizeLinear."""
    call.count(3, 5)
    values, scale, point = dynamic_quantization(call, [call.name] * 3)
    sums = integer_product(replace(call, inputs=[values, call.tensor(1), point, call.optional(3)]))
    return _scaled(call, sums, (scale.value, _number_of(call, 2)), bias=4)


@imports("com.microsoft.MatMulIntegerToFloat")
def _matmul_integer_to_float(call: Call) -> Computed:
    """Data, matrix, the scale of each, the zero point of each and a bias."""
    call.count(4, 7)
    sums = integer_product(replace(call, inputs=[call.tensor(0), call.tensor(1), call.optional(4), call.optional(5)]))
    scale = _number_of(call, 2)
    require(scale.shape in ((), (1,)), f"scale of the data must have 1 entry, but got {list(scale.shape)}")
    return _scaled(call, sums, (scale, _number_of(call, 3)), bias=6)


def _number_of(call: Call, index: int) -> Value:
    return call.f32(index).f32(call.plan, call.name)


def _scaled(call: Call, sums: Value, scales: tuple[Value, Value], bias: int) -> Computed:
    """``float32(sums) * (scale * scale of the matrix) + bias``, as ONNX Runtime's fused kernels round it."""
    columns = sums.shape[-1:]
    _check_columns("scale of the matrix", scales[1].shape, columns)
    addend = None if call.optional(bias) is None else _number_of(call, bias)
    if addend is not None:
        _check_columns("bias", addend.shape, columns)

    def emit(emitter: Emitter) -> Emitted:
        held = emitter.to_channels_first(sums)
        real = emitter.build(DequantizeOp, held, element="f32", scales=(1.0,), zero_points=(0,))
        factor = emitter.f32("mulf", *(_along_columns(emitter, scale, columns) for scale in scales))
        scaled = emitter.f32("mulf", real, factor)
        if addend is not None:
            scaled = emitter.f32("addf", scaled, _along_columns(emitter, addend, columns))
        return scaled, False

    return Computed(sums.shape, call.plan.compute(call.name, sums.shape, "f32", emit))


def _along_columns(emitter: Emitter, value: Value, columns: Shape) -> ir.Value:
    """One number or one for each column, as one for each."""
    own: Shape = () if math.prod(value.shape) == 1 else columns
    return emitter.broadcast(emitter.reshape(emitter.to_channels_first(value), own), columns)


def _check_columns(what: str, found: Shape, columns: Shape) -> None:
    holds = math.prod(found) == 1 or (math.prod(found) == columns[0] == found[-1])
    require(holds, f"{what} must have 1 or {columns[0]} entries, but got {list(found)}")
