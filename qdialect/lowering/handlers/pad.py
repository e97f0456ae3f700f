"""Padding with a quantized value: the data in the middle, then one fill for each side of each dimension.

A producer that nothing else reads has written its result there already.
"""

from __future__ import annotations

from qdialect.dialect import PadOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.lowering.graph import GraphLowering, dim_strides, lowers
from qdialect.lowering.kernels.elementwise import MapOperand, byte_literal, emit_map
from qdialect.lowering.memory.storage import STORAGE_ELEMENTS, signed_shift
from qdialect.lowering.program import Kernel


@lowers(PadOp)
def _pad(lowering: GraphLowering, op: PadOp) -> None:
    data = lowering.slot(op.input)
    # A producer that wrote into the middle has defined the result.
    is_inside = lowering.is_stored(op.output)
    output = lowering.slot(op.output) if is_inside else lowering.result(op.output)
    inner, outer = shape_of(op.input.type), shape_of(op.output.type)
    if not inner:
        lowering.copy(data, output, inner, op.operation.name)
        return
    strides = dim_strides(outer, output.storage)
    start = output.storage.origin + sum(low * stride for low, stride in zip(op.low, strides, strict=True))
    if not is_inside:
        kernel = Kernel(lowering.program)
        source = MapOperand(data, dim_strides(inner, data.storage), data.storage.origin)
        emit_map(kernel, inner, [source], MapOperand(output, strides, start), lambda _, values: values[0])
        lowering.program.call(kernel, op.operation.name)
    element, quantized = STORAGE_ELEMENTS[element_of(op.input.type)], op.value + signed_shift(op.input.type)
    for offset, extents in _border(op, inner, outer, strides):
        kernel = Kernel(lowering.program)
        value = kernel.number("value", byte_literal(quantized) if element == "i8" else quantized, element)
        target = MapOperand(output, strides, output.storage.origin + offset)
        emit_map(kernel, extents, [], target, lambda _, __, value=value: value)
        lowering.program.call(kernel, f"{op.operation.name} border")


def _border(
    op: PadOp, inner: tuple[int, ...], outer: tuple[int, ...], strides: tuple[int, ...]
) -> list[tuple[int, tuple[int, ...]]]:
    """(offset, extents) of boxes that make up the border: before and after the data along each dimension.

    Along the dimensions before it a box is as long as the data, along those after it as long as the result.
    """
    boxes: list[tuple[int, tuple[int, ...]]] = []
    corner = 0
    for axis, stride in enumerate(strides):
        for first, extent in ((0, op.low[axis]), (op.low[axis] + inner[axis], op.high[axis])):
            if extent:
                boxes.append((corner + first * stride, (*inner[:axis], extent, *outer[axis + 1 :])))
        corner += op.low[axis] * stride
    return boxes
