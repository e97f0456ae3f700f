"""Convolutions, transposed ones too, and matrix products of quantized tensors: fused, alone, with run-time scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect import dialect as qnn
from qdialect.arithmetic import IntArray
from qdialect.arithmetic.activations import ACTIVATIONS, Activation
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.functions import required_constant
from qdialect.lowering.ir.views import Axis, collapse, row_major
from qdialect.lowering.qnn_to_linalg.bodies.scalar_ops import emit_expression
from qdialect.lowering.qnn_to_linalg.contractions import contraction as contractions
from qdialect.lowering.qnn_to_linalg.contractions import packed_weights, stored_weights
from qdialect.lowering.qnn_to_linalg.contractions.emission import emit
from qdialect.lowering.qnn_to_linalg.conversions.maps import broadcast_strides
from qdialect.lowering.qnn_to_linalg.graph.fusion_groups import ResultEpilogue
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.qnn_to_linalg.graph.padding import TransposedPhase, padding_of, transposed_phases
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand
from qdialect.lowering.qnn_to_linalg.kernels.geometry import Grid, Window
from qdialect.lowering.qnn_to_linalg.program.operands import known_number, source_of
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel, signed_shift
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Body, Value
from qdialect.lowering.qnn_to_linalg.stages.stage_kernel import EmitStage, EpiloguePart, RowParameter
from qdialect.support.diagnostics import CompileError

AnyOp = qnn.Conv2DOp | qnn.FusedConv2DOp | qnn.DenseOp | qnn.FusedDenseOp
_LARGEST_PRODUCT = 255 * 255


@lowers(qnn.Conv2DOp, qnn.FusedConv2DOp, qnn.DenseOp, qnn.FusedDenseOp)
def _contraction(lowering: GraphLowering, op: AnyOp) -> None:
    if constant_value(op.weight) is None:
        lower_run_time_weights(lowering, op)
        return
    weights, bounds = weights_of(op, taps_of(op), is_signed=lowering.is_signed(op.data))
    epilogue = epilogue_of(lowering, op, bounds)
    weights = replace(weights, bias=epilogue.start(weights.bias))
    data, output = data_of(lowering, op), lowering.result(op.operation.results[0])
    contraction = contractions.convolution(data, output, epilogue, window_of(op, data), weights, groups_of(op))
    emit(lowering.program, contraction, op.operation.name)


def taps_of(op: qnn.AnyContraction | qnn.AnyFused | qnn.AnyDynamic | qnn.AnyI16Contraction) -> NDArray[Any]:
    """The weights as [OC, KH, KW, IC / groups]; the rows of a matrix are taps of a 1x1 kernel."""
    weight = required_constant("weight", op.weight)
    return weight.reshape(weight.shape[0], *(weight.shape[1:-1] or (1, 1)), -1)


def groups_of(op: AnyOp | qnn.AnyDynamic | qnn.AnyI16Contraction) -> int:
    """Groups of a contraction."""
    return op.groups if isinstance(op, qnn.Conv2DOp | qnn.FusedConv2DOp | qnn.DynamicConv2DOp | qnn.I16Conv2DOp) else 1


def data_of(lowering: GraphLowering, op: AnyOp | qnn.AnyDynamic | qnn.AnyI16Contraction) -> BufferSlot:
    """The data of a contraction, with the padding of a convolution around it."""
    return lowering.slot(op.data, padding_of(op))


def window_of(op: AnyOp | qnn.AnyDynamic | qnn.AnyI16Contraction, data: BufferSlot) -> Window:
    """The window of a convolution; every row of a matrix is a pixel that one tap looks at."""
    if not isinstance(op, qnn.Conv2DOp | qnn.FusedConv2DOp | qnn.DynamicConv2DOp | qnn.I16Conv2DOp):
        images, height, width, _ = data.storage.shape
        return Window(images, (height, width), (1, 1), (1, 1), (1, 1), (0, 0))
    images, height, width, _ = shape_of(op.operation.results[0].type)
    _, rows, columns, _ = shape_of(op.weight.type)
    strides, dilation = (op.strides[0], op.strides[1]), (op.dilation[0], op.dilation[1])
    return Window(images, (height, width), (rows, columns), strides, dilation, (op.padding[0], op.padding[1]))


def weights_of(
    op: qnn.AnyContraction | qnn.AnyFused, taps: NDArray[Any], *, is_signed: bool = False
) -> tuple[packed_weights.ConstantWeights, tuple[IntArray, IntArray]]:
    """The parameters that kernels need for `taps`, `op`'s weights or a part of them, and the range of the accumulators.

    Kernels read stored values of the data, or quantized values as they are where the data `is_signed`.
    """
    weights, start = packed_weights.center(taps, op.weight_zero_points), bias_of(op)
    stored = op.input_zero_point + signed_shift(op.data.type)
    folded = packed_weights.folded_bias(weights, start, op.input_zero_point if is_signed else stored)
    return packed_weights.ConstantWeights(weights, folded), packed_weights.accumulator_bounds(weights, start, stored)


def bias_of(op: qnn.AnyContraction | qnn.AnyFused) -> NDArray[np.int32]:
    """The initial accumulators of each output channel: the bias, zeros if it is absent or f32."""
    bias = None if op.bias is None else required_constant("bias", op.bias)
    if bias is None or bias.dtype != np.int32:
        return np.zeros(shape_of(op.operation.results[0].type)[-1], np.int32)
    return bias


def epilogue_of(
    lowering: GraphLowering, op: qnn.AnyContraction | qnn.AnyFused, accumulator_range: tuple[IntArray, IntArray]
) -> contractions.Epilogue:
    """The stages of a fused op for accumulators in `accumulator_range`, by channel; no stages of any other op."""
    if not isinstance(op, qnn.AnyFused):
        return contractions.Epilogue()
    residual = None if op.residual is None else lowering.slot(op.residual)
    stages = contractions.stage_kernels(op, accumulator_range, lowering.program.strategy.forms)
    return contractions.Epilogue(stages, residual)


# Convolution and dense with weights that are computed or given at run time.


def lower_run_time_weights(lowering: GraphLowering, op: AnyOp) -> None:
    """Append the kernel calls that pack the weights of `op`, and those of its products."""
    weight, bias, program, groups = shape_of(op.weight.type), bias_of(op), lowering.program, groups_of(op)
    epilogue = epilogue_of(lowering, op, accumulator_range_of_any_weights(bias, int(np.prod(weight[1:]))))
    slot = lowering.slot(op.weight)
    of_channel, *of_taps, of_input = dim_strides(weight, slot.storage)
    source = MapOperand(slot, (of_channel, *(of_taps or (0, 0)), of_input), slot.storage.origin)
    channels, (rows, columns), depth = weight[0], weight[1:-1] or (1, 1), weight[-1]
    zero_points = np.array(op.weight_zero_points, dtype=np.int32) + signed_shift(op.weight.type)
    how = epilogue.start(bias), op.input_zero_point + signed_shift(op.data.type), zero_points
    if 1 < groups == shape_of(op.data.type)[-1] == channels:
        weights = stored_weights.emit_stored_taps(
            program, replace(source, strides=source.strides[:-1]), (channels, rows, columns), *how
        )
    else:
        weights = stored_weights.emit_tap_products(program, source, (channels, rows, columns, depth), groups, *how)
    data, output = data_of(lowering, op), lowering.result(op.operation.results[0])
    emit(program, contractions.convolution(data, output, epilogue, window_of(op, data), weights), op.operation.name)


def accumulator_range_of_any_weights(bias: NDArray[np.int32], taps: int) -> tuple[IntArray, IntArray]:
    """The range of the accumulators of each channel, whatever its weights are."""
    wide = bias.astype(np.int64)
    return wide - _LARGEST_PRODUCT * taps, wide + _LARGEST_PRODUCT * taps


# Transposed convolution: one ordinary convolution for each phase of the result (`lowering.transposed_phases`).


@lowers(qnn.ConvTranspose2DOp, qnn.FusedConvTranspose2DOp)
def _conv_transpose2d(lowering: GraphLowering, op: qnn.ConvTranspose2DOp | qnn.FusedConvTranspose2DOp) -> None:
    taps = taps_of(op)
    epilogue = epilogue_of(lowering, op, weights_of(op, taps)[1])
    data, output = lowering.slot(op.data, padding_of(op)), lowering.result(op.operation.results[0])
    rows, columns = transposed_phases(op)
    images = shape_of(op.data.type)[0]
    for row in rows:
        for column in columns:
            weights, window = _phase(op, taps, images, row, column)
            weights = replace(weights, bias=epilogue.start(weights.bias))
            grid = Grid((row.start, column.start), (op.strides[0], op.strides[1]))
            part = contractions.convolution(data, output, epilogue, window, weights, op.groups, grid)
            emit(lowering.program, part, op.operation.name)


def _phase(
    op: qnn.ConvTranspose2DOp | qnn.FusedConvTranspose2DOp,
    taps: NDArray[Any],
    images: int,
    row: TransposedPhase,
    column: TransposedPhase,
) -> tuple[packed_weights.ConstantWeights, Window]:
    """Weights and window of one phase; where no tap meets its elements, a weight of zero looks at the first pixel."""
    size = row.count, column.count
    if not row.taps or not column.taps:
        bias = bias_of(op)
        weights = packed_weights.CenteredWeights(np.zeros_like(taps[:, :1, :1], np.int8), np.zeros_like(bias))
        return packed_weights.ConstantWeights(weights, bias), Window(images, size, (1, 1), (0, 0), (1, 1), (0, 0))
    weights, _ = weights_of(op, taps[:, row.taps][:, :, column.taps])
    kernel = len(row.taps), len(column.taps)
    dilation, padding = (row.dilation, column.dilation), (-row.first, -column.first)
    return weights, Window(images, size, kernel, (1, 1), dilation, padding)


# Products of two tensors: the right one is packed, then every batch is a contraction.


@lowers(qnn.MatMulOp, qnn.FusedMatMulOp)
def _matmul(lowering: GraphLowering, op: qnn.MatMulOp | qnn.FusedMatMulOp) -> None:
    bias, result = bias_of(op), op.operation.results[0]
    epilogue = epilogue_of(lowering, op, accumulator_range_of_any_weights(bias, shape_of(op.weight.type)[-2]))
    data, right = stored_tensor(lowering, op.data), stored_tensor(lowering, op.weight)
    points = np.array(op.weight_zero_points, dtype=np.int32) + signed_shift(op.weight.type)
    how = epilogue.start(bias), (op.input_zero_point + signed_shift(op.data.type), points)
    weights = stored_weights.emit_matrices(lowering.program, matrices_of(right), *how)
    emit_batches(lowering, op, data, shape_of(op.weight.type), weights, lowering.result(result), epilogue)


def emit_batches(
    lowering: GraphLowering,
    op: qnn.MatMulOp | qnn.FusedMatMulOp | qnn.F32MatmulOp,
    data: StoredTensor,
    matrices: tuple[int, ...],
    weights: contractions.StoredWeights,
    output: BufferSlot,
    epilogue: contractions.Epilogue,
    *,
    is_rounded: bool = False,
) -> None:
    """Append the kernel calls of products with `weights`, whose shape is that of `matrices`."""
    result = op.operation.results[0]
    tensors = [data, *(StoredTensor.of(result, slot) for slot in (output, epilogue.residual) if slot is not None)]
    axes = _axes(shape_of(result.type), matrices, tensors)
    rows = [axis for axis in axes if axis.strides[-1] == 0]
    *outer, last = [axis for axis in axes if axis.strides[-1] != 0] or [Axis(1, (0,) * (len(tensors) + 1))]
    for indices in product(*(range(axis.size) for axis in outer)):
        moved = [
            sum(i * axis.strides[k] for i, axis in zip(indices, outer, strict=True)) for k in range(len(last.strides))
        ]
        accesses = tuple(
            contractions.Access(
                tensor.slot, tensor.slot.storage.origin + moved[k], tuple(axis.strides[k] for axis in rows)
            )
            for k, tensor in enumerate(tensors)
        )
        extents = tuple(axis.size for axis in rows)
        own = replace(weights, first=moved[-1])
        part = contractions.Contraction(accesses, extents, own, epilogue, batch=last, is_rounded=is_rounded)
        emit(lowering.program, part, op.operation.name)


@dataclass(frozen=True)
class StoredTensor:
    """A tensor of `shape`, and the elements from one index of each dimension to the next in its buffer."""

    slot: BufferSlot
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, value: ir.Value, slot: BufferSlot) -> StoredTensor:
        shape = shape_of(value.type)
        return cls(slot, shape, dim_strides(shape, slot.storage))


def stored_tensor(lowering: GraphLowering, value: ir.Value) -> StoredTensor:
    """`value`, perhaps in the tensor that it is a transposition of."""
    transpose = source_of(value)
    if transpose is None:
        return StoredTensor.of(value, lowering.slot(value))
    source = StoredTensor.of(transpose.input, lowering.slot(transpose.input))
    order = tuple(transpose.permutation)
    shape, strides = (tuple(numbers[axis] for axis in order) for numbers in (source.shape, source.strides))
    return StoredTensor(source.slot, shape, strides)


def matrices_of(tensor: StoredTensor) -> contractions.Matrices:
    """A tensor as the right operand of products."""
    leading = [Axis(size, (stride,)) for size, stride in zip(tensor.shape[:-2], tensor.strides, strict=False)]
    depth, channels = tensor.shape[-2:]
    return contractions.Matrices(
        tensor.slot, tuple(collapse(leading)), tensor.strides[-2], depth, channels, tensor.strides[-1]
    )


def _axes(result: tuple[int, ...], matrices: tuple[int, ...], tensors: list[StoredTensor]) -> list[Axis]:
    """The dimensions before the channels: strides of each tensor and of the matrix, merged where contiguous."""
    (*leading, rows, _), matrices = result, matrices[:-2]
    steps = [broadcast_strides(tensor.shape[:-2], tensor.strides[:-2], tuple(leading)) for tensor in tensors]
    steps.append(broadcast_strides(matrices, row_major(matrices), tuple(leading)))
    axes = [Axis(extent, tuple(step[i] for step in steps)) for i, extent in enumerate(leading)]
    return collapse([*axes, Axis(rows, (*(tensor.strides[-2] for tensor in tensors), 0))])


# Products whose scale and zero point are known at run time only: an epilogue of their own.


@lowers(qnn.DynamicConv2DOp, qnn.DynamicDenseOp)
def _dynamic(lowering: GraphLowering, op: qnn.AnyDynamic) -> None:
    weights, data = packed_weights.center(taps_of(op), op.weight_zero_points), data_of(lowering, op)
    known = known_number(op.zero_point)
    point = 0 if known is None else int(known) + signed_shift(op.data.type)
    further = lowering.epilogue(op)
    parts = (_RunTimeDequantize.of(lowering, op, weights), *([ElementWise(further)] if further else []))
    start = np.zeros(shape_of(op.weight.type)[0], np.int32)
    constant = packed_weights.ConstantWeights(weights, packed_weights.folded_bias(weights, start, point))
    window = window_of(op, data)
    contraction = contractions.convolution(
        data, lowering.product(op), contractions.Epilogue(parts), window, constant, groups_of(op)
    )
    emit(lowering.program, contraction, op.operation.name)


@dataclass(frozen=True)
class _RunTimeDequantize(EpiloguePart):
    """``float32(acc - zero_point * sums) * (scale * scales) + bias`` and `activation` of it, constants folded.

    Where the scale is the last factor, it is ``float32(acc - zero_point * sums) * scales * scale``.
    """

    scales: NDArray[np.float32]
    sums: NDArray[np.int32] | None
    """Of the weights of each channel; None where the accumulators are free of the zero point."""
    bias: NDArray[np.float32] | None
    scale: RowParameter | float
    """Or a constant: 1 where it is folded."""
    is_last: bool
    zero_point: RowParameter | None
    activation: Activation
    alpha: float

    @classmethod
    def of(
        cls, lowering: GraphLowering, op: qnn.AnyDynamic, weights: packed_weights.CenteredWeights
    ) -> _RunTimeDequantize:
        """That of `op`; raises `CompileError` where the bias is not constant and finite."""
        scales, known = np.array(op.weight_scales, dtype=np.float32), known_number(op.scale)
        bias = None if op.bias is None else required_constant("bias", op.bias)
        if bias is not None and not np.all(np.isfinite(bias)):
            raise CompileError("bias must be finite to be compiled, but got an infinity or NaN")
        scale = _row_parameter(lowering, "row_scale", op.scale) if known is None else float(known)
        if not op.scale_last and not isinstance(scale, RowParameter):
            scale, scales = 1.0, np.float32(scale) * scales
        factors, function = (scale, op.scale_last), (op.activation, op.alpha)
        if known_number(op.zero_point) is not None:
            return cls(scales, None, bias, *factors, None, *function)
        start = np.zeros(shape_of(op.weight.type)[0], np.int32)
        sums = packed_weights.folded_bias(weights, start, -1)
        return cls(scales, sums, bias, *factors, _row_parameter(lowering, "row_zero_point", op.zero_point), *function)

    def channel_parameters(self) -> list[tuple[str, NDArray[Any]]]:
        named = [("scale", self.scales), ("weight_sum", self.sums), ("f32_bias", self.bias)]
        return [(name, values) for name, values in named if values is not None]

    def row_parameters(self) -> Sequence[RowParameter]:
        return [one for one in (self.scale, self.zero_point) if isinstance(one, RowParameter)]

    def declare(self, kernel: Kernel) -> EmitStage:

        def emit(body: Body, acc: Value, parameters: Sequence[Value], _: Value | None) -> Value:
            names = [*(name for name, _ in self.channel_parameters()), *(one.name for one in self.row_parameters())]
            held = dict(zip(names, parameters, strict=True))
            if self.zero_point is not None:
                point = body.cast("arith.extui", held["row_zero_point"], "i32")
                acc = body.subtract(acc, body.multiply(point, held["weight_sum"]))
            value = self._scaled(body, body.cast("arith.sitofp", acc, "f32"), held)
            biased = value if self.bias is None else body.add(value, held["f32_bias"])
            alpha = self.alpha if self.activation.has_alpha else None
            return emit_expression(body, ACTIVATIONS[self.activation], biased, alpha=alpha)

        return emit

    def _scaled(self, body: Body, value: Value, held: Mapping[str, Value]) -> Value:
        if not isinstance(self.scale, RowParameter):
            scaled = body.multiply(value, held["scale"])
            return scaled if self.scale == 1 else body.multiply(scaled, body.constant(self.scale, "f32"))
        if self.is_last:
            return body.multiply(body.multiply(value, held["scale"]), held["row_scale"])
        return body.multiply(value, body.multiply(held["row_scale"], held["scale"]))


@dataclass(frozen=True)
class ElementWise(EpiloguePart):
    """Element-wise ops on the f32 values."""

    epilogue: ResultEpilogue

    def channel_parameters(self) -> list[tuple[str, NDArray[Any]]]:
        return [(f"channels{i}", array) for i, array in enumerate(self.epilogue.arrays())]

    def declare(self, kernel: Kernel) -> EmitStage:
        return lambda body, value, parameters, _: self.epilogue.emit(body, value, parameters)


def _row_parameter(lowering: GraphLowering, name: str, value: ir.Value) -> RowParameter:
    slot = lowering.slot(value)
    is_single = prod(shape_of(value.type)) == 1
    image, row, column, _ = slot.storage.strides
    return RowParameter(name, slot, (0, 0, 0) if is_single else (image, row, column))
