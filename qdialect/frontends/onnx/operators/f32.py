"""Reductions and products of matrices in float32.

Every operation is rounded to float32; ONNX Runtime's kernels add in another order, so results agree to a few units of
the last place, not bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from qdialect.arithmetic.block_weights import PackedWeights
from qdialect.arithmetic.choices import BlockActivations
from qdialect.dialect import F32MatmulOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import Shape, axes_in, axis_in, require
from qdialect.frontends.building.op_builder import blocked_sum, reduced_numbers
from qdialect.frontends.onnx.operators.activations import ALONG_AXIS
from qdialect.frontends.onnx.operators.matmul import exchanged
from qdialect.frontends.onnx.operators.registry import Call, imports_f32
from qdialect.frontends.planning.attention import softmax
from qdialect.frontends.planning.block_weights import BlockQuantized, block_product, packed_matrix
from qdialect.frontends.planning.elementwise import broadcast_shape
from qdialect.frontends.planning.emitter import Emitted, Emitter
from qdialect.frontends.planning.reduction import over_axes, reduced_shape
from qdialect.frontends.planning.tensors import BuildOrdered, Computed
from qdialect.ir._mlir import ir


def computed(call: Call, shape: Shape, operands: Sequence[int], build: BuildOrdered) -> Computed:
    """An f32 value that `build` makes of the inputs `operands`, in the model's order of dimensions."""
    values = [call.f32(index).f32(call.plan, call.name) for index in operands]
    return Computed(shape, call.plan.ordered(call.name, shape, "f32", values, build))


def axis_of(call: Call, default: int, rank: int) -> int:
    """The attribute `axis`, counted from the first dimension."""
    return axis_in(call.attribute("axis", default), rank)


@imports_f32("Softmax", "LogSoftmax")
def _softmax(call: Call) -> Computed:
    """``e^d / sum(e^d)`` or ``d - log(sum(e^d))`` with the distance d from the row's largest number."""
    shape = call.f32(0).shape
    is_flat = call.node.version < ALONG_AXIS
    axis = axis_of(call, 1 if is_flat else -1, len(shape))
    axes = tuple(range(axis, len(shape))) if is_flat else (axis,)
    is_logarithm = call.node.kind == "LogSoftmax"
    return computed(
        call, shape, (0,), lambda emitter, values: softmax(emitter, values[0], axes, is_logarithm=is_logarithm)
    )


_EXTREMES = {"ReduceMax": "max", "ReduceMin": "min"}


@imports_f32(*_EXTREMES, "ReduceMean", "ReduceSum")
def _reduction(call: Call) -> Computed:
    shape, rank = call.f32(0).shape, len(call.f32(0).shape)
    given = list(call.integers(1)) if call.optional(1) is not None else call.attribute("axes", list[int]())
    keeps_all, keep_dims = call.flag("noop_with_empty_axes", 0), call.flag("keepdims", 1)
    if not given and keeps_all:
        return computed(call, shape, (0,), lambda _, values: values[0])
    axes = tuple(sorted(set(axes_in(given, rank)))) or tuple(range(rank))
    after = reduced_shape(shape, axes, keep_dims)
    require(rank > 0, "input must have at least 1 dimension, but got 0")

    source = call.f32(0).f32(call.plan, call.name)
    count = float(math.prod(shape[axis] for axis in axes))

    def emit(emitter: Emitter) -> Emitted:
        data, own, is_channels_last = over_axes(emitter, source, axes, keep_dims)
        if call.node.kind in _EXTREMES:
            return reduced_numbers(emitter, _EXTREMES[call.node.kind], data, own, keep_dims), is_channels_last
        total = blocked_sum(emitter, data, own, keep_dims)
        if call.node.kind == "ReduceSum":
            return total, is_channels_last
        return emitter.f32("divf", total, count), is_channels_last

    return Computed(after, call.plan.compute(call.name, after, "f32", emit))


@imports_f32("MatMul", "com.microsoft.FusedMatMul", "com.microsoft.TransposeMatMul")
def _matmul(call: Call) -> Computed:
    """``alpha * A * B`` of matrices whose leading dimensions broadcast, each perhaps with its last two exchanged.

    One dimension is a row of A, or a column of B, that the result is without.
    """
    call.count(2)
    shapes = [call.f32(index).shape for index in range(2)]
    is_fused = call.node.kind != "MatMul"
    turns = [is_fused and call.flag(name, 0) for name in ("transA", "transB")]
    alpha = call.attribute("alpha", 1.0) if is_fused else 1.0
    turned = any(call.flag(name, 0) for name in ("transBatchA", "transBatchB"))
    require(not turned, "transBatchA and transBatchB must be 0")
    is_vector = [len(shape) == 1 for shape in shapes]
    lhs, rhs = (exchanged(shape, turn) for shape, turn in zip(shapes, turns, strict=True))
    if is_vector[0]:
        lhs = (1, *lhs)
    if is_vector[1]:
        rhs = (*rhs, 1)
    holds = len(lhs) >= 2 and len(rhs) >= 2 and lhs[-1] == rhs[-2]
    require(holds, f"operands must be matrices that multiply, but got {list(shapes[0])} and {list(shapes[1])}")
    leading = broadcast_shape(lhs[:-2], rhs[:-2])
    after = (*leading, *(() if is_vector[0] else lhs[-2:-1]), *(() if is_vector[1] else rhs[-1:]))
    weights = packed_matrix(call.tensor(1), is_transposed=turns[1])

    def build(emitter: Emitter, values: list[ir.Value]) -> ir.Value:
        data, *matrices = (
            emitter.transpose(value, exchanged(tuple(range(len(shape))), turn)) if turn and len(shape) > 1 else value
            for value, turn, shape in zip(values, turns, shapes, strict=False)
        )
        data = emitter.broadcast(emitter.reshape(data, lhs), (*leading, *lhs[-2:]))
        product = _multiplied(call, weights, emitter, [data, *matrices], rhs)
        scaled = product if alpha == 1 else emitter.f32("mulf", product, alpha)
        return emitter.reshape(scaled, after)

    return computed(call, after, (0,) if weights else (0, 1), build)


_CHANNEL_BLOCK = 32
"""Of data, where ONNX Runtime makes a MatMulNBits of weights with one scale a channel."""


def _multiplied(
    call: Call, weights: PackedWeights | None, emitter: Emitter, operands: Sequence[ir.Value], shape: Shape
) -> ir.Value:
    """Data times packed weights, or times a matrix of `shape`, or as many as the data has matrices."""
    if weights is not None:
        return block_product(emitter, operands[0], weights, **_activations(call, weights))
    data, matrix = operands[0], emitter.reshape(operands[1], shape)
    if len(shape) > 2:
        matrix = emitter.broadcast(matrix, (*shape_of(data.type)[:-2], *shape[-2:]))
    return emitter.build(F32MatmulOp, data, matrix, element="f32")


def _activations(call: Call, weights: PackedWeights) -> dict[str, Any]:
    """How the profile multiplies data by packed weights."""
    has_integers = weights.zero_points is None or weights.zero_points.dtype == np.uint8
    if call.plan.activations is not BlockActivations.I8_BLOCK or not has_integers:
        return {}
    size = 0 if isinstance(call.tensor(1), BlockQuantized) else _CHANNEL_BLOCK
    return {"activations": call.plan.activations, "activation_block": size}


@imports_f32("Gemm")
def _gemm(call: Call) -> Computed:
    shapes = [call.f32(index).shape for index in range(2)]
    require(all(len(shape) == 2 for shape in shapes), "operands must have 2 dimensions")
    alpha, beta = call.attribute("alpha", 1.0), call.attribute("beta", 1.0)
    transposed = [call.flag(name, 0) for name in ("transA", "transB")]
    lhs, rhs = (shape[::-1] if swap else shape for shape, swap in zip(shapes, transposed, strict=True))
    require(lhs[1] == rhs[0], f"operands must be matrices that multiply, but got {list(lhs)} and {list(rhs)}")
    after, has_bias = (lhs[0], rhs[1]), call.optional(2) is not None
    weights = packed_matrix(call.tensor(1), is_transposed=transposed[1])
    read = [0, *([] if weights else [1]), *([2] if has_bias else [])]

    def build(emitter: Emitter, values: list[ir.Value]) -> ir.Value:
        s = emitter.f32
        data, *matrices = (
            emitter.transpose(value, (1, 0)) if index < 2 and transposed[index] else value
            for index, value in zip(read, values, strict=True)
        )
        total = _multiplied(call, weights, emitter, [data, *matrices], rhs)
        total = total if alpha == 1 else s("mulf", total, alpha)
        if not has_bias:
            return total
        bias = emitter.broadcast(values[-1], after)
        return s("addf", total, bias if beta == 1 else s("mulf", bias, beta))

    return computed(call, after, read, build)
