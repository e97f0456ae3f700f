"""DILATE: elements moved apart, a number between them."""

from __future__ import annotations

from qdialect._mlir import ir
from qdialect.dialect import PadOp
from qdialect.dialect.type_constraints import element_of, shape_of
from qdialect.frontends.common import require
from qdialect.frontends.slices import Slice, take_slices
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import integers, operands, same_type
from qdialect.frontends.tflite.operators.data_movement import fill_of
from qdialect.frontends.tflite.operators.registry import Emission, imports


@imports("DILATE")
def _dilate(operator: Operator) -> Emission:
    """Between two elements along a dimension there are as many cells as its dilation says, less one."""
    data, dilations, padding = operands(operator, 3)
    counts, output = integers(dilations, "dilations"), operator.outputs[0]
    rank = len(data.shape)
    holds = len(counts) == rank and min(counts, default=1) >= 1
    require(holds, f"dilations must be {rank} integers of at least 1, but got {list(counts)}")
    same_type(operator, data)
    value = fill_of(padding, output)

    def emit(emitter: Emitter) -> ir.Value:
        result = emitter.value(data)
        for axis, count in enumerate(counts):
            result = result if count == 1 else _apart(emitter, result, axis, count, value)
        return result

    return emit


def _apart(emitter: Emitter, value: ir.Value, axis: int, count: int, fill: int) -> ir.Value:
    shape, element = shape_of(value.type), element_of(value.type)
    before, extent, after = shape[:axis], shape[axis], shape[axis + 1 :]
    cells = emitter.reshape(value, (*before, extent, 1, *after))
    low = (0,) * (len(shape) + 1)
    high = (*low[: axis + 1], count - 1, *low[axis + 2 :])
    padded = emitter.build(PadOp, cells, element=element, low=low, high=high, value=fill)
    joined = emitter.reshape(padded, (*before, extent * count, *after))
    # Behind the last element there is nothing.
    whole = [Slice(0, 1, n) for n in shape_of(joined.type)]
    whole[axis] = Slice(0, 1, (extent - 1) * count + 1)
    return take_slices(emitter, joined, whole)
