"""QDQ groups that ONNX Runtime leaves in float32.

A group ends in one QuantizeLinear.  ONNX Runtime moves that up to the group through what only moves elements, and drops
a Relu or Clip before it that the bounds of the quantization make superfluous.  An i8 tensor becomes ui8 where a
QuantizeLinear gives it to one DequantizeLinear with one reader.  Integer kernels take tensors of one type; any other
group dequantizes, computes in float32 and quantizes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum

import numpy as np

from qdialect.frontends.common import Array
from qdialect.frontends.onnx.graph_readers import MOVEMENTS, NOTHING, Readers, is_operator
from qdialect.frontends.onnx.model import Graph, Node

_KINDS = ("Add", "Mul", "Softmax", "AveragePool", "GlobalAveragePool")
_BOUNDS = ("Relu", "Clip")
# How much less than the quantized range a Clip may leave (ONNX Runtime's ClipQuantFusion).
_TOLERANCE = 2.0**-23


class GroupKernel(Enum):
    """What ONNX Runtime computes a QDQ group with."""

    OF_TYPE = "an integer kernel for the tensors' type"
    UNSIGNED = "an integer kernel for ui8, which its i8 tensors become"
    F32 = "float32, though there is an integer kernel of the kind"


def group_kernels(graph: Graph) -> Mapping[int, GroupKernel]:
    """The kernel of each node of a kind that has an integer kernel, by the nodes' indices."""
    groups = _Groups(graph)
    return {node.index: groups.kernel(node) for node in graph.nodes if node.kind in _KINDS}


class _Groups:
    """The QDQ groups of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._constants = graph.constants
        self._readers = Readers(graph)

    def kernel(self, node: Node) -> GroupKernel:
        """What a node's group is computed with, as far as its end and i8 tensors say."""
        after = self._end(node)
        if after is None:
            return GroupKernel.F32
        before = (self._readers.giver(name) for name in node.inputs)
        sources = [one.inputs[0] for one in before if one is not None and self._is_signed(one)]
        results = [after.outputs[0]] if self._is_signed(after) else []
        become_unsigned = {self._becomes_unsigned(name) for name in (*sources, *results)}
        if become_unsigned == {True}:
            return GroupKernel.UNSIGNED
        return GroupKernel.F32 if len(become_unsigned) > 1 else GroupKernel.OF_TYPE

    def _end(self, node: Node) -> Node | None:
        """The one QuantizeLinear that ends a node's group, None where something else is in between."""
        bounds: list[Node] = []
        has_moved, reader = False, self._readers.only_reader(node)
        while reader is not None and reader.kind in (*NOTHING, *_BOUNDS, *MOVEMENTS):
            if reader.kind in _BOUNDS:
                if has_moved:
                    return None
                bounds.append(reader)
            has_moved |= reader.kind in MOVEMENTS
            reader = self._readers.only_reader(reader)
        if reader is None or not is_operator(reader, "QuantizeLinear"):
            return None
        return reader if all(self._is_superfluous(bound, reader) for bound in bounds) else None

    def _is_superfluous(self, bound: Node, quantize: Node) -> bool:
        """Whether a Relu or Clip bounds no more than a quantization does."""
        scale, point = self._constants.get(quantize.inputs[1]), self._zero_point(quantize)
        step, zero = _number(scale), _number(point)
        if point is None or point.dtype.kind not in "iu" or not math.isfinite(step) or not math.isfinite(zero):
            return False
        low, high = (0.0, math.inf) if bound.kind == "Relu" else self._bounds(bound)
        limits = np.iinfo(point.dtype)
        ends = np.array([limits.min, limits.max], np.float32) - np.float32(zero)
        minimum, maximum = (float(end) for end in ends * np.float32(step))
        return low - minimum <= _TOLERANCE and maximum - high <= _TOLERANCE

    def _bounds(self, clip: Node) -> tuple[float, float]:
        """Those of a Clip; NaN where they are computed."""
        found: list[float] = []
        for index, (name, default) in enumerate((("min", -math.inf), ("max", math.inf)), 1):
            given = clip.inputs[index] if index < len(clip.inputs) else ""
            value = self._constants.get(given) if given else clip.attributes.get(name, default)
            found.append(_number(value))
        return found[0], found[1]

    def _becomes_unsigned(self, name: str) -> bool:
        source = self._readers.giver(name)
        if source is None or not is_operator(source, "QuantizeLinear"):
            return False
        reader = self._readers.only_reader(source)
        return reader is not None and is_operator(reader, "DequantizeLinear")

    def _is_signed(self, node: Node) -> bool:
        """Whether a node quantizes to i8, or dequantizes it."""
        is_quantization = is_operator(node, "QuantizeLinear") or is_operator(node, "DequantizeLinear")
        point = self._zero_point(node) if is_quantization else None
        return point is not None and point.dtype == np.int8

    def _zero_point(self, node: Node) -> Array | None:
        return self._constants.get(node.inputs[2]) if len(node.inputs) > 2 else None


def _number(value: object) -> float:
    """One number, NaN for anything else."""
    array: Array = np.asarray(value)
    return float(array.item()) if array.size == 1 and array.dtype.kind in "iuf" else math.nan
