"""Evaluates convolutions and matrix products: separate, fused, of 16 bits, and with scales known at run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from qdialect import arithmetic
from qdialect import dialect as qnn
from qdialect.arithmetic import IntArray, block_weights
from qdialect.arithmetic.activations import ACTIVATIONS
from qdialect.arithmetic.choices import ActivationScale, BlockActivations, SumOrder
from qdialect.arithmetic.convolution import conv2d_accumulate, exact_conv2d
from qdialect.arithmetic.elementwise import add
from qdialect.arithmetic.requantization import i16_requantize
from qdialect.dialect import FusedOp
from qdialect.dialect.stages import builtin_stages as stages
from qdialect.dialect.stages.stage_base import Stage
from qdialect.dialect.type_constraints import NUMPY_DTYPES, QuantizedType, dtype_of
from qdialect.reference.evaluators import Array, Arrays, evaluates, nearest_rows
from qdialect.reference.qnn_evaluators import look_up

# The stages of an epilogue: from the values that a stage takes to those it leaves.


@dataclass(frozen=True)
class StageInputs:
    """The other inputs of a stage; `before` is the quantization of its values, if they are quantized."""

    op: FusedOp
    before: QuantizedType | None
    bias: Array
    """int32 or float32, of one entry for each channel; an int32 one is in the accumulators already."""
    residual: Array | None


StageEvaluator = Callable[[Any, Array, StageInputs], Array]
S = TypeVar("S", bound=Stage)

STAGE_EVALUATORS: dict[type[Stage], StageEvaluator] = {}


def evaluates_stage(stage_class: type[S]) -> Callable[[Callable[[S, Array, StageInputs], Array]], StageEvaluator]:
    """Register the decorated function as the meaning of a stage.

    Raises `ValueError` where the stage has a meaning already.
    """

    def register(evaluator: Callable[[S, Array, StageInputs], Array]) -> StageEvaluator:
        if stage_class in STAGE_EVALUATORS:
            raise ValueError(f"stage '{stage_class.name}' has an evaluator already")
        STAGE_EVALUATORS[stage_class] = evaluator
        return evaluator

    return register


evaluates_stage(stages.ActivationStage)(
    lambda stage, values, _: arithmetic.activate(stage.function, stage.alpha, values)
)


@evaluates_stage(stages.AddStage)
def _add(stage: stages.AddStage, values: Array, inputs: StageInputs) -> Array:
    assert inputs.residual is not None, "the verifier has seen a residual"
    assert inputs.before is not None, "the verifier has seen that values are quantized here"
    before, after = inputs.before, stage.quantized
    sides = [
        (values.astype(np.int64), arithmetic.QuantParams(before.scale, before.zero_point)),
        (inputs.residual, arithmetic.QuantParams(stage.residual_scale, stage.residual_zero_point)),
    ]
    if stage.residual_is_lhs:
        sides.reverse()
    (lhs, lhs_affine), (rhs, rhs_affine) = sides
    how = (stage.arithmetic, stage.rounding, stage.multiplier)
    output = arithmetic.QuantParams(after.scale, after.zero_point)
    return add(lhs, rhs, arithmetic.BinaryQuantization(lhs_affine, rhs_affine, output, after.range), *how)


evaluates_stage(stages.ClampStage)(lambda stage, values, _: np.clip(values, stage.min, stage.max))


@evaluates_stage(stages.DequantizeStage)
def _dequantize(stage: stages.DequantizeStage, accumulators: Array, inputs: StageInputs) -> Array:
    op = inputs.op
    scales = arithmetic.real_multiplier(op.input_scale, op.weight_scales, 1.0, stage.multiplier).astype(np.float32)
    values = accumulators.astype(np.float32) * scales
    return values if inputs.bias.dtype == np.int32 else values + inputs.bias


evaluates_stage(stages.LutStage)(
    lambda stage, values, _: look_up(stage.table, values, NUMPY_DTYPES[stage.quantized.element])
)


@evaluates_stage(stages.QuantizeStage)
def _quantize(stage: stages.QuantizeStage, values: Array, _: StageInputs) -> Array:
    after = stage.quantized
    return arithmetic.requantize_f32(values, after.scale, after.zero_point, *after.range, stage.rounding, stage.scaling)


@evaluates_stage(stages.RequantizeStage)
def _requantize(stage: stages.RequantizeStage, accumulators: Array, inputs: StageInputs) -> Array:
    op, after = inputs.op, stage.quantized
    multipliers = arithmetic.real_multiplier(op.input_scale, op.weight_scales, after.scale, stage.multiplier)
    parameters = arithmetic.requantize_parameters(stage.rounding, multipliers)
    return arithmetic.requantize(accumulators, parameters, after.zero_point, *after.range, stage.rounding)


@evaluates_stage(stages.SumStage)
def _sum(stage: stages.SumStage, values: Array, inputs: StageInputs) -> Array:
    assert inputs.residual is not None, "the verifier has seen a residual"
    return values + arithmetic.dequantize_array(inputs.residual, stage.residual_scale, stage.residual_zero_point, 0)


_Transposed = qnn.ConvTranspose2DOp | qnn.FusedConvTranspose2DOp


def matmul_accumulate(
    data: NDArray[np.integer[Any]],
    weight: NDArray[np.integer[Any]],
    input_zero_point: int,
    weight_zero_points: Sequence[int],
    bias: NDArray[np.int32] | None = None,
) -> NDArray[np.int32]:
    """acc[..., m, n] = bias[n] + sum over k of (data[..., m, k] - z_x) * (weight[..., k, n] - z_w[n]).

    `data` is [..., M, K], `weight` [..., K, N], their leading dimensions broadcast, or of a dense layer [K, N];
    `weight_zero_points` has one or N entries, `bias` is int32[N]; the result wraps modulo 2^32.  Sums are exact in
    float64.
    """
    points = (data.astype(np.int32) - input_zero_point).astype(np.float64)
    matrix = (weight.astype(np.int32) - np.asarray(weight_zero_points, dtype=np.int32)).astype(np.float64)
    acc = (points @ matrix).astype(np.int64)
    return (acc if bias is None else acc + bias).astype(np.int32)


def _transposed_accumulators(op: _Transposed, data: Array, weight: Array, bias: Array | None) -> NDArray[np.int32]:
    """See `qnn.conv_transpose2d`: the gradient of a convolution with respect to its data.

    Sums are taken in float64, which is exact.
    """
    strides, dilation, groups = op.strides, op.dilation, op.groups
    channels, kernel_h, kernel_w, depth = weight.shape
    batch, height, width, _ = data.shape
    zero_points = np.asarray(op.weight_zero_points, dtype=np.int32).reshape(-1, 1, 1, 1)
    taps = (weight.astype(np.int32) - zero_points).astype(np.float64)
    taps = taps.reshape(groups, channels // groups, kernel_h, kernel_w, depth)
    points = (data.astype(np.int32) - op.input_zero_point).astype(np.float64)
    points = points.reshape(-1, groups, depth).transpose(1, 0, 2)
    rows = (height - 1) * strides[0] + (kernel_h - 1) * dilation[0] + 1 + op.output_padding[0]
    columns = (width - 1) * strides[1] + (kernel_w - 1) * dilation[1] + 1 + op.output_padding[1]
    total = np.zeros((batch, rows, columns, channels))
    for i in range(kernel_h):
        for j in range(kernel_w):
            product = points @ taps[:, :, i, j, :].transpose(0, 2, 1)
            spread = product.transpose(1, 0, 2).reshape(batch, height, width, channels)
            y, x = i * dilation[0], j * dilation[1]
            y_end, x_end = y + (height - 1) * strides[0] + 1, x + (width - 1) * strides[1] + 1
            total[:, y : y_end : strides[0], x : x_end : strides[1], :] += spread
    top, left, bottom, right = op.padding
    acc = total[:, top : rows - bottom, left : columns - right].astype(np.int64)
    return (acc if bias is None else acc + bias).astype(np.int32)


@evaluates(qnn.Conv2DOp, qnn.ConvTranspose2DOp, qnn.DenseOp, qnn.MatMulOp)
def _contraction(op: qnn.AnyContraction, operands: Arrays) -> Array:
    return accumulators(op, *operands)


def accumulators(op: qnn.AnyContraction | qnn.AnyFused, data: Array, weight: Array, bias: Array | None = None) -> Array:
    """The int32 accumulators of a contraction, that of a fused op before its stages."""
    zero_points = (op.input_zero_point, op.weight_zero_points)
    if isinstance(op, qnn.Conv2DOp | qnn.FusedConv2DOp):
        return conv2d_accumulate(data, weight, *zero_points, op.strides, op.padding, op.dilation, op.groups, bias)
    if isinstance(op, _Transposed):
        return _transposed_accumulators(op, data, weight, bias)
    matrix = weight if isinstance(op, qnn.MatMulOp | qnn.FusedMatMulOp) else weight.T
    return matmul_accumulate(data, matrix, *zero_points, bias)


@evaluates(*qnn.CONTRACTION_CLASSES)
def _fused(op: qnn.AnyFused, operands: Arrays) -> Array:
    data, weight, bias, *rest = operands
    # A bias of integers belongs to the accumulators, one of f32 does not.
    values = accumulators(op, data, weight, bias if bias.dtype == np.int32 else None)
    residual = rest[0] if rest else None
    for placed in op.stages():
        inputs = StageInputs(op, placed.before, bias, residual)
        values = STAGE_EVALUATORS[type(placed.stage)](placed.stage, values, inputs)
    return values.astype(dtype_of(op.operation.results[0].type))


@evaluates(qnn.DynamicDenseOp)
def _dynamic_dense(op: qnn.DynamicDenseOp, operands: Arrays) -> Array:
    data, weight, _, zero_point, *_ = operands
    rows = data.shape[:-1]
    points = np.broadcast_to(zero_point.reshape(-1) if zero_point.size == 1 else zero_point, (*rows, 1))
    acc = matmul_accumulate(data.astype(np.int32) - points, weight.T, 0, op.weight_zero_points)
    return _f32_values(op, acc, operands)


@evaluates(qnn.DynamicConv2DOp)
def _dynamic_conv2d(op: qnn.DynamicConv2DOp, operands: Arrays) -> Array:
    data, weight, _, zero_point, *_ = operands
    how = (op.weight_zero_points, op.strides, op.padding, op.dilation, op.groups)
    acc = conv2d_accumulate(data, weight, int(zero_point.reshape(())), *how)
    return _f32_values(op, acc, operands)


def _f32_values(op: qnn.DynamicConv2DOp | qnn.DynamicDenseOp, acc: Array, operands: Arrays) -> Array:
    _, _, scale, _, *bias = operands
    scales = scale.reshape(()) if scale.size == 1 else scale
    with np.errstate(all="ignore"):
        values, weight_scales = acc.astype(np.float32), np.array(op.weight_scales, dtype=np.float32)
        values = values * weight_scales * scales if op.scale_last else values * (scales * weight_scales)
        biased = values + bias[0] if bias else values
        return ACTIVATIONS[op.activation].in_kernel(biased, alpha=op.alpha)


@evaluates(qnn.I16Conv2DOp)
def _i16_conv2d(op: qnn.I16Conv2DOp, operands: Arrays) -> Array:
    data, weight, *bias = operands
    top, left, bottom, right = op.padding
    padded = np.pad(data, ((0, 0), (top, bottom), (left, right), (0, 0)))
    return _i16_biased(exact_conv2d(padded, weight, op.strides, op.dilation, op.groups), bias)


@evaluates(qnn.I16DenseOp)
def _i16_dense(_: qnn.I16DenseOp, operands: Arrays) -> Array:
    data, weight, *bias = operands
    return _i16_biased(data.astype(np.int64) @ weight.astype(np.int64).T, bias)


@evaluates(qnn.I16MatmulOp)
def _i16_matmul(_: qnn.I16MatmulOp, operands: Arrays) -> Array:
    data, weight = operands
    return data.astype(np.int64) @ weight.astype(np.int64)


@evaluates(qnn.I16RequantizeOp)
def _i16_requantize(op: qnn.I16RequantizeOp, operands: Arrays) -> Array:
    scales = op.input_scale, op.weight_scales, op.output_scale
    ends = op.output_zero_point, op.output_min, op.output_max
    return i16_requantize(operands[0].astype(np.int64), *scales, *ends, op.rounding, op.multiplier)


def _i16_biased(total: IntArray, bias: Arrays) -> IntArray:
    """The interpreter's conversion to the result's type keeps the low bits."""
    return total + bias[0].astype(np.int64) if bias else total


@evaluates(qnn.BlockDenseOp)
def _block_dense(op: qnn.BlockDenseOp, operands: Arrays) -> Array:
    data, weights = operands[0], _block_weights(op, *operands[1:])
    if op.activations is BlockActivations.I8_BLOCK:
        quantized = block_weights.quantize_blocks(data, op.data_block, op.activation_scale is ActivationScale.F16)
        return block_weights.quantized_product(*quantized, weights, op.data_block)
    if op.order is SumOrder.BLOCKS:
        return block_weights.product_by_blocks(data, weights)
    if op.order is SumOrder.TERMS:
        return block_weights.ordered_product(data, weights.values(), is_rounded=op.rounded_products)
    with np.errstate(all="ignore"):
        return block_weights.ordered_product(data, weights.differences()) * weights.scales[:, 0]


@evaluates(qnn.BlockDynamicDenseOp)
def _block_dynamic_dense(op: qnn.BlockDynamicDenseOp, operands: Arrays) -> Array:
    data, weight, scale, zero_point, *parameters = operands
    weights, rows = _block_weights(op, weight, *parameters), (*data.shape[:-1], 1)
    scale, zero_point = (
        np.broadcast_to(one.reshape(-1) if one.size == 1 else one, rows) for one in (scale, zero_point)
    )
    scales = np.broadcast_to(scale, (*rows[:-1], weights.scales.shape[1]))
    return block_weights.quantized_product(data.astype(np.int32) - zero_point, scales, weights, op.block)


@evaluates(qnn.BlockGatherOp)
def _block_gather(op: qnn.BlockGatherOp, operands: Arrays) -> Array:
    values = _block_weights(op, *operands[1:]).values()
    return values[nearest_rows(operands[0], len(values))]


def _block_weights(
    op: qnn.BlockDenseOp | qnn.BlockDynamicDenseOp | qnn.BlockGatherOp,
    weight: Array,
    scales: Array,
    points: Array | None = None,
) -> block_weights.BlockWeights:
    return block_weights.BlockWeights.unpacked(weight, scales, points, op.bits, op.block, op.depth)
