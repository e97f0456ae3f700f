"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: blocks of pixels become images of their own, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qdialect._mlir import ir
from qdialect.dialect import PadOp, TransposeOp
from qdialect.frontends.common import require
from qdialect.frontends.slices import Slice, take_slices
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import integers, operands, same_content
from qdialect.frontends.tflite.operators.data_movement import amounts_of
from qdialect.frontends.tflite.operators.registry import Emission, imports


def _operands(operator: Operator) -> tuple[Tensor, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The data, the block's extents, and the amounts before and after each of the dimensions that it spans."""
    data, block, amounts = operands(operator, 3)
    same_content(data, operator.outputs[0])
    extents = integers(block, "block shape")
    holds = 1 <= len(extents) < len(data.shape) and min(extents) >= 1
    require(holds, f"block shape must be 1 to {len(data.shape) - 1} integers of at least 1, but got {list(extents)}")
    low, high = amounts_of(amounts, len(extents))
    require(min(*low, *high) >= 0, f"paddings and crops must be at least 0, but got {min(*low, *high)}")
    return data, extents, low, high


@imports("SPACE_TO_BATCH_ND")
def _space_to_batch(operator: Operator) -> Emission:
    """The border is filled with the quantized zero; images are numbered [position in the block, image]."""
    data, block, low, high = _operands(operator)
    count, rest = len(block), data.shape[1 + len(block) :]
    grown = [sum(entry) for entry in zip(data.shape[1:], low, high, strict=False)]
    fits = all(extent % size == 0 for extent, size in zip(grown, block, strict=True))
    require(fits, f"padded extents must be multiples of {list(block)}, but got {grown}")
    blocks = [extent // size for extent, size in zip(grown, block, strict=True)]
    split = (data.shape[0], *_interleaved(blocks, block), *rest)
    inner, outer = [2 + 2 * i for i in range(count)], [1 + 2 * i for i in range(count)]
    order = (*inner, 0, *outer, *range(1 + 2 * count, len(split)))
    shape = (data.shape[0] * math.prod(block), *blocks, *rest)
    zeros = (0,) * len(rest)
    value = data.zero_point if data.scales else 0

    def emit(emitter: Emitter) -> ir.Value:
        attributes = {"low": (0, *low, *zeros), "high": (0, *high, *zeros), "value": value}
        padded = emitter.build(PadOp, emitter.value(data), element=data.element, **attributes)
        parts = emitter.reshape(padded, split)
        moved = emitter.build(TransposeOp, parts, element=data.element, permutation=order)
        return emitter.reshape(moved, shape)

    return emit


@imports("BATCH_TO_SPACE_ND")
def _batch_to_space(operator: Operator) -> Emission:
    data, block, low, high = _operands(operator)
    count, blocks = len(block), math.prod(block)
    require(data.shape[0] % blocks == 0, f"batch must be a multiple of {blocks}, but got {data.shape[0]}")
    images, spatial, rest = data.shape[0] // blocks, data.shape[1 : 1 + count], data.shape[1 + count :]
    split = (*block, images, *spatial, *rest)
    order = (count, *_interleaved(range(count + 1, 2 * count + 1), range(count)), *range(2 * count + 1, len(split)))
    grown = [extent * size for extent, size in zip(spatial, block, strict=True)]
    kept = [extent - before - after for extent, before, after in zip(grown, low, high, strict=True)]
    require(min(kept) >= 1, f"crops must leave something of {grown}, but leave {kept}")
    whole = (images, *grown, *rest)
    starts, sizes = (0, *low, *(0 for _ in rest)), (images, *kept, *rest)
    slices = [Slice(first, 1, size) for first, size in zip(starts, sizes, strict=True)]

    def emit(emitter: Emitter) -> ir.Value:
        parts = emitter.reshape(emitter.value(data), split)
        moved = emitter.build(TransposeOp, parts, element=data.element, permutation=order)
        return take_slices(emitter, emitter.reshape(moved, whole), slices)

    return emit


def _interleaved(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    return tuple(entry for pair in zip(first, second, strict=True) for entry in pair)
