"""Operators of ONNX in float64, where those of onnx's own evaluator compute in float32, slowly or not at all.

Formulas are those of the ONNX operator specification and, for `com.microsoft`, of ONNX Runtime's contrib operators.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun

from tools.zoo.truth.windows import convolution, maximum, padding_of

Array = NDArray[Any]
Result = tuple[Array, ...]

_FLOAT32 = 1
_ERF = np.vectorize(math.erf, otypes=[np.float64])


def _along(values: Array, data: Array, axis: int) -> Array:
    """`values` of a quantization parameter, shaped to meet `data` along `axis`."""
    if values.size == 1:
        return values.reshape(())
    return values.reshape([-1 if index == axis % data.ndim else 1 for index in range(data.ndim)])


def _dequantized(data: Array, scale: Array, zero_point: Array | None, axis: int = 1) -> Array:
    """scale * (quantized value - zero point)."""
    zero = np.zeros(()) if zero_point is None else _along(zero_point.astype(np.float64), data, axis)
    return (data.astype(np.float64) - zero) * _along(np.asarray(scale, np.float64), data, axis)


def _quantized(data: Array, scale: Array, zero_point: Array, axis: int = 1) -> Array:
    """clamp(round half to even(data / scale) + zero point)."""
    rounded = np.rint(data / _along(np.asarray(scale, np.float64), data, axis))
    bounds = np.iinfo(zero_point.dtype)
    shifted = rounded + _along(zero_point.astype(np.float64), data, axis)
    return np.clip(shifted, bounds.min, bounds.max).astype(zero_point.dtype)


class DequantizeLinear(OpRun):
    def _run(self, x: Array, scale: Array, zero_point: Array | None = None, **attributes: Any) -> Result:
        return (_dequantized(x, scale, zero_point, attributes.get("axis", 1)),)


class QuantizeLinear(OpRun):
    def _run(self, x: Array, scale: Array, zero_point: Array | None = None, **attributes: Any) -> Result:
        zero = np.zeros((), np.uint8) if zero_point is None else zero_point
        return (_quantized(x.astype(np.float64), scale, zero, attributes.get("axis", 1)),)


class DynamicQuantizeLinear(OpRun):
    def _run(self, x: Array) -> Result:
        low, high = min(0.0, float(x.min())), max(0.0, float(x.max()))
        scale = np.asarray((high - low) / 255 or 1.0)
        zero_point = np.clip(np.rint(-low / scale), 0, 255).astype(np.uint8)
        return _quantized(x.astype(np.float64), scale, zero_point), scale, zero_point


class Cast(OpRun):
    def _run(self, x: Array, **attributes: Any) -> Result:
        from onnx.helper import tensor_dtype_to_np_dtype

        kind = attributes["to"]
        return (x.astype(np.float64 if kind == _FLOAT32 else tensor_dtype_to_np_dtype(kind)),)


class LayerNormalization(OpRun):
    def _run(self, x: Array, gamma: Array, beta: Array | None = None, **attributes: Any) -> Result:
        x = x.astype(np.float64)
        axes = tuple(range(attributes.get("axis", -1) % x.ndim, x.ndim))
        centered = x - x.mean(axes, keepdims=True)
        variance = (centered**2).mean(axes, keepdims=True)
        normed = centered / np.sqrt(variance + attributes.get("epsilon", 1e-5)) * gamma
        return (normed if beta is None else normed + beta,)


class Softmax(OpRun):
    def _run(self, x: Array, **attributes: Any) -> Result:
        axis = attributes.get("axis", -1)
        powers = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
        return (powers / powers.sum(axis, keepdims=True),)


class Erf(OpRun):
    def _run(self, x: Array) -> Result:
        return (_ERF(x),)


class Gelu(OpRun):
    def _run(self, x: Array, **attributes: Any) -> Result:
        x = x.astype(np.float64)
        if attributes.get("approximate") == "tanh":
            return (0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),)
        return (0.5 * x * (1 + _ERF(x / math.sqrt(2))),)


class Conv(OpRun):
    def _run(self, x: Array, weights: Array, bias: Array | None = None, **attributes: Any) -> Result:
        found = _windowed(x, weights, attributes)
        return (found if bias is None else found + bias.reshape([1, -1] + [1] * (x.ndim - 2)),)


class MaxPool(OpRun):
    def _run(self, x: Array, **attributes: Any) -> Result:
        window = attributes["kernel_shape"]
        pads, strides, dilations = _geometry(x.shape[2:], window, attributes)
        return (maximum(x, window, pads, strides, dilations, rounds_up=bool(attributes.get("ceil_mode"))),)


class ConvInteger(OpRun):
    def _run(
        self, x: Array, weights: Array, x_zero: Array | None = None, w_zero: Array | None = None, **attributes: Any
    ) -> Result:
        data, filters = _shifted(x, x_zero, 0), _shifted(weights, w_zero, 0)
        return (_windowed(data, filters, attributes).astype(np.int32),)


class MatMulInteger(OpRun):
    def _run(self, a: Array, b: Array, a_zero: Array | None = None, b_zero: Array | None = None) -> Result:
        # Sums of products of 8-bit values are exact in float64, whose matrix products are fast.
        product = _shifted(a, a_zero, -2) @ _shifted(b, b_zero, -1)
        return (product.astype(np.int32),)


class QLinearConv(OpRun):
    def _run(self, *inputs: Array, **attributes: Any) -> Result:
        x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, *bias = inputs
        found = _windowed(_dequantized(x, x_scale, x_zero), _dequantized(w, w_scale, w_zero, 0), attributes)
        if bias:
            added = bias[0].astype(np.float64) * np.asarray(x_scale, np.float64) * np.asarray(w_scale, np.float64)
            found = found + added.reshape([1, -1] + [1] * (x.ndim - 2))
        return (_quantized(found, y_scale, y_zero),)


class QLinearMatMul(OpRun):
    def _run(self, *inputs: Array) -> Result:
        a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = inputs
        product = _dequantized(a, a_scale, a_zero, -2) @ _dequantized(b, b_scale, b_zero, -1)
        return (_quantized(product, y_scale, y_zero),)


class QLinearAdd(OpRun):
    op_domain = "com.microsoft"

    def _run(self, *inputs: Array) -> Result:
        a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero = inputs
        return (_quantized(_dequantized(a, a_scale, a_zero) + _dequantized(b, b_scale, b_zero), c_scale, c_zero),)


class QLinearMul(OpRun):
    op_domain = "com.microsoft"

    def _run(self, *inputs: Array) -> Result:
        a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero = inputs
        return (_quantized(_dequantized(a, a_scale, a_zero) * _dequantized(b, b_scale, b_zero), c_scale, c_zero),)


class QLinearSigmoid(OpRun):
    op_domain = "com.microsoft"

    def _run(self, x: Array, x_scale: Array, x_zero: Array, y_scale: Array, y_zero: Array) -> Result:
        return (_quantized(1 / (1 + np.exp(-_dequantized(x, x_scale, x_zero))), y_scale, y_zero),)


class QLinearGlobalAveragePool(OpRun):
    op_domain = "com.microsoft"

    def _run(self, x: Array, x_scale: Array, x_zero: Array, y_scale: Array, y_zero: Array, **attributes: Any) -> Result:
        axes = tuple(range(1, x.ndim - 1)) if attributes.get("channels_last") else tuple(range(2, x.ndim))
        return (_quantized(_dequantized(x, x_scale, x_zero).mean(axes, keepdims=True), y_scale, y_zero),)


class QLinearConcat(OpRun):
    op_domain = "com.microsoft"

    def _run(self, y_scale: Array, y_zero: Array, *inputs: Array, **attributes: Any) -> Result:
        triples = (inputs[index : index + 3] for index in range(0, len(inputs), 3))
        parts = [_dequantized(data, scale, zero_point) for data, scale, zero_point in triples]
        return (_quantized(np.concatenate(parts, attributes["axis"]), y_scale, y_zero),)


class QGemm(OpRun):
    op_domain = "com.microsoft"

    def _run(self, *inputs: Any, **attributes: Any) -> Result:
        given: tuple[Any, ...] = (*inputs, *[None] * (9 - len(inputs)))
        a, a_scale, a_zero, b, b_scale, b_zero, c, scale, zero_point = given
        columns = 0 if attributes.get("transB") else 1
        left, right = _dequantized(a, a_scale, a_zero), _dequantized(b, b_scale, b_zero, columns)
        left = left.T if attributes.get("transA") else left
        found = left @ (right.T if attributes.get("transB") else right) * attributes.get("alpha", 1.0)
        if c is not None:
            found = found + c * attributes.get("alpha", 1.0) * np.asarray(a_scale, np.float64) * b_scale
        return (found if scale is None else _quantized(found, scale, zero_point),)


def _shifted(data: Array, zero_point: Array | None, axis: int) -> Array:
    return _dequantized(data, np.ones(()), zero_point, axis)


def _windowed(data: Array, weights: Array, attributes: dict[str, Any]) -> Array:
    pads, strides, dilations = _geometry(data.shape[2:], weights.shape[2:], attributes)
    wide = [array.astype(np.float64) for array in (data, weights)]
    return convolution(wide[0], wide[1], pads, strides, dilations, attributes.get("group") or 1)


def _geometry(
    extents: Sequence[int], window: Sequence[int], attributes: dict[str, Any]
) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    """Pads, strides and dilations of a node."""
    rank = len(extents)
    strides, dilations = (attributes.get(name) or [1] * rank for name in ("strides", "dilations"))
    mode = attributes.get("auto_pad") or "NOTSET"
    if mode == "NOTSET":
        return attributes.get("pads") or [0] * 2 * rank, strides, dilations
    reach = [step * (extent - 1) + 1 for step, extent in zip(dilations, window, strict=True)]
    return padding_of(mode, extents, reach, strides), strides, dilations


OPERATORS = (
    *(DequantizeLinear, QuantizeLinear, DynamicQuantizeLinear, Cast, LayerNormalization, Softmax, Erf, Gelu),
    *(Conv, MaxPool, ConvInteger, MatMulInteger, QLinearConv, QLinearMatMul),
    *(QLinearAdd, QLinearMul, QLinearSigmoid, QLinearGlobalAveragePool, QLinearConcat, QGemm),
)
