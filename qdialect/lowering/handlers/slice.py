"""Slices: the same bytes where they lie in one stretch, else a strided copy."""

from __future__ import annotations

from dataclasses import replace

from qdialect.dialect import SliceOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.kernels.elementwise import MapOperand, emit_map
from qdialect.lowering.memory.storage import NO_HALO, image_shape
from qdialect.lowering.program import BufferSlot, Kernel


@lowers(SliceOp)
def _slice(lowering: GraphLowering, op: SliceOp) -> None:
    data, before, after = lowering.slot(op.input), shape_of(op.input.type), shape_of(op.output.type)
    strides = dim_strides(before, data.storage) if before else ()
    start = sum(first * stride for first, stride in zip(op.begin, strides, strict=True))
    seen = _stretch(data, start, before, op)
    if seen is not None and not lowering.wants_halo(op.output):
        lowering.define(op.output, seen)
        return
    output = lowering.result(op.output)
    if not after:
        lowering.copy(data, output, after, op.operation.name)
        return
    is_whole = before[-1] == after[-1]
    lanes = min(data.storage.pitch, output.storage.pitch) if is_whole else after[-1]
    steps = tuple(stride * step for stride, step in zip(strides, op.strides, strict=True))
    kernel = Kernel(lowering.program)
    source = MapOperand(data, steps, data.storage.origin + start)
    target = MapOperand(output, dim_strides(after, output.storage), output.storage.origin)
    emit_map(kernel, (*after[:-1], lanes), [source], target, lambda _, values: values[0])
    lowering.program.call(kernel, op.operation.name)


def _stretch(slot: BufferSlot, start: int, before: tuple[int, ...], op: SliceOp) -> BufferSlot | None:
    """Where the elements lie already; None where they lie apart, or where a kernel may not read past their end.

    They lie in one stretch where one dimension is cut, all before it have one element left and all after it are whole.
    The last is never cut: its spare lanes would belong to the next elements.
    """
    if not slot.has_slack or slot.storage.halo != NO_HALO or set(op.strides) - {1} or before[-1:] != op.size[-1:]:
        return None
    cut = max((axis for axis, extent in enumerate(before) if op.size[axis] != extent), default=0)
    if any(extent != 1 for extent in op.size[:cut]):
        return None
    return replace(slot, storage=replace(slot.storage, shape=image_shape(op.size)), offset=slot.offset + start)
