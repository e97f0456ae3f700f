"""DynamicQuantizeMatMul and MatMulIntegerToFloat: integer products with f32 results."""

from __future__ import annotations

import math
from dataclasses import replace

from qdialect._mlir import ir
from qdialect.dialect import DequantizeOp
from qdialect.frontends.common import Shape, require
from qdialect.frontends.onnx.operators.dynamic import dynamic_quantization
from qdialect.frontends.onnx.operators.matmul import integer_product
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import Computed


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
        factor = emitter.float_op("arith.mulf", *(_along_columns(emitter, scale, columns) for scale in scales))
        scaled = emitter.float_op("arith.mulf", real, emitter.broadcast(factor, sums.shape))
        if addend is None:
            return scaled, False
        biases = emitter.broadcast(_along_columns(emitter, addend, columns), sums.shape)
        return emitter.float_op("arith.addf", scaled, biases), False

    return Computed(sums.shape, call.plan.compute(call.name, sums.shape, "f32", emit))


def _along_columns(emitter: Emitter, value: Value, columns: Shape) -> ir.Value:
    """One number or one for each column, as one for each."""
    own: Shape = () if math.prod(value.shape) == 1 else columns
    return emitter.broadcast(emitter.reshape(emitter.to_channels_first(value), own), columns)


def _check_columns(what: str, found: Shape, columns: Shape) -> None:
    holds = math.prod(found) == 1 or (math.prod(found) == columns[0] == found[-1])
    require(holds, f"{what} must have 1 or {columns[0]} entries, but got {list(found)}")
