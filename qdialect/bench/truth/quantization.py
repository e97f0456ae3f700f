"""Quantization of arrays in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun

from qdialect.bench.truth.tracing import traced

Array = NDArray[Any]


def along(values: Array, data: Array, axis: int) -> Array:
    """`values` of a quantization parameter, shaped to meet `data` along `axis`."""
    if values.size == 1:
        return values.reshape(())
    return values.reshape([-1 if index == axis % data.ndim else 1 for index in range(data.ndim)])


def dequantized(data: Array, scale: Array, zero_point: Array | None, axis: int = 1) -> Array:
    """scale * (quantized value - zero point)."""
    zero = np.zeros(()) if zero_point is None else along(zero_point.astype(np.float64), data, axis)
    return (data.astype(np.float64) - zero) * along(np.asarray(scale, np.float64), data, axis)


def positions(data: Array, scale: Array, zero_point: Array, axis: int = 1) -> Array:
    """data / scale + zero point: where data lies among the quantized values."""
    quotients = data / along(np.asarray(scale, np.float64), data, axis)
    return quotients + along(zero_point.astype(np.float64), data, axis)


def quantized(data: Array, scale: Array, zero_point: Array, axis: int = 1) -> Array:
    """clamp(round half to even(data / scale) + zero point)."""
    rounded = np.rint(data / along(np.asarray(scale, np.float64), data, axis))
    bounds = np.iinfo(zero_point.dtype)
    shifted = rounded + along(zero_point.astype(np.float64), data, axis)
    return np.clip(shifted, bounds.min, bounds.max).astype(zero_point.dtype)


class Quantizing(OpRun):
    """An operator of ONNX whose result is quantized."""

    def quantize(self, data: Array, scale: Array, zero_point: Array, axis: int = 1) -> Array:
        """As `quantized`; the tensor is noted under the name of the node's first output."""
        name: str = self.onnx_node.output[0]
        return traced(name, positions(data, scale, zero_point, axis), quantized(data, scale, zero_point, axis))
