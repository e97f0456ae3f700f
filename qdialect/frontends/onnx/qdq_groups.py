"""QDQ groups that ONNX Runtime leaves in float32.

A group begins with DequantizeLinear and ends in one QuantizeLinear.  ONNX Runtime moves both to the operator through
what only moves elements (but not Split, Concat or Gather), takes a Pad into a Conv or AveragePool, and drops a Relu or
Clip at the end that the bounds of the quantization make superfluous.  An i8 tensor becomes ui8 where a QuantizeLinear
gives it to one DequantizeLinear with one reader.  Integer kernels take tensors of one type; any other group
dequantizes, computes in float32 and quantizes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum

import numpy as np

from qdialect.frontends.building.checks import Array
from qdialect.frontends.onnx.model import ELEMENTS, MOVEMENTS, NOTHING, Graph, Node, Readers, is_operator

_KINDS = ("Add", "Mul", "Softmax", "AveragePool", "GlobalAveragePool")
_PADDED = ("Conv", "AveragePool")
BOUNDS = ("Relu", "Clip")
"""Operators that a quantization can make superfluous."""
# How much less than the quantized range a Clip may leave (ONNX Runtime's ClipQuantFusion).
_TOLERANCE = 2.0**-23
_EIGHT_BIT = {"int8": "i8", "uint8": "ui8"}
# The type of quantized values where a QuantizeLinear names none.
_UNSIGNED = 2


class GroupKernel(Enum):
    """The arithmetic with which ONNX Runtime computes a QDQ group."""

    OF_TYPE = "an integer kernel for the tensors' type"
    UNSIGNED = "an integer kernel for ui8, which its i8 tensors become"
    F32 = "float32, though there is an integer kernel of the kind"


def group_kernels(graph: Graph) -> Mapping[int, GroupKernel]:
    """The kernel of each node of a kind that has an integer kernel, by the nodes' indices."""
    groups = Groups(graph)
    return {node.index: groups.kernel(node) for node in graph.nodes if node.kind in _KINDS}


class Groups:
    """The QDQ groups of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._constants = graph.constants
        self._readers = Readers(graph)
        self._inputs = {tensor.name: tensor.element for tensor in graph.inputs}

    def kernel(self, node: Node) -> GroupKernel:
        """The arithmetic of a node's group, as far as its end and i8 tensors determine it."""
        ends = [self.end(node), *(self.start(node, index) for index, name in enumerate(node.inputs) if name)]
        sides = [side for side in ends if side is not None]
        if len(sides) < len(ends):
            return GroupKernel.F32
        become_unsigned = {self._becomes_unsigned(*side) for side in sides if self._declared(side[0]) == "i8"}
        if become_unsigned == {True}:
            return GroupKernel.UNSIGNED
        return GroupKernel.F32 if len(become_unsigned) > 1 else GroupKernel.OF_TYPE

    def element(self, node: Node, *, is_moved: bool) -> str | None:
        """The type of a QuantizeLinear's or DequantizeLinear's tensor, once i8 that becomes ui8 is so."""
        found = self._declared(node)
        return "ui8" if found == "i8" and self._becomes_unsigned(node, is_moved) else found

    def start(self, node: Node, index: int) -> tuple[Node, bool] | None:
        """The DequantizeLinear that gives input `index` of a group's node, and whether it is moved down to that.

        None where something else is in between.
        """
        has_moved, giver = False, self._readers.giver(node.inputs[index])
        is_padded = node.kind in _PADDED and node.attributes.get("auto_pad", "NOTSET") == "NOTSET"
        if giver is not None and is_padded and self._is_border(giver):
            giver = self._readers.giver(giver.inputs[0])
        while giver is not None and giver.kind in (*NOTHING, *MOVEMENTS):
            has_moved |= giver.kind in MOVEMENTS
            giver = self._readers.giver(giver.inputs[0]) if giver.inputs else None
        return None if giver is None or not is_operator(giver, "DequantizeLinear") else (giver, has_moved)

    def end(self, node: Node) -> tuple[Node, bool] | None:
        """The one QuantizeLinear that ends a node's group, and whether it is moved up to it.

        None where something else is in between.
        """
        found = self.behind(node)
        return found[:2] if found and all(self._is_superfluous(bound, found[0]) for bound in found[2]) else None

    def behind(self, node: Node) -> tuple[Node, bool, list[Node]] | None:
        """The one QuantizeLinear behind a node, whether movements and which bounds, before them, are in between."""
        bounds: list[Node] = []
        has_moved, reader = False, self._readers.only_reader(node)
        while reader is not None and reader.kind in (*NOTHING, *BOUNDS, *MOVEMENTS):
            if reader.kind in BOUNDS:
                if has_moved:
                    return None
                bounds.append(reader)
            has_moved |= reader.kind in MOVEMENTS
            reader = self._readers.only_reader(reader)
        return None if reader is None or not is_operator(reader, "QuantizeLinear") else (reader, has_moved, bounds)

    def _is_border(self, node: Node) -> bool:
        """Whether a node with one reader puts zeros around images."""
        given = [self._constants.get(name) for name in node.inputs[1:]]
        amounts, fill = (*given, None, None)[:2]
        plain = node.kind == "Pad" and len(given) <= 2 and node.attributes.get("mode", "constant") == "constant"
        if not plain or amounts is None or self._readers.only_reader(node) is None:
            return False
        rank = amounts.size // 2
        return not any(amounts[side] for side in (0, 1, rank, rank + 1)) and (fill is None or not fill.any())

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

    def _becomes_unsigned(self, node: Node, is_moved: bool) -> bool:
        """Whether the i8 tensor of a quantization or dequantization goes from one to the other and nowhere else.

        One that is moved to the group leaves such a pair behind.
        """
        is_end = is_operator(node, "QuantizeLinear")
        source = node if is_end else self._readers.giver(node.inputs[0])
        if is_moved or source is None or not is_operator(source, "QuantizeLinear"):
            return is_moved
        reader = self._readers.only_reader(source)
        return reader is not None and is_operator(reader, "DequantizeLinear")

    def _declared(self, node: Node) -> str | None:
        """The type of a QuantizeLinear's or DequantizeLinear's tensor, which need not have a zero point."""
        held = self._zero_point(node)
        if held is None and is_operator(node, "QuantizeLinear"):
            return ELEMENTS.get(node.attributes.get("output_dtype", 0) or _UNSIGNED)
        held = self._constants.get(node.inputs[0]) if held is None else held
        if held is not None:
            return _EIGHT_BIT.get(held.dtype.name)
        giver = self._readers.giver(node.inputs[0])
        is_given = giver is not None and is_operator(giver, "QuantizeLinear")
        return self._declared(giver) if giver is not None and is_given else self._inputs.get(node.inputs[0])

    def _zero_point(self, node: Node) -> Array | None:
        return self._constants.get(node.inputs[2]) if len(node.inputs) > 2 else None


def _number(value: object) -> float:
    """One number, NaN for anything else."""
    array: Array = np.asarray(value)
    return float(array.item()) if array.size == 1 and array.dtype.kind in "iuf" else math.nan
