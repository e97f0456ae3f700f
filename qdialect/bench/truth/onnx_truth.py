"""A quantized ONNX graph in float64, and the operators of ONNX itself that it takes for that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from qdialect.bench.frameworks import Runner, imported
from qdialect.bench.truth import NoTruthError
from qdialect.bench.truth.contrib_operators import CONTRIB_OPERATORS, Quantizing, Result, dequantized, of_range
from qdialect.bench.truth.windows import convolution, maximum, padding_of
from qdialect.support.interface import Array

_FLOAT32 = 1
_ERF = np.vectorize(math.erf, otypes=[np.float64])


class Pad(OpRun):
    # onnx's own evaluator lacks negative pads: those remove elements.
    # Up to opset 10, pads and value are attributes.
    def _run(
        self,
        x: Array,
        pads: Array,
        value: Array | float | None = None,
        axes: Array | None = None,
        mode: Literal["constant", "edge", "reflect", "wrap"] | None = None,
    ) -> Result:
        widths = np.zeros((x.ndim, 2), np.int64)
        widths[slice(None) if axes is None else np.asarray(axes)] = np.asarray(pads).reshape(2, -1).T
        removed = np.maximum(-widths, 0)
        kept = tuple(slice(low, extent - high) for (low, high), extent in zip(removed, x.shape, strict=True))
        added, constant = np.maximum(widths, 0), 0 if value is None else np.asarray(value).item()
        if mode in (None, "constant"):
            return (np.pad(x[kept], added, constant_values=constant),)
        return (np.pad(x[kept], added, mode=mode),)


class DequantizeLinear(OpRun):
    def _run(self, x: Array, scale: Array, zero_point: Array | None = None, **attributes: Any) -> Result:
        return (dequantized(x, scale, zero_point, attributes.get("axis", 1)),)


class QuantizeLinear(Quantizing):
    def _run(self, x: Array, scale: Array, zero_point: Array | None = None, **attributes: Any) -> Result:
        zero = np.zeros((), np.uint8) if zero_point is None else zero_point
        return (self.quantize(x.astype(np.float64), scale, zero, attributes.get("axis", 1)),)


class DynamicQuantizeLinear(OpRun):
    def _run(self, x: Array) -> Result:
        return of_range(x)


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


class GatherElements(OpRun):
    def _run(self, x: Array, indices: Array, **attributes: Any) -> Result:
        return (np.take_along_axis(x, indices, attributes.get("axis") or 0),)


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


class QLinearConv(Quantizing):
    def _run(self, *inputs: Array, **attributes: Any) -> Result:
        x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, *bias = inputs
        found = _windowed(dequantized(x, x_scale, x_zero), dequantized(w, w_scale, w_zero, 0), attributes)
        if bias:
            added = bias[0].astype(np.float64) * np.asarray(x_scale, np.float64) * np.asarray(w_scale, np.float64)
            found = found + added.reshape([1, -1] + [1] * (x.ndim - 2))
        return (self.quantize(found, y_scale, y_zero),)


class QLinearMatMul(Quantizing):
    def _run(self, *inputs: Array) -> Result:
        a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = inputs
        product = dequantized(a, a_scale, a_zero, -2) @ dequantized(b, b_scale, b_zero, -1)
        return (self.quantize(product, y_scale, y_zero),)


def _shifted(data: Array, zero_point: Array | None, axis: int) -> Array:
    return dequantized(data, np.ones(()), zero_point, axis)


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
    *(GatherElements, Pad, Conv, MaxPool, ConvInteger, MatMulInteger, QLinearConv, QLinearMatMul),
    *CONTRIB_OPERATORS,
)


# A graph in which they compute.


def load(path: str) -> Runner:
    """The model at `path`, whose outputs are float64; raises `NoTruthError` for an operator without an evaluator."""
    return in_double(imported("onnx").load(path))


def in_double(model: ModelProto) -> Runner:
    """The same of a model in memory, which is changed."""
    _widen(model)
    # Omitted outputs too: what the evaluator keeps under the empty name, it would give to omitted inputs.
    for index, node in enumerate(model.graph.node):
        for position, name in enumerate(node.output):
            node.output[position] = name or f"omitted.{index}.{position}"
    try:
        evaluator: Any = ReferenceEvaluator(model, new_ops=list(OPERATORS))
    # onnx names the operator that it lacks in errors of several kinds.
    except (NotImplementedError, RuntimeError, TypeError, ModuleNotFoundError) as error:
        raise NoTruthError(str(error).splitlines()[0]) from error
    names = [one.name for one in model.graph.input]

    def run(inputs: Sequence[Array]) -> list[Array]:
        found = evaluator.run(None, dict(zip(names, map(_wide, inputs), strict=True)))
        return [np.asarray(array, np.float64) for array in found]

    return run


def _wide(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype == np.float32 else array


def _widen(model: ModelProto) -> None:
    """Float32 constants as float64, so that NumPy's promotion keeps every intermediate value in float64."""
    for tensor in model.graph.initializer:
        _widen_tensor(tensor)
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                _widen_tensor(attribute.t)


def _widen_tensor(tensor: TensorProto) -> None:
    if tensor.data_type == TensorProto.FLOAT:
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), name))
