"""Running sums, one element after another, and the largest elements of rows."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace

from qdialect.dialect import CumSumOp, TopKOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.cost.strategy import TILE_LANES
from qdialect.lowering.qnn_to_linalg.graph.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.qnn_to_linalg.kernels.elementwise import MapOperand, emit_map
from qdialect.lowering.qnn_to_linalg.kernels.ordering import Line, emit_largest
from qdialect.lowering.qnn_to_linalg.program.program import BufferSlot, Kernel
from qdialect.lowering.qnn_to_linalg.program.scalar_body import Value


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


@lowers(TopKOp)
def _top_k(lowering: GraphLowering, op: TopKOp) -> None:
    """Each row along the axis by itself."""
    kernel = Kernel(lowering.program)
    data, output = lowering.slot(op.input), lowering.result(op.output)
    shape, axis = shape_of(op.input.type), op.axis
    keys, indices = kernel.slot("keys", data), kernel.slot("indices", output)
    steps = [dim_strides(own, slot.storage) for own, slot in ((shape, data), (shape_of(op.output.type), output))]
    others = [extent for i, extent in enumerate(shape) if i != axis]
    strides = [[stride for i, stride in enumerate(found) if i != axis] for found in steps]
    with ExitStack() as loops:
        at = [kernel.constant(slot.storage.origin, "index") for slot in (data, output)]
        for position, extent in enumerate(others):
            index = loops.enter_context(kernel.loop(extent))
            steps_to = [kernel.multiple(index, own[position]) for own in strides]
            at = [kernel.sum(start, step) for start, step in zip(at, steps_to, strict=True)]
        source = Line(keys, at[0], steps[0][axis], shape[axis])
        emit_largest(kernel, source, Line(indices, at[1], steps[1][axis], op.count))
    lowering.program.call(kernel, op.operation.name)
