"""Products of two tensors: the right one is packed, then every batch is a contraction."""

from __future__ import annotations

from itertools import product

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import FusedMatMulOp, MatMulOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.handlers.contraction import bias_of, epilogue_of
from qdialect.lowering.kernels.contraction import emit_contraction
from qdialect.lowering.kernels.matrix_packing import Matrices, emit_packing, emit_start
from qdialect.lowering.kernels.product import PackedMatrices, Product
from qdialect.lowering.program import BufferSlot
from qdialect.lowering.storage import signed_shift
from qdialect.lowering.strides import row_major
from qdialect.lowering.views import Axis, collapse

_LARGEST_PRODUCT = 255 * 255


@lowers(MatMulOp, FusedMatMulOp)
def _matmul(lowering: GraphLowering, op: MatMulOp | FusedMatMulOp) -> None:
    bias, depth = bias_of(op), shape_of(op.weight.type)[-2]
    wide, far = bias.astype(np.int64), _LARGEST_PRODUCT * depth
    epilogue = epilogue_of(lowering, op, (wide - far, wide + far))
    data, matrices = lowering.slot(op.data), _matrices(lowering, op.weight)
    stored = np.array(op.weight_zero_points, dtype=np.int32) + signed_shift(op.weight.type)
    packed = emit_packing(lowering.program, matrices)
    points = op.input_zero_point + signed_shift(op.data.type), stored
    start = emit_start(lowering.program, matrices, packed, epilogue.start(bias), points)
    right = PackedMatrices(matrices, packed, start)
    output = lowering.result(op.operation.results[0])
    slots = [(op.data, data), (op.operation.results[0], output)]
    if epilogue.residual is not None:
        slots.append((op.operation.results[0], epilogue.residual))
    axes = _axes(op, slots)
    rows = [Axis(axis.size, axis.strides[:-1]) for axis in axes if axis.strides[-1] == 0]
    among = [axis for axis in axes if axis.strides[-1] != 0]
    *outer, last = among or [Axis(1, (0,) * (len(slots) + 1))]
    rows = rows or [Axis(1, (0,) * len(slots))]
    for indices in product(*(range(axis.size) for axis in outer)):
        steps = [[index * stride for stride in axis.strides] for index, axis in zip(indices, outer, strict=True)]
        offsets = tuple(sum(own) for own in zip(*steps, strict=True)) or (0,) * (len(slots) + 1)
        part = Product(data, output, epilogue, right, stored - 128, last, rows, offsets)
        emit_contraction(lowering.program, part, op.operation.name)


def _matrices(lowering: GraphLowering, value: ir.Value) -> Matrices:
    slot, shape = lowering.slot(value), shape_of(value.type)
    strides = dim_strides(shape, slot.storage)
    leading = [Axis(extent, (stride,)) for extent, stride in zip(shape[:-2], strides, strict=False)]
    return Matrices(slot, tuple(collapse(leading)), strides[-2], shape[-2], shape[-1])


def _axes(op: MatMulOp | FusedMatMulOp, slots: list[tuple[ir.Value, BufferSlot]]) -> list[Axis]:
    """The dimensions before the channels: strides of each slot and of the matrix, merged where contiguous."""
    *leading, rows, _ = shape_of(op.operation.results[0].type)
    tensors = [(shape_of(value.type), dim_strides(shape_of(value.type), slot.storage)) for value, slot in slots]
    matrices = shape_of(op.weight.type)[:-2]
    orders = row_major(matrices)
    steps = [_aligned(shape[:-2], strides[:-2], len(leading)) for shape, strides in tensors]
    steps.append(_aligned(matrices, orders, len(leading)))
    axes = [Axis(extent, tuple(step[i] for step in steps)) for i, extent in enumerate(leading)]
    return collapse([*axes, Axis(rows, (*(strides[-2] for _, strides in tensors), 0))])


def _aligned(shape: tuple[int, ...], strides: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Strides of the last of `rank` dimensions; where the tensor is broadcast it does not move."""
    moving = tuple(stride if extent > 1 else 0 for extent, stride in zip(shape, strides, strict=True))
    return (0,) * (rank - len(shape)) + moving
