"""Gemm, MatMul, QGemm, QLinearMatMul and MatMulInteger, of any rank, operands constant or not."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import DenseOp, MatMulOp
from qdialect.frontends.common import Array, Shape, UnsupportedError, check_scales, require
from qdialect.frontends.onnx.operators.contraction import bias_of, data_of
from qdialect.frontends.onnx.operators.convolution import integers
from qdialect.frontends.onnx.operators.products_by_matrix import is_by_matrix, product_by_matrix
from qdialect.frontends.onnx.operators.quantization import dequantized, parameters_of
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.onnx.operators.run_time_zero_point import (
    corrected,
    product,
    run_time_zero_point,
    zero_point_value,
)
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.contraction import Contraction, accumulator_attributes
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import EIGHT_BIT, Tensor


@imports("Gemm")
def _gemm(call: Call) -> Tensor:
    call.count(2, 3)
    return _general(call, call.quantized(0), call.quantized(1), 2, has_beta=True)


@imports("com.microsoft.QGemm")
def _qgemm(call: Call) -> Tensor:
    call.count(6, 9)
    columns = 0 if call.flag("transB", 0) else 1
    qdq_group = _general(call, dequantized(call, 0, 1, 1), dequantized(call, 3, 4, columns), 6, has_beta=False)
    if call.optional(7) is None:
        return qdq_group
    return qdq_group.quantized(call.plan, call.name, parameters_of(call, 7, qdq_group.data.values.element))


@imports("MatMul")
def _matmul(call: Call) -> Tensor:
    call.count(2)
    return product_of(call.quantized(0), call.quantized(1))


@imports("com.microsoft.FusedMatMul", "com.microsoft.TransposeMatMul")
def _fused_matmul(call: Call) -> Tensor:
    """``alpha * A * B``, each perhaps with its last two dimensions exchanged."""
    call.count(2)
    alpha: float = call.attribute("alpha", 1.0)
    require(alpha > 0, f"alpha must be positive, but got {alpha}")
    turns = [call.flag(name, 0) for name in ("transA", "transB")]
    turned = any(call.flag(name, 0) for name in ("transBatchA", "transBatchB"))
    require(not turned, "transBatchA and transBatchB must be 0")
    data = _scaled(data_of(call.quantized(0)), alpha)
    return _Factors(data, call.quantized(1), *turns).product(None)


@imports("QLinearMatMul")
def _qlinear_matmul(call: Call) -> Tensor:
    call.count(8)
    left = dequantized(call, 0, 1, 0)
    if is_by_matrix(call, 4, 5):
        qdq_group = product_by_matrix(call, left, values=3, scale=4, zero_point=5)
    else:
        qdq_group = product_of(left, dequantized(call, 3, 4, -1))
    return qdq_group.quantized(call.plan, call.name, parameters_of(call, 6, qdq_group.data.values.element))


@imports("MatMulInteger")
def _matmul_integer(call: Call) -> Tensor:
    call.count(2, 4)
    return integer_product(call)


def integer_product(call: Call) -> Value:
    """The i32 product of inputs 0 and 1, whose zero points are inputs 2 and 3."""
    lhs, rhs = call.value(0), call.value(1)
    point = run_time_zero_point(call, 2, lhs)
    right_is_known = run_time_zero_point(call, 3, rhs) is None
    if point is not None and right_is_known and rhs.data is not None and rhs.data.ndim == 2:
        return _corrected_product(call, lhs, point)
    if point is not None or not right_is_known:
        return product(call, lhs, rhs, (zero_point_value(call, 2), zero_point_value(call, 3)))
    left = integers(call, 0, 2)
    if is_by_matrix(call, 3):
        qdq_group = product_by_matrix(call, left, values=1, scale=None, zero_point=3)
    else:
        qdq_group = product_of(left, _along_columns(integers(call, 1, 3)))
    return qdq_group.accumulators(call.plan, call.name)


def _corrected_product(call: Call, left: Value, point: Value) -> Value:
    """By a constant matrix: the left zero point takes the sums of its columns off afterwards."""
    right = _along_columns(integers(call, 1, 3))
    assert right.values.data is not None, "the caller has seen a constant"
    columns = (right.values.data.astype(np.int64) - np.array(right.zero_points)).sum(axis=0)
    sums = product_of(Quantized(left.shape, left, (1.0,), (0,)), right).accumulators(call.plan, call.name)
    return corrected(call, sums, point, columns)


def _along_columns(right: Quantized) -> Quantized:
    """Zero points that are several are those of the columns."""
    return Quantized(right.shape, right.values, right.scales, right.zero_points, max(len(right.shape) - 1, 0))


def _general(call: Call, left: Quantized, right: Quantized, bias: int, has_beta: bool) -> Contraction:
    """``alpha * A * B + beta * C``; alpha joins the scale of the data, beta the bias."""
    alpha: float = call.attribute("alpha", 1.0)
    beta: float = call.attribute("beta", 1.0) if has_beta else 1.0
    require(alpha > 0, f"alpha must be positive, but got {alpha}")
    for name, operand in (("input", left), ("right operand", right)):
        require(len(operand.shape) == 2, f"{name} must have 2 dimensions, but got {len(operand.shape)}")
    data = _scaled(data_of(left), alpha)
    factors = _Factors(data, right, call.flag("transA", 0), call.flag("transB", 0))
    is_product = alpha == 1 and beta == 1
    factor = None if is_product or not has_beta else beta
    return factors.product(bias_of(call, bias, data, right.scales, factors.right_shape[-1], factor))


def _scaled(data: Quantized, alpha: float) -> Quantized:
    if alpha == 1:
        return data
    return Quantized(
        data.shape, data.values, (float(np.float32(alpha) * np.float32(data.scales[0])),), data.zero_points
    )


def product_of(left: Quantized, right: Quantized) -> Contraction:
    """`left` times `right`; raises `UnsupportedError` where no integer op multiplies them."""
    return _Factors(data_of(left), right).product(None)


def product_by_rows(left: Quantized, rows: Quantized) -> Contraction:
    """`left` times the transpose of `rows` [N, K]; raises `UnsupportedError` where no integer op multiplies them."""
    return _Factors(data_of(left), rows, transpose_rhs=True).product(None)


@dataclass(frozen=True)
class _Factors:
    """The operands of a product of any rank, each perhaps with its last two dimensions exchanged."""

    left: Quantized
    right: Quantized
    transpose_lhs: bool = False
    transpose_rhs: bool = False

    @property
    def left_shape(self) -> Shape:
        """[..., M, K]"""
        shape = self.left.shape
        require(len(shape) >= 1, "input must have at least 1 dimension, but got 0")
        return (1, *shape) if len(shape) == 1 else _exchanged(shape, self.transpose_lhs)

    @property
    def right_shape(self) -> Shape:
        """[..., K, N]"""
        shape = self.right.shape
        require(len(shape) >= 1, "right operand must have at least 1 dimension, but got 0")
        return (*shape, 1) if len(shape) == 1 else _exchanged(shape, self.transpose_rhs)

    def product(self, bias: Array | None) -> Contraction:
        """What stands for the result."""
        self._check_right()
        left, right = self.left_shape, self.right_shape
        require(left[-1] == right[-2], f"input must have a last extent of {right[-2]}, but got {left[-1]}")
        leading = _broadcast(left[:-2], right[:-2])
        rows = left[-2:-1] if len(self.left.shape) > 1 else ()
        columns = right[-1:] if len(self.right.shape) > 1 else ()
        shape = (*leading, *rows, *columns)
        weights = self.right.values.data
        is_dense = weights is not None and math.prod(right[:-2]) == 1

        def accumulate(emitter: Emitter, bias: Array | None) -> ir.Value:
            data = self._value(emitter, self.left, left, self.transpose_lhs)
            start = None if bias is None else emitter.constant(bias)
            attributes = accumulator_attributes(self.left, self.right)
            if weights is None or not is_dense:
                matrix = self._value(emitter, self.right, right, self.transpose_rhs)
                return emitter.build(MatMulOp, data, matrix, start, element="i32", **attributes)
            stored = weights.reshape(right[-2:][::-1]) if self.transpose_rhs else weights.reshape(right[-2:]).T
            return emitter.build(DenseOp, data, emitter.constant(stored), start, element="i32", **attributes)

        def finish(emitter: Emitter, value: ir.Value) -> Emitted:
            return emitter.reshape(value, shape), False

        return Contraction(shape, self.left, self.right.scales, bias, accumulate, finish)

    def _check_right(self) -> None:
        right = self.right
        require(right.values.element in EIGHT_BIT, f"right operand must be i8 or ui8, but got {right.values.element}")
        check_scales(right.scales, "scale of the right operand")
        if len(right.scales) > 1:
            axis = len(right.shape) - (2 if self.transpose_rhs else 1)
            found = f"scales of the right operand must lie along axis {axis}, but got {right.axis}"
            require(right.axis == axis and len(right.shape) > 1, found)

    def _value(self, emitter: Emitter, operand: Quantized, shape: Shape, is_transposed: bool) -> ir.Value:
        value = emitter.to_channels_first(operand.values)
        if is_transposed and len(operand.shape) > 1:
            rank = len(operand.shape)
            value = emitter.transpose(value, (*range(rank - 2), rank - 1, rank - 2))
        return emitter.reshape(value, shape)


def _exchanged(shape: Shape, is_transposed: bool) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2]) if is_transposed else shape


def _broadcast(left: Shape, right: Shape) -> Shape:
    try:
        return np.broadcast_shapes(left, right)
    except ValueError:
        raise UnsupportedError(f"batches must broadcast, but got {list(left)} and {list(right)}") from None
