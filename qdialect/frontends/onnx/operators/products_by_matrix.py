"""Products whose right operand has parameters of its own for each column of each matrix: shape [..., 1, N].

No op has zero points by matrix.  The accumulators are the difference of two products, with the quantized values and
with the zero points in their stead, ``sum (x - z_x) w - sum (x - z_x) z_w``; for scales by matrix the matrices are laid
side by side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from qdialect._mlir import ir
from qdialect.dialect import MatMulOp
from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.common import Array, Shape, check_scales, require
from qdialect.frontends.onnx.operators.contraction import data_of
from qdialect.frontends.onnx.operators.registry import Call
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.contraction import Contraction
from qdialect.frontends.planning.emitter import Emitted, Emitter, Value
from qdialect.frontends.planning.tensors import EIGHT_BIT, Constant


def is_by_matrix(call: Call, *parameters: int) -> bool:
    """Whether one of these inputs has a dimension before that of the columns and one before the rows."""
    tensors = [call.optional(index) for index in parameters]
    return any(isinstance(tensor, Constant) and tensor.array.ndim > 2 for tensor in tensors)


def product_by_matrix(call: Call, left: Quantized, values: int, scale: int | None, zero_point: int) -> Contraction:
    """`left` times input `values`, whose parameters are inputs `scale`, 1 where that is None, and `zero_point`."""
    data, right = data_of(left), call.value(values)
    require(right.element in EIGHT_BIT, f"right operand must be i8 or ui8, but got {right.element}")
    shape, rank = right.shape, len(right.shape)
    require(rank > 2, f"right operand must have at least 3 dimensions, but got {rank}")
    require(len(data.shape) >= 2, f"input must have at least 2 dimensions, but got {len(data.shape)}")
    leads = data.shape[:-2]
    fits = len(leads) <= rank - 2 and all(own in (1, n) for own, n in zip(leads[::-1], shape[:-2][::-1], strict=False))
    require(fits, f"batches must be {list(shape[:-2])}, but got {list(leads)}")
    require(data.shape[-1] == shape[-2], f"input must have a last extent of {shape[-2]}, but got {data.shape[-1]}")
    wanted = (*shape[:-2], 1, shape[-1])
    points = np.zeros((), NUMPY_DTYPES[right.element])
    if call.optional(zero_point) is not None:
        points = _parameter(call, zero_point, "zero point", wanted)
    require(points.dtype == NUMPY_DTYPES[right.element], f"zero point must be {right.element}, but got {points.dtype}")
    scales = np.float32(1) if scale is None else _parameter(call, scale, "scale", wanted)
    require(scales.dtype == np.float32, f"scale must be f32, but got {scales.dtype}")
    flat = tuple(float(value) for value in np.broadcast_to(scales, wanted).ravel()) if scales.size > 1 else ()
    check_scales(flat or (float(scales),), "scale")
    layout = _Layout(data, right, np.broadcast_to(points, shape), (*shape[:-2], data.shape[-2], shape[-1]))
    if flat:
        return Contraction(layout.shape, data, flat, None, layout.side_by_side, layout.apart)
    return Contraction(layout.shape, data, (float(scales),), None, layout.sums, lambda _, value: (value, False))


def _parameter(call: Call, index: int, what: str, wanted: Shape) -> Array:
    values = call.constant(index)
    fits = values.size == 1 or values.shape == wanted
    require(fits, f"{what} must have 1 entry or the shape {list(wanted)}, but got {list(values.shape)}")
    return values if values.size > 1 else values.reshape(())


@dataclass(frozen=True)
class _Layout:
    data: Quantized
    right: Value
    points: Array
    shape: Shape
    """[..., M, N]"""

    def sums(self, emitter: Emitter, bias: Array | None) -> ir.Value:
        """The accumulators [..., M, N]; there is no bias."""
        del bias
        data = emitter.to_channels_first(self.data.values)
        products, offset = (
            emitter.build(
                MatMulOp,
                data,
                matrix,
                None,
                element="i32",
                input_scale=self.data.scales[0],
                input_zero_point=self.data.zero_points[0],
                weight_scales=(1.0,),
                weight_zero_points=(0,),
            )
            for matrix in (emitter.to_channels_first(self.right), emitter.constant(self.points))
        )
        return emitter.float_op("arith.subi", products, offset)

    def side_by_side(self, emitter: Emitter, bias: Array | None) -> ir.Value:
        """The accumulators [M, ... * N]."""
        rank = len(self.shape)
        rows_first = emitter.transpose(self.sums(emitter, bias), (rank - 2, *range(rank - 2), rank - 1))
        return emitter.reshape(rows_first, (self.shape[-2], math.prod(self.shape) // self.shape[-2]))

    def apart(self, emitter: Emitter, value: ir.Value) -> Emitted:
        """[M, ... * N] as [..., M, N]."""
        *leading, rows, columns = self.shape
        rank = len(self.shape)
        spread = emitter.reshape(value, (rows, *leading, columns))
        return emitter.transpose(spread, (*range(1, rank - 1), 0, rank - 1)), False
