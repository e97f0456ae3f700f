"""LiteRT: its reference kernels for results, its default delegate for times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from flatbuffers import Builder

from qdialect.bench.frameworks import Array, Runner, imported
from qdialect.frontends import frameworks
from qdialect.frontends.tflite.division import extract
from qdialect.frontends.tflite.flatbuffer.model import Graph, Operator
from qdialect.frontends.tflite.flatbuffer.reader import read_graph

PACKAGE = "ai_edge_litert.interpreter"


def load(path: str) -> Runner:
    """An interpreter of the model with the reference kernels, as far as there are such."""
    content = Path(path).read_bytes()
    try:
        return _kernels(content, is_reference=True)
    # Some operators, ELU among them, are not among the reference kernels.
    except ValueError:
        return _segments(content)


def _kernels(content: bytes, *, is_reference: bool) -> Runner:
    """A model by the reference kernels, or by the optimized ones; raises `ValueError` where one is missing."""
    package = imported(PACKAGE)
    kinds = package.OpResolverType
    kind = kinds.BUILTIN_REF if is_reference else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = package.Interpreter(model_content=content, experimental_op_resolver_type=kind, num_threads=1)
    interpreter.allocate_tensors()
    sources = [details["index"] for details in interpreter.get_input_details()]
    results = [details["index"] for details in interpreter.get_output_details()]

    def run(inputs: Sequence[Array]) -> list[Array]:
        for index, array in zip(sources, inputs, strict=True):
            interpreter.set_tensor(index, array)
        interpreter.reset_all_variables()
        interpreter.invoke()
        return [interpreter.get_tensor(index) for index in results]

    return run


@dataclass(frozen=True)
class _Segment:
    """Consecutive operators in an interpreter of their own; tensors are called by their numbers in the file."""

    inputs: Sequence[int]
    outputs: Sequence[int]
    run: Runner


def _segments(content: bytes) -> Runner:
    """A model some of whose operators have no reference kernel: those alone are run by the optimized kernels.

    Raises `ValueError` where LiteRT has no kernel at all for an operator.
    """
    graph = read_graph(content)
    has_reference = {kind: _has_reference(content, kind, graph) for kind in {one.kind for one in graph.operators}}
    parts = groupby(graph.operators, lambda operator: has_reference[operator.kind])
    segments = [_segment(content, graph, list(part), is_reference=is_known) for is_known, part in parts]
    sources, results = ([tensor.index for tensor in ends] for ends in (graph.inputs, graph.outputs))

    def run(inputs: Sequence[Array]) -> list[Array]:
        values = dict(zip(sources, inputs, strict=True))
        for segment in segments:
            found = segment.run([values[index] for index in segment.inputs])
            values.update(dict(zip(segment.outputs, found, strict=True)))
        return [values[index] for index in results]

    return run


def _has_reference(content: bytes, kind: str, graph: Graph) -> bool:
    """Whether the first operator of a kind has a reference kernel."""
    first = next(operator for operator in graph.operators if operator.kind == kind)
    try:
        _segment(content, graph, [first], is_reference=True)
    except ValueError:
        return False
    return True


def _segment(content: bytes, graph: Graph, operators: Sequence[Operator], *, is_reference: bool) -> _Segment:
    made = {tensor.index for operator in operators for tensor in operator.outputs}
    own = {operator.index for operator in operators}
    known = {tensor.index for tensor in graph.inputs}
    known |= {tensor.index for operator in graph.operators for tensor in operator.outputs}
    read = dict.fromkeys(tensor.index for operator in operators for tensor in operator.inputs if tensor)
    later = {tensor.index for tensor in graph.outputs}
    later |= {tensor.index for one in graph.operators if one.index not in own for tensor in one.inputs if tensor}
    inputs = [index for index in read if index in known - made]
    outputs = sorted(made & later)
    part = _with_own_kinds(extract(content, sorted(own), inputs, outputs, {}, {}))
    return _Segment(inputs, outputs, _kernels(part, is_reference=is_reference))


def _with_own_kinds(content: bytes) -> bytes:
    """The same without the names of operators that it does not have, of which LiteRT would want the kernels too."""
    schema = frameworks.litert_schema()
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    used = {operator.opcodeIndex for subgraph in model.subgraphs for operator in subgraph.operators}
    kinds = model.operatorCodes
    model.operatorCodes = [kind if index in used else kinds[min(used)] for index, kind in enumerate(kinds)]
    builder = Builder(len(content))
    builder.Finish(model.Pack(builder), content[4:8])
    return bytes(builder.Output())
