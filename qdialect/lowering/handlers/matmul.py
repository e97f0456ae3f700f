"""Products of two tensors: the right one is packed, then every batch is a contraction."""

from __future__ import annotations

from dataclasses import dataclass
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
from qdialect.lowering.memory.storage import signed_shift
from qdialect.lowering.memory.strides import row_major
from qdialect.lowering.memory.views import Axis, collapse
from qdialect.lowering.operands.transposed_operands import source_of
from qdialect.lowering.program import BufferSlot

_LARGEST_PRODUCT = 255 * 255


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
