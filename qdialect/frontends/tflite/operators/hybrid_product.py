"""BATCH_MATMUL of float32 data and constant i8 matrices: each row is quantized when the network runs."""

from __future__ import annotations

import math

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import DynamicDenseOp
from qdialect.frontends.common import require
from qdialect.frontends.slices import Slice, take_slices
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator
from qdialect.frontends.tflite.operators.checks import check_scales, constant, operands
from qdialect.frontends.tflite.operators.product import adjoint_options, check_columns, transposed
from qdialect.frontends.tflite.operators.registry import Emission, imports_hybrid
from qdialect.frontends.tflite.operators.run_time_ranges import quantizer_of

_MAX_MATRICES = 64


@imports_hybrid("BATCH_MATMUL")
def _batch_matmul(operator: Operator) -> Emission:
    """``float32(sum) * (scale * weight_scale)`` of each row."""
    transpose_lhs, transpose_rhs, is_asymmetric = adjoint_options(operator)
    data, weight = operands(operator, 2)
    check_scales(weight, "right operand")
    require(not any(weight.zero_points), "right operand must have zero point 0")
    matrices = constant(weight, "right operand")
    check_columns(weight, matrices.ndim, transpose_rhs)
    require(min(len(data.shape), matrices.ndim) >= 2, "operands must have at least 2 dimensions")
    # Output channels first.
    matrices = matrices if transpose_rhs else np.swapaxes(matrices, -1, -2)
    lhs = data.shape if not transpose_lhs else (*data.shape[:-2], data.shape[-1], data.shape[-2])
    depth, (channels, wanted) = lhs[-1], matrices.shape[-2:]
    require(depth == wanted, f"right operand must have {depth} rows, but got {wanted}")
    leading = matrices.shape[:-2]
    is_one = math.prod(leading) == 1
    fits = is_one or leading == lhs[:-2]
    require(fits, f"leading dimensions must be the same, but got {list(lhs[:-2])} and {list(leading)}")
    count = 1 if is_one else math.prod(leading)
    require(count <= _MAX_MATRICES, f"right operand must have at most {_MAX_MATRICES} matrices, but got {count}")
    flat, height = matrices.reshape(count, channels, depth), math.prod(lhs[:-1]) // count

    def of_matrix(emitter: Emitter, value: ir.Value, index: int) -> ir.Value:
        part = take_slices(emitter, value, (Slice(index * height, 1, height), Slice(0, 1, depth)))
        row = quantizer_of(emitter, is_asymmetric=is_asymmetric)(emitter, part, (1,), ())
        parts = (row.values, emitter.constant(np.ascontiguousarray(flat[index])), row.scale, row.zero_point, None)
        return emitter.build(DynamicDenseOp, *parts, element="f32", weight_scales=weight.scales)

    def emit(emitter: Emitter) -> ir.Value:
        value = emitter.value(data)
        value = emitter.reshape(transposed(emitter, value) if transpose_lhs else value, (count * height, depth))
        results = [of_matrix(emitter, value, index) for index in range(count)]
        joined = results[0] if count == 1 else emitter.concatenate(results, 0)
        return emitter.reshape(joined, operator.outputs[0].shape)

    return emit
