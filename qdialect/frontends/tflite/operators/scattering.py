"""Sums of what is written to the same element: SCATTER_ND, SEGMENT_SUM and the reductions of unsorted segments.

LiteRT fails at an index outside of its dimension; here it names another element of the result.
"""

from __future__ import annotations

import math

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import DynamicScatterOp
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Shape, Tensor
from qdialect.frontends.tflite.operators.checks import integers, operands, same_type
from qdialect.frontends.tflite.operators.indexing import check_index_type, joined
from qdialect.frontends.tflite.operators.registry import Emission, imports, imports_integers
from qdialect.quant_math.choices import ScatterReduction

_ELEMENTS = ("i16", "i32", "i64", "f32")
_SEGMENTS = {
    "SEGMENT_SUM": ScatterReduction.ADD,
    "UNSORTED_SEGMENT_MAX": ScatterReduction.MAX,
    "UNSORTED_SEGMENT_MIN": ScatterReduction.MIN,
    "UNSORTED_SEGMENT_PROD": ScatterReduction.MUL,
    "UNSORTED_SEGMENT_SUM": ScatterReduction.ADD,
}


def _check_reduced(operator: Operator, data: Tensor) -> None:
    same_type(operator, data)
    require(data.element in _ELEMENTS, f"input must be {', '.join(_ELEMENTS)}, but got {data.element}")


def _filled(emitter: Emitter, reduction: ScatterReduction, element: str, shape: Shape) -> ir.Value:
    """The numbers that LiteRT's kernels begin with: the finite ends of floats too."""
    dtype = NUMPY_DTYPES[element]
    ends = np.finfo(np.float32) if element == "f32" else np.iinfo(dtype.name)
    numbers = {ScatterReduction.MAX: ends.min, ScatterReduction.MIN: ends.max, ScatterReduction.MUL: 1}
    return emitter.broadcast(emitter.constant(np.array(numbers.get(reduction, 0), dtype)), shape)


@imports_integers("SCATTER_ND")
def _scatter_nd(operator: Operator) -> Emission:
    """Zeros to which each update adds at the elements that its index names."""
    positions, updates, wanted = operands(operator, 3)
    output = operator.outputs[0]
    _check_reduced(operator, updates)
    check_index_type(positions, "indices")
    require(len(positions.shape) >= 1, "indices must have at least 1 dimension")
    require(integers(wanted, "shape") == output.shape, f"shape must be {list(output.shape)}")
    depth = positions.shape[-1]
    require(1 <= depth <= len(output.shape), f"indices must name 1 to {len(output.shape)} dimensions, but got {depth}")
    leading, row = output.shape[:depth], output.shape[depth:]
    listed = (*positions.shape[:-1], *row)
    require(updates.shape == listed, f"updates must have the shape {list(listed)}, but got {list(updates.shape)}")
    count = math.prod(positions.shape[:-1])

    def emit(emitter: Emitter) -> ir.Value:
        at = joined(emitter, emitter.reshape(emitter.value(positions), (count, depth)), leading)
        table = _filled(emitter, ScatterReduction.ADD, output.element, (math.prod(leading), *row))
        added = emitter.reshape(emitter.value(updates), (count, *row))
        how = {"element": output.element, "reduction": ScatterReduction.ADD}
        return emitter.reshape(emitter.build(DynamicScatterOp, table, at, added, **how), output.shape)

    return emit


@imports(*_SEGMENTS)
def _segments(operator: Operator) -> Emission:
    """The rows of each segment, reduced in their order."""
    data, segments, *_ = operands(operator, 2, 3)
    output = operator.outputs[0]
    _check_reduced(operator, data)
    check_index_type(segments, "segment ids")
    rank = len(segments.shape)
    ranks = f"segment ids must be {list(data.shape[:1])}, but got {list(segments.shape)}"
    require(rank == 1 and segments.shape == data.shape[:1], ranks)
    rows, *row = output.shape or (0,)
    require(tuple(row) == data.shape[1:], f"output must be rows of {list(data.shape[1:])}, but got {row}")
    known = segments.data is None or bool(((segments.data >= 0) & (segments.data < rows)).all())
    require(known, f"segment ids must be in [0, {rows})")
    reduction = _SEGMENTS[operator.kind]

    def emit(emitter: Emitter) -> ir.Value:
        table = _filled(emitter, reduction, output.element, output.shape)
        operands_ = table, emitter.value(segments), emitter.value(data)
        return emitter.build(DynamicScatterOp, *operands_, element=output.element, reduction=reduction)

    return emit
