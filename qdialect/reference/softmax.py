"""Softmax over one axis of 8-bit quantized values: TFLite's fixed point, ONNX Runtime's table, and float32."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qdialect.quant_math import (
    IntArray,
    QuantizedArray,
    activations,
    doubling_high_multiply,
    rounding_shift_right,
)
from qdialect.quant_math.softmax_tables import SoftmaxTables, ort_beyond, reciprocal


def softmax_fixed(data: QuantizedArray, axis: int, tables: SoftmaxTables) -> IntArray:
    """TFLite SOFTMAX (reference softmax.h): int64 in the dtype's range, of scale 1/256 and the minimum as zero point.

    y = round(e_i * (1 / sum of e)) in Q0.8 plus the minimum, saturated.  Exact for rows whose sum stays below
    4096 times the largest exponential, the kernel's own limit.
    """
    info = np.iinfo(data.dtype.name)
    values = data.astype(np.int64)
    distance = values.max(axis=axis, keepdims=True) - values
    total = tables.addends.astype(np.int64)[distance].sum(axis=axis, keepdims=True)
    scale, bits_over_unit = reciprocal(total)
    product = doubling_high_multiply(scale, tables.exponentials[distance])
    unsaturated = rounding_shift_right(product, bits_over_unit + 31 - 8)
    return np.clip(unsaturated + info.min, info.min, info.max)


def softmax_float(
    data: QuantizedArray,
    axis: int,
    input_scale: float,
    beta: float,
    output_scale: float,
    output_zero_point: int,
    lo: int,
    hi: int,
) -> IntArray:
    """half_even(e_i / sum / s_y) + z_y in float32, clamped to [lo, hi], int64.

    e_i = exp(float32(-d) * float32(float32(s_x) * float32(beta))) with the distance d from the row's maximum.  The sum
    runs along `axis` in order, in float32: the order is part of the definition.
    """
    values = data.astype(np.int64)
    distance = values.max(axis=axis, keepdims=True) - values
    exponentials = activations.exp(-distance.astype(np.float32) * (np.float32(input_scale) * np.float32(beta)))
    total = np.take(np.add.accumulate(exponentials, axis=axis), [-1], axis=axis)
    with np.errstate(over="ignore"):
        scaled = exponentials / total / np.float32(output_scale)
    return np.clip(np.rint(scaled).astype(np.float64) + output_zero_point, lo, hi).astype(np.int64)


def softmax_ort(
    data: QuantizedArray,
    axis: int,
    entries: NDArray[np.float32],
    factor: np.float32,
    output_zero_point: int,
    lo: int,
    hi: int,
) -> IntArray:
    """half_even(e_i * factor / sum) + z_y in float32, clamped to [lo, hi], int64 (ONNX Runtime's QLinearSoftmax).

    The sum runs along `axis` in order.  A product beyond float32 is `ort_beyond`; that can be where ``extent * s_y`` is
    below e^-5, as it is in rows of one element.
    """
    values = data.astype(np.int64)
    terms = entries[values.max(axis=axis, keepdims=True) - values]
    total = np.take(np.add.accumulate(terms, axis=axis), [-1], axis=axis)
    with np.errstate(over="ignore"):
        products = terms * factor
        scaled = np.rint(products / total).astype(np.float64) + output_zero_point
    shares = np.where(np.isinf(products), ort_beyond(output_zero_point, lo, hi), scaled)
    return np.clip(shares, lo, hi).astype(np.int64)
