"""Small ONNX networks drawn at random: chains with side branches, in f32 or with quantized values between the nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

from qdialect.support.interface import Array

_SET = 21
_DTYPES = {
    "uint8": TensorProto.UINT8,
    "int8": TensorProto.INT8,
    "uint16": TensorProto.UINT16,
    "int16": TensorProto.INT16,
}


@dataclass
class Network:
    """A graph that grows: nodes, constants, and the shape of each value."""

    rng: np.random.Generator
    batch: int
    nodes: list[Any] = field(default_factory=list[Any])
    constants: list[TensorProto] = field(default_factory=list[TensorProto])
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    inputs: list[str] = field(default_factory=list[str])

    def input(self, shape: Sequence[int]) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs.append(name)
        self.shapes[name] = tuple(shape)
        return name

    def constant(self, value: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def weights(self, *shape: int) -> str:
        return self.constant(
            self.rng.normal(scale=(2 / max(1, np.prod(shape[1:]))) ** 0.5, size=shape).astype(np.float32)
        )

    def add(self, kind: str, inputs: Sequence[str], shape: Sequence[int], **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=f"{kind}_{len(self.nodes)}", **attributes))
        self.shapes[name] = tuple(shape)
        return name

    def model(self, outputs: Sequence[str], *, is_open: bool = False) -> ModelProto:
        """The model; with an open batch where `is_open`."""
        graph = helper.make_graph(
            self.nodes,
            "drawn",
            [self._declared(name, is_open=is_open) for name in self.inputs],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            self.constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _SET)], ir_version=10)

    def _declared(self, name: str, *, is_open: bool) -> ValueInfoProto:
        shape: list[int | str] = list(self.shapes[name])
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *shape[1:]] if is_open else shape)


def drawn(rng: np.random.Generator, *, is_open: bool = False) -> tuple[ModelProto, tuple[Array, ...]]:
    """A network in f32 and inputs for it; the batch is seldom 0."""
    network = Network(rng, int(rng.choice([1, 1, 1, 2, 3, 0], p=[0.3, 0.2, 0.2, 0.15, 0.1, 0.05])))
    rank = int(rng.choice([2, 3, 4, 4]))
    extents = [int(rng.integers(1, 9)) * int(rng.choice([1, 2, 4])), *rng.integers(3, 12, rank - 2).tolist()]
    value = network.input((network.batch, *extents))
    values = [value]
    for _ in range(int(rng.integers(2, 8))):
        values.append(_grown(network, values))
    used = {name for node in network.nodes for name in node.input}
    outputs = [name for name in dict.fromkeys(values) if name not in used and name not in network.inputs]
    inputs = tuple(rng.normal(size=network.shapes[name]).astype(np.float32) for name in network.inputs)
    return network.model(outputs[-2:], is_open=is_open), inputs


def _grown(network: Network, values: Sequence[str]) -> str:
    """One more value, from the last one, or from an earlier one."""
    rng = network.rng
    value = values[-1] if rng.random() < 0.8 else str(rng.choice(list(values)))
    fitting = [step for step, ranks in _STEPS if len(network.shapes[value]) in ranks]
    step = fitting[int(rng.integers(len(fitting)))]
    return step(network, value, values)


def _convolution(network: Network, value: str, _: Sequence[str]) -> str:
    batch, channels, *image = network.shapes[value]
    rng = network.rng
    kernel = [int(rng.integers(1, min(extent, 4) + 1)) for extent in image]
    stride, pad = int(rng.integers(1, 3)), int(rng.integers(0, 2))
    groups = int(rng.choice([1, 1, channels]))
    results = channels * int(rng.integers(1, 3)) if groups > 1 else int(rng.integers(1, 20))
    weights = network.weights(results, channels // groups, *kernel)
    bias = [network.weights(results)] if rng.random() < 0.7 else []
    shape = [(extent + 2 * pad - one) // stride + 1 for extent, one in zip(image, kernel, strict=True)]
    attributes = {"kernel_shape": kernel, "strides": [stride] * len(image), "pads": [pad] * 2 * len(image)}
    return network.add("Conv", [value, weights, *bias], (batch, results, *shape), group=groups, **attributes)


def _pool(network: Network, value: str, _: Sequence[str]) -> str:
    batch, channels, *image = network.shapes[value]
    rng = network.rng
    kernel = [int(rng.integers(1, min(extent, 3) + 1)) for extent in image]
    shape = [extent - one + 1 for extent, one in zip(image, kernel, strict=True)]
    kind = str(rng.choice(["MaxPool", "AveragePool"]))
    return network.add(kind, [value], (batch, channels, *shape), kernel_shape=kernel)


def _global_pool(network: Network, value: str, _: Sequence[str]) -> str:
    batch, channels, *image = network.shapes[value]
    return network.add("GlobalAveragePool", [value], (batch, channels, *[1] * len(image)))


def _product(network: Network, value: str, _: Sequence[str]) -> str:
    *outer, inner = network.shapes[value]
    results = int(network.rng.integers(1, 20))
    product = network.add("MatMul", [value, network.weights(inner, results)], (*outer, results))
    return network.add("Add", [product, network.weights(results)], (*outer, results))


def _gemm(network: Network, value: str, _: Sequence[str]) -> str:
    batch, inner = network.shapes[value]
    results = int(network.rng.integers(1, 20))
    operands = [value, network.weights(results, inner), network.weights(results)]
    return network.add("Gemm", operands, (batch, results), transB=1)


def _attention(network: Network, value: str, _: Sequence[str]) -> str:
    """Scores of each row with each, and their sums."""
    batch, rows, inner = network.shapes[value]
    other = network.add("Transpose", [value], (batch, inner, rows), perm=[0, 2, 1])
    scores = network.add("MatMul", [value, other], (batch, rows, rows))
    shares = network.add("Softmax", [scores], (batch, rows, rows), axis=-1)
    return network.add("MatMul", [shares, value], (batch, rows, inner))


def _function(network: Network, value: str, _: Sequence[str]) -> str:
    kinds = [
        *("Relu", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "HardSwish", "HardSigmoid", "Softplus", "Gelu", "Erf"),
        *("Abs", "Neg", "Mish", "Selu", "Sin", "Exp"),
    ]
    return network.add(str(network.rng.choice(kinds)), [value], network.shapes[value])


def _clip(network: Network, value: str, _: Sequence[str]) -> str:
    bounds = [network.constant(np.asarray(bound, np.float32)) for bound in (0, 6)]
    return network.add("Clip", [value, *bounds], network.shapes[value])


def _pair(network: Network, value: str, values: Sequence[str]) -> str:
    """With an earlier value of the same shape, or a number for each of the last extent."""
    shape = network.shapes[value]
    others = [name for name in values if network.shapes[name] == shape]
    kind = str(network.rng.choice(["Add", "Mul", "Sub", "Max", "Min"]))
    other = str(network.rng.choice(others)) if network.rng.random() < 0.7 else network.weights(shape[-1])
    return network.add(kind, [value, other], shape)


def _concat(network: Network, value: str, values: Sequence[str]) -> str:
    shape = network.shapes[value]
    others = [name for name in values if network.shapes[name] == shape]
    joined = [value, str(network.rng.choice(others))]
    return network.add("Concat", joined, (shape[0], 2 * shape[1], *shape[2:]), axis=1)


def _slice(network: Network, value: str, _: Sequence[str]) -> str:
    shape = list(network.shapes[value])
    axis = int(network.rng.integers(1, len(shape)))
    start = int(network.rng.integers(0, shape[axis]))
    step = int(network.rng.integers(1, 3))
    bounds = [network.constant(np.array([number])) for number in (start, shape[axis], axis, step)]
    shape[axis] = -(-(shape[axis] - start) // step)
    return network.add("Slice", [value, *bounds], shape)


def _pad(network: Network, value: str, _: Sequence[str]) -> str:
    shape = list(network.shapes[value])
    axis = int(network.rng.integers(1, len(shape)))
    pads = np.zeros(2 * len(shape), np.int64)
    pads[axis], pads[axis + len(shape)] = network.rng.integers(0, 3, 2)
    shape[axis] += int(pads.sum())
    mode = str(network.rng.choice(["constant", "edge"]))
    return network.add("Pad", [value, network.constant(pads)], shape, mode=mode)


def _transpose(network: Network, value: str, _: Sequence[str]) -> str:
    shape = network.shapes[value]
    order = [0, *(1 + network.rng.permutation(len(shape) - 1)).tolist()]
    return network.add("Transpose", [value], [shape[axis] for axis in order], perm=order)


def _flat(network: Network, value: str, _: Sequence[str]) -> str:
    batch, *inner = network.shapes[value]
    return network.add("Flatten", [value], (batch, int(np.prod(inner))), axis=1)


def _reshape(network: Network, value: str, _: Sequence[str]) -> str:
    batch, *inner = network.shapes[value]
    shape = (batch, int(np.prod(inner)), 1) if network.rng.random() < 0.5 else (batch, 1, *inner)
    target = network.constant(np.array([0 if batch else batch, *shape[1:]]))
    return network.add("Reshape", [value, target], shape, allowzero=int(not batch))


def _reduced(network: Network, value: str, _: Sequence[str]) -> str:
    shape = list(network.shapes[value])
    axis = int(network.rng.integers(1, len(shape)))
    kind = str(network.rng.choice(["ReduceMean", "ReduceMax", "ReduceSum", "ReduceMin"]))
    shape[axis] = 1
    return network.add(kind, [value, network.constant(np.array([axis]))], shape, keepdims=1)


def _softmax(network: Network, value: str, _: Sequence[str]) -> str:
    return network.add("Softmax", [value], network.shapes[value], axis=-1)


def _normalized(network: Network, value: str, _: Sequence[str]) -> str:
    inner = network.shapes[value][-1]
    operands = [value, network.weights(inner), network.weights(inner)]
    return network.add("LayerNormalization", operands, network.shapes[value], axis=-1)


def _resized(network: Network, value: str, _: Sequence[str]) -> str:
    batch, channels, *image = network.shapes[value]
    scales = network.constant(np.array([1, 1, *[2] * len(image)], np.float32))
    mode = str(network.rng.choice(["nearest", "linear"]))
    return network.add("Resize", [value, "", scales], (batch, channels, *(2 * one for one in image)), mode=mode)


_Step = Callable[[Network, str, Sequence[str]], str]
_ANY = (2, 3, 4)
_STEPS: Sequence[tuple[_Step, Sequence[int]]] = (
    *((_convolution, (3, 4)), (_convolution, (3, 4)), (_pool, (3, 4)), (_global_pool, (3, 4)), (_product, _ANY)),
    *((_gemm, (2,)), (_gemm, (2,)), (_attention, (3,)), (_function, _ANY), (_function, _ANY), (_clip, _ANY)),
    *((_pair, _ANY), (_pair, _ANY), (_concat, _ANY), (_slice, _ANY), (_pad, _ANY), (_transpose, (3, 4))),
    *((_flat, (3, 4)), (_reshape, (2, 3)), (_reduced, _ANY), (_softmax, _ANY), (_normalized, _ANY), (_resized, (4,))),
)


def quantized(rng: np.random.Generator, model: ModelProto, ranges: dict[str, Array]) -> ModelProto:
    """With a QuantizeLinear and a DequantizeLinear behind the values of `ranges`, from their extremes; a few are left.

    Weights of products are quantized too.  The outputs of the model are quantized values.
    """
    kind = str(rng.choice(["uint8", "uint8", "int8", "int8", "uint16", "int16"]))
    graph, nodes = model.graph, list(model.graph.node)
    outputs = [one.name for one in graph.output]
    readers = {
        name: f"{name}_dq" for name, value in ranges.items() if name in outputs or (rng.random() < 0.85 and value.size)
    }
    del graph.node[:]
    for name in (one.name for one in graph.input):
        graph.node.extend(_pair_of_nodes(graph, name, kind, ranges[name], name in readers))
    for node in nodes:
        if node.op_type in ("Conv", "MatMul", "Gemm"):
            _quantize_weights(rng, graph, node)
        for index, name in enumerate(node.input):
            node.input[index] = readers.get(name, name)
        graph.node.append(node)
        graph.node.extend(
            _pair_of_nodes(graph, node.output[0], kind, ranges[node.output[0]], node.output[0] in readers)
        )
    for one in graph.output:
        one.CopyFrom(helper.make_tensor_value_info(f"{one.name}_q", _DTYPES[kind], None))
    return model


def _pair_of_nodes(graph: Any, name: str, kind: str, values: Array, is_taken: bool) -> list[Any]:
    if not is_taken:
        return []
    info = np.iinfo(kind)
    low, high = min(0.0, float(values.min(initial=0))), max(0.0, float(values.max(initial=0)))
    scale = np.float32((high - low) / (int(info.max) - int(info.min)) or 1.0)
    point = np.array(np.clip(round(float(info.min - low / scale)), info.min, info.max)).astype(kind)
    graph.initializer.append(numpy_helper.from_array(np.asarray(scale), f"{name}_scale"))
    graph.initializer.append(numpy_helper.from_array(point, f"{name}_point"))
    parameters = [f"{name}_scale", f"{name}_point"]
    return [
        helper.make_node("QuantizeLinear", [name, *parameters], [f"{name}_q"]),
        helper.make_node("DequantizeLinear", [f"{name}_q", *parameters], [f"{name}_dq"]),
    ]


def _quantize_weights(rng: np.random.Generator, graph: Any, node: Any) -> None:
    """The second operand, where it is a constant, per tensor or per output channel; a bias as i32 at times."""
    found = [one for one in graph.initializer if one.name == node.input[1]]
    if not found:
        return
    weights = numpy_helper.to_array(found[0])
    axis = weights.ndim - 1 if node.op_type == "MatMul" else 0
    is_per_channel = rng.random() < 0.5
    others = tuple(one for one in range(weights.ndim) if one != axis) if is_per_channel else None
    scale: Array = np.maximum(np.abs(weights).max(axis=others), 1e-6).astype(np.float32) / np.float32(127)
    spread = scale.reshape([-1 if one == axis else 1 for one in range(weights.ndim)]) if is_per_channel else scale
    name = f"{node.input[1]}_{node.name}"
    graph.initializer.append(
        numpy_helper.from_array(np.clip(np.rint(weights / spread), -127, 127).astype(np.int8), f"{name}_q")
    )
    graph.initializer.append(numpy_helper.from_array(np.asarray(scale), f"{name}_scale"))
    graph.initializer.append(numpy_helper.from_array(np.zeros(scale.shape, np.int8), f"{name}_point"))
    attributes: dict[str, Any] = {"axis": axis} if is_per_channel else {}
    operands = [f"{name}_q", f"{name}_scale", f"{name}_point"]
    graph.node.append(helper.make_node("DequantizeLinear", operands, [f"{name}_dq"], **attributes))
    node.input[1] = f"{name}_dq"
