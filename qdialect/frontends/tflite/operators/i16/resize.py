"""RESIZE_BILINEAR of 16-bit images, in fixed point."""

from __future__ import annotations

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import BroadcastOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.arithmetic import Arithmetic
from qdialect.frontends.common import require
from qdialect.frontends.slices import check_indices, gather
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Shape
from qdialect.frontends.tflite.operators.checks import integers, operands
from qdialect.frontends.tflite.operators.i16.checks import output_of, same_scale, sixteen_bit
from qdialect.frontends.tflite.operators.registry import Emission, imports_i16
from qdialect.frontends.tflite.operators.resize import bilinear_coordinates
from qdialect.quant_math.choices import Interpolation
from qdialect.quant_math.resize import Taps, interpolation_taps

# Of the weights along both dimensions together.
_FRACTION = 20


@imports_i16("RESIZE_BILINEAR")
def _bilinear(operator: Operator) -> Emission:
    coordinates = bilinear_coordinates(operator)
    data, extents = operands(operator, 2)
    same_scale(sixteen_bit(data, "input"), output_of(operator))
    require(len(data.shape) == 4, f"input must have 4 dimensions, but got {len(data.shape)}")
    size = integers(extents, "size")
    require(len(size) == 2 and min(size) >= 1, f"size must be 2 integers of at least 1, but got {list(size)}")
    for extent in size:
        check_indices(2 * extent, operator.budget)
    taps = [
        interpolation_taps(Interpolation.TFLITE_FIXED, coordinates, extent, wanted)
        for extent, wanted in zip(data.shape[1:3], size, strict=True)
    ]
    return lambda emitter: _emit(emitter, emitter.value(data), taps[0], taps[1])


def _emit(emitter: Emitter, image: ir.Value, rows: Taps, columns: Taps) -> ir.Value:
    """The weighted sum of four elements, divided by 2^20 with ties away from zero."""
    s = Arithmetic(emitter)
    terms: list[ir.Value] = []
    for row, row_weight in ((rows.low, rows.low_weight), (rows.high, rows.high_weight)):
        for column, column_weight in ((columns.low, columns.low_weight), (columns.high, columns.high_weight)):
            corner = gather(emitter, gather(emitter, image, 1, row.tolist()), 2, column.tolist())
            weight = np.outer(row_weight, column_weight).astype(np.int64)[None, :, :, None]
            wide = s.resize(corner, "i64")
            terms.append(s.op("arith.muli", wide, _spread(emitter, emitter.constant(weight), shape_of(wide.type))))
    first, *others = terms
    for term in others:
        first = s.op("arith.addi", first, term)
    magnitude = s.op("arith.addi", s.op("math.absi", first), 1 << (_FRACTION - 1))
    quotient = s.op("arith.shrsi", magnitude, _FRACTION)
    negated = s.op("arith.addi", s.op("arith.xori", quotient, -1), 1)
    return s.resize(s.select(s.compare("lt", first, 0), negated, quotient), "i16")


def _spread(emitter: Emitter, value: ir.Value, shape: Shape) -> ir.Value:
    return emitter.build(BroadcastOp, value, element="i64", shape=shape)
