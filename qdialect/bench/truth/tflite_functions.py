"""Functions of elements, reductions and movements of .tflite graphs in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import tflite

from qdialect.bench.frameworks.runner import Array
from qdialect.bench.truth.tflite_node import Evaluator, Node, fused

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _of_one(function: Callable[[Array], Array]) -> Evaluator:
    return lambda node: (function(node[0]),)


def _of_two(function: Callable[[Array, Array], Array]) -> Evaluator:
    return lambda node: (function(node[0], node[1]),)


def _arithmetic(function: Callable[[Array, Array], Array], table: Any) -> Evaluator:
    return lambda node: (fused(node, table, function(node[0], node[1])),)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


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


def _concatenation(node: Node) -> tuple[Array, ...]:
    axis = node.options(tflite.ConcatenationOptions, lambda options: options.Axis())
    joined = np.concatenate([node[index] for index in range(len(node.arrays))], axis)
    return (fused(node, tflite.ConcatenationOptions, joined),)


def _pack(node: Node) -> tuple[Array, ...]:
    axis = node.options(tflite.PackOptions, lambda options: options.Axis())
    return (np.stack([node[index] for index in range(len(node.arrays))], axis),)


def _unpack(node: Node) -> tuple[Array, ...]:
    axis = node.options(tflite.UnpackOptions, lambda options: options.Axis())
    return tuple(np.moveaxis(node[0], axis, 0))


def _split(node: Node) -> tuple[Array, ...]:
    return tuple(np.split(node[1], len(node.operator.outputs), node.integers(0)[0]))


def _pad(node: Node) -> tuple[Array, ...]:
    value = node.optional(2)
    return (np.pad(node[0], node[1].astype(np.int64), constant_values=0 if value is None else value.item()),)


def _strided_slice(node: Node) -> tuple[Array, ...]:
    """Masks say where begin and end are left out, and which dimensions go."""
    masks = node.options(tflite.StridedSliceOptions, lambda o: (o.BeginMask(), o.EndMask(), o.ShrinkAxisMask()))
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
    axis = node.options(tflite.GatherOptions, lambda options: options.Axis())
    return (np.take(node[0], node[1].astype(np.int64), axis),)


def _resize_bilinear(node: Node) -> tuple[Array, ...]:
    """A mean of four elements, the weights of which are distances."""
    modes = node.options(tflite.ResizeBilinearOptions, lambda o: (bool(o.AlignCorners()), bool(o.HalfPixelCenters())))
    data = node[0]
    for axis, wanted in zip((1, 2), node.integers(1), strict=True):
        data = _interpolated(data, axis, wanted, *modes)
    return (data,)


def _interpolated(data: Array, axis: int, wanted: int, aligns: bool, is_centred: bool) -> Array:
    extent = data.shape[axis]
    ratio = (extent - 1) / (wanted - 1) if aligns and wanted > 1 else extent / wanted
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
    "CAST": _cast,
    "CONCATENATION": _concatenation,
    "DEQUANTIZE": _of_one(np.asarray),
    "DIV": _arithmetic(np.divide, tflite.DivOptions),
    "ELU": _of_one(lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
    "EXP": _of_one(np.exp),
    "EXPAND_DIMS": _reshape,
    "GATHER": _gather,
    "GELU": _gelu,
    "GREATER": _of_two(np.greater),
    "HARD_SWISH": _of_one(lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "LEAKY_RELU": _leaky_relu,
    "LESS": _of_two(np.less),
    "LOG": _of_one(np.log),
    "LOGICAL_AND": _of_two(np.logical_and),
    "LOGISTIC": _of_one(_sigmoid),
    "MAXIMUM": _of_two(np.maximum),
    "MEAN": _reduction(np.mean),
    "MINIMUM": _of_two(np.minimum),
    "MUL": _arithmetic(np.multiply, tflite.MulOptions),
    "NEG": _of_one(np.negative),
    "PACK": _pack,
    "PAD": _pad,
    "PADV2": _pad,
    "PRELU": _of_two(lambda x, slope: np.where(x >= 0, x, x * slope)),
    "QUANTIZE": _of_one(np.asarray),
    "REDUCE_MAX": _reduction(np.max),
    "REDUCE_MIN": _reduction(np.min),
    "RELU": _of_one(lambda x: np.maximum(x, 0)),
    "RELU6": _of_one(lambda x: np.clip(x, 0, 6)),
    "RESHAPE": _reshape,
    "RESIZE_BILINEAR": _resize_bilinear,
    "REVERSE_V2": lambda node: (np.flip(node[0], node.integers(1)),),
    "RSQRT": _of_one(lambda x: 1 / np.sqrt(x)),
    "SELECT": lambda node: (np.where(node[0], node[1], node[2]),),
    "SELECT_V2": lambda node: (np.where(node[0], node[1], node[2]),),
    "SLICE": _slice,
    "SOFTMAX": _softmax,
    "SPLIT": _split,
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
    "UNPACK": _unpack,
}
