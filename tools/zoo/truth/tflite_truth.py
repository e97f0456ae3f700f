"""A quantized .tflite graph in float64: every operator on the numbers that its tensors stand for, with exact functions.

A quantized tensor holds numbers of its scale's grid, to which the exact result is rounded; a dynamic-range operator
rounds its activations to the grid of their range first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import tflite

from qdialect.frontends.tflite.model import Graph, Operator, Tensor
from qdialect.frontends.tflite.reader import LOOP, read_graph, read_options
from tools.zoo.frameworks.runner import Array, Runner
from tools.zoo.truth import NoTruthError
from tools.zoo.truth.tflite_functions import FUNCTIONS
from tools.zoo.truth.tflite_node import DTYPES, Node, is_quantized, traced_name
from tools.zoo.truth.tflite_products import PRODUCTS
from tools.zoo.truth.tracing import traced

_OPERATORS = {**FUNCTIONS, **PRODUCTS}


def load(path: str) -> Runner:
    """The model at `path`, whose outputs are float64; raises `NoTruthError` for an operator without an evaluator."""
    return in_double(read_graph(Path(path).read_bytes()))


def in_double(graph: Graph) -> Runner:
    """The same of a graph in memory."""
    graphs = {**graph.others, graph.subgraph: graph}
    for one in graphs.values():
        unknown = sorted({operator.kind for operator in one.operators} - _OPERATORS.keys() - {LOOP})
        if unknown:
            raise NoTruthError(f"{unknown[0]} has no evaluator in float64")

    def run(inputs: Sequence[Array]) -> list[Array]:
        given = [_numbers(tensor, array) for tensor, array in zip(graph.inputs, inputs, strict=True)]
        found = _run(graph, given, graphs)
        return [_stored(tensor, one) for tensor, one in zip(graph.outputs, found, strict=True)]

    return run


def _run(graph: Graph, given: Sequence[Array], graphs: Mapping[int, Graph]) -> list[Array]:
    values = {tensor.index: array for tensor, array in zip(graph.inputs, given, strict=True)}

    def value(tensor: Tensor | None) -> Array | None:
        if tensor is None:
            return None
        if tensor.index not in values and tensor.data is not None:
            values[tensor.index] = _numbers(tensor, tensor.data)
        # A variable tensor is zero at first.
        return values.get(tensor.index, np.zeros(tensor.shape))

    for operator in graph.operators:
        arrays = [value(tensor) for tensor in operator.inputs]
        results = _loop(operator, arrays, graphs) if operator.kind == LOOP else _evaluated(operator, arrays)
        for tensor, result in zip(operator.outputs, results, strict=True):
            values[tensor.index] = _on_grid(tensor, result, is_traced=graph.subgraph == 0)
    found = [value(tensor) for tensor in graph.outputs]
    return [array for array in found if array is not None]


def _evaluated(operator: Operator, arrays: Sequence[Array | None]) -> list[Array]:
    return list(_OPERATORS[operator.kind](Node(operator, tuple(arrays))))


def _loop(operator: Operator, arrays: Sequence[Array | None], graphs: Mapping[int, Graph]) -> list[Array]:
    condition, body = read_options(
        operator, tflite.WhileOptions, lambda options: (options.CondSubgraphIndex(), options.BodySubgraphIndex())
    )
    held = [array for array in arrays if array is not None]
    while bool(_run(graphs[condition], held, graphs)[0].all()):
        held = _run(graphs[body], held, graphs)
    return held


def _grid(tensor: Tensor, rank: int) -> tuple[Array, Array]:
    """Scales and zero points, shaped to meet the tensor."""
    shape = [1] * rank
    if len(tensor.scales) > 1:
        shape[tensor.axis] = -1
    return np.array(tensor.scales).reshape(shape), np.array(tensor.zero_points, np.float64).reshape(shape)


def _numbers(tensor: Tensor, array: Array) -> Array:
    """What stored values stand for; integers without scales stand for themselves."""
    if not tensor.scales or tensor.element in ("f32", "i1"):
        return array.astype(np.float64) if array.dtype == np.float32 else array
    scales, zero_points = _grid(tensor, array.ndim)
    return (array.astype(np.float64) - zero_points) * scales


def _stored(tensor: Tensor, numbers: Array) -> Array:
    """The quantized values as float64; numbers where there are none."""
    return _rounded(tensor, numbers)[1] if is_quantized(tensor) else np.asarray(numbers, np.float64)


def _rounded(tensor: Tensor, numbers: Array) -> tuple[Array, Array]:
    """Positions and quantized values of a tensor, rounded half away from zero."""
    scales, zero_points = _grid(tensor, numbers.ndim)
    scaled = numbers / scales
    rounded = np.sign(scaled) * np.floor(np.abs(scaled) + 0.5)
    limits = np.iinfo(DTYPES[tensor.element])
    return scaled + zero_points, np.clip(rounded + zero_points, limits.min, limits.max)


def _on_grid(tensor: Tensor, numbers: Array, *, is_traced: bool) -> Array:
    if not is_quantized(tensor):
        return numbers
    positions, values = _rounded(tensor, numbers)
    if is_traced:
        values = traced(traced_name(tensor), positions, values.astype(DTYPES[tensor.element]))
    return _numbers(tensor, values)
