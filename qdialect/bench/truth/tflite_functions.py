"""Functions of elements, reductions, movements, products and pools of .tflite graphs in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tflite

from qdialect.bench.frameworks import Array
from qdialect.bench.truth import NoTruthError
from qdialect.bench.truth.tflite_node import Evaluator, Node, activated, fused, on_range
from qdialect.bench.truth.windows import convolution, padding_of

_erf = np.vectorize(math.erf, otypes=[np.float64])
_CONCATENATION = tflite.ConcatenationOptions


def _of_one(function: Callable[[Array], Array]) -> Evaluator:
    return lambda node: (function(node[0]),)


def _of_two(function: Callable[[Array, Array], Array]) -> Evaluator:
    return lambda node: (function(node[0], node[1]),)


def _arithmetic(function: Callable[[Array, Array], Array], table: Any) -> Evaluator:
    return lambda node: (fused(node, table, function(node[0], node[1])),)


def _softmax(node: Node) -> tuple[Array, ...]:
    beta = node.options(tflite.SoftmaxOptions, lambda options: options.Beta())
    raised = np.exp(beta * (node[0] - node[0].max(-1, keepdims=True)))
    return (raised / raised.sum(-1, keepdims=True),)


def _gelu(node: Node) -> tuple[Array, ...]:
    x = node[0]
    if node.options(tflite.GeluOptions, lambda options: bool(options.Approximate())):
        return (x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),)
    return (x / 2 * (1 + _erf(x / math.sqrt(2))),)


def _leaky_relu(node: Node) -> tuple[Array, ...]:
    alpha = node.options(tflite.LeakyReluOptions, lambda options: options.Alpha())
    return (np.where(node[0] > 0, node[0], alpha * node[0]),)


def _reduction(function: Callable[..., Array]) -> Evaluator:
    def evaluate(node: Node) -> tuple[Array, ...]:
        axes = tuple(axis % node[0].ndim for axis in node.integers(1))
        keeps = node.options(tflite.ReducerOptions, lambda options: bool(options.KeepDims()))
        return (np.asarray(function(node[0], axis=axes, keepdims=keeps)),)

    return evaluate


def _reshape(node: Node) -> tuple[Array, ...]:
    return (node[0].reshape(node.shape),)


def _split_v(node: Node) -> tuple[Array, ...]:
    axis = node.integers(2)[0]
    return tuple(np.split(node[0], np.cumsum([tensor.shape[axis] for tensor in node.operator.outputs])[:-1], axis))


def _mirror_pad(node: Node) -> tuple[Array, ...]:
    repeats_edge = node.options(tflite.MirrorPadOptions, lambda options: bool(options.Mode()))
    return (np.pad(node[0], node[1].astype(np.int64), "symmetric" if repeats_edge else "reflect"),)


def _l2_normalization(node: Node) -> tuple[Array, ...]:
    length = np.maximum(np.sqrt(np.square(node[0]).sum(-1, keepdims=True)), 1e-6)
    return (fused(node, tflite.L2NormOptions, node[0] / length),)


def _cumsum(node: Node) -> tuple[Array, ...]:
    is_exclusive, is_reversed = node.options(tflite.CumsumOptions, lambda o: (bool(o.Exclusive()), bool(o.Reverse())))
    turned = (slice(None),) * (node.integers(1)[0] % node[0].ndim) + (slice(None, None, -1 if is_reversed else 1),)
    data = node[0][turned]
    return ((np.cumsum(data, node.integers(1)[0]) - (data if is_exclusive else 0))[turned],)


def _pad(node: Node) -> tuple[Array, ...]:
    value = node.optional(2)
    return (np.pad(node[0], node[1].astype(np.int64), constant_values=0 if value is None else value.item()),)


def _strided_slice(node: Node) -> tuple[Array, ...]:
    """Masks say where begin and end are left out, and which dimensions go."""
    masks = node.options(tflite.StridedSliceOptions, lambda o: (o.BeginMask(), o.EndMask(), o.ShrinkAxisMask()))
    if node.options(tflite.StridedSliceOptions, lambda o: o.EllipsisMask() or o.NewAxisMask() or o.Offset()):
        raise NoTruthError("STRIDED_SLICE with an ellipsis, a new axis or ends from the start has no evaluator")
    taken: list[slice | int] = []
    for axis, (begin, end, step) in enumerate(zip(*(node.integers(index) for index in (1, 2, 3)), strict=True)):
        is_open, has_no_end, shrinks = (bool(mask >> axis & 1) for mask in masks)
        part = slice(None if is_open else begin, None if has_no_end else end, step)
        taken.append(begin if shrinks else part)
    return (node[0][tuple(taken)],)


def _slice(node: Node) -> tuple[Array, ...]:
    begins, sizes = node.integers(1), node.integers(2)
    ends = [None if size < 0 else begin + size for begin, size in zip(begins, sizes, strict=True)]
    return (node[0][tuple(slice(begin, end) for begin, end in zip(begins, ends, strict=True))],)


def _gather(node: Node) -> tuple[Array, ...]:
    axis, count = node.options(tflite.GatherOptions, lambda options: (options.Axis(), options.BatchDims()))
    places, data = (node[index].reshape(-1, *node[index].shape[count % node[1].ndim :]) for index in (1, 0))
    axis = axis % node[0].ndim - count % node[1].ndim
    taken = [np.take(one, at, axis) for one, at in zip(data, places.astype(np.int64), strict=True)]
    return (np.stack(taken).reshape(node.shape),)


def _resize_bilinear(node: Node) -> tuple[Array, ...]:
    """A mean of four elements, the weights of which are distances."""
    modes = node.options(tflite.ResizeBilinearOptions, lambda o: (bool(o.AlignCorners()), bool(o.HalfPixelCenters())))
    data = node[0]
    for axis, wanted in zip((1, 2), node.integers(1), strict=True):
        data = _interpolated(data, axis, wanted, *modes)
    return (data,)


def _resize_nearest(node: Node) -> tuple[Array, ...]:
    """The places are those of float32 arithmetic."""
    table = tflite.ResizeNearestNeighborOptions
    aligns, is_centred = node.options(table, lambda o: (bool(o.AlignCorners()), bool(o.HalfPixelCenters())))
    data = node[0]
    for axis, wanted in zip((1, 2), node.integers(1), strict=True):
        ratio = np.float32(_ratio(data.shape[axis], wanted, aligns))
        at = (np.arange(wanted, dtype=np.float32) + np.float32(is_centred / 2)) * ratio + np.float32(aligns / 2)
        data = np.take(data, np.minimum(at.astype(np.int64), data.shape[axis] - 1), axis)
    return (data,)


def _ratio(extent: int, wanted: int, aligns: bool) -> float:
    return (extent - 1) / (wanted - 1) if aligns and wanted > 1 else extent / wanted


def _interpolated(data: Array, axis: int, wanted: int, aligns: bool, is_centred: bool) -> Array:
    extent = data.shape[axis]
    ratio = _ratio(extent, wanted, aligns)
    at = (np.arange(wanted) + 0.5) * ratio - 0.5 if is_centred else np.arange(wanted) * ratio
    at = np.clip(at, 0, extent - 1)
    below = np.floor(at).astype(np.int64)
    share = (at - below).reshape([-1 if other == axis else 1 for other in range(data.ndim)])
    above = np.minimum(below + 1, extent - 1)
    return np.take(data, below, axis) * (1 - share) + np.take(data, above, axis) * share


def _cast(node: Node) -> tuple[Array, ...]:
    element = node.operator.outputs[0].element
    dtypes = {"f32": np.float64, "i1": np.bool_, "i32": np.int32, "i64": np.int64}
    return (node[0].astype(dtypes.get(element, np.float64)),)


FUNCTIONS: dict[str, Evaluator] = {
    "ABS": _of_one(np.abs),
    "ADD": _arithmetic(np.add, tflite.AddOptions),
    "ADD_N": lambda node: (np.add.reduce(node.all),),
    "ARG_MAX": lambda node: (np.argmax(node[0], node.integers(1)[0]),),
    "ARG_MIN": lambda node: (np.argmin(node[0], node.integers(1)[0]),),
    "BROADCAST_TO": lambda node: (np.broadcast_to(node[0], node.shape),),
    "CAST": _cast,
    "CONCATENATION": lambda node: (fused(node, _CONCATENATION, np.concatenate(node.all, node.axis(_CONCATENATION))),),
    "COS": _of_one(np.cos),
    "CUMSUM": _cumsum,
    "DEQUANTIZE": _of_one(np.asarray),
    "DIV": _arithmetic(np.divide, tflite.DivOptions),
    "ELU": _of_one(lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
    "EQUAL": _of_two(np.equal),
    "EXP": _of_one(np.exp),
    "EXPAND_DIMS": _reshape,
    "FLOOR": _of_one(np.floor),
    "FLOOR_DIV": _of_two(np.floor_divide),
    "FLOOR_MOD": _of_two(np.mod),
    "GATHER": _gather,
    "GATHER_ND": lambda node: (node[0][tuple(np.moveaxis(node[1].astype(np.int64), -1, 0))],),
    "GELU": _gelu,
    "GREATER": _of_two(np.greater),
    "GREATER_EQUAL": _of_two(np.greater_equal),
    "HARD_SWISH": _of_one(lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "L2_NORMALIZATION": _l2_normalization,
    "LEAKY_RELU": _leaky_relu,
    "LESS": _of_two(np.less),
    "LESS_EQUAL": _of_two(np.less_equal),
    "LOG": _of_one(np.log),
    "LOGICAL_AND": _of_two(np.logical_and),
    "LOGICAL_NOT": _of_one(np.logical_not),
    "LOGICAL_OR": _of_two(np.logical_or),
    "LOGISTIC": _of_one(lambda x: 1 / (1 + np.exp(-x))),
    "LOG_SOFTMAX": lambda node: (node[0] - np.logaddexp.reduce(node[0], -1, keepdims=True),),
    "MAXIMUM": _of_two(np.maximum),
    "MEAN": _reduction(np.mean),
    "MINIMUM": _of_two(np.minimum),
    "MIRROR_PAD": _mirror_pad,
    "MUL": _arithmetic(np.multiply, tflite.MulOptions),
    "NEG": _of_one(np.negative),
    "NOT_EQUAL": _of_two(np.not_equal),
    "PACK": lambda node: (np.stack(node.all, node.axis(tflite.PackOptions)),),
    "PAD": _pad,
    "PADV2": _pad,
    "POW": _of_two(np.power),
    "PRELU": _of_two(lambda x, slope: np.where(x >= 0, x, x * slope)),
    "QUANTIZE": _of_one(np.asarray),
    "REDUCE_ALL": _reduction(np.all),
    "REDUCE_ANY": _reduction(np.any),
    "REDUCE_MAX": _reduction(np.max),
    "REDUCE_MIN": _reduction(np.min),
    "REDUCE_PROD": _reduction(np.prod),
    "RELU": _of_one(lambda x: np.maximum(x, 0)),
    "RELU6": _of_one(lambda x: np.clip(x, 0, 6)),
    "RELU_0_TO_1": _of_one(lambda x: np.clip(x, 0, 1)),
    "RELU_N1_TO_1": _of_one(lambda x: np.clip(x, -1, 1)),
    "RESHAPE": _reshape,
    "RESIZE_BILINEAR": _resize_bilinear,
    "RESIZE_NEAREST_NEIGHBOR": _resize_nearest,
    "REVERSE_V2": lambda node: (np.flip(node[0], node.integers(1)),),
    "RSQRT": _of_one(lambda x: 1 / np.sqrt(x)),
    "SELECT": lambda node: (np.where(node[0], node[1], node[2]),),
    "SELECT_V2": lambda node: (np.where(node[0], node[1], node[2]),),
    "SIGN": _of_one(np.sign),
    "SIN": _of_one(np.sin),
    "SLICE": _slice,
    "SOFTMAX": _softmax,
    "SPLIT": lambda node: tuple(np.split(node[1], len(node.operator.outputs), node.integers(0)[0])),
    "SPLIT_V": _split_v,
    "SQRT": _of_one(np.sqrt),
    "SQUARE": _of_one(np.square),
    "SQUARED_DIFFERENCE": _of_two(lambda x, y: (x - y) ** 2),
    "SQUEEZE": _reshape,
    "STRIDED_SLICE": _strided_slice,
    "SUB": _arithmetic(np.subtract, tflite.SubOptions),
    "SUM": _reduction(np.sum),
    "TANH": _of_one(np.tanh),
    "TILE": lambda node: (np.tile(node[0], node.integers(1)),),
    "TRANSPOSE": lambda node: (node[0].transpose(node.integers(1)),),
    "UNPACK": lambda node: tuple(np.moveaxis(node[0], node.axis(tflite.UnpackOptions), 0)),
}


# Matrix products, convolutions and pools of .tflite graphs in float64.


def _data(node: Node, axes: tuple[int, ...], *, is_asymmetric: bool) -> Array:
    """The activations; with i8 weights, float ones are rounded to the grid of their range over `axes`."""
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


def _convolved(node: Node, table: Any, order: tuple[int, ...]) -> tuple[Array, ...]:
    """`order` makes the weights (filters, channels / groups, H, W); those of one scale meet data quantized around 0."""
    weights = node[1].transpose(order)
    is_single = table is tflite.Conv2DOptions and len(set(node.tensor(1).scales)) == 1
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
    "CONV_2D": lambda node: _convolved(node, tflite.Conv2DOptions, (0, 3, 1, 2)),
    "DEPTHWISE_CONV_2D": lambda node: _convolved(node, tflite.DepthwiseConv2DOptions, (3, 0, 1, 2)),
    "FULLY_CONNECTED": _fully_connected,
    "MAX_POOL_2D": _pool,
    "TRANSPOSE_CONV": _transpose_conv,
}
