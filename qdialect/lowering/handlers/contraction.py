"""Convolution and matrix product, fused and alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.dialect import AnyContraction, AnyFused, Conv2DOp, DenseOp, FusedConv2DOp, FusedDenseOp
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.graph import GraphLowering, lowers
from qdialect.lowering.handlers.run_time_weights import far_range, lower_run_time_weights
from qdialect.lowering.kernels.contraction import Contraction, emit_contraction
from qdialect.lowering.kernels.depthwise import emit_depthwise
from qdialect.lowering.kernels.epilogue import Epilogue, stage_kernels
from qdialect.lowering.kernels.stored_words import with_stored_words
from qdialect.lowering.kernels.tuned import tuned_contraction, tuned_depthwise
from qdialect.lowering.kernels.window import Window
from qdialect.lowering.memory.storage import signed_shift
from qdialect.lowering.operands.constant_operands import required_constant
from qdialect.lowering.operands.packing import CenteredWeights, accumulator_bounds, center, folded_bias
from qdialect.lowering.paddings import padding_of
from qdialect.lowering.program import BufferSlot, Program
from qdialect.quant_math import IntArray


@lowers(Conv2DOp, FusedConv2DOp)
def _conv2d(lowering: GraphLowering, op: Conv2DOp | FusedConv2DOp) -> None:
    if constant_value(op.weight) is None:
        _, rows, columns, _ = shape_of(op.weight.type)
        _lower_run_time(lowering, op, _window(op, rows, columns))
        return
    matrix = matrix_of(op, taps_of(op), is_signed=lowering.is_signed(op.data))
    _lower_conv2d(lowering, op, matrix, epilogue_of(lowering, op, matrix.accumulator_range))


@lowers(DenseOp, FusedDenseOp)
def _dense(lowering: GraphLowering, op: DenseOp | FusedDenseOp) -> None:
    if constant_value(op.weight) is None:
        _lower_run_time(lowering, op, _row_window(lowering.slot(op.data)))
        return
    matrix = matrix_of(op, taps_of(op), is_signed=lowering.is_signed(op.data))
    _lower_dense(lowering, op, matrix, epilogue_of(lowering, op, matrix.accumulator_range))


@dataclass(frozen=True)
class Matrix:
    """Weights as the kernels read them, the bias with every zero point folded in, and the range of the accumulators."""

    weights: CenteredWeights
    bias: NDArray[np.int32]
    accumulator_range: tuple[IntArray, IntArray]


def taps_of(op: AnyContraction | AnyFused) -> NDArray[Any]:
    """The weights as [OC, KH, KW, IC / groups]; the rows of a matrix are taps of a 1x1 kernel."""
    weight = required_constant("weight", op.weight)
    return weight.reshape(weight.shape[0], *(weight.shape[1:-1] or (1, 1)), -1)


def matrix_of(op: AnyContraction | AnyFused, taps: NDArray[Any], *, is_signed: bool = False) -> Matrix:
    """What kernels need of `taps`, which are `op`'s weights or a part of each channel's.

    Kernels read stored values of the data, or quantized values as they are where the data `is_signed`.
    """
    weights, start = center(taps, op.weight_zero_points), bias_of(op)
    stored = op.input_zero_point + signed_shift(op.data.type)
    folded = folded_bias(weights, start, op.input_zero_point if is_signed else stored)
    return Matrix(weights, folded, accumulator_bounds(weights, start, stored))


def bias_of(op: AnyContraction | AnyFused) -> NDArray[np.int32]:
    """What the accumulators of each output channel start at: the bias, zeros where it is absent or f32."""
    bias = None if op.bias is None else required_constant("bias", op.bias)
    if bias is None or bias.dtype != np.int32:
        return np.zeros(shape_of(op.operation.results[0].type)[-1], np.int32)
    return bias


def _lower_conv2d(lowering: GraphLowering, op: Conv2DOp | FusedConv2DOp, matrix: Matrix, epilogue: Epilogue) -> None:
    _, kernel_height, kernel_width, _ = matrix.weights.values.shape
    window = _window(op, kernel_height, kernel_width)
    data = lowering.slot(op.data, padding_of(op))
    output = lowering.result(op.operation.results[0])
    contraction = Contraction(data, output, epilogue, window, matrix.weights, epilogue.start(matrix.bias), op.groups)
    emit_convolution(lowering, contraction, op.operation.name)


def _lower_run_time(
    lowering: GraphLowering, op: Conv2DOp | FusedConv2DOp | DenseOp | FusedDenseOp, window: Window
) -> None:
    bias = bias_of(op)
    lower_run_time_weights(lowering, op, epilogue_of(lowering, op, far_range(op, bias)), bias, window)


def _window(op: Conv2DOp | FusedConv2DOp, rows: int, columns: int) -> Window:
    images, height, width, _ = shape_of(op.operation.results[0].type)
    strides, dilation = (op.strides[0], op.strides[1]), (op.dilation[0], op.dilation[1])
    return Window(images, (height, width), (rows, columns), strides, dilation, (op.padding[0], op.padding[1]))


def _row_window(data: BufferSlot) -> Window:
    """Every row of the data is a pixel that one tap looks at."""
    images, height, width, _ = data.storage.shape
    return Window(images, (height, width), (1, 1), (1, 1), (1, 1), (0, 0))


def emit_convolution(lowering: GraphLowering, contraction: Contraction, label: str) -> None:
    """Append the kernel call of a convolution, whose groups may be single channels."""
    depthwise = contraction.groups == contraction.data.storage.shape[3] == contraction.weights.values.shape[0]
    if depthwise and contraction.groups > 1:
        with tuned_depthwise(lowering.program, contraction):
            emit_depthwise(lowering.program, contraction, label)
        return
    emit_product(lowering.program, contraction, label)


def emit_product(program: Program, contraction: Contraction, label: str) -> None:
    """Append the kernel call of a convolution that is not depthwise, perhaps on words of its data, which one stores."""
    words = with_stored_words(program, contraction)
    if words is not contraction:
        emit_contraction(program, words, label)
        return
    with tuned_contraction(program, contraction):
        emit_contraction(program, contraction, label)


def _lower_dense(lowering: GraphLowering, op: DenseOp | FusedDenseOp, matrix: Matrix, epilogue: Epilogue) -> None:
    data, output = lowering.slot(op.data), lowering.result(op.operation.results[0])
    window = _row_window(data)
    contraction = Contraction(data, output, epilogue, window, matrix.weights, epilogue.start(matrix.bias), 1)
    emit_product(lowering.program, contraction, op.operation.name)


def epilogue_of(
    lowering: GraphLowering, op: AnyContraction | AnyFused, accumulator_range: tuple[IntArray, IntArray]
) -> Epilogue:
    """The stages of a fused op for accumulators in `accumulator_range`, by channel; no stages of any other op."""
    if not isinstance(op, AnyFused):
        return Epilogue()
    residual = None if op.residual is None else lowering.slot(op.residual)
    stages = stage_kernels(op, accumulator_range, lowering.program.strategy.requantizer_forms)
    return Epilogue(stages, residual)
