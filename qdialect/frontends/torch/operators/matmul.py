"""linear, addmm, mm and matmul: a constant matrix on the right."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect import DenseOp
from qdialect.frontends.common import require
from qdialect.frontends.onnx.emitter import Emitter, Placed
from qdialect.frontends.torch.model import Array
from qdialect.frontends.torch.operators.contraction import Contraction, Weight, bias_of, data_of, weight_of
from qdialect.frontends.torch.operators.registry import Call, imports
from qdialect.frontends.torch.tensors import Quantized, Result


@imports("linear.default")
def _linear(call: Call) -> Result:
    data, weight = data_of(call, "input"), weight_of(call, "weight", (0, 1), 0)
    return _dense(call.name, data, weight, bias_of(call, "bias", weight.codes.shape[0]))


@imports("addmm.default")
def _addmm(call: Call) -> Result:
    for name in ("alpha", "beta"):
        factor = call.argument(name)
        require(factor == 1, f"{name} must be 1, but got {factor}")
    data, weight = data_of(call, "mat1"), weight_of(call, "mat2", (1, 0), 1)
    return _dense(call.name, data, weight, bias_of(call, "self", weight.codes.shape[0]))


@imports("mm.default")
def _mm(call: Call) -> Result:
    return _dense(call.name, data_of(call, "self"), weight_of(call, "mat2", (1, 0), 1), None)


@imports("matmul.default")
def _matmul(call: Call) -> Result:
    return _dense(call.name, data_of(call, "self"), weight_of(call, "other", (1, 0), 1), None)


def _dense(name: str, data: Quantized, weight: Weight, bias: Array | None) -> Contraction:
    channels, depth = weight.codes.shape
    require(len(data.shape) >= 1, "input must have at least 1 dimension, but got 0")
    require(data.shape[-1] == depth, f"input must have a last extent of {depth}, but got {data.shape[-1]}")

    def accumulate(emitter: Emitter, whole: Array | None) -> ir.Value:
        return emitter.build(
            DenseOp,
            emitter.plain(data.codes),
            emitter.constant(weight.codes),
            None if whole is None else emitter.constant(whole),
            element="i32",
            input_scale=data.scales[0],
            input_zero_point=data.zero_points[0],
            weight_scales=weight.scales,
            weight_zero_points=weight.zero_points,
        )

    def finish(_: Emitter, value: ir.Value) -> Placed:
        return value, False

    return Contraction((*data.shape[:-1], channels), name, data, weight, bias, accumulate, finish)
