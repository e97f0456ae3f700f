"""Contractions of f32 values, and others that no dot product sums up: reductions along vectors of results."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.choices import SumOrder
from qdialect.dialect import F32Conv2DOp, F32MatmulOp, I16Conv2DOp, I16DenseOp, I16MatmulOp
from qdialect.dialect.constants import constant_value
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.lowering.ir.functions import required_constant
from qdialect.lowering.ir.views import row_major
from qdialect.lowering.qnn_to_linalg.contractions.block_weights import pack_floats, small_form
from qdialect.lowering.qnn_to_linalg.contractions.contraction import Epilogue, convolution
from qdialect.lowering.qnn_to_linalg.contractions.emission import emit
from qdialect.lowering.qnn_to_linalg.contractions.packed_weights import CenteredWeights, ConstantWeights
from qdialect.lowering.qnn_to_linalg.contractions.stored_weights import emit_floats
from qdialect.lowering.qnn_to_linalg.contractions.widened_products import multiplies_pairs, multiplies_stored_pairs
from qdialect.lowering.qnn_to_linalg.conversions import block_contraction, contraction
from qdialect.lowering.qnn_to_linalg.conversions.contraction import ElementWise
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, dim_strides, lowers, stored_operand
from qdialect.lowering.qnn_to_linalg.kernels import reduction as reductions
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand
from qdialect.lowering.qnn_to_linalg.kernels.geometry import Window
from qdialect.lowering.qnn_to_linalg.program.operands import picked_matrices
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel

_ROWS, _YMM_ROWS = 8, 6
"""Of a tile of products; with 256 bits 16 registers hold the sums of six rows of two vectors, and three operands."""
_YMM = _WHOLE = 8
AnyReduced = F32Conv2DOp | I16Conv2DOp | I16DenseOp | I16MatmulOp


@dataclass(frozen=True)
class ReducedProducts:
    """How the products of a weight and a number of the data are summed up, in tiles of `rows` by `width`."""

    fold: reductions.Fold
    epilogue: Callable[[slice], tuple[list[MapOperand], reductions.Finish]]
    """The function of the sums of some channels, and its operands."""
    width: int
    rows: int

    def emit_convolution(
        self, lowering: GraphLowering, op: F32Conv2DOp | I16Conv2DOp, data: MapOperand, output: BufferSlot
    ) -> None:
        """Append the kernel calls of `op`; `data` begins with the first window.

        Groups are reductions of their own; those of one channel are one, along the channels.
        """
        weight = required_constant("weight", op.weight)
        channels, rows, columns, depth = weight.shape
        is_depthwise = depth == 1 and channels == op.groups
        groups = 1 if is_depthwise else op.groups
        across = channels // groups
        image, row, column, _ = data.strides
        (y, x), (down, right) = op.strides, op.dilation
        kept = (*shape_of(op.output.type)[:3], across)
        for first in range(0, channels, across):
            part = slice(first, first + across)
            taps = np.ascontiguousarray(weight[part].transpose(1, 2, 3, 0))
            start = data.offset + first // across * depth
            windows = MapOperand(data.source, (image, y * row, x * column, int(is_depthwise)), start)
            inputs = (
                reductions.Reduced(MapOperand(taps, (0, 0, 0, 1)), (columns * depth * across, depth * across, across)),
                reductions.Reduced(windows, (down * row, right * column, 1)),
            )
            self._emit(lowering, op, kept, (rows, columns, depth), inputs, output, part)

    def emit_matrices(
        self, lowering: GraphLowering, op: AnyReduced, data: MapOperand, matrix: MapOperand, output: BufferSlot
    ) -> None:
        """Append the kernel call of products of matrices, or of all with one."""
        # A single row has no axis of its own.
        rank, steps = len(data.strides), (*matrix.strides[:-2], 0, matrix.strides[-1])[-len(data.strides) :]
        columns = MapOperand(matrix.source, (0,) * (rank - len(steps)) + steps, matrix.offset)
        rows = MapOperand(data.source, (*data.strides[:-1], 0), data.offset)
        inputs = reductions.Reduced(columns, matrix.strides[-2:-1]), reductions.Reduced(rows, data.strides[-1:])
        kept, depth = shape_of(op.output.type), shape_of(op.data.type)[-1:]
        self._emit(lowering, op, kept, depth, inputs, output, slice(None))

    def _emit(
        self,
        lowering: GraphLowering,
        op: AnyReduced,
        kept: tuple[int, ...],
        reduced: tuple[int, ...],
        inputs: tuple[reductions.Reduced, reductions.Reduced],
        output: BufferSlot,
        channels: slice,
    ) -> None:
        kernel, (extras, finish) = Kernel(lowering.program), self.epilogue(channels)
        strides = dim_strides(shape_of(op.output.type), output.storage)
        target = MapOperand(output, strides, output.storage.origin + (channels.start or 0))
        # Windows overlap: of one tile of channels what the next row reads again stays in L1.
        is_depthwise = len(reduced) > 1 and inputs[1].source.strides[-1] == 1
        reduction = reductions.Reduction(
            kept, reduced, inputs, extras, target, self.fold, finish, self.width, self.rows, lanes_first=is_depthwise
        )
        reductions.emit_reduction(kernel, reduction)
        lowering.program.call(kernel, op.operation.name, math.prod((*kept, *reduced)))


def operand_of(lowering: GraphLowering, value: ir.Value) -> MapOperand:
    """A tensor where it is stored, a constant where it lies."""
    shape, array = shape_of(value.type), constant_value(value)
    if array is not None:
        return MapOperand(np.ascontiguousarray(array), row_major(shape))
    return stored_operand(lowering.slot(value), shape)


@lowers(F32MatmulOp)
def _matmul(lowering: GraphLowering, op: F32MatmulOp) -> None:
    picked = picked_matrices(op.matrix)
    if picked is not None:
        block_contraction.emit_picked_products(lowering, op, picked)
        return
    matrix = constant_value(op.matrix)
    weight = matrix if matrix is not None and matrix.ndim == len(("rows", "columns")) else None
    # Numbers that do not stay near are read from further away at half the cost.
    is_far = weight is not None and weight.nbytes > lowering.program.strategy.near_bytes
    is_kept = op.bias is None and (is_far or multiplies_pairs(lowering.program.strategy, op))
    form = small_form(weight) if weight is not None and is_kept else ""
    if weight is not None and form and (is_far or form == "bf16"):
        packed = pack_floats(weight.T, form, lowering.program.strategy)
        block_contraction.emit_f32_products(lowering, op, packed, SumOrder.TERMS)
        return
    epilogue, output = _epilogue(lowering, op), lowering.product(op)
    if weight is not None:
        data = lowering.slot(op.data)
        images, height, width, _ = data.storage.shape
        window = Window(images, (height, width), (1, 1), (1, 1), (1, 1), (0, 0))
        products = convolution(data, output, epilogue, window, _weights(weight.T[:, None, None], op.bias))
        emit(lowering.program, replace(products, is_rounded=op.rounded_products), op.operation.name)
        return
    data, right, shape = (
        contraction.stored_tensor(lowering, op.data),
        contraction.stored_tensor(lowering, op.matrix),
        shape_of(op.matrix.type),
    )
    # Parts of a kernel would pack matrices again and again.
    is_whole = lowering.program.whole is None and op.bias is None
    if is_whole and multiplies_stored_pairs(lowering.program.strategy, op):
        block_contraction.emit_stored_pairs(lowering, op, contraction.matrices_of(right))
        return
    rows = math.prod(shape_of(op.data.type)[:-1]) // math.prod(shape[:-2])
    weights = emit_floats(lowering.program, contraction.matrices_of(right), rows, len(epilogue.channel_parameters()))
    weights = weights if op.bias is None else replace(weights, start=required_constant("bias", op.bias))
    contraction.emit_batches(lowering, op, data, shape, weights, output, epilogue, is_rounded=op.rounded_products)


@lowers(F32Conv2DOp)
def _conv2d(lowering: GraphLowering, op: F32Conv2DOp) -> None:
    weight = constant_value(op.weight)
    is_in_pairs = op.bias is None and multiplies_pairs(lowering.program.strategy, op)
    is_in_pairs = is_in_pairs and block_contraction.has_dense_windows(lowering, op)
    if weight is not None and is_in_pairs and small_form(weight) == "bf16":
        packed = pack_floats(weight.reshape(len(weight), -1), "bf16", lowering.program.strategy)
        block_contraction.emit_f32_products(lowering, op, packed, SumOrder.TERMS)
        return
    # Groups whose channels do not fill vectors would be joined, and a number times a zero between them may be NaN.
    if weight is not None and (op.groups == 1 or weight.shape[0] // op.groups % _WHOLE == 0):
        (images, height, width, _), (_, *size, _) = shape_of(op.output.type), weight.shape
        y, x = op.strides
        window = Window(images, (height, width), (size[0], size[1]), (y, x), (op.dilation[0], op.dilation[1]), (0, 0))
        slots = lowering.slot(op.data), lowering.product(op)
        products = convolution(*slots, _epilogue(lowering, op), window, _weights(weight, op.bias), op.groups)
        emit(lowering.program, replace(products, is_rounded=op.rounded_products), op.operation.name)
        return
    data, output = operand_of(lowering, op.data), lowering.product(op)
    _products(lowering, op).emit_convolution(lowering, op, data, output)


def _epilogue(lowering: GraphLowering, op: F32MatmulOp | F32Conv2DOp) -> Epilogue:
    found = lowering.epilogue(op)
    return Epilogue((ElementWise(found),) if found else ())


def _weights(taps: NDArray[np.float32], bias: ir.Value | None) -> ConstantWeights:
    """Weights [OC, KH, KW, IC / groups], whose sums start from the bias or from zero."""
    start = np.zeros(len(taps), np.float32) if bias is None else required_constant("bias", bias)
    return ConstantWeights(CenteredWeights(taps, np.zeros(len(taps), np.int32)), start, k_group=1)


def _products(lowering: GraphLowering, op: F32Conv2DOp) -> ReducedProducts:
    found, rank, strategy = lowering.epilogue(op), len(shape_of(op.output.type)), lowering.program.strategy

    def epilogue(channels: slice) -> tuple[list[MapOperand], reductions.Finish]:
        if found is None:
            return [], reductions.as_folded
        strides = (*(0,) * (rank - 1), 1)
        return [MapOperand(np.ascontiguousarray(array[channels]), strides) for array in found.arrays()], found.emit

    fold = reductions.F32_ROUNDED_PRODUCTS if op.rounded_products else reductions.F32_PRODUCTS
    return ReducedProducts(fold, epilogue, strategy.maps.products, _YMM_ROWS if strategy.lanes == _YMM else _ROWS)
