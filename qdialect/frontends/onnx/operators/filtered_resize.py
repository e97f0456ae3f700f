"""Resize by cubic filters, against aliasing, and linear of any rank: products with a matrix along each dimension."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import F32MatmulOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.frontends.common import Array, require
from qdialect.frontends.onnx.operators.registry import Call
from qdialect.frontends.planning.emitter import Emitted, Emitter
from qdialect.frontends.planning.tensors import Computed
from qdialect.quant_math.choices import Coordinates, Ratio
from qdialect.quant_math.cubic import cubic, triangle, weight_matrix
from qdialect.quant_math.resize import source_coordinates

_COEFFICIENT = -0.75
_CUBIC_SUPPORT, _TRIANGLE_SUPPORT = 2, 1

Dimension = tuple[int, int, float]
"""A dimension's extent before and after, and its scale."""


def filtered(call: Call, dimensions: Sequence[Dimension], coordinates: Coordinates) -> Computed:
    """Input 0 as f32 values, resized along every dimension whose extent changes."""
    source = call.f32(0).f32(call.plan, call.name)
    matrices = {
        axis: _matrix(call, one, coordinates) for axis, one in enumerate(dimensions) if one[0] != one[1] or one[2] != 1
    }
    shape = tuple(size for _, size, _ in dimensions)
    require(len(shape) >= 1, "input must have at least 1 dimension, but got 0")

    def emit(emitter: Emitter) -> Emitted:
        value = emitter.to_channels_first(source)
        for axis, matrix in matrices.items():
            value = _along(emitter, value, axis, matrix)
        return value, False

    return Computed(shape, call.plan.compute(call.name, shape, "f32", emit))


def _along(emitter: Emitter, value: ir.Value, axis: int, matrix: Array) -> ir.Value:
    """The elements along `axis` times the transpose of `matrix`, [size, extent]."""
    rank = len(shape_of(value.type))
    order = [*(i for i in range(rank) if i != axis), axis]
    transposed = emitter.transpose(value, order)
    before = shape_of(transposed.type)
    rows = emitter.reshape(transposed, (int(np.prod(before[:-1])), before[-1]))
    product = emitter.build(F32MatmulOp, rows, emitter.constant(np.ascontiguousarray(matrix.T)), element="f32")
    back = emitter.reshape(product, (*before[:-1], matrix.shape[0]))
    return emitter.transpose(back, [order.index(i) for i in range(rank)])


def _matrix(call: Call, dimension: Dimension, coordinates: Coordinates) -> Array:
    extent, size, scale = dimension
    call.plan.budget.spend_constant((size, extent), 4)
    found = source_coordinates(coordinates, Ratio.DIVIDE, extent, size, scale).astype(np.float64)
    is_cubic = call.attribute("mode", "nearest") == "cubic"
    function = cubic(call.attribute("cubic_coeff_a", _COEFFICIENT)) if is_cubic else triangle
    support = _CUBIC_SUPPORT if is_cubic else _TRIANGLE_SUPPORT
    shrinks = call.flag("antialias", 0) and scale < 1
    excludes = call.flag("exclude_outside", 0)
    return weight_matrix(
        function, support, found, extent, stretch=1 / scale if shrinks else 1.0, excludes_outside=excludes
    )
