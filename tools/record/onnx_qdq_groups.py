"""QDQ groups of every ONNX operator, one random network each, in its QLinear form where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from onnx_graphs import CONTRIB, ModelBuilder

from tools.record import onnx_chains, onnx_runtime
from tools.record.drawing import BYTES, Draw, covering_scale
from tools.record.family import Case, Family
from tools.record.onnx_nodes import Node, Operand, Result, between, chain, qlinear
from tools.record.onnx_qdq_pairs import pairs
from tools.record.onnx_qdq_pools import pools
from tools.record.onnx_qdq_products import products

_IMAGE = (2, 4, 6, 4)
_WITHOUT_ATTRIBUTES = (
    *("Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "HardSwish", "Elu", "Selu", "Softplus", "Softsign", "Exp"),
    *("Abs", "Neg", "Erf", "Sqrt", "Reciprocal", "Identity", "Floor", "Ceil", "Round", "Sign", "Log"),
)
_FUNCTIONS: dict[str, Node] = {
    **{kind.lower(): Node(kind) for kind in _WITHOUT_ATTRIBUTES},
    "leakyrelu_a": Node("LeakyRelu", attributes={"alpha": 0.1}),
    "hardsigmoid_a": Node("HardSigmoid", attributes={"alpha": 0.25, "beta": 0.4}),
    "celu_a": Node("Celu", attributes={"alpha": 0.7}),
    "thresholdedrelu_a": Node("ThresholdedRelu", attributes={"alpha": 0.5}),
    "com_microsoft_gelu": Node(f"{CONTRIB}.Gelu"),
    "com_microsoft_quickgelu_a": Node(f"{CONTRIB}.QuickGelu", attributes={"alpha": 1.702}),
    "clip": Node("Clip", [None, 4.2]),
}
_QLINEAR_FUNCTIONS: dict[str, Node] = {
    "qlinearsigmoid": Node(f"{CONTRIB}.QLinearSigmoid"),
    "qlinearleaky": Node(f"{CONTRIB}.QLinearLeakyRelu", attributes={"alpha": 0.2}),
}
_ASYMMETRIC = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
_TWICE = np.array([1, 1, 2, 2], np.float32)
_SLICE = [np.array(entries) for entries in ([1, 0], [4, 6], [1, 2], [2, 3])]
_MOVEMENTS: list[Node] = [
    Node("Transpose", attributes={"perm": [0, 2, 3, 1]}),
    Node("Reshape", [np.array([0, -1, 8])]),
    Node("Flatten", attributes={"axis": 2}),
    Node("Pad", [np.array([0, 0, 1, 2, 0, 1, 2, 1]), 0.3]),
    Node("Slice", _SLICE),
    Node("Gather", [np.array([2, 0, 2])], {"axis": 1}),
    Node("DepthToSpace", attributes={"blocksize": 2}),
    Node("SpaceToDepth", attributes={"blocksize": 2}),
    Node("Expand", [np.array([3, *_IMAGE])]),
    Node("Tile", [np.array([1, 2, 1, 2])]),
    Node("Resize", [None, _TWICE], _ASYMMETRIC),
    Node("Resize", [None, _TWICE], {"mode": "linear"}),
    Node("Resize", [None, _TWICE]),
    Node("Unsqueeze", [np.array([1, -1])]),
    Node("Squeeze"),
    Node("Identity"),
    Node("Dropout"),
]
_REDUCTIONS: list[Node] = [
    Node("ReduceMean", attributes={"axes": [2, 3], "keepdims": 0}),
    Node("ReduceMax", attributes={"axes": [2, 3], "keepdims": 1}),
    Node("ReduceMin", attributes={"axes": [2, 3], "keepdims": 1}),
    Node("ReduceSum", [np.array([1])]),
]
_CHAINS: dict[str, Callable[[ModelBuilder, str], str]] = {
    "dec_hswish_0": onnx_chains.hard_swish,
    "dec_silu_0": onnx_chains.silu,
    "dec_gelu_0": onnx_chains.gelu,
    "dec_hsig_0": onnx_chains.hard_sigmoid,
}


def _draw() -> Iterator[Case]:
    yield from products()
    yield from pairs()
    yield from _functions()
    yield from pools()
    yield from (_softmax(name) for name in ("softmax_0", "softmax_1", "logsoftmax_0"))
    yield from (_qlinear_softmax(f"qlinearsoftmax_{index}") for index in range(2))
    for index, node in enumerate(_MOVEMENTS):
        yield _image(f"move_{node.kind.lower()}_{index}_0", node)
    yield from (_image(f"{node.kind.lower()}_0", node) for node in _REDUCTIONS)
    for name, add in _CHAINS.items():
        yield chain(name, add, *_quantized(Draw(name), (1, 8, 5, 5)))
    yield _batch_normalization("batchnorm_0")
    yield _per_axis("peraxis_0")
    yield from (_residual(f"residual_{index}") for index in range(2))


def _quantized(draw: Draw, shape: tuple[int, ...]) -> tuple[Operand, Result]:
    """Data and a quantization of what is computed from it: of its own, or of the data again."""
    dtype = draw.one_of(*BYTES)
    scale = draw.one_of(draw.power_of_two(-6, -4), draw.scale(0.02, 0.08))
    again = Result(dtype, scale, draw.inner_point(dtype))
    other = Result(dtype, draw.one_of(draw.power_of_two(-6, -4), draw.scale(0.02, 0.08)), draw.inner_point(dtype))
    result, point = draw.one_of((again, again.zero_point), (other, draw.zero_point(dtype)))
    return Operand(draw.values(shape, dtype), scale, point), result


def _functions() -> Iterator[Case]:
    for kind, node in _FUNCTIONS.items():
        draw = Draw(f"{kind}_0")
        data, result = _quantized(draw, draw.one_of((3, 7), (17,)))
        yield between(f"{kind}_0", node, [data], result)
    for kind, node in _QLINEAR_FUNCTIONS.items():
        data, result = _quantized(Draw(f"{kind}_0"), (17,))
        yield qlinear(f"{kind}_0", node, [data, result], result.dtype)


def _image(name: str, node: Node) -> Case:
    data, result = _quantized(Draw(name), _IMAGE)
    return between(name, node, [data], result)


def _softmax(name: str) -> Case:
    """Flat and steep distributions, along any axis, by both definitions of the operator."""
    draw = Draw(name)
    shape = draw.one_of((33,), (10,), (3, 10, 2), (5, 2, 3, 5))
    data, result = _softmax_operand(draw, shape)
    kind = "LogSoftmax" if name.startswith("log") else "Softmax"
    if kind == "LogSoftmax":
        result = Result(result.dtype, draw.scale(0.02, 0.06), int(np.iinfo(np.dtype(result.dtype).name).max))
    node = Node(kind, attributes={"axis": draw.integer(-len(shape), len(shape) - 1)}, version=draw.one_of(13, 17))
    return between(name, node, [data], result)


def _qlinear_softmax(name: str) -> Case:
    draw = Draw(name)
    shape = draw.one_of((33,), (5, 2, 3, 5))
    data, result = _softmax_operand(draw, shape)
    attributes: dict[str, Any] = {"axis": draw.one_of(-1, len(shape) - 1), "opset": 17}
    return qlinear(name, Node(f"{CONTRIB}.QLinearSoftmax", attributes=attributes), [data, result], result.dtype)


def _softmax_operand(draw: Draw, shape: tuple[int, ...]) -> tuple[Operand, Result]:
    dtype = draw.one_of(*BYTES)
    data = Operand(draw.values(shape, dtype), draw.one_of(0.05, 0.1, 0.3, 1.5), draw.zero_point(dtype))
    lowest = int(np.iinfo(np.dtype(dtype).name).min)
    return data, Result(dtype, draw.one_of(1 / 256, draw.scale(0.003, 0.008)), draw.one_of(lowest, lowest + 128))


def _batch_normalization(name: str) -> Case:
    draw = Draw(name)
    data, result = _quantized(draw, (1, 5, 5, 5))
    gain, variance = (draw.rng.uniform(0.5, 1.5, 5).astype(np.float32) for _ in range(2))
    node = Node("BatchNormalization", [gain, draw.normal((5,)), draw.normal((5,)), variance])
    return between(name, node, [data], result)


def _per_axis(name: str) -> Case:
    """Data with a scale and a zero point for each index of its last axis, quantized again at once."""
    draw = Draw(name)
    points = np.array([draw.inner_point(np.int8) for _ in range(4)])
    data = Operand(draw.values((3, 5, 4), np.int8), draw.scales(4, 0.008, 0.08), points, axis=2)
    result = Result(np.int8, draw.scale(0.02, 0.08), draw.inner_point(np.int8))
    return chain(name, lambda _, value: value, data, result)


def _residual(name: str) -> Case:
    """A convolution whose output is added to its input."""
    draw, builder = Draw(name), ModelBuilder()
    channels = draw.one_of(3, 5)
    shape = (1, channels, draw.integer(5, 8), draw.integer(5, 8))
    scale, scales = draw.scale(0.02, 0.08), draw.scales(channels, 0.001, 0.005)
    x = builder.dequantize(builder.input("x0", shape, np.uint8), (scale, 128))
    weight = builder.weight(draw.values((channels, channels, 3, 3), np.int8), scales.tolist())
    convolved = builder.node("Conv", x, weight, pads=[1, 1, 1, 1])
    inner = (covering_scale(scale, scales, 9 * channels), draw.inner_point(np.uint8))
    back = builder.dequantize(builder.quantize(convolved, inner), inner)
    outer = (float(np.float32(max(scale, inner[0]) * 1.5)), draw.inner_point(np.uint8))
    output = builder.quantize(builder.node("Add", x, back), outer)
    return Case(name, builder.finish(output), (draw.values(shape, np.uint8),))


FAMILY = Family("onnx_qdq_groups", _draw, onnx_runtime.optimized)
