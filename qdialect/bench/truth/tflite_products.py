"""Matrix products, convolutions and pools of .tflite graphs in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tflite

from qdialect.bench.frameworks.runner import Array
from qdialect.bench.truth import NoTruthError
from qdialect.bench.truth.tflite_node import Evaluator, Node, activated, fused, on_range
from qdialect.bench.truth.windows import convolution, padding_of


def _data(node: Node, axes: tuple[int, ...], *, is_asymmetric: bool) -> Array:
    """The activations; beside i8 weights, float ones are rounded to the grid of their range over `axes`."""
    data = node[0]
    if node.tensor(0).element != "f32" or node.tensor(1).element != "i8":
        return data
    return on_range(data, axes, is_asymmetric=is_asymmetric)


def _with_bias(node: Node, index: int, total: Array) -> Array:
    bias = node.optional(index)
    return total if bias is None else total + bias.reshape(-1)


def _fully_connected(node: Node) -> tuple[Array, ...]:
    is_asymmetric = node.options(tflite.FullyConnectedOptions, lambda o: bool(o.AsymmetricQuantizeInputs()))
    weight = node[1]
    rows = node[0].reshape(-1, weight.shape[1])
    of_rows = Node(node.operator, (rows, *node.arrays[1:]))
    total = _data(of_rows, (1,), is_asymmetric=is_asymmetric) @ weight.T
    return (fused(node, tflite.FullyConnectedOptions, _with_bias(node, 2, total)).reshape(node.shape),)


def _batch_matmul(node: Node) -> tuple[Array, ...]:
    if node.tensor(0).element == "f32" and node.tensor(1).element == "i8":
        raise NoTruthError("BATCH_MATMUL of i8 weights has no evaluator in float64")
    turned = node.options(tflite.BatchMatMulOptions, lambda o: (bool(o.AdjX()), bool(o.AdjY())))
    left, right = (
        np.swapaxes(node[index], -1, -2) if is_turned else node[index] for index, is_turned in enumerate(turned)
    )
    return (left @ right,)


def _pads(padding: int, size: Sequence[int], window: Sequence[int], strides: Sequence[int]) -> list[int]:
    mode = "SAME_UPPER" if padding == tflite.Padding.SAME else "VALID"
    return padding_of(mode, list(size), list(window), list(strides))


def _conv_2d(node: Node) -> tuple[Array, ...]:
    return _convolved(
        node, tflite.Conv2DOptions, node[1].transpose(0, 3, 1, 2), is_single=len(set(node.tensor(1).scales)) == 1
    )


def _depthwise_conv_2d(node: Node) -> tuple[Array, ...]:
    return _convolved(node, tflite.DepthwiseConv2DOptions, node[1].transpose(3, 0, 1, 2), is_single=False)


def _convolved(node: Node, table: Any, weights: Array, *, is_single: bool) -> tuple[Array, ...]:
    """Weights of one scale multiply activations that are quantized around 0."""
    padding: int = node.options(table, lambda o: o.Padding())
    strides: list[int] = node.options(table, lambda o: [o.StrideH(), o.StrideW()])
    dilations: list[int] = node.options(table, lambda o: [o.DilationHFactor(), o.DilationWFactor()])
    data = _data(node, (1, 2, 3), is_asymmetric=not is_single).transpose(0, 3, 1, 2)
    reach = [dilation * (extent - 1) + 1 for dilation, extent in zip(dilations, weights.shape[2:], strict=True)]
    pads = _pads(padding, data.shape[2:], reach, strides)
    groups = data.shape[1] // weights.shape[1]
    total = convolution(data, weights, pads, strides, dilations, groups).transpose(0, 2, 3, 1)
    return (fused(node, table, _with_bias(node, 2, total)),)


def _transpose_conv(node: Node) -> tuple[Array, ...]:
    """Every element adds its multiple of the weights to the output."""
    table = tflite.TransposeConvOptions
    padding, activation = node.options(table, lambda o: (o.Padding(), o.FusedActivationFunction()))
    strides = node.options(table, lambda o: (o.StrideH(), o.StrideW()))
    weights, data, (batch, height, width, channels) = node[1], node[2], node.shape
    window = weights.shape[1:3]
    top, left, *_ = _pads(padding, (height, width), window, strides)
    full = [(data.shape[1 + i] - 1) * strides[i] + window[i] for i in range(2)]
    total = np.zeros((batch, max(full[0], height + top), max(full[1], width + left), channels))
    for row, column in np.ndindex(*window):
        ends = [at + strides[i] * (data.shape[1 + i] - 1) + 1 for i, at in enumerate((row, column))]
        total[:, row : ends[0] : strides[0], column : ends[1] : strides[1]] += data @ weights[:, row, column].T
    cropped = total[:, top : top + height, left : left + width]
    return (activated(activation, _with_bias(node, 3, cropped)),)


def _pool(node: Node) -> tuple[Array, ...]:
    """The largest number or the mean of the elements of each window; padding does not count."""
    table = tflite.Pool2DOptions
    padding = node.options(table, lambda o: o.Padding())
    window = node.options(table, lambda o: [o.FilterHeight(), o.FilterWidth()])
    strides = node.options(table, lambda o: [o.StrideH(), o.StrideW()])
    top, left, bottom, right = _pads(padding, node[0].shape[1:3], window, strides)
    around = ((0, 0), (top, bottom), (left, right), (0, 0))
    padded = np.pad(node[0], around, constant_values=np.nan)
    views = np.lib.stride_tricks.sliding_window_view(padded, window, (1, 2))[:, :: strides[0], :: strides[1]]
    reduce_ = np.nanmax if node.operator.kind == "MAX_POOL_2D" else np.nanmean
    return (fused(node, table, reduce_(views, axis=(-2, -1))),)


PRODUCTS: dict[str, Evaluator] = {
    "AVERAGE_POOL_2D": _pool,
    "BATCH_MATMUL": _batch_matmul,
    "CONV_2D": _conv_2d,
    "DEPTHWISE_CONV_2D": _depthwise_conv_2d,
    "FULLY_CONNECTED": _fully_connected,
    "MAX_POOL_2D": _pool,
    "TRANSPOSE_CONV": _transpose_conv,
}
