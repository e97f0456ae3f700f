"""From an .onnx model to a `qnn` module with the arithmetic of ONNX Runtime."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from qdialect.arithmetic.profiles import ONNX_PROFILES, ORT
from qdialect.dialect.type_constraints import NUMPY_DTYPES, SMALL_FLOATS
from qdialect.frontends.building import checks
from qdialect.frontends.building.extents import NO_DIMS, Dims, Extents
from qdialect.frontends.onnx import inlining
from qdialect.frontends.onnx.double_pairs import join_double_pairs
from qdialect.frontends.onnx.float_weights import ContractionConstants
from qdialect.frontends.onnx.folding import MOVEMENTS, folded, folded_shape, is_evaluated, sum_of_nothing
from qdialect.frontends.onnx.model import Attributes, Graph, Node
from qdialect.frontends.onnx.operators import Call, planner_of
from qdialect.frontends.onnx.qdq_groups import GroupKernel, group_kernels
from qdialect.frontends.onnx.reader import read_graph, read_proto
from qdialect.frontends.onnx.schema import check_attributes, check_inputs, check_read, inferred
from qdialect.frontends.planning.emitter import Planned, module_of
from qdialect.frontends.planning.planner import Planner, Result
from qdialect.frontends.planning.tensors import Constant, Plan, Tensor, is_known, known_array
from qdialect.ir._mlir import ir
from qdialect.support.diagnostics import ImportModelError

if TYPE_CHECKING:
    import onnx

_F32 = 1
"""The number of the type in the schema."""
_ELEMENTS = ("i1", "i8", "ui8", "i16", "ui16", "i32", "i64", "f32", "f16", "bf16")

_CHOICE = "condition '{0}' is known at run time: --branch {0}=0 or {0}=1 chooses the branch"
_SMALL = tuple(NUMPY_DTYPES[name] for name in SMALL_FLOATS)
_TAKES_NOTHING = ("Expand", "Gather", "Pad", "Resize", "Tile", "TopK", "Upsample")
"""Operators that may give no elements of a tensor that has some."""


def import_onnx(
    source: checks.Source,
    context: ir.Context | None = None,
    *,
    profile: str = ORT.name,
    batch: int = 1,
    dims: Dims = NO_DIMS,
    branches: inlining.Branches = inlining.NO_BRANCHES,
) -> ir.Module:
    """A verified module with one public function ``@main`` from an .onnx file, or from its content.

    `profile` states how f32 values are multiplied by packed weights: by the accuracy level of each MatMulNBits and
    else in f32 (``ort``), in f32 everywhere (``ort-accuracy-0``), or everywhere rounded to 8 bits in blocks
    (``ort-accuracy-4``), as ONNX Runtime's default optimization does it behind a DequantizeLinear.

    Arguments and results keep the model's order, shapes and types; their attribute is `qnn.name`.  Extents that the
    model leaves open are looked up in `dims`, by their name or as ``INPUT:AXIS``; a first one that is not there is
    `batch`.  Operators between DequantizeLinear and QuantizeLinear become the integer ops that ONNX Runtime's default
    optimization makes of them.  Every op is located at the name of the tensor it computes.  `branches` are values of
    conditions of If nodes, by name.

    Raises `ImportModelError` for a file that is damaged or lacks its external data, for extents that stay open, where
    the package `onnx` is not installed, and for a model with nodes that the dialect cannot express; then every such
    node is a note.
    """
    extents = Extents(batch, dims)
    read = read_model(source, extents, branches)
    checks.check_profile(profile, tuple(ONNX_PROFILES))
    planner = OnnxPlanner(read.graph, read.name, read.size, profile)
    try:
        return module_of(planner.run(extents.hints()), read.name, context)
    finally:
        planner.plan.forget()


@dataclass(frozen=True)
class ReadModel:
    """A model whose functions are inlined and whose known branches are taken, supported or not."""

    proto: onnx.ModelProto
    graph: Graph
    name: str
    """The title of the node in messages."""
    size: int
    """The bytes that its file holds, those of external data among them."""


def nodes_of(
    source: checks.Source, *, batch: int = 1, dims: Dims = NO_DIMS, branches: inlining.Branches = inlining.NO_BRANCHES
) -> tuple[checks.GraphNode, ...]:
    """The nodes of an .onnx file, supported or not; raises `ImportModelError` for one that cannot be read."""
    nodes = read_model(source, Extents(batch, dims), branches).graph.nodes
    return tuple(checks.GraphNode(node.title, node.kind, node.inputs, node.outputs) for node in nodes)


_MOST_CONDITIONS = 4
"""That are known at run time: a network is compiled for every combination of their values."""


def run_time_condition(
    source: Path, *, batch: int, dims: Dims, branches: inlining.Branches
) -> inlining.RunTimeCondition | None:
    """The condition of the first If node whose branch is chosen at run time; None without one, or with too many.

    Raises `ImportModelError` for a file that cannot be read.
    """
    if b"then_branch" not in checks.content_of(source, "model.onnx")[0] or len(branches) == _MOST_CONDITIONS:
        return None
    read = read_model(source, Extents(batch, dims), branches)
    name = inlining.first_condition(read.graph)
    given = {tensor.name: tensor for tensor in read.graph.inputs}
    if name is None or name in given:
        is_one = name is None or math.prod(given[name].shape) == 1
        return inlining.RunTimeCondition(name) if name is not None and is_one else None
    return inlining.RunTimeCondition(name, inlining.computing(read.proto, read.graph, name).SerializeToString())


def read_model(
    source: checks.Source, extents: Extents, branches: inlining.Branches = inlining.NO_BRANCHES
) -> ReadModel:
    """The model of an .onnx file; raises `ImportModelError` for one that cannot be read."""
    content, name = checks.content_of(source, "model.onnx")
    folder = None if isinstance(source, bytes) else Path(source).parent
    try:
        proto = read_proto(content)
        graph = read_graph(proto, folder, extents)
        unused = set(branches)
        while conditions := inlining.known_conditions(
            graph, lambda part, names: _constants(part, names, len(content)), branches
        ):
            unused.difference_update(
                node.inputs[0] for node in graph.nodes if node.outputs[:1] and node.outputs[0] in conditions
            )
            proto = inlining.take_branches(proto, conditions)
            join_double_pairs(proto)
            graph = read_graph(proto, folder, extents)
        if unused:
            raise ImportModelError(f"branches must name conditions of If nodes, but got {', '.join(sorted(unused))}")
    except ImportModelError as error:
        raise type(error)(f"'{name}': {error.message}") from error
    return ReadModel(proto, graph, name, len(content) + sum(array.nbytes for array in graph.constants.values()))


def _constants(graph: Graph, names: Sequence[str], size: int) -> dict[str, checks.Array]:
    """Those of `names` that a graph is known to give."""
    planner = OnnxPlanner(graph, "model.onnx", size)
    planner.judge()
    results = {name: planner.results.get(name) for name in names}
    return {name: result.array for name, result in results.items() if isinstance(result, Constant)}


class OnnxPlanner(Planner[Node]):
    """Plans a graph of ONNX operators; `size` is that of the file, which bounds the constants that are made."""

    takes_empty = True

    def __init__(self, graph: Graph, name: str, size: int, profile: str = ORT.name) -> None:
        plan = Plan(budget=checks.Budget.of_file(size), activations=ONNX_PROFILES[profile])
        super().__init__(name, _ELEMENTS, plan)
        self._graph = graph
        self._kernels: Mapping[int, GroupKernel] = {}
        self._constants: ContractionConstants | None = None

    def run(self, hints: Sequence[str]) -> Planned:
        """The plan of the graph; raises `ImportModelError` for a damaged file, and as `planned`."""
        planned = self.judge()
        checks.refuse(self.name, self.unsupported, hints)
        return planned

    def judge(self) -> Planned:
        """The plan as far as there is one, as `judged`; raises `ImportModelError` for a damaged file."""
        graph = self._graph
        self._check_names()
        self._kernels = group_kernels(graph)
        self._constants = ContractionConstants(graph)
        self.results.update(dict.fromkeys(graph.unsupported))
        for name in graph.outputs:
            if name in graph.unsupported:
                self.unsupported.append(f"output '{name}': {graph.unsupported[name]}")
        return self.judged(graph.inputs, graph.constants, graph.nodes, graph.outputs)

    def reads(self, node: Node) -> Sequence[str]:
        return list(filter(None, node.inputs))

    def gives(self, node: Node) -> Sequence[str]:
        return list(filter(None, node.outputs))

    def check_operator(self, node: Node) -> None:
        for name in node.inputs:
            checks.require(name not in self._graph.unsupported, self._graph.unsupported.get(name, ""))
        if not _asks_for_shape(node):
            planner_of(node.kind)

    def types_of(self, node: Node) -> Sequence[checks.Interface]:
        declared = self._graph.declared
        found = {tensor.name: tensor for tensor in inferred(node, [self._tensor(name) for name in node.inputs])}
        return [*found.values(), *(declared[name] for name in node.outputs if name in declared.keys() - found.keys())]

    def results_of(self, node: Node) -> Mapping[str, Result]:
        inputs = tuple(self._tensor(name) for name in node.inputs)
        known = self._results_of_nothing(node, inputs) if any(map(is_empty, inputs)) else None
        if known is not None:
            return known
        try:
            result = self._result_of(node, inputs)
        except checks.UnsupportedError:
            known = self._empty_results(node) if node.kind in _TAKES_NOTHING else None
            if known is None:
                raise
            return known
        given = result if isinstance(result, tuple) else (result,)
        asked = max(index for index, name in enumerate(node.outputs) if name) + 1
        plural = "" if len(given) == 1 else "s"
        checks.require(asked <= len(given), f"must have {len(given)} output{plural}, but got {asked}")
        return {name: tensor for name, tensor in zip(node.outputs, given, strict=False) if name}

    def _results_of_nothing(self, node: Node, inputs: Sequence[Tensor | None]) -> Mapping[str, Result] | None:
        """The results of a node some of whose inputs have no elements; None where these are to be planned."""
        known = self._empty_results(node)
        if known is not None or len(node.outputs) != 1:
            return known
        (output,) = node.outputs
        rest = [(name, tensor) for name, tensor in zip(node.inputs, inputs, strict=True) if not is_empty(tensor)]
        if node.kind in ("ScatterElements", "ScatterND") and inputs[0] is not None and not is_empty(inputs[0]):
            return {output: inputs[0]}
        if node.kind == "Concat" and rest and inferred(node, inputs):
            joined = replace(node, inputs=tuple(name for name, _ in rest))
            return {output: rest[0][1] or () if len(rest) == 1 else self._result_of(joined, [one for _, one in rest])}
        types = self.types_of(node)
        array = sum_of_nothing(node, types[0]) if types and is_empty(inputs[0]) else None
        return None if array is None else {output: Constant(array)}

    def _empty_results(self, node: Node) -> Mapping[str, Result] | None:
        """The results of a node, where none of them has elements."""
        types = {tensor.name: tensor for tensor in self.types_of(node)}
        found = [types.get(name) for name in node.outputs if name]
        empty = [tensor for tensor in found if tensor is not None and 0 in tensor.shape]
        if not found or len(empty) < len(found):
            return None
        check_attributes(node)
        return {tensor.name: Constant(np.empty(tensor.shape, NUMPY_DTYPES[tensor.element])) for tensor in empty}

    def _result_of(self, node: Node, inputs: Sequence[Tensor | None]) -> Result:
        checks.require(any(node.outputs), "must have at least 1 output")
        check_attributes(node)
        check_inputs(node)
        attributes = Attributes(node.attributes)
        result = self._planned(replace(node, attributes=attributes), inputs)
        check_read(node, attributes)
        return result

    def _planned(self, node: Node, inputs: Sequence[Tensor | None]) -> Result:
        if _asks_for_shape(node) and inputs[0] is not None:
            return Constant(folded_shape(node, inputs[0].shape))
        array = folded(node, self._known_arrays(node, inputs), self.plan.budget)
        if array is not None:
            return Constant(array)
        kernel = self._kernels.get(node.index, GroupKernel.OF_TYPE)
        call = Call(self.plan, node, tuple(inputs), kernel, self._graph.results)
        if inlining.is_branching(node):
            raise checks.UnsupportedError(_CHOICE.format(node.inputs[0]))
        return planner_of(node.kind)(call if self._constants is None else self._constants.read(call))

    def _known_arrays(self, node: Node, inputs: Sequence[Tensor | None]) -> list[checks.Array | None]:
        """The known content of each input; dequantized weights that are moved or kept are left to their readers.

        Weights become f32 where the node is evaluated alone: they are four times as large then.
        """
        keeps = node.kind in MOVEMENTS or (node.kind == "Cast" and node.attributes.get("to") == _F32)
        if any(isinstance(tensor, Constant) and tensor.array.dtype in _SMALL for tensor in inputs):
            return [None for _ in inputs]
        if not is_evaluated(node.kind) or keeps or not all(map(is_known, inputs)):
            return [tensor.array if isinstance(tensor, Constant) else None for tensor in inputs]
        return [known_array(tensor) for tensor in inputs]

    def _tensor(self, name: str) -> Tensor | None:
        result = self.results[name] if name else None
        assert not isinstance(result, tuple)
        return result

    def _check_names(self) -> None:
        """Every name is defined once, before it is read."""
        defined = {*self._graph.constants, *self._graph.unsupported, *(tensor.name for tensor in self._graph.inputs)}
        for node in self._graph.nodes:
            for name in (*self.reads(node), *node.captured):
                self._check(name in defined, f"{node.title} reads '{name}', which nothing before it gives")
            for name in self.gives(node):
                self._check(name not in defined, f"{node.title} gives '{name}', which is given before it")
            defined.update(self.gives(node))
        for name in self._graph.outputs:
            self._check(name in defined, f"nothing gives the output '{name}'")

    def _check(self, holds: bool, what: str) -> None:
        if not holds:
            raise ImportModelError(f"'{self.name}': file is damaged: {what}")


def is_empty(tensor: Tensor | None) -> bool:
    """Whether a tensor has no elements."""
    return tensor is not None and 0 in tensor.shape


def _asks_for_shape(node: Node) -> bool:
    return node.kind in ("Shape", "Size") and len(node.inputs) == len(node.outputs) == 1
