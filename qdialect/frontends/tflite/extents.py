"""Extents that a .tflite file leaves open: those of inputs are said by the user, others follow from them.

A file has extents for all inputs, and notes beside which of them may be others.  Where nobody says one, it is the
file's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from qdialect.frontends.extents import Extents, OpenShape
from qdialect.frontends.tflite.model import Graph, Tensor

_BATCH = 1


def open_shapes(graph: Graph) -> Mapping[str, OpenShape]:
    """The shapes of the inputs by their names; an extent that may be another has an empty name."""
    return {graph.name_of(tensor): _declared(tensor) for tensor in graph.inputs}


def _declared(tensor: Tensor) -> OpenShape:
    signature = tensor.signature if len(tensor.signature) == len(tensor.shape) else tensor.shape
    return tuple("" if noted == -1 else extent for extent, noted in zip(tensor.shape, signature, strict=True))


def with_extents(graph: Graph, extents: Extents) -> Graph:
    """`graph` with inputs of the extents that are said; raises `ImportModelError` where none of those is open."""
    known: dict[int, Tensor] = {}
    for tensor in graph.inputs:
        name = graph.name_of(tensor)
        declared = [_said(extents, name, axis, tensor) for axis in range(len(tensor.shape))]
        known[tensor.index] = replace(tensor, shape=extents.shape(name, declared))
    extents.check_used()

    def current(tensor: Tensor) -> Tensor:
        return known.get(tensor.index, tensor)

    operators = [
        replace(one, inputs=tuple(None if tensor is None else current(tensor) for tensor in one.inputs))
        for one in graph.operators
    ]
    tensors, inputs, outputs = (tuple(map(current, of)) for of in (graph.tensors, graph.inputs, graph.outputs))
    return replace(graph, tensors=tensors, operators=tuple(operators), inputs=inputs, outputs=outputs)


def _said(extents: Extents, name: str, axis: int, tensor: Tensor) -> int | str:
    """Nothing, for what is to be looked up; else the extent of the file."""
    is_open = _declared(tensor)[axis] == ""
    is_said = f"{name}:{axis}" in extents.dims or (axis == 0 and extents.batch != _BATCH)
    return "" if is_open and is_said else tensor.shape[axis]
