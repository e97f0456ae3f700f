"""Small ONNX networks drawn at random: chains with side branches, in f32 or of all types, often quantized."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from qdialect.support.interface import Array
from tools.evidence.drawn_graph import InvalidNodeError, Network, reads_of
from tools.evidence.drawn_steps import STEPS, TYPED_STEPS, Entry

_DTYPES = {
    "uint8": TensorProto.UINT8,
    "int8": TensorProto.INT8,
    "uint16": TensorProto.UINT16,
    "int16": TensorProto.INT16,
}
_NEWEST = 24
_INPUT_TYPES = (
    *("float32", "float32", "float32", "float16", "int8", "uint8", "int16", "uint16", "int32", "int64", "bool"),
)


def drawn(
    rng: np.random.Generator,
    *,
    is_open: bool = False,
    is_quantized: bool = False,
    is_typed: bool = False,
    more: Sequence[Entry] = (),
) -> tuple[ModelProto, Network]:
    """A network, of f32 values or `is_typed`; the batch is seldom 0.  Special floats are for one of four typed ones.

    `more` steps of the newest operator set are as likely as all others.
    """
    network = Network(rng, is_quantized, has_specials=is_typed and bool(rng.random() < 0.25))
    network.opset = _NEWEST if more else network.opset
    batch = int(rng.choice([1, 2, 3, 0], p=[0.7, 0.15, 0.1, 0.05]))
    rank = int(rng.choice([2, 3, 4, 4]))
    extents = [int(rng.integers(1, 9)) * int(rng.choice([1, 2, 4])), *rng.integers(3, 12, rank - 2).tolist()]
    dtype = str(rng.choice(_INPUT_TYPES)) if is_typed else "float32"
    network.input(network.array(dtype, (batch, *extents)))
    steps = (*STEPS, *TYPED_STEPS) if is_typed else STEPS
    steps = (*steps, *more, *more) if more else steps
    count = int(rng.integers(2, 12 if is_typed else 8))
    while len(network.nodes) < count:
        _grow(network, steps)
    read = {name for node in network.nodes for name in reads_of(node)}
    outputs = [name for name in network.values if name not in read and name not in network.inputs]
    # NumPy has no bfloat16.
    readable = [
        network.add("Cast", [name], to=TensorProto.FLOAT) if network.dtype(name).kind == "V" else name
        for name in outputs[-3:]
    ]
    return network.model(readable, is_open=is_open), network


def _grow(network: Network, steps: Sequence[Entry]) -> None:
    """One more step, from the last value, or from an earlier one; none where it does not fit.

    ONNX Runtime refuses its nodes then, or NumPy draws no number from an empty range.
    """
    rng, names = network.rng, list(network.values)
    value = names[-1] if rng.random() < 0.8 else str(rng.choice(names))
    fitting = [
        step for step, ranks, kinds in steps if len(network.shape(value)) in ranks and _is(network, value, kinds)
    ]
    before = (len(network.nodes), set(network.values), dict(network.inputs), dict(network.constants))
    try:
        fitting[int(rng.integers(len(fitting)))](network, value)
    except (InvalidNodeError, ValueError):
        count, known, network.inputs, network.constants = before
        del network.nodes[count:]
        network.values = {name: one for name, one in network.values.items() if name in known}


def _is(network: Network, value: str, kinds: str) -> bool:
    """Whether the type of a value is among `kinds`: letters of NumPy's kinds, or 'f4' for f32 alone."""
    dtype = network.dtype(value)
    return dtype == np.float32 if kinds == "f4" else dtype.kind in kinds


def quantized(network: Network, model: ModelProto) -> ModelProto:
    """With a QuantizeLinear and a DequantizeLinear behind f32 values, from their extremes; a few are left.

    Weights of products are quantized too.  Outputs in f32 become quantized values.
    """
    rng = network.rng
    kind = str(rng.choice(["uint8", "uint8", "int8", "int8", "uint16", "int16"]))
    graph, nodes = model.graph, list(model.graph.node)
    outputs = [one.name for one in graph.output]
    ranges = {name: one.numpy() for name, one in network.values.items() if network.dtype(name) == np.float32}
    taken = {name for name, value in ranges.items() if name in outputs or (rng.random() < 0.85 and value.size)}
    del graph.node[:]
    # Identities between tensors of other ranges put two quantizations in a row.
    ranges = {name: one * np.float32(rng.choice([1, 1, 1, 0.9, 1.2])) for name, one in ranges.items()}
    for name in network.inputs:
        graph.node.extend(_pair_of_nodes(graph, name, kind, ranges[name]) if name in taken else [])
    for node in nodes:
        if node.op_type in ("Conv", "MatMul", "Gemm"):
            _quantize_weights(rng, graph, node)
        for index, name in enumerate(node.input):
            node.input[index] = f"{name}_dq" if name in taken else name
        graph.node.append(node)
        for name in node.output:
            graph.node.extend(_pair_of_nodes(graph, name, kind, ranges[name]) if name in taken else [])
    for one in graph.output:
        if one.name in taken:
            one.CopyFrom(helper.make_tensor_value_info(f"{one.name}_q", _DTYPES[kind], None))
    return model


def _pair_of_nodes(graph: GraphProto, name: str, kind: str, values: Array) -> list[NodeProto]:
    info, values = np.iinfo(kind), values[np.isfinite(values)]
    low, high = min(0.0, float(values.min(initial=0))), max(0.0, float(values.max(initial=0)))
    scale = np.float32((high - low) / (int(info.max) - int(info.min))) or np.float32(1)
    point = np.array(np.clip(round(float(info.min - low / scale)), info.min, info.max)).astype(kind)
    graph.initializer.append(numpy_helper.from_array(np.asarray(scale), f"{name}_scale"))
    graph.initializer.append(numpy_helper.from_array(point, f"{name}_point"))
    parameters = [f"{name}_scale", f"{name}_point"]
    return [
        helper.make_node("QuantizeLinear", [name, *parameters], [f"{name}_q"]),
        helper.make_node("DequantizeLinear", [f"{name}_q", *parameters], [f"{name}_dq"]),
    ]


def _quantize_weights(rng: np.random.Generator, graph: GraphProto, node: NodeProto) -> None:
    """The second operand, where it is a constant, per tensor or per output channel; a bias as i32 at times."""
    found = [one for one in graph.initializer if one.name == node.input[1]]
    if not found:
        return
    weights = numpy_helper.to_array(found[0])
    axis = weights.ndim - 1 if node.op_type == "MatMul" else 0
    is_per_channel = rng.random() < 0.5
    others = tuple(one for one in range(weights.ndim) if one != axis) if is_per_channel else None
    largest = np.where(np.isfinite(weights), np.abs(weights), 0).max(axis=others, initial=1e-6)
    scale: Array = largest.astype(np.float32) / np.float32(127)
    spread = scale.reshape([-1 if one == axis else 1 for one in range(weights.ndim)]) if is_per_channel else scale
    name = f"{node.input[1]}_{node.name}"
    graph.initializer.append(
        numpy_helper.from_array(
            np.clip(np.rint(np.nan_to_num(weights) / spread), -127, 127).astype(np.int8), f"{name}_q"
        )
    )
    graph.initializer.append(numpy_helper.from_array(np.asarray(scale), f"{name}_scale"))
    graph.initializer.append(numpy_helper.from_array(np.zeros(scale.shape, np.int8), f"{name}_point"))
    attributes: dict[str, Any] = {"axis": axis} if is_per_channel else {}
    operands = [f"{name}_q", f"{name}_scale", f"{name}_point"]
    graph.node.append(helper.make_node("DequantizeLinear", operands, [f"{name}_dq"], **attributes))
    node.input[1] = f"{name}_dq"
