"""Functions of one 8-bit tensor: a TABLE of what the reference makes of all 256 values."""

from __future__ import annotations

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import UNARY_OPS, LutOp, QnnOp
from qdialect.dialect.type_constraints import dtype_of, element_of, shape_of
from qdialect.passes.tosa_export.builder import Array, const, create
from qdialect.passes.tosa_export.export import Export, exports, signed
from qdialect.reference.evaluators import EVALUATORS


def is_eight_bit(value: ir.Value) -> bool:
    """Whether the elements of a `qnn` value have 8 bits."""
    return element_of(value.type) in ("i8", "ui8")


@exports(LutOp, *UNARY_OPS)
def _function(export: Export, op: QnnOp) -> ir.Value:
    return look_up(export, op)


def look_up(export: Export, op: QnnOp) -> ir.Value:
    """The result of an op that maps every value of its one 8-bit operand by itself."""
    source = op.operation.operands[0]
    dtype = np.dtype(dtype_of(source.type).name)
    info = np.iinfo(dtype.name)
    found: Array = EVALUATORS[op.operation.name](op, [np.arange(info.min, int(info.max) + 1).astype(dtype)])
    entries = signed(found.astype(dtype_of(op.operation.results[0].type)))
    return create("table", [export.value(source), const(entries)], shape_of(source.type), "i8")
