"""Running sums, one element after another, and ranks, by comparing each element of a row with every other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from qdialect.dialect import CumSumOp, RankOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.late_dataclass import dataclass
from qdialect.lowering.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.kernels.elementwise import MapOperand, emit_map
from qdialect.lowering.kernels.reduction import Fold, Reduced, Reduction, emit_reduction
from qdialect.lowering.memory.storage import STORAGE_ELEMENTS
from qdialect.lowering.program import BufferSlot, Kernel
from qdialect.lowering.text.scalar_body import Body, Value
from qdialect.lowering.tiling.lanes import TILE_LANES

_ROWS = 4


@lowers(CumSumOp)
def _cumsum(lowering: GraphLowering, op: CumSumOp) -> None:
    """The first sum alone, then each from the one before it."""
    kernel = Kernel(lowering.program)
    data, output = lowering.slot(op.input), lowering.result(op.output)
    others = [extent for axis, extent in enumerate(shape_of(op.input.type)) if axis != op.axis]
    term, total = _along(kernel, op, data, "terms"), _along(kernel, op, output, "totals")
    if op.exclusive:
        zero = kernel.constant(0, output.storage.element)
        emit_map(kernel, others, [], total.first, lambda _, __: zero)
    else:
        emit_map(kernel, others, [term.first], total.first, lambda _, values: values[0])
    count = shape_of(op.input.type)[op.axis] - 1
    if count:
        with kernel.loop(count) as index:
            added = term.at(kernel, index, 0 if op.exclusive else 1)
            before, after = total.at(kernel, index, 0), total.at(kernel, index, 1)
            emit_map(kernel, others, [before, added], after, lambda body, values: body.add(*values), TILE_LANES)
    lowering.program.call(kernel, op.operation.name)


@dataclass(frozen=True)
class _Along:
    """A tensor that is walked along a dimension: its first elements, and how far the next ones are."""

    first: MapOperand
    stride: int

    def at(self, kernel: Kernel, index: Value, further: int) -> MapOperand:
        """The elements `index` + `further` of the walk."""
        start = kernel.multiple(index, self.stride)
        return replace(self.first, offset=self.first.offset + further * self.stride, start=start)


def _along(kernel: Kernel, op: CumSumOp, slot: BufferSlot, name: str) -> _Along:
    shape, axis = shape_of(op.input.type), op.axis
    strides = dim_strides(shape, slot.storage)
    first, direction = (shape[axis] - 1, -1) if op.reverse else (0, 1)
    buffer, others = kernel.slot(name, slot), (*strides[:axis], *strides[axis + 1 :])
    start = MapOperand(buffer, others, slot.storage.origin + first * strides[axis])
    return _Along(start, direction * strides[axis])


@lowers(RankOp)
def _rank(lowering: GraphLowering, op: RankOp) -> None:
    """Element i of a row counts the elements j that are larger, or equal and before it; spare lanes count along."""
    data, output = lowering.slot(op.input), lowering.result(op.output)
    shape, axis = shape_of(op.input.type), op.axis
    strides, steps = dim_strides(shape, data.storage), dim_strides(shape, output.storage)
    counts = tuple(stride if i != axis else 0 for i, stride in enumerate(strides))
    along = tuple(int(i == axis) for i in range(len(shape)))
    positions = np.arange(shape[axis], dtype=np.int32)
    element = STORAGE_ELEMENTS[element_of(op.output.type)]

    def count(body: Body, total: Value, values: Sequence[Value]) -> Value:
        own, other, position, other_position = values
        is_before = body.binary(
            "arith.andi", body.compare("eq", other, own), body.compare("slt", other_position, position)
        )
        comes_first = body.binary("arith.ori", body.compare("sgt", other, own), is_before)
        return body.add(total, body.cast("arith.extui", comes_first, element))

    kernel = Kernel(lowering.program)
    lanes = shape[-1] if axis == len(shape) - 1 else min(data.storage.pitch, output.storage.pitch)
    reduction = Reduction(
        (*shape[:-1], lanes),
        (shape[axis],),
        [
            Reduced(MapOperand(data, strides, data.storage.origin), (0,)),
            Reduced(MapOperand(data, counts, data.storage.origin), (strides[axis],)),
            Reduced(MapOperand(positions, along), (0,)),
            Reduced(MapOperand(positions, (0,) * len(shape)), (1,)),
        ],
        [],
        MapOperand(output, steps, output.storage.origin),
        Fold(element, 0, count, lambda body, a, b: body.add(a, b)),
        lambda _, total, __: total,
        TILE_LANES,
        _ROWS,
    )
    emit_reduction(kernel, reduction)
    lowering.program.call(kernel, op.operation.name)
