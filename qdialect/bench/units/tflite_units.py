"""A .tflite network cut at its quantized tensors, as `onnx_units` cuts an ONNX network."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flatbuffers import Builder

from qdialect.bench.frameworks import Array
from qdialect.bench.truth.tflite_node import is_quantized, traced_name
from qdialect.bench.units import Cut
from qdialect.frontends import frameworks
from qdialect.frontends.tflite.flatbuffer.model import Graph, Operator, Tensor
from qdialect.frontends.tflite.flatbuffer.reader import read_graph

_IDENTIFIER = b"TFL3"


@dataclass(frozen=True)
class TfliteNetwork:
    """A `Network` of a .tflite file: its first subgraph."""

    content: bytes
    graph: Graph

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(map(traced_name, self.graph.inputs))

    @property
    def quantized(self) -> tuple[str, ...]:
        return tuple(map(traced_name, _quantized(self.graph)))

    def write_exposed(self, path: Path, sample: Sequence[Array]) -> None:
        del sample
        model, subgraph = _editable(self.content)
        subgraph.outputs = [*subgraph.outputs, *(tensor.index for tensor in _quantized(self.graph))]
        path.write_bytes(_packed(model))

    def write_units(self, path: Path, tensors: Mapping[str, Array]) -> Cut:
        del tensors
        model, subgraph = _editable(self.content)
        needed = _needed(self.graph)
        subgraph.operators = [subgraph.operators[operator.index] for operator in needed]
        read = [tensor for operator in needed for tensor in operator.inputs if tensor]
        ends = _quantized(self.graph)
        given = [tensor for tensor in (*self.graph.inputs, *ends) if tensor in read]
        copies = {tensor.index: _copied(subgraph, tensor.index) for tensor in given if tensor in ends}
        for operator in subgraph.operators:
            operator.inputs = [copies.get(index, index) for index in operator.inputs]
        subgraph.inputs = [copies.get(tensor.index, tensor.index) for tensor in given]
        subgraph.outputs = [tensor.index for tensor in ends]
        path.write_bytes(_packed(model))
        integer = [traced_name(tensor) for tensor in ends if _is_integer(needed, tensor)]
        return Cut(tuple(map(traced_name, given)), tuple(integer))


def load(path: Path) -> TfliteNetwork:
    """The network of a .tflite file."""
    content = path.read_bytes()
    return TfliteNetwork(content, read_graph(content))


def _quantized(graph: Graph) -> list[Tensor]:
    return [tensor for operator in graph.operators for tensor in operator.outputs if is_quantized(tensor)]


def _needed(graph: Graph) -> list[Operator]:
    """The operators that quantized tensors depend on, in their order."""
    wanted, kept = {tensor.index for tensor in _quantized(graph)}, list[Operator]()
    for operator in reversed(graph.operators):
        if not wanted.isdisjoint(tensor.index for tensor in operator.outputs):
            kept.append(operator)
            wanted.update(tensor.index for tensor in operator.inputs if tensor)
    return kept[::-1]


def _is_integer(operators: Sequence[Operator], end: Tensor) -> bool:
    """Whether no tensor of the unit is f32: LiteRT then computes it with integer kernels and tables."""
    return all(tensor.element != "f32" for operator in _unit(operators, end) for tensor in operator.inputs if tensor)


def _unit(operators: Sequence[Operator], end: Tensor) -> Iterator[Operator]:
    wanted = {end.index}
    for operator in reversed(operators):
        if not wanted.isdisjoint(tensor.index for tensor in operator.outputs):
            wanted.update(tensor.index for tensor in operator.inputs if tensor and not is_quantized(tensor))
            yield operator


def _editable(content: bytes) -> tuple[Any, Any]:
    """The file by the schema's object API, and its first subgraph."""
    schema = frameworks.litert_schema()
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    # Signatures name the inputs and outputs of the whole.
    model.signatureDefs, model.metadata = [], []
    return model, model.subgraphs[0]


def _copied(subgraph: Any, index: int) -> int:
    """Another tensor like that of `index`."""
    tensor = copy.copy(subgraph.tensors[index])
    subgraph.tensors.append(tensor)
    return len(subgraph.tensors) - 1


def _packed(model: Any) -> bytes:
    builder = Builder(0)
    builder.Finish(model.Pack(builder), _IDENTIFIER)
    return bytes(builder.Output())
