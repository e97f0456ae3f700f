"""Gemm, MatMul, QGemm, QLinearMatMul and MatMulInteger: a constant matrix on the right."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect import DenseOp
from qdialect.frontends.common import require
from qdialect.frontends.onnx.emitter import Emitter, Placed
from qdialect.frontends.onnx.model import Array
from qdialect.frontends.onnx.operators.contraction import Contraction, Weight, bias_of, data_of, weight_of
from qdialect.frontends.onnx.operators.convolution import integers
from qdialect.frontends.onnx.operators.quantization import dequantized, parameters_of
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.tensors import Quantized, Tensor


@imports("Gemm")
def _gemm(call: Call) -> Tensor:
    call.count(2, 3)
    return _general(call, call.quantized(0), call.quantized(1), 2)


@imports("com.microsoft.QGemm")
def _qgemm(call: Call) -> Tensor:
    call.count(6, 9)
    columns = 0 if call.attribute("transB", 0) else 1
    unit = _general(call, dequantized(call, 0, 1, 1), dequantized(call, 3, 4, columns), 6)
    if call.optional(7) is None:
        return unit
    return unit.quantized(call.plan, call.name, parameters_of(call, 7, unit.data.codes.element))


@imports("MatMul")
def _matmul(call: Call) -> Tensor:
    call.count(2)
    return _product(call.quantized(0), call.quantized(1))


@imports("QLinearMatMul")
def _qlinear_matmul(call: Call) -> Tensor:
    call.count(8)
    unit = _product(dequantized(call, 0, 1, 0), dequantized(call, 3, 4, 1))
    return unit.quantized(call.plan, call.name, parameters_of(call, 6, unit.data.codes.element))


@imports("MatMulInteger")
def _matmul_integer(call: Call) -> Tensor:
    call.count(2, 4)
    return _product(integers(call, 0, 2), integers(call, 1, 3), 1).accumulators(call.plan, call.name)


def _general(call: Call, data: Quantized, weights: Quantized, bias: int) -> Contraction:
    for name in ("alpha", "beta"):
        factor: float = call.attribute(name, 1.0)
        require(factor == 1, f"{name} must be 1, but got {factor}")
    require(call.attribute("transA", 0) == 0, "transA must be 0")
    require(len(data.shape) == 2, f"input must have 2 dimensions, but got {len(data.shape)}")
    is_turned = call.attribute("transB", 0) != 0
    weight = weight_of(weights, (0, 1) if is_turned else (1, 0), 0 if is_turned else 1)
    return _dense(data, weight, bias_of(call, bias, data, weight, weight.codes.shape[0]))


def _product(data: Quantized, weights: Quantized, axis: int | None = None) -> Contraction:
    rank = len(weights.shape)
    require(rank == 2, f"right operand must have 2 dimensions, but got {rank}")
    if axis is not None and len(weights.scales) > 1:
        weights = Quantized(weights.shape, weights.codes, weights.scales, weights.zero_points, axis)
    return _dense(data, weight_of(weights, (1, 0), 1), None)


def _dense(source: Quantized, weight: Weight, bias: Array | None) -> Contraction:
    data = data_of(source)
    channels, depth = weight.codes.shape
    require(len(data.shape) >= 1, "input must have at least 1 dimension, but got 0")
    require(data.shape[-1] == depth, f"input must have a last extent of {depth}, but got {data.shape[-1]}")

    def accumulate(emitter: Emitter) -> ir.Value:
        return emitter.build(
            DenseOp,
            emitter.plain(data.codes),
            emitter.constant(weight.codes),
            None if bias is None else emitter.constant(bias),
            element="i32",
            input_scale=data.scales[0],
            input_zero_point=data.zero_points[0],
            weight_scales=weight.scales,
            weight_zero_points=weight.zero_points,
        )

    def finish(emitter: Emitter, value: ir.Value) -> Placed:
        return value, False

    shape = (*data.shape[:-1], channels)
    return Contraction(shape, data, weight, accumulate, finish, axis=len(shape) - 1, model_axis=len(shape) - 1)
