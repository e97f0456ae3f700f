"""Constant f32 weights that ONNX Runtime's default optimization quantizes.

They are those of a Conv, ConvTranspose or Gemm that reads what a DequantizeLinear gives, and whose result, or a Relu or
Clip of it, one QuantizeLinear reads.  The weights become i8, with one scale and one zero point for the range of all of
them and 0.
"""

from __future__ import annotations

import numpy as np

from qdialect.frontends.onnx.graph_readers import MOVEMENTS, NOTHING, Readers, is_operator
from qdialect.frontends.onnx.model import Graph, Node
from qdialect.frontends.onnx.operators.registry import Call
from qdialect.frontends.onnx.tensors import Quantized
from qdialect.frontends.planning.tensors import Constant, known

_KINDS = ("Conv", "ConvTranspose", "Gemm")
_BOUNDS = ("Relu", "Clip")
_LOW, _HIGH = -128, 127


def nodes_with_quantized_weights(graph: Graph) -> frozenset[int]:
    """The indices of the nodes whose f32 weights, if they are constant, are quantized."""
    readers = Readers(graph)
    return frozenset(node.index for node in graph.nodes if _is_quantized(node, readers))


def with_quantized_weights(call: Call) -> Call:
    """The same node with input 1 as ``round(w / s + z)``, where that is f32 weights.

    ``s = (high - low) / 255`` and ``z = round(-128 - low / s)`` in float32, both rounded to even.
    """
    weights = call.optional(1)
    if not isinstance(weights, Constant) or weights.array.dtype != np.float32 or not np.isfinite(weights.array).all():
        return call
    zero = np.float32(0)
    low, high = weights.array.min(initial=zero), weights.array.max(initial=zero)
    scale = (high - low) / np.float32(_HIGH - _LOW) if high > low else np.float32(1)
    point = np.rint(np.clip(np.float32(_LOW) - low / scale, _LOW, _HIGH))
    values = np.clip(np.rint(weights.array / scale) + point, _LOW, _HIGH).astype(np.int8)
    found = Quantized(values.shape, known(call.name, values), (float(scale),), (int(point),))
    return call.with_input(1, found)


def _is_quantized(node: Node, readers: Readers) -> bool:
    if node.kind not in _KINDS or len(node.inputs) < 2:
        return False
    weights = readers.giver(node.inputs[1])
    if weights is not None and is_operator(weights, "DequantizeLinear"):
        return False
    return _has_plain_bias(node, readers) and _is_dequantized(node, readers) and _ends_quantized(node, readers)


def _has_plain_bias(node: Node, readers: Readers) -> bool:
    name = node.inputs[2] if len(node.inputs) > 2 else ""
    bias = readers.constant(name)
    return not name or (bias is not None and bias.ndim == 1)


def _is_dequantized(node: Node, readers: Readers) -> bool:
    """Whether the data is dequantized by one scale, perhaps before it is moved."""
    giver = readers.giver(node.inputs[0])
    while giver is not None and giver.kind in (*NOTHING, *MOVEMENTS):
        giver = readers.giver(giver.inputs[0]) if giver.inputs else None
    if giver is None or not is_operator(giver, "DequantizeLinear"):
        return False
    scale = readers.constant(giver.inputs[1])
    return scale is not None and scale.size == 1


def _ends_quantized(node: Node, readers: Readers) -> bool:
    """Whether one QuantizeLinear reads the result, perhaps behind bounds and then movements."""
    reader = readers.only_reader(node)
    has_moved = False
    while reader is not None and reader.kind in (*NOTHING, *_BOUNDS, *MOVEMENTS):
        if has_moved and reader.kind in _BOUNDS:
            return False
        has_moved |= reader.kind in MOVEMENTS
        reader = readers.only_reader(reader)
    return reader is not None and is_operator(reader, "QuantizeLinear")
