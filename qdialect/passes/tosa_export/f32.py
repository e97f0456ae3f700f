"""Convolutions and matrix products of f32 values."""

from __future__ import annotations

import math

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import F32Conv2DOp, F32MatmulOp
from qdialect.dialect.type_constraints import shape_of
from qdialect.passes.tosa.conversion import require
from qdialect.passes.tosa_export import builder
from qdialect.passes.tosa_export.builder import const, create, entry
from qdialect.passes.tosa_export.contraction import exact_window, ints
from qdialect.passes.tosa_export.export import Export, exports, shape_of_result


@exports(F32MatmulOp)
def _matmul(export: Export, op: F32MatmulOp) -> ir.Value:
    data, shape = export.value(op.data), shape_of(op.data.type)
    batches, columns = math.prod(shape[:-2]), shape_of(op.matrix.type)[-1]
    matrix = builder.tile(export.value(op.matrix), (*shape[:-2], shape[-1], columns))
    left = builder.reshape(data, (batches, *shape[-2:]))
    operands = [left, builder.reshape(matrix, (batches, shape[-1], columns)), entry(0.0, "f32"), entry(0.0, "f32")]
    product = create("matmul", operands, (batches, shape[-2], columns), "f32")
    return builder.reshape(product, shape_of_result(op))


@exports(F32Conv2DOp)
def _conv2d(export: Export, op: F32Conv2DOp) -> ir.Value:
    kernel, depth = shape_of(op.weight.type)[1:3], shape_of(op.data.type)[3]
    require(op.groups in (1, depth), f"groups must be 1 or {depth}, but got {op.groups}")
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, op.dilation, strict=True)]
    data, pad = exact_window(export.value(op.data), extents, op.strides, (0,) * 4)
    window = {"pad": ints(pad), "stride": ints(op.strides), "dilation": ints(op.dilation), "acc_type": "f32"}
    weight, channels = export.value(op.weight), shape_of(op.weight.type)[0]
    rest = [const(np.zeros(channels, np.float32)), entry(0.0, "f32"), entry(0.0, "f32")]
    if op.groups == 1:
        return create("conv2d", [data, weight, *rest], shape_of_result(op), "f32", **window)
    apart = builder.reshape(weight, (depth, channels // depth, *kernel))
    moved = builder.transpose(apart, (2, 3, 0, 1))
    return create("depthwise_conv2d", [data, moved, *rest], shape_of_result(op), "f32", **window)
