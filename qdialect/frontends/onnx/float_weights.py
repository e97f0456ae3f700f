"""Constant weights and biases of contractions, as ONNX Runtime's default optimization reads them.

Where a Conv, ConvTranspose or Gemm reads what a DequantizeLinear gives, and one QuantizeLinear reads its result, or a
Relu or Clip of it, f32 weights become i8, with one scale and one zero point for the range of all of them and 0, and a
f32 bias becomes i32 of the accumulators' scale.  What is computed from dequantized weights is no constant there: such
weights stay f32.

An i32 bias has a scale of its own.  Only an integer kernel reads it as a number of accumulators' units.
"""

from __future__ import annotations

import numpy as np

from qdialect.frontends.building.checks import Array
from qdialect.frontends.onnx.model import NOTHING, Graph, Node, Readers, is_operator
from qdialect.frontends.onnx.operators.registry import AccumulatorBias, Call, Quantized
from qdialect.frontends.onnx.qdq_groups import BOUNDS, Groups
from qdialect.frontends.planning.contraction import LARGEST_BIAS, accumulator_scales
from qdialect.frontends.planning.tensors import Constant, known

_KINDS = ("Conv", "ConvTranspose", "Gemm")
# Between a DequantizeLinear and weights: a Cast of f32 is one to f32, and constants are transposed themselves.
_DROPPED = ("Cast", "Transpose")
_LOW, _HIGH = -128, 127
_BIAS = 2
# How far the scale of a bias may be from that of the accumulators, for the integer kernel of a Conv.
_RELATIVE, _ABSOLUTE = 1e-2, 1e-6


class ContractionConstants:
    """The changes to the weights and biases of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._readers = Readers(graph)
        self._groups = Groups(graph)
        self._computed = _computed_from_quantized(graph)
        nodes = [node for node in graph.nodes if node.kind in _KINDS and len(node.inputs) > 1]
        self._is_quantized = frozenset(node.index for node in nodes if self._are_constants_quantized(node))
        self._is_integer = frozenset(node.index for node in nodes if self._has_integer_kernel(node))

    def read(self, call: Call) -> Call:
        """The same node, its constants quantized and its bias in the accumulators' unit where they are so."""
        node = call.node
        if node.index in self._is_quantized:
            call = _with_quantized_bias(_with_quantized_weights(call))
        return _with_fused_bias(call) if node.index in self._is_integer else call

    def _are_constants_quantized(self, node: Node) -> bool:
        if node.inputs[1] in self._computed and self._weight_dequantization(node) is None:
            return False
        name = node.inputs[_BIAS] if len(node.inputs) > _BIAS else ""
        bias = self._readers.constant(name)
        if name and (bias is None or bias.ndim != 1):
            return False
        # One scale dequantizes the data.
        found = self._groups.start(node, 0)
        scale = None if found is None else self._readers.constant(found[0].inputs[1])
        return scale is not None and scale.size == 1 and self._groups.behind(node) is not None

    def _weight_dequantization(self, node: Node) -> Node | None:
        """The DequantizeLinear of the weights, perhaps behind what is dropped."""
        giver = self._readers.giver(node.inputs[1])
        while giver is not None and giver.kind in (*NOTHING, *_DROPPED):
            giver = self._readers.giver(giver.inputs[0])
        return giver if giver is not None and is_operator(giver, "DequantizeLinear") else None

    def _has_integer_kernel(self, node: Node) -> bool:
        """Whether the node becomes a QLinearConv or QGemm, as far as the types of its tensors and its readers tell.

        The first takes ui8 data alone, the second needs zero points, and weights of the data's type where that is i8.
        """
        if node.kind == "ConvTranspose" or any(node.attributes.get(name, 1) != 1 for name in ("alpha", "beta")):
            return False
        start, end, weight = (self._groups.start(node, 0), self._groups.end(node), self._weight_dequantization(node))
        if start is None or (weight is None and node.index not in self._is_quantized):
            return False
        before = self._groups.element(start[0], is_moved=start[1])
        is_same = end is not None and before == self._groups.element(end[0], is_moved=end[1])
        if node.kind == "Conv":
            return is_same and before == "ui8"
        kinds = ("ui8", "i8" if weight is None else self._groups.element(weight, is_moved=False))
        have_points = all(one is None or (len(one.inputs) > 2 and bool(one.inputs[2])) for one in (start[0], weight))
        fits = before is not None and before in kinds
        return have_points and fits and (is_same if end is not None else self._gives_floats(node))

    def _gives_floats(self, node: Node) -> bool:
        """Whether no QuantizeLinear reads the result of a Gemm, nor bounds that have one reader."""
        readers = self._readers.all_readers(node)
        if any(is_operator(reader, "QuantizeLinear") for reader in readers):
            return False
        first = self._readers.only_reader(node)
        return first is None or first.kind not in BOUNDS or self._readers.only_reader(first) is None


def _computed_from_quantized(graph: Graph) -> frozenset[str]:
    """The names of what is computed from dequantized tensors."""
    found = set[str]()
    for node in graph.nodes:
        is_shape = node.kind in ("Shape", "Size")
        if is_operator(node, "DequantizeLinear") or (not is_shape and not found.isdisjoint(node.inputs)):
            found.update(node.outputs)
    return frozenset(found)


def _with_quantized_weights(call: Call) -> Call:
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


def _with_quantized_bias(call: Call) -> Call:
    """The same node with input 2 as ``round(b / (s_x * s_w))`` in float32, where that is f32 and fits into i32."""
    bias, scales = call.optional(_BIAS), _accumulator_scales(call)
    if not isinstance(bias, Constant) or bias.array.dtype != np.float32 or scales is None:
        return call
    if scales.size not in (1, bias.array.size):
        return call
    with np.errstate(all="ignore"):
        counted = np.rint(bias.array / scales)
    if not bool(np.all(np.abs(counted) <= LARGEST_BIAS)):
        return call
    return call.with_input(_BIAS, _of_scales(call, Quantized, counted.astype(np.int32), scales))


def _with_fused_bias(call: Call) -> Call:
    """The same node with a bias in the accumulators' unit where ONNX Runtime takes it for that.

    QGemm does not read the scale of its bias; a convolution is fused where it is near the accumulators'.
    """
    bias, scales = call.optional(_BIAS), _accumulator_scales(call)
    if not isinstance(bias, Quantized) or bias.values.element != "i32" or scales is None:
        return call
    values = bias.values.data
    if values is None or not values.size:
        return call
    if call.node.kind == "Conv":
        own = np.array(bias.scales, np.float64)
        fits = own.size in (1, scales.size) or scales.size == 1
        is_near = fits and np.allclose(own, scales.astype(np.float64), _RELATIVE, _ABSOLUTE)
        if any(bias.zero_points) or not is_near:
            return call
    return call.with_input(_BIAS, _of_scales(call, AccumulatorBias, values, scales))


def _accumulator_scales(call: Call) -> Array | None:
    """Those of a contraction of two dequantized tensors."""
    data, weights = call.optional(0), call.optional(1)
    if not isinstance(data, Quantized) or not isinstance(weights, Quantized) or len(data.scales) > 1:
        return None
    return accumulator_scales(data, weights.scales)


def _of_scales(call: Call, kind: type[Quantized], values: Array, scales: Array) -> Quantized:
    """i32 values whose scales, if they are several, lie along the last dimension."""
    value = known(call.name, values)
    return kind(values.shape, value, tuple(map(float, scales)), (0,) * scales.size, max(values.ndim - 1, 0))
