"""Constant weights that stay packed: in blocks or with one scale a channel, read by products and gathers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from qdialect.arithmetic.block_weights import PackedWeights, pack_weights
from qdialect.dialect import BlockDenseOp, BlockDynamicDenseOp, BlockGatherOp
from qdialect.dialect.block_ops import LARGEST_DYNAMIC_BLOCK
from qdialect.dialect.constants import is_repeated
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.building.checks import Array
from qdialect.frontends.building.op_builder import OpBuilder
from qdialect.frontends.building.slices import Slice, take_slices
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import F32Tensor, Plan, Quantized, Tensor
from qdialect.ir._mlir import ir


@dataclass(frozen=True, eq=False)
class BlockQuantized(F32Tensor):
    """The f32 values ``(q - z) * s`` of constant `integers`, made where something asks for them.

    s and z hold for `size` elements along `axis`, of which the last block may have fewer; without zero points z is 0.
    """

    integers: Array
    scales: Array
    zero_points: Array | None
    axis: int
    size: int

    @property
    def is_known(self) -> bool:
        return True

    def f32_values(self) -> Array:
        values, points = self.integers.astype(np.int64), self.zero_points
        if points is not None:
            points = self._spread(points)
            values = values - (points.astype(np.int64) if points.dtype.kind in "iu" else points)
        return values.astype(np.float32) * self._spread(self.scales)

    def _spread(self, blocks: Array) -> Array:
        repeated = np.repeat(blocks, self.size, self.axis)
        return repeated[(*(slice(None),) * self.axis, slice(self.shape[self.axis]))]

    def _f32(self, plan: Plan, name: str) -> Value:
        plan.budget.spend_constant(self.shape, np.dtype(np.float32).itemsize)
        return Value(name, self.shape, "f32", data=self.f32_values())

    def transposed(self, order: Sequence[int]) -> Self:
        """With the dimensions in another order."""
        integers, scales = self.integers.transpose(order), self.scales.transpose(order)
        points = None if self.zero_points is None else self.zero_points.transpose(order)
        axis = list(order).index(self.axis)
        return replace(self, shape=integers.shape, integers=integers, scales=scales, zero_points=points, axis=axis)


def whole_numbers(matrix: Array) -> BlockQuantized:
    """Integers as f32 values."""
    return _by_channel(matrix, np.ones((), np.float32), None, 1)


def in_blocks(tensor: Tensor, axis: int) -> BlockQuantized | None:
    """A constant in blocks along `axis`, as one whose scales do not differ along it is too; None for others."""
    if isinstance(tensor, BlockQuantized):
        if tensor.axis == axis:
            return tensor
        scale = tensor.scales.flat[0] if is_repeated(tensor.scales) and tensor.zero_points is None else None
        return None if scale is None else _by_channel(tensor.integers, scale, None, axis)
    if not isinstance(tensor, Quantized) or tensor.values.data is None:
        return None
    data, has_channels = tensor.values.data, len(tensor.scales) > 1
    if has_channels and tensor.axis == axis:
        return None
    spread = [extent if i == tensor.axis and has_channels else 1 for i, extent in enumerate(tensor.shape)]
    scales = np.array(tensor.scales, np.float32).reshape(spread)
    return _by_channel(data, scales, np.array(tensor.zero_points).reshape(spread), axis)


def _by_channel(integers: Array, scales: Array, points: Array | None, axis: int) -> BlockQuantized:
    """One block along `axis`, by parameters that broadcast."""
    extents = [1 if i == axis else extent for i, extent in enumerate(integers.shape)]
    by_block = np.broadcast_to(scales, extents), None if points is None else np.broadcast_to(points, extents)
    return BlockQuantized(integers.shape, integers, *by_block, axis, integers.shape[axis])


def packed_matrix(tensor: Tensor, *, is_transposed: bool = False) -> PackedWeights | None:
    """The constant [K, N], or [N, K] where it `is_transposed`, as packed weights; None for other tensors."""
    blocks = in_blocks(tensor, int(is_transposed)) if len(tensor.shape) == 2 else None
    if blocks is None:
        return None
    rows = blocks if is_transposed else blocks.transposed((1, 0))
    return pack_weights(rows.integers, rows.scales, rows.zero_points, rows.size)


def block_product(emitter: OpBuilder, data: ir.Value, weights: PackedWeights, **how: Any) -> ir.Value:
    """Of data [..., K] and constant weights [N, K]."""
    form = {"bits": weights.bits, "block": weights.block, **how}
    return emitter.build(BlockDenseOp, data, *_operands(emitter, weights), element="f32", **form)


def takes_quantized_rows(weights: PackedWeights) -> bool:
    """Whether a `dynamic_block_product` can have these weights."""
    points = weights.zero_points
    return weights.block <= LARGEST_DYNAMIC_BLOCK and (points is None or points.dtype == np.uint8)


def dynamic_block_product(
    emitter: OpBuilder, data: ir.Value, scale: ir.Value, zero_point: ir.Value, weights: PackedWeights
) -> ir.Value:
    """Of i8 data [..., K] and constant weights [N, K]; scale and zero point are those of rows, [..., 1], or one."""
    weight, *parameters = _operands(emitter, weights)
    form = {"bits": weights.bits, "block": weights.block}
    return emitter.build(BlockDynamicDenseOp, data, weight, scale, zero_point, *parameters, element="f32", **form)


def _operands(emitter: OpBuilder, weights: PackedWeights) -> list[ir.Value]:
    return [emitter.constant(part) for part in weights.operands]


def block_rows(emitter: OpBuilder, indices: ir.Value, weights: PackedWeights) -> ir.Value:
    """The f32 values of rows of constant weights [N, K]."""
    # Behind K are the numbers that fill the last byte.
    held = weights.weight.shape[1] * 8 // weights.bits
    form = {"bits": weights.bits, "block": held if weights.block == weights.depth else weights.block}
    found = emitter.build(BlockGatherOp, indices, *_operands(emitter, weights), element="f32", **form)
    return take_slices(emitter, found, [Slice(0, 1, one) for one in (*shape_of(indices.type), weights.depth)])


def gathered_rows(plan: Plan, name: str, tensor: F32Tensor, indices: Value, along: int) -> Value | None:
    """The f32 values of a constant at run-time indices along a dimension; None where no op reads them packed."""
    last = max((i for i in range(len(tensor.shape)) if i != along), default=along)
    source = tensor if isinstance(tensor, BlockQuantized) else in_blocks(tensor, last)
    if source is None or source.axis == along:
        return None
    others = [i for i in range(len(source.shape)) if i not in (along, source.axis)]
    moved = source.transposed((along, *others, source.axis))
    inner, extent = moved.shape[1:-1], moved.shape[-1]
    size = min(source.size, extent)
    blocks = moved.scales.shape[-1]
    filled = [(0, 0)] * (len(moved.shape) - 1) + [(0, (blocks * size - extent) * (math.prod(inner) > 1))]
    integers = np.pad(moved.integers, filled)
    count, whole = len(integers), integers.shape[-1]
    flat = (count, math.prod(inner) * whole)
    parts = [None if one is None else one.reshape(count, -1) for one in (moved.scales, moved.zero_points)]
    packed = pack_weights(integers.reshape(flat), np.asarray(parts[0]), parts[1], size)
    if packed is None:
        return None
    rank = len(indices.shape)
    order = [rank + others.index(i) if i in others else rank + len(others) for i in range(len(source.shape))]
    order[along : along + 1] = range(rank)

    def emit(emitter: Emitter) -> Emitted:
        found = block_rows(emitter, emitter.to_channels_first(indices), packed)
        found = emitter.reshape(found, (*indices.shape, *inner, whole))
        found = take_slices(emitter, found, [Slice(0, 1, one) for one in (*indices.shape, *inner, extent)])
        return emitter.transpose(found, order), False

    shape = (*source.shape[:along], *indices.shape, *source.shape[along + 1 :])
    return plan.compute(name, shape, "f32", emit)
