"""Two quantizations in a row become one, as ONNX Runtime's default optimization joins them.

Of QuantizeLinear, DequantizeLinear, QuantizeLinear and DequantizeLinear without other readers between, the two in the
middle go, and the others get the range that both quantizations have in common, where they differ::

    low = max((q_min - z1) * s1, (q_min - z2) * s2)         high = min((q_max - z1) * s1, (q_max - z2) * s2)
    s = (high - low) / (q_max - q_min)                      z = round(q_min - low / s)

in float32, with halves rounded away from zero.  Nodes that do nothing do not stand between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qdialect.frontends.building.checks import Array
from qdialect.frontends.onnx.inlining import captured
from qdialect.frontends.onnx.schema import inferred_graph

if TYPE_CHECKING:
    import onnx

_QUANTIZE, _DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"
_TYPES = ("uint8", "int8", "uint16", "int16")
_NEUTRAL = {"Add": 0, "Sub": 0, "Mul": 1, "Div": 1}
"""Operators and the number that they do nothing with."""
_F32, _LARGEST = 1, 2**63 - 1
_FEW = 64
"""Constants of so many elements are read."""


def join_double_pairs(model: onnx.ModelProto) -> None:
    """Join the double quantizations of `model`, in place."""
    graph = model.graph
    kinds = [node.op_type for node in graph.node]
    if kinds.count(_QUANTIZE) < 2 or kinds.count(_DEQUANTIZE) < 2:
        return
    constants = _constants(graph)
    shapes = _shapes(model) if "Expand" in kinds else {}
    # A pair that was joined may be joined once more, behind those that follow it.
    while doubles := _Nodes(graph, constants, shapes).doubles():
        for double in doubles:
            _join(graph, constants, double)
        gone = {name for double in doubles for name in double.gone}
        kept = [node for node in graph.node if gone.isdisjoint(node.output)]
        del graph.node[:]
        graph.node.extend(kept)


@dataclass(frozen=True)
class _Double:
    """Two quantizations in a row: the outer nodes, what they are to quantize by, and what the middle ones give."""

    first: onnx.NodeProto
    last: Sequence[onnx.NodeProto]
    by: _Parameters
    gone: Sequence[str]


@dataclass(frozen=True)
class _Parameters:
    """The scale and the zero point of a tensor."""

    scale: Array
    point: Array

    @property
    def number(self) -> tuple[object, object, str]:
        return self.scale.item(), self.point.item(), self.point.dtype.name


class _Nodes:
    """The nodes of a graph by what they give and read; those that do nothing are looked through."""

    def __init__(self, graph: onnx.GraphProto, constants: Mapping[str, Array], shapes: Mapping[str, Sequence[int]]):
        self._graph, self._constants, self._shapes = graph, constants, shapes
        self._giver = {name: node for node in graph.node for name in node.output}
        self._readers: dict[str, list[onnx.NodeProto]] = {}
        for node in graph.node:
            for name in (*node.input, *captured(node)):
                self._readers.setdefault(name, []).append(node)
        self._outputs = {value.name for value in graph.output}

    def doubles(self) -> list[_Double]:
        """Those that have no node in common."""
        found: list[_Double] = []
        taken = set[str]()
        for node in self._graph.node:
            double = self._double(node) if node.op_type == _QUANTIZE and taken.isdisjoint(node.output) else None
            if double is not None and taken.isdisjoint(double.gone):
                found.append(double)
                taken.update(*(one.output for one in (double.first, *double.last)), double.gone)
        return found

    def _double(self, first: onnx.NodeProto) -> _Double | None:
        gone: list[str] = []
        middle = [first]
        for kind in (_DEQUANTIZE, _QUANTIZE):
            readers = self._reading(middle[-1], gone)
            if readers is None or len(readers) != 1 or readers[0].op_type != kind:
                return None
            middle += readers
            gone += readers[0].output
        last = self._reading(middle[-1], gone)
        if not last or any(node.op_type != _DEQUANTIZE for node in last):
            return None
        parameters = [self._parameters(node) for node in (*middle, *last)]
        known = [one for one in parameters if one is not None]
        if len(known) < len(parameters) or len({one.point.dtype for one in known}) > 1:
            return None
        if known[0].number != known[1].number or len({one.number for one in known[2:]}) > 1:
            return None
        common = _common(known[0], known[2])
        return _Double(first, last, common, gone) if common.scale > 0 else None

    def _reading(self, node: onnx.NodeProto, gone: list[str]) -> Sequence[onnx.NodeProto] | None:
        """What reads the result of a node behind those that do nothing, whose results become `gone`.

        None where the result or one of these is an output.
        """
        found: list[onnx.NodeProto] = []
        waiting = [node.output[0]]
        while waiting:
            name = waiting.pop()
            if name in self._outputs:
                return None
            for reader in self._readers.get(name, []):
                if self._does_nothing(reader, node.op_type):
                    waiting.append(reader.output[0])
                    gone.append(reader.output[0])
                else:
                    found.append(reader)
        return found

    def _does_nothing(self, node: onnx.NodeProto, giver: str) -> bool:
        """Whether ONNX Runtime drops a node that reads what a `giver` gives."""
        others = [self._constants.get(name) for name in node.input[1:]]
        match node.op_type:
            case "Identity" | "Dropout":
                return len(node.input) == len(node.output) == 1
            case "Cast":
                return giver == _DEQUANTIZE and node.attribute[0].i == _F32
            case "Expand":
                shape = self._shapes.get(node.input[0])
                return shape is not None and shape == self._shapes.get(node.output[0])
            case "Slice":
                starts, ends, _, steps = (*others, *[np.ones(1, np.int64)] * 4)[:4]
                wanted = ((starts, 0), (ends, _LARGEST), (steps, 1))
                return all(one is not None and bool((one == number).all()) for one, number in wanted)
            case "Add" | "Mul" | "Sub" | "Div":
                sides = [self._constants.get(name) for name in node.input]
                number = sides[1] if sides[1] is not None or node.op_type in ("Sub", "Div") else sides[0]
                return number is not None and number.size == 1 and bool((number == _NEUTRAL[node.op_type]).all())
            case _:
                return False

    def _parameters(self, node: onnx.NodeProto) -> _Parameters | None:
        """What a node quantizes by, where both are known numbers."""
        if len(node.input) != 3:
            return None
        scale, point = (self._constants.get(name) for name in node.input[1:])
        if scale is None or point is None or scale.size != 1 or point.size != 1:
            return None
        is_number = scale.dtype == np.float32 and 0 < scale < np.inf
        return _Parameters(scale, point) if is_number and point.dtype.name in _TYPES else None


def _join(graph: onnx.GraphProto, constants: dict[str, Array], double: _Double) -> None:
    from onnx import numpy_helper

    for node in double.last:
        node.input[0] = double.first.output[0]
    for index, array in enumerate((double.by.scale, double.by.point), 1):
        name = f"{double.gone[-1]}/{'scale' if index == 1 else 'zero_point'}"
        constants[name] = array
        graph.initializer.append(numpy_helper.from_array(array, name))
        for node in (double.first, *double.last):
            node.input[index] = name


def _common(one: _Parameters, other: _Parameters) -> _Parameters:
    """The parameters of the range that two have in common."""
    if one.number == other.number:
        return one
    limits = np.iinfo(one.point.dtype)
    ends = [
        [np.float32(limit - int(by.point.item())) * by.scale.reshape(()) for limit in (limits.min, limits.max)]
        for by in (one, other)
    ]
    low, high = max(ends[0][0], ends[1][0]), min(ends[0][1], ends[1][1])
    scale = (high - low) / np.float32(limits.max - limits.min)
    # Both may have no number but 0 in common.
    point = np.float32(limits.min) - low / (scale or np.float32(1))
    whole = np.floor(np.abs(point) + np.float32(0.5)) * np.sign(point)
    return _Parameters(np.asarray(scale), np.asarray(whole).astype(one.point.dtype))


def _constants(graph: onnx.GraphProto) -> dict[str, Array]:
    """The small ones of a graph."""
    from onnx import numpy_helper

    given = {value.name for value in graph.input}
    tensors = {one.name: one for one in graph.initializer if one.name not in given}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[:1] and node.attribute[0].name == "value":
            tensors[node.output[0]] = node.attribute[0].t
    found: dict[str, Array] = {}
    for name, tensor in tensors.items():
        if np.prod(tensor.dims) <= _FEW and tensor.data_location != tensor.EXTERNAL:
            # A damaged one is told where it is read.
            with suppress(ValueError, TypeError, KeyError):
                found[name] = numpy_helper.to_array(tensor)
    return found


def _shapes(model: onnx.ModelProto) -> dict[str, Sequence[int]]:
    """The shapes of values whose extents are all known."""
    graph = inferred_graph(model)
    values = (*graph.input, *graph.value_info, *graph.output)
    found = {one.name: [entry.dim_value for entry in one.type.tensor_type.shape.dim] for one in values}
    return {name: shape for name, shape in found.items() if all(shape)}
