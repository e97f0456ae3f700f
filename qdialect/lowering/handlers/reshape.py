"""Reshape: the same bytes under another shape wherever they lie close enough, else one or two copies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from qdialect.dialect import ReshapeOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.kernels.elementwise import MapOperand, emit_map
from qdialect.lowering.memory.storage import NO_HALO, Storage, image_shape
from qdialect.lowering.program import BufferSlot, Kernel

Shape = tuple[int, ...]


@lowers(ReshapeOp)
def _reshape(lowering: GraphLowering, op: ReshapeOp) -> None:
    source, before, after = lowering.slot(op.input), shape_of(op.input.type), shape_of(op.output.type)
    # Kernels may read as many lanes as a buffer of the arena has, and a little past its end.
    is_safe = source.has_slack or lowering.can_be_array(op.output)
    seen = _seen_as(source, before, after) if is_safe else None
    if seen is not None and not lowering.wants_halo(op.output):
        lowering.define(op.output, seen)
        return
    target = lowering.result(op.output)
    if seen is not None:
        lowering.copy(seen, target, after, op.operation.name)
        return
    common = _common_axes(before, after)
    if common is None:
        dense = lowering.program.buffer(_dense(source, before))
        lowering.copy(source, dense, before, op.operation.name)
        source, before, common = dense, (math.prod(before),), after
    kernel = Kernel(lowering.program)
    operand = MapOperand(source, _steps(before, source.storage, common), source.storage.origin)
    output = MapOperand(target, _steps(after, target.storage, common), target.storage.origin)
    emit_map(kernel, common, [operand], output, lambda _, values: values[0])
    lowering.program.call(kernel, op.operation.name)


def _seen_as(slot: BufferSlot, before: Shape, after: Shape) -> BufferSlot | None:
    """The bytes of `slot` as a tensor of shape `after`; None where they are laid out otherwise."""
    storage, image = slot.storage, image_shape(after)
    is_dense = storage.pitch == storage.shape[3]
    pitch = image[3] if is_dense else storage.pitch
    fits = is_dense or before[-1:] == after[-1:]
    if storage.halo != NO_HALO or not fits:
        return None
    return BufferSlot(slot.kind, slot.index, Storage(image, storage.element, pitch), slot.offset)


def _dense(slot: BufferSlot, shape: Shape) -> Storage:
    image = image_shape(shape)
    return Storage(image, slot.storage.element, image[3])


def _common_axes(before: Shape, after: Shape) -> Shape | None:
    """The coarsest shape whose dimensions split the dimensions of both; None where no such shape exists."""
    ends = sorted({*_ends(before), *_ends(after)})
    pairs = list(pairwise(ends))
    if any(outer % inner for inner, outer in pairs):
        return None
    return tuple(outer // inner for inner, outer in reversed(pairs))


def _ends(shape: Shape) -> list[int]:
    """Elements inside each dimension, from the innermost: 1, ..., all."""
    return [math.prod(shape[i:]) for i in range(len(shape) + 1)]


def _steps(shape: Shape, storage: Storage, common: Sequence[int]) -> tuple[int, ...]:
    """How far a tensor of `shape` moves along each of the `common` axes."""
    dims = list(zip(shape or (1,), dim_strides(shape or (1,), storage), strict=True))
    steps: list[int] = []
    inside = 1
    for extent in reversed(common):
        while len(dims) > 1 and dims[-1][0] == inside:
            dims.pop()
            inside = 1
        steps.append(inside * dims[-1][1])
        inside *= extent
    return tuple(reversed(steps))
