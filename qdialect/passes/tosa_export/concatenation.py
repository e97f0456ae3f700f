"""The parts of a concatenation at the parameters of its result."""

from __future__ import annotations

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import ConcatOp
from qdialect.dialect.type_constraints import dtype_of, range_of, shape_of
from qdialect.passes.tosa_export.builder import const, create
from qdialect.passes.tosa_export.export import Export, signed
from qdialect.quant_math import QuantParams, elementwise


def rescaled_parts(export: Export, op: ConcatOp) -> list[ir.Value]:
    """Each input, through a TABLE where its values change on the way."""
    return [_part(export, op, index) for index in range(len(op.inputs))]


def _part(export: Export, op: ConcatOp, index: int) -> ir.Value:
    source, target = op.inputs[index], dtype_of(op.output.type)
    info = np.iinfo(dtype_of(source.type).name)
    values = np.arange(info.min, int(info.max) + 1).astype(info.dtype)
    own = QuantParams(op.input_scales[index], op.input_zero_points[index])
    output = QuantParams(op.output_scale, op.output_zero_point)
    found = elementwise.concat([values], [own], 0, output, range_of(op.output.type), op.rounding, op.multiplier)
    found = found.astype(target)
    held = export.value(source)
    if np.array_equal(signed(found), signed(values)):
        return held
    return create("table", [held, const(signed(found))], shape_of(held.type), "i8")
