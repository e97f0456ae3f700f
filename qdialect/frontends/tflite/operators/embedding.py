"""EMBEDDING_LOOKUP: rows of a table by their indices, as they are or as the numbers that i8 rows stand for."""

from __future__ import annotations

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import DequantizeOp, DynamicGatherOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import check_scales, operands, same_content
from qdialect.frontends.tflite.operators.f32 import F32Builder
from qdialect.frontends.tflite.operators.indexing import check_index_type
from qdialect.frontends.tflite.operators.registry import Emission, imports


@imports("EMBEDDING_LOOKUP")
def _embedding_lookup(operator: Operator) -> Emission:
    positions, table = operands(operator, 2)
    output = operator.outputs[0]
    check_index_type(positions, "indices")
    require(len(positions.shape) == 1, f"indices must have 1 dimension, but got {len(positions.shape)}")
    require(len(table.shape) >= 2, f"table must have at least 2 dimensions, but got {len(table.shape)}")
    is_hybrid = (table.element, output.element) == ("i8", "f32")
    if not is_hybrid:
        same_content(table, output)
        return lambda emitter: _rows(emitter, emitter.value(table), emitter.value(positions), table.element)
    check_scales(table, "table")
    is_by_row = len(table.scales) > 1
    require(not is_by_row or table.axis == 0, f"scales of the table must lie along axis 0, but got {table.axis}")

    def emit(emitter: Emitter) -> ir.Value:
        rows = _rows(emitter, emitter.value(table), emitter.value(positions), "i8")
        # The kernel takes no zero point into account.
        scale = 1.0 if is_by_row else table.scale
        numbers = emitter.build(DequantizeOp, rows, element="f32", scales=[scale], zero_points=[0])
        if not is_by_row:
            return numbers
        s, ones = F32Builder(emitter, shape_of(numbers.type)), (1,) * (len(table.shape) - 1)
        scales = np.array(table.scales, np.float32).reshape(-1, *ones)
        return s("mulf", numbers, _rows(emitter, emitter.constant(scales), emitter.value(positions), "f32"))

    return emit


def _rows(emitter: Emitter, table: ir.Value, positions: ir.Value, element: str) -> ir.Value:
    return emitter.build(DynamicGatherOp, table, positions, element=element, axis=0)
