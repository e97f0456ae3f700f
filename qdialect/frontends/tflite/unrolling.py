"""WHILE whose trip count is known: its condition reads integers that are all known before every trip.

Such are the loops that Keras makes of recurrent layers.  What the trips compute takes the loop's place, node by node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import tflite

from qdialect.diagnostics import ImportModelError
from qdialect.frontends.common import UnsupportedError, converting
from qdialect.frontends.tflite.model import Graph, Operator, Tensor
from qdialect.frontends.tflite.operators import plan
from qdialect.frontends.tflite.reader import LOOP, read_options

if TYPE_CHECKING:
    from qdialect.frontends.tflite.folding import Folding

MAX_TRIPS = 256
_MAX_NODES = 20_000
"""Of all trips of a loop."""


def unroll(folding: Folding, operator: Operator) -> bool:
    """Fold the trips of a loop instead of the loop; false, with nothing done, where that cannot be."""
    graph = folding.source
    try:
        subgraphs = read_options(
            operator, tflite.WhileOptions, lambda o: (o.CondSubgraphIndex(), o.BodySubgraphIndex())
        )
    except ImportModelError:
        return False
    condition, body = (graph.others.get(index) for index in subgraphs)
    if condition is None or body is None or not _fits(graph, operator, condition, body):
        return False
    trial = len(folding.kept)
    parts = _Part.of(folding, operator, condition), _Part.of(folding, operator, body)
    start = [folding.known(tensor) for tensor in operator.inputs if tensor is not None]
    try:
        with converting():
            values = _trips(folding, *parts, start)
    except (UnsupportedError, ImportModelError):
        values = None
    needed = [] if values is None else _needed(folding.kept[trial:], values)
    if values is None or not all(map(_is_supported, needed)):
        del folding.kept[trial:]
        return False
    folding.kept[trial:] = needed
    for output, value in zip(operator.outputs, values, strict=True):
        folding.define(output, value)
    return True


def _fits(graph: Graph, operator: Operator, condition: Graph, body: Graph) -> bool:
    """Whether every value goes around, none of them is a result of the graph, and no loop is inside."""
    count = len(operator.inputs)
    counts = (len(operator.outputs), len(condition.inputs), len(body.inputs), len(body.outputs))
    results = {tensor.index for tensor in graph.outputs}
    return (
        None not in operator.inputs
        and set(counts) == {count}
        and len(condition.outputs) == 1
        and not any(tensor.index in results for tensor in operator.outputs)
        and not any(inner.kind == LOOP for part in (condition, body) for inner in part.operators)
        and len(body.operators) * 2 <= _MAX_NODES
    )


@dataclass(frozen=True)
class _Part:
    """A subgraph of a loop, and the tensors that stand for its constants in every trip."""

    graph: Graph
    loop: int
    """The index of the loop's node, under which its trips are reported."""
    constants: Mapping[int, Tensor]

    @classmethod
    def of(cls, folding: Folding, operator: Operator, graph: Graph) -> _Part:
        """That of a loop's node."""
        held = (tensor for tensor in graph.tensors if tensor.data is not None)
        return cls(graph, operator.index, {tensor.index: folding.fresh(tensor) for tensor in held})


def _is_supported(operator: Operator) -> bool:
    try:
        with converting():
            plan(operator)
    except (UnsupportedError, ImportModelError):
        return False
    return True


def _trips(folding: Folding, condition: _Part, body: _Part, values: list[Tensor]) -> list[Tensor] | None:
    """The values after the last trip; None where there are too many, or nobody knows how many."""
    limit = min(MAX_TRIPS, _MAX_NODES // max(len(body.graph.operators), 1))
    for _ in range(limit + 1):
        before = len(folding.kept)
        verdict = _inlined(folding, condition, values)[0]
        if verdict.data is None or verdict.data.size != 1 or len(folding.kept) > before:
            return None
        if not verdict.data.all():
            return values
        values = _inlined(folding, body, values)
    return None


def _inlined(folding: Folding, part: _Part, values: Sequence[Tensor]) -> list[Tensor]:
    """Fold the nodes of a subgraph with `values` for its inputs; its outputs."""
    given = {tensor.index: value for tensor, value in zip(part.graph.inputs, values, strict=True)}
    own = {**part.constants, **given}

    def tensor_of(tensor: Tensor) -> Tensor:
        if tensor.index not in own:
            own[tensor.index] = folding.fresh(tensor)
        return folding.known(own[tensor.index])

    for operator in part.graph.operators:
        inputs = tuple(None if tensor is None else tensor_of(tensor) for tensor in operator.inputs)
        outputs = tuple(tensor_of(tensor) for tensor in operator.outputs)
        arguments = replace(operator, index=part.loop, inputs=inputs, outputs=outputs)
        taken = folding.row_slices.taken(arguments, folding.fresh)
        if taken is not None:
            folding.add(taken)
    return [tensor_of(tensor) for tensor in part.graph.outputs]


def _needed(operators: Sequence[Operator], values: Sequence[Tensor]) -> list[Operator]:
    """The nodes that `values` depend on."""
    read = {tensor.index for tensor in values}
    kept: list[Operator] = []
    for operator in reversed(operators):
        if any(tensor.index in read for tensor in operator.outputs):
            read.update(tensor.index for tensor in operator.inputs if tensor is not None)
            kept.append(operator)
    return kept[::-1]
