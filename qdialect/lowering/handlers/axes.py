"""Reductions over axes of a tensor, laid over how it and its result are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from qdialect._mlir import ir
from qdialect.dialect.type_constraints import shape_of
from qdialect.lowering.graph import GraphLowering, dim_strides
from qdialect.lowering.kernels.elementwise import MapOperand, flipped
from qdialect.lowering.kernels.reduction import Finish, Fold, Reduced, Reduction, emit_reduction
from qdialect.lowering.program import BufferSlot, Kernel
from qdialect.lowering.text.scalar_body import Body, Value

ROWS = 8


@dataclass(frozen=True)
class OverAxes:
    """What is reduced: the quantized values of `input` over `axes` (ascending), to `output`."""

    input: ir.Value
    output: ir.Value
    axes: Sequence[int]
    keep_dims: bool

    def emit(
        self,
        lowering: GraphLowering,
        kernel: Kernel,
        fold: Fold,
        finish: Finish,
        width: int,
        label: str,
        beside: Sequence[MapOperand] = (),
    ) -> None:
        """Append the call of `kernel`; the operands of `beside` move along the reduced axes alone."""
        shape = shape_of(self.input.type)
        data, output = lowering.slot(self.input), lowering.result(self.output)
        kept = [i for i in range(len(shape)) if i not in self.axes]
        strides = dim_strides(shape, data.storage)
        extents = list(shape)
        if len(shape) - 1 in kept:
            extents[-1] = min(data.storage.pitch, output.storage.pitch)
        after = shape_of(self.output.type)
        steps = dim_strides(after or (1,), output.storage)
        kept_steps = tuple(steps[i] for i in kept) if self.keep_dims else steps[: len(kept)]
        source = MapOperand(data, tuple(strides[i] for i in kept), data.storage.origin)
        inputs = [Reduced(source, tuple(strides[i] for i in self.axes))]
        inputs += [Reduced(MapOperand(o.source, (0,) * len(kept), o.offset), o.strides) for o in beside]
        fold, finish = _on_stored_values(fold, finish, data, output)
        reduction = Reduction(
            tuple(extents[i] for i in kept),
            tuple(extents[i] for i in self.axes),
            inputs,
            [],
            MapOperand(output, kept_steps, output.storage.origin),
            fold,
            finish,
            width,
            ROWS,
        )
        emit_reduction(kernel, reduction)
        lowering.program.call(kernel, label)


def _on_stored_values(fold: Fold, finish: Finish, data: BufferSlot, output: BufferSlot) -> tuple[Fold, Finish]:
    """Both where quantized values are those of users' arrays."""

    def add(body: Body, acc: Value, values: Sequence[Value]) -> Value:
        return fold.emit(body, acc, [flipped(body, values[0]), *values[1:]])

    def end(body: Body, acc: Value, values: Sequence[Value]) -> Value:
        return flipped(body, finish(body, acc, values))

    return replace(fold, emit=add) if data.signed else fold, end if output.signed else finish
