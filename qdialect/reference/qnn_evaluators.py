"""Evaluators of the separate `qnn` ops: each takes the op's attributes to the kernel that says what it means."""

from __future__ import annotations

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import (
    UNARY_OPS,
    AddOp,
    AvgPool2DOp,
    BroadcastOp,
    ClipOp,
    ConcatOp,
    ConstantOp,
    DequantizeOp,
    GatherOp,
    LutOp,
    MaxPool2DOp,
    MeanOp,
    MulOp,
    PadOp,
    QuantizeOp,
    RequantizeOp,
    ReshapeOp,
    SliceOp,
    SoftmaxOp,
    TransposeOp,
    UnaryOp,
)
from qdialect.dialect.constants import elements_array
from qdialect.dialect.type_constraints import dtype_of, range_of, shape_of
from qdialect.quant_math import (
    AddArithmetic,
    Division,
    FloatRounding,
    QuantParams,
    Scaling,
    Table,
    dequantize_array,
    elementwise,
    quantize_array,
    real_multiplier,
    requantize,
    requantize_parameters,
    softmax_tables,
)
from qdialect.quant_math.choices import SoftmaxArithmetic
from qdialect.reference import data_movement, pool, softmax
from qdialect.reference.evaluators import EVALUATORS, Array, Arrays, evaluates, last_axis


@evaluates(ConstantOp)
def _constant(op: ConstantOp, _: Arrays) -> Array:
    type_ = op.output.type
    return elements_array(ir.DenseElementsAttr(op.value), dtype_of(type_), shape_of(type_))


@evaluates(QuantizeOp)
def _quantize(op: QuantizeOp, operands: Arrays) -> Array:
    rounding, scaling = FloatRounding(op.rounding), Scaling(op.scaling)
    dtype = dtype_of(op.output.type)
    return quantize_array(operands[0], op.scales, op.zero_points, op.axis, dtype, rounding, scaling, op.nan)


@evaluates(DequantizeOp)
def _dequantize(op: DequantizeOp, operands: Arrays) -> Array:
    return dequantize_array(operands[0], op.scales, op.zero_points, op.axis)


@evaluates(RequantizeOp)
def _requantize(op: RequantizeOp, operands: Arrays) -> Array:
    f32 = real_multiplier(op.input_scale, op.weight_scales, op.output_scale, op.multiplier)
    params = requantize_parameters(op.rounding, f32)
    bounds, zero_points = range_of(op.output.type), np.array(op.input_zero_points, dtype=np.int64)

    def by_channel(values: Array) -> Array:
        return requantize(values.astype(np.int64) - zero_points, params, op.output_zero_point, *bounds, op.rounding)

    values = operands[0]
    return last_axis(values, op.axis, by_channel) if values.ndim else by_channel(values).reshape(())


@evaluates(ClipOp)
def _clip(op: ClipOp, operands: Arrays) -> Array:
    return np.clip(operands[0], op.min, op.max)


@evaluates(AddOp)
def _add(op: AddOp, operands: Arrays) -> Array:
    how = (AddArithmetic(op.arithmetic), op.rounding, op.multiplier)
    return elementwise.add(operands[0], operands[1], op.quantization, *how)


@evaluates(MulOp)
def _mul(op: MulOp, operands: Arrays) -> Array:
    how = (op.rounding, op.multiplier)
    return elementwise.mul(operands[0], operands[1], op.quantization, *how)


@evaluates(ConcatOp)
def _concat(op: ConcatOp, operands: Arrays) -> Array:
    pairs = zip(op.input_scales, op.input_zero_points, strict=True)
    params = [QuantParams(scale, zero_point) for scale, zero_point in pairs]
    output = QuantParams(op.output_scale, op.output_zero_point)
    bounds = range_of(op.output.type)
    return elementwise.concat(operands, params, op.axis, output, bounds, op.rounding, op.multiplier)


@evaluates(MaxPool2DOp)
def _max_pool2d(op: MaxPool2DOp, operands: Arrays) -> Array:
    return pool.max_pool2d(operands[0], *_window(op), op.output_min, op.output_max)


@evaluates(AvgPool2DOp)
def _avg_pool2d(op: AvgPool2DOp, operands: Arrays) -> Array:
    division = Division(op.division)
    return pool.avg_pool2d(
        operands[0],
        *_window(op),
        division,
        op.output_min,
        op.output_max,
        count_include_pad=op.count_include_pad,
        zero_point=op.zero_point,
    )


def _window(op: MaxPool2DOp | AvgPool2DOp) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int, int, int]]:
    top, left, bottom, right = op.padding
    return (op.kernel[0], op.kernel[1]), (op.strides[0], op.strides[1]), (top, left, bottom, right)


@evaluates(MeanOp)
def _mean(op: MeanOp, operands: Arrays) -> Array:
    return pool.mean(
        operands[0],
        op.axes,
        op.keep_dims,
        op.input_scale,
        op.input_zero_point,
        op.output_scale,
        op.output_zero_point,
        *range_of(op.output.type),
        op.rounding,
        op.multiplier,
    )


@evaluates(SoftmaxOp)
def _softmax(op: SoftmaxOp, operands: Arrays) -> Array:
    if op.arithmetic is SoftmaxArithmetic.TFLITE_FIXED:
        return softmax.softmax_fixed(operands[0], op.axis, softmax_tables.softmax_tables(op.input_scale, op.beta))
    output = (op.output_zero_point, *range_of(op.output.type))
    if op.arithmetic is SoftmaxArithmetic.ORT_TABLE:
        entries = softmax_tables.ort_entries(op.input_scale, op.beta, operands[0].shape[op.axis])
        return softmax.softmax_ort(operands[0], op.axis, entries, softmax_tables.ort_factor(op.output_scale), *output)
    return softmax.softmax_float(operands[0], op.axis, op.input_scale, op.beta, op.output_scale, *output)


@evaluates(PadOp)
def _pad(op: PadOp, operands: Arrays) -> Array:
    return data_movement.pad(operands[0], op.low, op.high, op.value)


@evaluates(ReshapeOp)
def _reshape(op: ReshapeOp, operands: Arrays) -> Array:
    return data_movement.reshape(operands[0], op.shape)


@evaluates(SliceOp)
def _slice(op: SliceOp, operands: Arrays) -> Array:
    return data_movement.slice_of(operands[0], op.begin, op.size, op.strides)


@evaluates(GatherOp)
def _gather(op: GatherOp, operands: Arrays) -> Array:
    return data_movement.gather(operands[0], op.axis, op.indices)


@evaluates(BroadcastOp)
def _broadcast(op: BroadcastOp, operands: Arrays) -> Array:
    return data_movement.broadcast(operands[0], op.shape)


@evaluates(TransposeOp)
def _transpose(op: TransposeOp, operands: Arrays) -> Array:
    return data_movement.transpose(operands[0], op.permutation)


def look_up(table: Table, values: Array, dtype: np.dtype[np.generic]) -> Array:
    """``table[bits(quantized values)]`` as quantized values of the 8-bit `dtype`."""
    return table[values.astype(np.int64) & 0xFF].view(dtype)


@evaluates(LutOp)
def _lut(op: LutOp, operands: Arrays) -> Array:
    return look_up(op.table, operands[0], dtype_of(op.output.type))


def _unary(op: UnaryOp, operands: Arrays) -> Array:
    return look_up(op.to_table(), operands[0], dtype_of(op.output.type))


EVALUATORS.add([op_class.OPERATION_NAME for op_class in UNARY_OPS], _unary)
