"""linear, addmm, mm, bmm and matmul: in integers where the right matrix is constant and quantized, else in float32."""

from __future__ import annotations

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import DenseOp, DynamicDenseOp, F32MatmulOp
from qdialect.frontends.common import Array, Shape, require
from qdialect.frontends.planning.contraction import Contraction, accumulator_attributes
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.planner import Result
from qdialect.frontends.planning.tensors import Constant, F32Tensor
from qdialect.frontends.planning.weight import Weight
from qdialect.frontends.torch.operators.contraction import bias_of, data_of, weight_of
from qdialect.frontends.torch.operators.dynamic_contraction import DynamicContraction, dynamic_data_of, is_dynamic
from qdialect.frontends.torch.operators.f32_contraction import F32Contraction, f32_weight, is_integer
from qdialect.frontends.torch.operators.registry import Call, as_f32, imports
from qdialect.frontends.torch.run_time import RunTimeQuantized
from qdialect.frontends.torch.tensors import Quantized


@imports("linear.default")
def _linear(call: Call) -> Result:
    return _product(call, "input", "weight", "bias", is_transposed=True)


@imports("addmm.default")
def _addmm(call: Call) -> Result:
    for name in ("alpha", "beta"):
        factor = call.argument(name)
        require(factor == 1, f"{name} must be 1, but got {factor}")
    return _product(call, "mat1", "mat2", "self")


@imports("mm.default", "bmm.default")
def _mm(call: Call) -> Result:
    return _product(call, "self", "mat2", None)


@imports("matmul.default")
def _matmul(call: Call) -> Result:
    return _product(call, "self", "other", None)


def _product(call: Call, left: str, right: str, bias: str | None, *, is_transposed: bool = False) -> Result:
    """`left` times `right`, which has a row for each output channel where it `is_transposed`."""
    at_run_time = is_dynamic(call, left, right)
    if not (at_run_time or is_integer(call, left, right)) or len(call.tensor(right).shape) != 2:
        return _f32_product(call, left, right, bias, is_transposed=is_transposed)
    order, axis = ((0, 1), 0) if is_transposed else ((1, 0), 1)
    weight = weight_of(call, right, order, axis)
    channels, depth = weight.values.shape
    values, extents = None if bias is None else bias_of(call, bias, channels), call.tensor(left).shape
    require(len(extents) >= 1, "input must have at least 1 dimension, but got 0")
    require(extents[-1] == depth, f"input must have a last extent of {depth}, but got {extents[-1]}")
    if at_run_time:
        return _dynamic_dense(call.name, dynamic_data_of(call, left), weight, values)
    return dense(call.name, data_of(call, left), weight, values)


def _f32_product(call: Call, left: str, right: str, bias: str | None, *, is_transposed: bool) -> Result:
    data, weight = call.f32(left), f32_weight(call, right)
    if weight is not None:
        matrix: F32Tensor = as_f32(right, Constant(np.ascontiguousarray(weight.T if is_transposed else weight)))
    else:
        require(not is_transposed, f"argument '{right}' must be constant")
        matrix = call.f32(right)
    found = f"{list(data.shape)} and {list(matrix.shape)}"
    require(
        _pairs(data.shape, matrix.shape),
        f"operands must be matrices, the right one alone or one for each of the left, but got {found}",
    )
    require(data.shape[-1] == matrix.shape[-2], f"operands must have a common extent, but got {found}")

    def contract(emitter: Emitter, values: tuple[Value, ...]) -> ir.Value:
        return emitter.build(F32MatmulOp, *(emitter.to_channels_first(value) for value in values), element="f32")

    channels = matrix.shape[-1]
    values = None if bias is None else bias_of(call, bias, channels)
    return F32Contraction((*data.shape[:-1], channels), (data, matrix), values, contract, _finish, name=call.name)


def _pairs(left: Shape, right: Shape) -> bool:
    return len(left) >= 2 and len(right) >= 2 and right[:-2] in ((), left[:-2])


def _finish(_: Emitter, value: ir.Value) -> Emitted:
    return value, False


def dense(name: str, data: Quantized, weight: Weight, bias: Array | None) -> Contraction:
    """``data W^T + bias`` of quantized data [..., K] and weights [N, K]."""

    def accumulate(emitter: Emitter, whole: Array | None) -> ir.Value:
        return emitter.build(
            DenseOp,
            emitter.to_channels_first(data.values),
            emitter.constant(weight.values),
            None if whole is None else emitter.constant(whole),
            element="i32",
            **accumulator_attributes(data, weight),
        )

    shape = (*data.shape[:-1], weight.values.shape[0])
    return Contraction(shape, data, weight.scales, bias, accumulate, _finish, name=name)


def _dynamic_dense(name: str, data: RunTimeQuantized, weight: Weight, bias: Array | None) -> DynamicContraction:
    return DynamicContraction(
        (*data.shape[:-1], weight.values.shape[0]),
        DynamicDenseOp,
        data,
        False,
        weight,
        weight.values,
        bias,
        {},
        lambda emitter, values: emitter.to_channels_first(values),
        _finish,
        name=name,
    )
