"""STABLEHLO_COMPOSITE: an operator with a name of its own, and a subgraph that says what it computes.

Exporters of PyTorch models write them for normalizations and attention.  The nodes of the subgraph take its location.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from qdialect.frontends.tflite.model import Graph, Operator, Tensor

if TYPE_CHECKING:
    from qdialect.frontends.tflite.folding import Folding

_MAX_DEPTH = 8
"""Of composites within composites."""


def inline(folding: Folding, operator: Operator, depth: int = 0) -> bool:
    """Fold the nodes of a decomposition instead of its composite; false, with nothing done, for any other node."""
    body = None if operator.decomposition is None else folding.source.others.get(operator.decomposition)
    if body is None or depth > _MAX_DEPTH or not _fits(operator, body):
        return False
    own = {tensor.index: folding.fresh(tensor) for tensor in body.tensors if tensor.data is not None}
    own.update(zip(_indices(body.inputs), (tensor for tensor in operator.inputs if tensor is not None), strict=True))
    # A result that the body passes on is defined at the end.
    pairs = list(zip(body.outputs, operator.outputs, strict=True))
    own.update((inner.index, outer) for inner, outer in reversed(pairs) if inner.index not in own)

    def tensor_of(tensor: Tensor) -> Tensor:
        if tensor.index not in own:
            own[tensor.index] = folding.fresh(tensor)
        return own[tensor.index]

    for part in body.operators:
        inputs = tuple(None if tensor is None else folding.known(tensor_of(tensor)) for tensor in part.inputs)
        moved = replace(part, index=operator.index, inputs=inputs, outputs=tuple(map(tensor_of, part.outputs)))
        if not inline(folding, moved, depth + 1):
            folding.add(moved)
    for inner, outer in pairs:
        if own[inner.index] is not outer:
            folding.define(outer, folding.known(own[inner.index]))
    return True


def _indices(tensors: Iterable[Tensor]) -> list[int]:
    return [tensor.index for tensor in tensors]


def _fits(operator: Operator, body: Graph) -> bool:
    """Whether the node gives and takes what its decomposition does."""
    counts = (len(operator.inputs), len(operator.outputs)) == (len(body.inputs), len(body.outputs))
    shapes = [(outer.shape, outer.element) for outer in operator.inputs if outer is not None]
    return counts and shapes == [(inner.shape, inner.element) for inner in body.inputs]
