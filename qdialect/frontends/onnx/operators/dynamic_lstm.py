"""DynamicQuantizeLSTM: products of quantized weights with data and hidden states that each call quantizes.

ONNX Runtime quantizes the sequence by the range of all of it, and the hidden states of all sequences in each time step.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from qdialect.dialect import DynamicLstmOp
from qdialect.frontends.common import Array, require
from qdialect.frontends.onnx.operators.dynamic_products import dynamic_product
from qdialect.frontends.onnx.operators.recurrent import KINDS, Layer
from qdialect.frontends.onnx.operators.registry import Call, imports
from qdialect.frontends.planning.recurrence import Cell, DynamicLstmCell
from qdialect.frontends.planning.tensors import Constant, F32Tensor, Tensor

_WEIGHTS, _RECURRENCE = (1, 8), (2, 10)
"""The inputs with weights and with their scales."""


@imports("com.microsoft.DynamicQuantizeLSTM")
def _dynamic_quantize_lstm(call: Call) -> tuple[Tensor, ...]:
    """Weights are [D, I, 4 * H] and [D, H, 4 * H]."""
    call.count(12)
    # A sequence that has ended would still count for the range of the hidden states.
    require(call.optional(4) is None, "input 4, sequence_lens, must be omitted")
    weights, recurrence = (_Matrices.of(call, *indices).whole_numbers() for indices in (_WEIGHTS, _RECURRENCE))
    return _DynamicLayer(call, KINDS["LSTM"]).results(weights.transpose(0, 2, 1), recurrence.transpose(0, 2, 1))


class _Matrices:
    """Quantized matrices [D, K, N] with parameters of each direction, or of each of its columns."""

    def __init__(self, values: Array, scales: Array, points: Array) -> None:
        self.values, self.scales, self.points = values, scales, points

    @classmethod
    def of(cls, call: Call, index: int, parameters: int) -> _Matrices:
        """Input `index`, with scales from input `parameters` and zero points from the next."""
        values, scale, points = (call.constant(i) for i in (index, parameters, parameters + 1))
        require(values.ndim == 3, f"input {index} must have 3 dimensions, but got {values.ndim}")
        holds = scale.dtype == np.float32 and points.dtype == values.dtype and str(values.dtype) in ("int8", "uint8")
        require(holds, f"input {index} must be i8 or ui8 with a zero point of its type and an f32 scale")
        wanted = [(values.shape[0],), (values.shape[0], values.shape[2])]
        require(scale.shape in wanted and points.shape in wanted, f"scale must have the shape {list(wanted[0])}")
        return cls(values, *(one.reshape(values.shape[0], -1) for one in (scale, points)))

    def whole_numbers(self) -> Array:
        """``quantized value - zero point`` as f32."""
        return (self.values.astype(np.int32) - self.points[:, np.newaxis].astype(np.int32)).astype(np.float32)


class _DynamicLayer(Layer):
    """A layer whose weights are quantized."""

    def cell(self, cell: Cell, index: int, order: Array) -> Cell:
        own = _Matrices.of(self.call, *_RECURRENCE)
        scales = np.broadcast_to(own.scales[index], order.shape)[order]
        points = np.broadcast_to(own.points[index], order.shape)[order]
        attributes = {**cell.attributes, "weight_zero_points": tuple(points.tolist())}
        return DynamicLstmCell(
            DynamicLstmOp,
            cell.bias,
            np.ascontiguousarray(own.values[index][:, order]),
            attributes,
            scales=np.ascontiguousarray(scales),
        )

    def products(self, sequence: F32Tensor, rows: Array, index: int, order: Array) -> F32Tensor:
        del rows
        own = _Matrices.of(self.call, *_WEIGHTS)
        matrix = np.ascontiguousarray(own.values[index][:, order])
        scales, points = (one[index][order] if one.shape[1] > 1 else one[index] for one in (own.scales, own.points))
        constants = (Constant(array) for array in (matrix, np.ascontiguousarray(scales), np.ascontiguousarray(points)))
        return dynamic_product(replace(self.call, inputs=(sequence, *constants)))
