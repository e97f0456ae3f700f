"""Convolutions, transposed ones too, and matrix products of quantized tensors, fused and alone."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic import IntArray
from qdialect.dialect import (
    AnyContraction,
    AnyFused,
    Conv2DOp,
    ConvTranspose2DOp,
    DenseOp,
    FusedConv2DOp,
    FusedConvTranspose2DOp,
    FusedDenseOp,
    FusedMatMulOp,
    MatMulOp,
)
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.cost.matrix_tiles import are_faster
from qdialect.lowering.cost.variants import ContractionShape, contraction_candidates, depthwise_candidates, varied
from qdialect.lowering.ir.errors import error_at
from qdialect.lowering.ir.strides import Axis, collapse, row_major
from qdialect.lowering.qnn_to_linalg.contractions.contraction import Contraction, emit_contraction
from qdialect.lowering.qnn_to_linalg.contractions.depthwise import emit_depthwise
from qdialect.lowering.qnn_to_linalg.contractions.depthwise_dot_product import calls_of
from qdialect.lowering.qnn_to_linalg.contractions.epilogue import Epilogue, stage_kernels
from qdialect.lowering.qnn_to_linalg.contractions.matrix_product import (
    Matrices,
    PackedMatrices,
    Product,
    emit_packing,
    emit_start,
)
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import (
    CenteredWeights,
    accumulator_bounds,
    center,
    factor_of_ones,
    folded_bias,
)
from qdialect.lowering.qnn_to_linalg.contractions.run_time_weights import (
    StoredConvolution,
    StoredDepthwise,
    emit_stored_depthwise,
    emit_stored_taps,
    emit_tap_products,
)
from qdialect.lowering.qnn_to_linalg.contractions.tile_contraction import pixel_blocks
from qdialect.lowering.qnn_to_linalg.contractions.word_contraction import with_stored_words
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.qnn_to_linalg.graph.padding import TransposedPhase, padding_of, transposed_phases
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand
from qdialect.lowering.qnn_to_linalg.kernels.geometry import Grid, Window
from qdialect.lowering.qnn_to_linalg.program.operands import required_constant, source_of
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Program
from qdialect.lowering.qnn_to_linalg.program.storage import signed_shift
from qdialect.support.interface import Tunable

# Kernels of which variants are measured: how each is described, and the strategy that it is written by.


@contextmanager
def tuned_contraction(program: Program, op: Contraction) -> Generator[None]:
    """What is emitted inside the `with` is written as the variant says that the network's module has for it.

    Raises `CompileError` for a variant that is no candidate.
    """
    if not _is_tuned(program):
        yield
        return
    shape = _shape(program, op)
    own, candidates = contraction_candidates(program.strategy, shape)
    title = f"{prod(shape.pixels)} pixels, {op.channels} channels, {shape.taps} taps"
    with _written_as(program, Tunable(_described(title, op, shape), own, tuple(candidates))):
        yield


@contextmanager
def tuned_depthwise(program: Program, op: Contraction) -> Generator[None]:
    """The same of a depthwise convolution."""
    if not _is_tuned(program):
        yield
        return
    strategy, (height, width) = program.strategy, op.window.output
    has_dots = strategy.interleaved_rows and calls_of(op, strategy)
    own, candidates = depthwise_candidates(strategy, height) if has_dots else ("taps", [])
    taps = "x".join(map(str, op.window.kernel))
    title = f"{height}x{width} pixels, {op.channels} channels, depthwise {taps}"
    with _written_as(program, Tunable(_described(title, op), own, tuple(candidates))):
        yield


def _is_tuned(program: Program) -> bool:
    # The parts of a kernel are not measured one by one.
    return program.variants is not None and program.whole is None


@contextmanager
def _written_as(program: Program, tunable: Tunable) -> Generator[None]:
    variant = (program.variants or {}).get(tunable.kernel, "")
    if variant not in ("", *tunable.candidates):
        wanted = ", ".join(tunable.candidates) or "empty"
        raise error_at(
            program.location or ir.Location.unknown(),
            f"variant of '{tunable.kernel}' must be one of {wanted}, but got '{variant}'",
        )
    own = program.strategy
    program.strategy = varied(own, variant) if variant else own
    program.tunable = Tunable(tunable.kernel, tunable.own, tunable.candidates, variant)
    try:
        yield
    finally:
        program.strategy, program.tunable = own, None


def _shape(program: Program, op: Contraction) -> ContractionShape:
    group = op.channel_groups()[0]
    axes, pixels = op.reduction_axes(group), op.pixel_axes()
    tiled = pixel_blocks(op, program.strategy, pixels)
    return ContractionShape(
        group.lanes,
        axes.taps,
        tuple(axis.size for axis in pixels),
        op.sums_pairs(program.strategy, group),
        are_faster(program.strategy.matrix_machine, tiled, (*axes.sizes, axes.k_groups), group.lanes),
        op.data.storage.bytes(),
        len(op.epilogue.channel_parameters()),
    )


def _described(title: str, op: Contraction, *more: object) -> str:
    """`title`, and a digest of all that speed depends on beside it."""
    groups = op.channel_groups()
    stages = [type(stage).__name__ for stage in op.epilogue.stages]
    parts: Sequence[object] = (
        [(slot.storage, slot.signed) for slot in op.slots],
        (op.window, op.grid, op.pixel_axes(), groups),
        [(axes.extents, axes.strides, axes.spare) for axes in map(op.reduction_axes, groups)],
        (stages, op.zero_points.any(), factor_of_ones(op.zero_points) == 1, *more),
    )
    return f"{title} #{sha256(repr(parts).encode()).hexdigest()[:10]}"


# Convolution and matrix product, fused and alone.


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


# Convolution and dense with weights that are computed or given at run time.

AnyOp = Conv2DOp | FusedConv2DOp | DenseOp | FusedDenseOp
_LARGEST_PRODUCT = 255 * 255


def far_range(op: AnyOp, bias: NDArray[np.int32]) -> tuple[IntArray, IntArray]:
    """The range of the accumulators of each channel, whatever the weights are."""
    wide, far = bias.astype(np.int64), _LARGEST_PRODUCT * int(np.prod(shape_of(op.weight.type)[1:]))
    return wide - far, wide + far


@dataclass(frozen=True)
class _Operands:
    """What both kinds of kernels pack weights from."""

    source: MapOperand
    """The weights, [OC, KH, KW, IC / groups]."""
    shape: tuple[int, int, int, int]
    start: NDArray[np.int32]
    """What accumulators start at, before zero points are folded in."""
    data_zero_point: int
    zero_points: NDArray[np.int32]
    """Of stored quantized values, as that of the data."""


def lower_run_time_weights(
    lowering: GraphLowering, op: AnyOp, epilogue: Epilogue, bias: NDArray[np.int32], window: Window
) -> None:
    """Append the kernel calls that pack the weights of `op`, and those of its products."""
    operands = _operands_of(lowering, op, epilogue.start(bias))
    groups = op.groups if isinstance(op, Conv2DOp | FusedConv2DOp) else 1
    if 1 < groups == shape_of(op.data.type)[-1] == operands.shape[0]:
        _lower_depthwise(lowering, op, epilogue, operands, window)
        return
    points = operands.zero_points
    taps = emit_tap_products(
        lowering.program, operands.source, operands.shape, groups, operands.start, operands.data_zero_point, points
    )
    data, output = lowering.slot(op.data, padding_of(op)), lowering.result(op.operation.results[0])
    convolution = StoredConvolution(data, output, epilogue, window, taps, points - 128)
    emit_contraction(lowering.program, convolution, op.operation.name)


def _operands_of(lowering: GraphLowering, op: AnyOp, start: NDArray[np.int32]) -> _Operands:
    shape, slot = shape_of(op.weight.type), lowering.slot(op.weight)
    strides = dim_strides(shape, slot.storage)
    rows, columns = shape[1:-1] or (1, 1)
    steps = (strides[0], *(strides[1:-1] or (0, 0)), strides[-1])
    return _Operands(
        MapOperand(slot, steps, slot.storage.origin),
        (shape[0], rows, columns, shape[-1]),
        start,
        op.input_zero_point + signed_shift(op.data.type),
        np.array(op.weight_zero_points, dtype=np.int32) + signed_shift(op.weight.type),
    )


def _lower_depthwise(
    lowering: GraphLowering, op: AnyOp, epilogue: Epilogue, operands: _Operands, window: Window
) -> None:
    planes = replace(operands.source, strides=operands.source.strides[:-1])
    taps = emit_stored_taps(
        lowering.program, planes, operands.shape[:-1], operands.start, operands.data_zero_point, operands.zero_points
    )
    data, output = lowering.slot(op.data, padding_of(op)), lowering.result(op.operation.results[0])
    emit_stored_depthwise(lowering.program, StoredDepthwise(data, output, epilogue, window, taps), op.operation.name)


# Transposed convolution: one ordinary convolution for each phase of the result (`lowering.transposed_phases`).


@lowers(ConvTranspose2DOp, FusedConvTranspose2DOp)
def _conv_transpose2d(lowering: GraphLowering, op: ConvTranspose2DOp | FusedConvTranspose2DOp) -> None:
    taps = taps_of(op)
    epilogue = epilogue_of(lowering, op, matrix_of(op, taps).accumulator_range)
    data, output = lowering.slot(op.data, padding_of(op)), lowering.result(op.operation.results[0])
    rows, columns = transposed_phases(op)
    images = shape_of(op.data.type)[0]
    for row in rows:
        for column in columns:
            matrix, window = _convolution(op, taps, images, row, column)
            grid = Grid((row.start, column.start), (op.strides[0], op.strides[1]))
            part = Contraction(
                data, output, epilogue, window, matrix.weights, epilogue.start(matrix.bias), op.groups, grid
            )
            emit_convolution(lowering, part, op.operation.name)


def _convolution(
    op: ConvTranspose2DOp | FusedConvTranspose2DOp,
    taps: NDArray[Any],
    images: int,
    row: TransposedPhase,
    column: TransposedPhase,
) -> tuple[Matrix, Window]:
    """Weights and window of one phase; where no tap meets its elements, a weight of zero looks at the first pixel."""
    size = row.count, column.count
    if not row.taps or not column.taps:
        bias = bias_of(op)
        weights = CenteredWeights(np.zeros_like(taps[:, :1, :1], np.int8), np.zeros_like(bias))
        return Matrix(weights, bias, (bias.astype(np.int64), bias.astype(np.int64))), Window(
            images, size, (1, 1), (0, 0), (1, 1), (0, 0)
        )
    matrix = matrix_of(op, taps[:, row.taps][:, :, column.taps])
    kernel = len(row.taps), len(column.taps)
    dilation, padding = (row.dilation, column.dilation), (-row.first, -column.first)
    return matrix, Window(images, size, kernel, (1, 1), dilation, padding)


# Products of two tensors: the right one is packed, then every batch is a contraction.


@lowers(MatMulOp, FusedMatMulOp)
def _matmul(lowering: GraphLowering, op: MatMulOp | FusedMatMulOp) -> None:
    bias, depth = bias_of(op), shape_of(op.weight.type)[-2]
    wide, far = bias.astype(np.int64), _LARGEST_PRODUCT * depth
    epilogue = epilogue_of(lowering, op, (wide - far, wide + far))
    data, matrices = _stored(lowering, op.data), _matrices(lowering, op.weight)
    stored = np.array(op.weight_zero_points, dtype=np.int32) + signed_shift(op.weight.type)
    packed = emit_packing(lowering.program, matrices)
    points = op.input_zero_point + signed_shift(op.data.type), stored
    start = emit_start(lowering.program, matrices, packed, epilogue.start(bias), points)
    right = PackedMatrices(matrices, packed, start)
    output = lowering.result(op.operation.results[0])
    result = op.operation.results[0]
    tensors = [_Tensor.of(result, slot) for slot in (output, epilogue.residual) if slot is not None]
    axes = _axes(op, [data, *tensors])
    rows = [Axis(axis.size, axis.strides[:-1]) for axis in axes if axis.strides[-1] == 0]
    among = [axis for axis in axes if axis.strides[-1] != 0]
    *outer, last = among or [Axis(1, (0,) * (len(tensors) + 2))]
    rows = rows or [Axis(1, (0,) * (len(tensors) + 1))]
    for indices in product(*(range(axis.size) for axis in outer)):
        steps = [[index * stride for stride in axis.strides] for index, axis in zip(indices, outer, strict=True)]
        offsets = tuple(sum(own) for own in zip(*steps, strict=True)) or (0,) * (len(tensors) + 2)
        part = Product(data.slot, output, epilogue, right, stored - 128, last, rows, offsets)
        emit_contraction(lowering.program, part, op.operation.name)


@dataclass(frozen=True)
class _Tensor:
    """A tensor of `shape`, and the elements from one index of each dimension to the next in its buffer."""

    slot: BufferSlot
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, value: ir.Value, slot: BufferSlot) -> _Tensor:
        """That of a stored value."""
        shape = shape_of(value.type)
        return cls(slot, shape, dim_strides(shape, slot.storage))


def _stored(lowering: GraphLowering, value: ir.Value) -> _Tensor:
    """`value`, perhaps in the tensor that it is a transposition of."""
    transpose = source_of(value)
    if transpose is None:
        return _Tensor.of(value, lowering.slot(value))
    source = _Tensor.of(transpose.input, lowering.slot(transpose.input))
    order = tuple(transpose.permutation)
    shape, strides = (tuple(numbers[axis] for axis in order) for numbers in (source.shape, source.strides))
    return _Tensor(source.slot, shape, strides)


def _matrices(lowering: GraphLowering, value: ir.Value) -> Matrices:
    tensor = _stored(lowering, value)
    leading = [Axis(size, (stride,)) for size, stride in zip(tensor.shape[:-2], tensor.strides, strict=False)]
    depth, channels = tensor.shape[-2:]
    return Matrices(tensor.slot, tuple(collapse(leading)), tensor.strides[-2], depth, channels, tensor.strides[-1])


def _axes(op: MatMulOp | FusedMatMulOp, tensors: list[_Tensor]) -> list[Axis]:
    """The dimensions before the channels: strides of each tensor and of the matrix, merged where contiguous."""
    *leading, rows, _ = shape_of(op.operation.results[0].type)
    matrices = shape_of(op.weight.type)[:-2]
    orders = row_major(matrices)
    steps = [_aligned(tensor.shape[:-2], tensor.strides[:-2], len(leading)) for tensor in tensors]
    steps.append(_aligned(matrices, orders, len(leading)))
    axes = [Axis(extent, tuple(step[i] for step in steps)) for i, extent in enumerate(leading)]
    return collapse([*axes, Axis(rows, (*(tensor.strides[-2] for tensor in tensors), 0))])


def _aligned(shape: tuple[int, ...], strides: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Strides of the last of `rank` dimensions; where the tensor is broadcast it does not move."""
    moving = tuple(stride if extent > 1 else 0 for extent, stride in zip(shape, strides, strict=True))
    return (0,) * (rank - len(shape)) + moving
