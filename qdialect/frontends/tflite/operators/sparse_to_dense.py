"""SPARSE_TO_DENSE: elements written to where their indices say, a default elsewhere."""

from __future__ import annotations

import math

from qdialect._mlir import ir
from qdialect.dialect import DynamicScatterOp
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import integers, operands, same_content
from qdialect.frontends.tflite.operators.indexing import check_index_type, joined
from qdialect.frontends.tflite.operators.registry import Emission, imports_integers


@imports_integers("SPARSE_TO_DENSE")
def _sparse_to_dense(operator: Operator) -> Emission:
    """LiteRT fails at an index outside of its dimension; here it names another element of the result."""
    positions, extents, values, default = operands(operator, 4)
    output = operator.outputs[0]
    check_index_type(positions, "indices")
    shape = integers(extents, "output shape")
    require(shape == output.shape, f"output must be {list(shape)}, but got {list(output.shape)}")
    for tensor in (values, default):
        same_content(tensor, output)
    require(math.prod(default.shape) == 1, f"default must have 1 element, but got {math.prod(default.shape)}")
    rows = (*positions.shape, 1, 1)[:2] if len(positions.shape) < 2 else positions.shape
    count, depth = rows
    require(len(positions.shape) <= 2 and depth == len(shape), f"indices must name {len(shape)} dimensions")
    given = math.prod(values.shape)
    require(given in (1, count), f"values must have 1 or {count} elements, but got {given}")

    def emit(emitter: Emitter) -> ir.Value:
        at = joined(emitter, emitter.reshape(emitter.value(positions), (count, depth)), shape)
        table = emitter.broadcast(emitter.reshape(emitter.value(default), (1,)), (math.prod(shape),))
        written = emitter.broadcast(emitter.reshape(emitter.value(values), (given,)), (count,))
        return emitter.reshape(emitter.build(DynamicScatterOp, table, at, written, element=output.element), shape)

    return emit
