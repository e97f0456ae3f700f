"""Convolution and matrix product, fused and alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.diagnostics import CompileError
from qdialect.dialect import AnyContraction, AnyFused, Conv2DOp, DenseOp, FusedConv2DOp, FusedDenseOp
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.arithmetic import requantization
from qdialect.lowering.code_forms import code_form
from qdialect.lowering.graph import GraphLowering, lowers, padding_of
from qdialect.lowering.kernels.addition import Addition, Quantization
from qdialect.lowering.kernels.contraction import Contraction, emit_contraction
from qdialect.lowering.kernels.depthwise import emit_depthwise
from qdialect.lowering.kernels.epilogue import Epilogue, Residual
from qdialect.lowering.kernels.real_stage import RealStage
from qdialect.lowering.kernels.window import Window
from qdialect.lowering.packing import CenteredWeights, accumulator_reach, center, folded_bias
from qdialect.lowering.storage import signed_shift
from qdialect.quant_math import IntArray, RealScaling, ResidualPlace, Table, real_multiplier, requantize_parameters


@lowers(Conv2DOp, FusedConv2DOp)
def _conv2d(lowering: GraphLowering, op: Conv2DOp | FusedConv2DOp) -> None:
    matrix = matrix_of(op, taps_of(op))
    _lower_conv2d(lowering, op, matrix, epilogue_of(lowering, op, matrix.reach))


@lowers(DenseOp, FusedDenseOp)
def _dense(lowering: GraphLowering, op: DenseOp | FusedDenseOp) -> None:
    matrix = matrix_of(op, taps_of(op))
    _lower_dense(lowering, op, matrix, epilogue_of(lowering, op, matrix.reach))


@dataclass(frozen=True)
class Matrix:
    """Weights as the kernels read them, the bias with every zero point folded in, and how far accumulators reach."""

    weights: CenteredWeights
    bias: NDArray[np.int32]
    reach: tuple[IntArray, IntArray]


def taps_of(op: AnyContraction | AnyFused) -> NDArray[Any]:
    """The weights as [OC, KH, KW, IC / groups]; the rows of a matrix are taps of a 1x1 kernel."""
    weight = required_constant("weight", op.weight)
    return weight.reshape(weight.shape[0], *(weight.shape[1:-1] or (1, 1)), -1)


def matrix_of(op: AnyContraction | AnyFused, taps: NDArray[Any]) -> Matrix:
    """What kernels need of `taps`, which are `op`'s weights or a part of each channel's."""
    weights, start = center(taps, op.weight_zero_points), bias_of(op)
    zero_point = op.input_zero_point + signed_shift(op.data.type)
    return Matrix(weights, folded_bias(weights, start, zero_point), accumulator_reach(weights, start, zero_point))


def bias_of(op: AnyContraction | AnyFused) -> NDArray[np.int32]:
    """What the accumulators of each output channel start at: the bias, zeros where it is absent or real."""
    bias = None if op.bias is None else required_constant("bias", op.bias)
    if bias is None or bias.dtype != np.int32:
        return np.zeros(shape_of(op.operation.results[0].type)[-1], np.int32)
    return bias


def _lower_conv2d(lowering: GraphLowering, op: Conv2DOp | FusedConv2DOp, matrix: Matrix, epilogue: Epilogue) -> None:
    _, kernel_height, kernel_width, _ = matrix.weights.codes.shape
    images, height, width, _ = shape_of(op.operation.results[0].type)
    window = Window(
        images,
        (height, width),
        (kernel_height, kernel_width),
        (op.strides[0], op.strides[1]),
        (op.dilation[0], op.dilation[1]),
        (op.padding[0], op.padding[1]),
    )
    data = lowering.place(op.data, padding_of(op))
    output = lowering.result(op.operation.results[0])
    contraction = Contraction(data, output, epilogue, window, matrix.weights, epilogue.start(matrix.bias), op.groups)
    emit_convolution(lowering, contraction, op.operation.name)


def emit_convolution(lowering: GraphLowering, contraction: Contraction, label: str) -> None:
    """Append the kernel call of a convolution, whose groups may be single channels."""
    depthwise = contraction.groups == contraction.data.storage.shape[3] == contraction.weights.codes.shape[0]
    emit = emit_depthwise if depthwise and contraction.groups > 1 else emit_contraction
    emit(lowering.program, contraction, label)


def _lower_dense(lowering: GraphLowering, op: DenseOp | FusedDenseOp, matrix: Matrix, epilogue: Epilogue) -> None:
    data, output = lowering.place(op.data), lowering.result(op.operation.results[0])
    # Every row of the data is a pixel that one tap looks at.
    images, height, width, _ = data.storage.shape
    window = Window(images, (height, width), (1, 1), (1, 1), (1, 1), (0, 0))
    contraction = Contraction(data, output, epilogue, window, matrix.weights, epilogue.start(matrix.bias), 1)
    emit_contraction(lowering.program, contraction, op.operation.name)


def epilogue_of(lowering: GraphLowering, op: AnyContraction | AnyFused, reach: tuple[IntArray, IntArray]) -> Epilogue:
    """The stages of a fused op on stored codes, for accumulators in `reach`, by channel; none of any other op.

    Between the stages codes are 8-bit numbers of either sign; they are shifted so that they start at 0 or above, as
    stored codes do, and a table's index and entries with them.
    """
    if not isinstance(op, AnyFused):
        return Epilogue()
    final = signed_shift(op.operation.results[0].type)
    last = (op.sum_min, op.sum_max) if op.adds_codes else (op.output_min, op.output_max)
    shift = final if op.table is None else (128 if last[0] < 0 else 0)
    table = None if op.table is None else stored_table(op.table, shift, final)
    residual = _residual(lowering, op, shift)
    first_shift = 0 if op.adds_codes else shift
    if op.real_scaling is not RealScaling.NONE:
        return Epilogue(residual=residual, table=table, real=_real_stage(op, first_shift))
    real = real_multiplier(op.input_scale, op.weight_scales, op.output_scale, op.multiplier)
    params = requantize_parameters(op.rounding, real)
    bounds = (op.output_min, op.output_max)
    form = code_form(op.rounding, params, op.output_zero_point, bounds, first_shift, reach)
    how = requantization(op.rounding, params, int(max(-reach[0].min(), reach[1].max()))) if form is None else None
    return Epilogue(form, how, op.output_zero_point, bounds, first_shift, residual, table)


def _residual(lowering: GraphLowering, op: AnyFused, shift: int) -> Residual | None:
    """The residual and how it is added to codes that are stored with `shift`."""
    if op.residual is None:
        return None
    place = lowering.place(op.residual)
    if not op.adds_codes:
        return Residual(place, None)
    addition = Addition(
        Quantization(op.output_scale, op.output_zero_point),
        Quantization(op.residual_scale, op.residual_zero_point, signed_shift(op.residual.type)),
        Quantization(op.sum_scale, op.sum_zero_point, shift),
        (op.sum_min, op.sum_max),
        op.sum_arithmetic,
        op.sum_rounding,
        op.sum_multiplier,
        swapped=op.residual_place is ResidualPlace.LEFT,
        left=(op.output_min, op.output_max),
    )
    return Residual(place, addition)


def _real_stage(op: AnyFused, shift: int) -> RealStage:
    """The stage of real numbers, whose codes get `shift`."""
    bias = required_constant("bias", op.bias)
    if not np.all(np.isfinite(bias)):
        raise CompileError("bias must be finite to be compiled, but got an infinity or NaN")
    residual = None
    if op.residual is not None and not op.adds_codes:
        residual = Quantization(op.residual_scale, op.residual_zero_point, signed_shift(op.residual.type))
    return RealStage(
        real_multiplier(op.input_scale, op.weight_scales, 1.0, op.multiplier).astype(np.float32),
        bias if bias.dtype == np.float32 else None,
        residual,
        op.activation,
        op.activation_alpha,
        Quantization(op.output_scale, op.output_zero_point, shift),
        (op.output_min, op.output_max),
        op.rounding,
        op.real_scaling,
    )


def stored_table(table: Table, input_shift: int, output_shift: int) -> Table:
    """A table between bit patterns as one between stored codes; shifts are 128 for signed, else 0."""
    index = (np.arange(256) - input_shift) % 256
    return ((table[index].astype(np.int64) + output_shift) % 256).astype(np.uint8)


def required_constant(name: str, value: ir.Value) -> NDArray[Any]:
    """The array behind an operand that must be a constant; raises `CompileError`."""
    array = constant_value(value)
    if array is None:
        raise CompileError(f"{name} must be a constant to be compiled, but got a value that is known at run time only")
    return array
