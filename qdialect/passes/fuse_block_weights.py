"""`qnn-fuse-block-weights`: products of f32 values with dequantized constants read the weights packed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from qdialect.arithmetic.block_weights import PackedWeights, pack_weights
from qdialect.dialect import BlockDenseOp, BroadcastOp, DequantizeOp, F32MatmulOp, QnnOp, ReshapeOp, TransposeOp, build
from qdialect.dialect.constants import constant, constant_value
from qdialect.dialect.type_constraints import shape_of
from qdialect.ir._mlir import ir
from qdialect.passes.pattern import GraphPass, Replacement, producer, require
from qdialect.passes.registry import register

Array = NDArray[Any]


@dataclass(frozen=True)
class _Numbers:
    """Constant integers, and the scale and the zero point of each: three arrays of one shape, some of them views."""

    integers: Array
    scales: Array
    zero_points: Array

    def moved(self, movement: Callable[[Array], Array]) -> _Numbers:
        """With all three moved."""
        return _Numbers(movement(self.integers), movement(self.scales), movement(self.zero_points))


class FuseBlockWeights(Replacement[PackedWeights]):
    """``f32_matmul(x, w)`` with w of dequantized integers, perhaps reshaped and transposed, becomes `block_dense`."""

    roots: ClassVar[tuple[str | type[QnnOp], ...]] = (F32MatmulOp,)

    def check(self, op: F32MatmulOp) -> PackedWeights | None:
        numbers = _numbers_of(op.matrix)
        if numbers is None or op.bias is not None:
            return None
        require(numbers.integers.ndim == 2, "must multiply by one matrix")
        rows = numbers.moved(np.transpose)
        size = _block_of(rows.scales, rows.zero_points)
        by_block = rows.scales[:, ::size], rows.zero_points[:, ::size]
        packed = pack_weights(rows.integers, *by_block, size)
        bounds = "must have weights of 8 bits at most, in blocks of a multiple of 16"
        require(packed is not None, f"{bounds}, but got blocks of {size}")
        return packed

    def emit(self, op: F32MatmulOp, match: PackedWeights) -> ir.Value:
        operands = [constant(np.ascontiguousarray(one)) for one in match.operands]
        form: dict[str, Any] = {"bits": match.bits, "block": match.block, "rounded_products": op.rounded_products}
        return build(BlockDenseOp, op.data, *operands, element="f32", **form).output


def _numbers_of(value: ir.Value) -> _Numbers | None:
    """The integers behind a dequantized constant; None for other values."""
    op = producer(value)
    if isinstance(op, TransposeOp | ReshapeOp):
        found = _numbers_of(op.operation.operands[0])
        shape, order = shape_of(value.type), op.permutation if isinstance(op, TransposeOp) else ()
        return found and found.moved(lambda one: one.transpose(order) if order else one.reshape(shape))
    if isinstance(op, DequantizeOp):
        along = [1] * len(shape_of(value.type))
        along[op.axis : op.axis + 1] = [-1]
        parameters = [np.array(op.scales, np.float32), np.array(op.zero_points, np.int64)]
        return _spread(_integers_of(op.input), *(one.reshape(along if one.size > 1 else ()) for one in parameters))
    if op is None:
        return None
    operands = list(op.operation.operands)
    if op.operation.name == "arith.sitofp":
        return _spread(constant_value(operands[0]), np.float32(1), np.int64(0))
    if op.operation.name != "arith.mulf":
        return None
    found, factor = _numbers_of(operands[0]), _constant_of(operands[1])
    if found is None or factor is None or not bool((found.scales == 1).all()):
        return None
    return _Numbers(found.integers, factor, found.zero_points)


def _integers_of(value: ir.Value) -> Array | None:
    """A constant, perhaps reshaped and transposed."""
    op = producer(value)
    if not isinstance(op, TransposeOp | ReshapeOp):
        return constant_value(value)
    array = _integers_of(op.operation.operands[0])
    if array is None:
        return None
    return array.transpose(op.permutation) if isinstance(op, TransposeOp) else array.reshape(op.shape)


def _constant_of(value: ir.Value) -> Array | None:
    """A constant, perhaps repeated."""
    op = producer(value)
    array = constant_value(op.input) if isinstance(op, BroadcastOp) else constant_value(value)
    return None if array is None else np.broadcast_to(array, shape_of(value.type))


def _spread(integers: Array | None, scales: Array | np.float32, zero_points: Array | np.int64) -> _Numbers | None:
    if integers is None:
        return None
    return _Numbers(integers, np.broadcast_to(scales, integers.shape), np.broadcast_to(zero_points, integers.shape))


def _block_of(*parameters: Array) -> int:
    """The largest size of blocks along the last dimension in which no parameter changes."""
    changes = [(one[:, 1:] != one[:, :-1]).any(axis=0) for one in parameters]
    positions = np.flatnonzero(np.logical_or.reduce(changes)) + 1
    return int(np.gcd.reduce(positions)) if positions.size else parameters[0].shape[-1]


@register
class FuseBlockWeightsPass(GraphPass):
    """Multiply f32 values by packed weights where the matrix is a dequantized constant, in blocks or by channel.

    Blocks are found where scales and zero points change along the terms, however the dequantization expresses them: as
    a `qnn.dequantize` along an axis that a reshape splits, or as a product with constants that repeat.
    """

    name: ClassVar[str] = "qnn-fuse-block-weights"
    rewrites = (FuseBlockWeights,)
