"""Convolutions and matrix products of 16-bit activations with constant 8-bit weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tflite
from numpy.typing import NDArray

from qdialect._mlir import ir
from qdialect.dialect import (
    Conv2DOp,
    ConvTranspose2DOp,
    DenseOp,
    I16Conv2DOp,
    I16DenseOp,
    I16RequantizeOp,
    PadOp,
    SliceOp,
)
from qdialect.dialect.type_constraints import NUMPY_DTYPES, shape_of
from qdialect.frontends.common import require
from qdialect.frontends.tflite.emitter import Emitter
from qdialect.frontends.tflite.model import Operator, Tensor
from qdialect.frontends.tflite.operators.checks import check_rescale, check_scales, constant
from qdialect.frontends.tflite.operators.i16.checks import sixteen_bit
from qdialect.frontends.tflite.reader import read_options
from qdialect.quant_math import Multiplier
from qdialect.quant_math.choices import I16Rounding

_ROUNDINGS = {"i32": I16Rounding.FIXED32_DOUBLE, "i64": I16Rounding.FIXED16_UP}
_BIAS_OPTIONS: dict[str, Any] = {
    "CONV_2D": tflite.Conv2DOptions,
    "FULLY_CONNECTED": tflite.FullyConnectedOptions,
    "TRANSPOSE_CONV": tflite.TransposeConvOptions,
}
_OPS = {Conv2DOp: I16Conv2DOp, DenseOp: I16DenseOp}
Pair = tuple[int, int]


@dataclass(frozen=True)
class I16Contraction:
    """The tensors of a node, checked; `weight` has the output channels first, accumulators are of type `element`."""

    data: Tensor
    output: Tensor
    weight: NDArray[Any]
    weight_scales: tuple[float, ...]
    bias: NDArray[Any] | None
    element: str
    rounding: I16Rounding
    multiplier: Multiplier
    bounds: tuple[int, int]

    def accumulate(self, emitter: Emitter, op_class: type[Any], data: ir.Value, **attributes: Any) -> ir.Value:
        """The accumulators of what would be `op_class` on bytes."""
        if op_class is ConvTranspose2DOp:
            return self._transposed(emitter, data, **attributes)
        return self._sums(emitter, _OPS[op_class], data, self.weight, **attributes)

    def finish(self, emitter: Emitter, acc: ir.Value, axis: int) -> ir.Value:
        """The output of accumulators, whose channels lie along `axis`, the last one."""
        return emitter.build(
            I16RequantizeOp,
            acc,
            element="i16",
            input_scale=self.data.scale,
            weight_scales=self.weight_scales,
            output_scale=self.output.scale,
            output_min=self.bounds[0],
            output_max=self.bounds[1],
            rounding=self.rounding,
            multiplier=self.multiplier,
        )

    def _sums(
        self, emitter: Emitter, op_class: type[Any], data: ir.Value, weight: NDArray[Any], **attributes: Any
    ) -> ir.Value:
        bias = None if self.bias is None else emitter.constant(self.bias)
        return emitter.build(op_class, data, emitter.constant(weight), bias, element=self.element, **attributes)

    def _transposed(
        self, emitter: Emitter, data: ir.Value, strides: Pair, padding: Sequence[int], output_padding: Pair
    ) -> ir.Value:
        """A convolution of the data with zeros between them, by the weights from the last tap to the first."""
        apart = _with_zeros(emitter, data, strides)
        before = [self.weight.shape[1 + i] - 1 - padding[i] for i in range(2)]
        # After the last element there are zeros already, one fewer than the stride.
        after = [self.weight.shape[1 + i] - strides[i] - padding[2 + i] + output_padding[i] for i in range(2)]
        cropped = _cropped(emitter, apart, [max(-n, 0) for n in before], [max(-n, 0) for n in after])
        added = tuple(max(n, 0) for n in (*before, *after))
        return self._sums(emitter, I16Conv2DOp, cropped, self.weight[:, ::-1, ::-1], padding=added)


def _with_zeros(emitter: Emitter, data: ir.Value, strides: Pair) -> ir.Value:
    """Rows and columns of zeros after each row and column of the data, so that these are `strides` apart."""
    if strides == (1, 1):
        return data
    images, height, width, channels = shape_of(data.type)
    cells = emitter.reshape(data, (images, height, 1, width, 1, channels))
    high = (0, 0, strides[0] - 1, 0, strides[1] - 1, 0)
    padded = emitter.build(PadOp, cells, element="i16", low=(0,) * 6, high=high, value=0)
    return emitter.reshape(padded, (images, height * strides[0], width * strides[1], channels))


def _cropped(emitter: Emitter, image: ir.Value, before: Sequence[int], after: Sequence[int]) -> ir.Value:
    if not any((*before, *after)):
        return image
    images, height, width, channels = shape_of(image.type)
    begin = (0, before[0], before[1], 0)
    size = (images, height - before[0] - after[0], width - before[1] - after[1], channels)
    return emitter.build(SliceOp, image, element="i16", begin=begin, size=size, strides=(1, 1, 1, 1))


def i16_contraction(
    operator: Operator, tensors: Sequence[Tensor], rank: int, axis: int, bounds: tuple[int, int]
) -> I16Contraction:
    """That of a node; `tensors` are data, weight, which has `rank` dimensions with channels along `axis`, and bias."""
    data, weight, *rest = tensors
    output = sixteen_bit(operator.outputs[0], "output")
    sixteen_bit(data, "input")
    is_dense = operator.kind == "FULLY_CONNECTED"
    known = ("i8", "i16") if is_dense else ("i8",)
    require(weight.element in known, f"weight must be {' or '.join(known)}, but got {weight.element}")
    require(len(weight.shape) == rank, f"weight must have {rank} dimensions, but got {len(weight.shape)}")
    values, channels = constant(weight, "weight"), weight.shape[axis]
    check_scales(weight, "weight")
    along = len(weight.scales) == 1 or weight.axis == axis
    require(along, f"weight scales must lie along axis {axis}, but got {weight.axis}")
    require(not any(weight.zero_points), "weight of an i16 input must have zero point 0")
    check_rescale(data.scale, weight.scales, output.scale, Multiplier.F64)
    # Products of words are summed up in 64 bits whatever the bias is.
    element = _accumulator(operator, rest) if weight.element == "i8" else "i64"
    bias = _bias(rest[0], channels).astype(NUMPY_DTYPES[element]) if rest else None
    rounding = I16Rounding.F64_NEAREST if is_dense and weight.element == "i8" else _ROUNDINGS[element]
    multiplier = _multiplier(weight) if is_dense else Multiplier.F64
    channels_first = np.moveaxis(values, axis, 0)
    scales = weight.scales
    return I16Contraction(data, output, channels_first, scales, bias, element, rounding, multiplier, bounds)


def _multiplier(weight: Tensor) -> Multiplier:
    """The product of two scales is one of float32 where words are multiplied by a single one."""
    return Multiplier.F32_PRODUCT if weight.element == "i16" and len(weight.scales) == 1 else Multiplier.F64


def _accumulator(operator: Operator, bias: Sequence[Tensor]) -> str:
    """The type of sums: that of the bias, which an option may name; i64 where neither says anything."""
    table = _BIAS_OPTIONS.get(operator.kind)
    named = read_options(operator, table, lambda options: options.QuantizedBiasType()) if table else 0
    wanted = {tflite.TensorType.INT32: "i32", tflite.TensorType.INT64: "i64"}.get(named)
    known = ("i64",) if table is None else (wanted,) if wanted else ("i32", "i64")
    found = bias[0].element if bias else wanted or "i64"
    require(found in known, f"bias must be {' or '.join(known)}, but got {found}")
    return found


def _bias(bias: Tensor, channels: int) -> NDArray[Any]:
    values = constant(bias, "bias")
    require(values.size == channels, f"bias must have {channels} entries, but got {values.size}")
    return values.reshape(channels)
