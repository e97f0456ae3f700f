"""A quantized .tflite graph in float64: every operator on the numbers that its tensors stand for, with exact functions.

A quantized tensor holds numbers of its scale's grid, to which the exact result is rounded; a dynamic-range operator
rounds its activations to the grid of their range first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from qdialect.bench.frameworks import Array, Runner
from qdialect.bench.truth import NoTruthError, traced
from qdialect.bench.truth.tflite_functions import FUNCTIONS, PRODUCTS
from qdialect.bench.truth.tflite_lstm import LSTMS
from qdialect.bench.truth.tflite_node import DTYPES, Node, is_quantized, numbers, on_grid, rounded, stored, traced_name
from qdialect.frontends.tflite.flatbuffer.model import Graph, Operator, Tensor
from qdialect.frontends.tflite.flatbuffer.reader import LOOP, read_graph
from qdialect.frontends.tflite.folding import fold_constants

_OPERATORS = {**FUNCTIONS, **LSTMS, **PRODUCTS}


def load(path: str) -> Runner:
    """The model at `path`, whose outputs are float64; raises `NoTruthError` for an operator without an evaluator."""
    return in_double(read_graph(Path(path).read_bytes()))


def in_double(graph: Graph) -> Runner:
    """The same of a graph in memory, without what only computes shapes."""
    graph = fold_constants(graph, unrolls=False)
    graphs = {**graph.others, graph.subgraph: graph}
    for one in graphs.values():
        unknown = sorted({operator.kind for operator in one.operators} - _OPERATORS.keys() - {LOOP})
        if unknown:
            raise NoTruthError(f"{unknown[0]} has no evaluator in float64")

    def run(inputs: Sequence[Array]) -> list[Array]:
        given = [numbers(tensor, array) for tensor, array in zip(graph.inputs, inputs, strict=True)]
        found = _run(graph, given, graphs)
        return [stored(tensor, one) for tensor, one in zip(graph.outputs, found, strict=True)]

    return run


def _run(graph: Graph, given: Sequence[Array], graphs: Mapping[int, Graph]) -> list[Array]:
    values = {tensor.index: array for tensor, array in zip(graph.inputs, given, strict=True)}

    def value(tensor: Tensor | None) -> Array | None:
        if tensor is None:
            return None
        if tensor.index not in values and tensor.data is not None:
            values[tensor.index] = numbers(tensor, tensor.data)
        # A variable tensor is zero at first.
        return values.get(tensor.index, np.zeros(tensor.shape))

    for operator in graph.operators:
        arrays = [value(tensor) for tensor in operator.inputs]
        results = _loop(operator, arrays, graphs) if operator.kind == LOOP else _evaluated(operator, arrays)
        for tensor, result in zip(operator.outputs, results, strict=True):
            values[tensor.index] = _kept(tensor, result, is_traced=graph.subgraph == 0)
    found = [value(tensor) for tensor in graph.outputs]
    return [array for array in found if array is not None]


def _evaluated(operator: Operator, arrays: Sequence[Array | None]) -> list[Array]:
    return list(_OPERATORS[operator.kind](Node(operator, tuple(arrays))))


def _loop(operator: Operator, arrays: Sequence[Array | None], graphs: Mapping[int, Graph]) -> list[Array]:
    condition, body = operator.options("CondSubgraphIndex", "BodySubgraphIndex")
    held = [array for array in arrays if array is not None]
    while bool(_run(graphs[condition], held, graphs)[0].all()):
        held = _run(graphs[body], held, graphs)
    return held


def _kept(tensor: Tensor, exact: Array, *, is_traced: bool) -> Array:
    """An operator's result as a tensor holds it."""
    if not (is_traced and is_quantized(tensor)):
        return on_grid(tensor, exact)
    positions, values = rounded(tensor, exact)
    return numbers(tensor, traced(traced_name(tensor), positions, values.astype(DTYPES[tensor.element])))
