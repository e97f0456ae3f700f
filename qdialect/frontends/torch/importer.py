"""From a quantized PyTorch program to a `qnn` module with PyTorch's own arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile, zip_longest
from typing import TYPE_CHECKING, cast

import numpy as np

from qdialect.dialect.type_constraints import NUMPY_DTYPES, SMALL_FLOATS
from qdialect.frontends.building import checks
from qdialect.frontends.building.extents import NO_DIMS, Dims, Extents
from qdialect.frontends.planning import tensors
from qdialect.frontends.planning.block_weights import BlockQuantized
from qdialect.frontends.planning.elementwise import element_type
from qdialect.frontends.planning.emitter import Planned, Value, module_of
from qdialect.frontends.planning.planner import Planner, Result
from qdialect.frontends.torch.archive import read_archive
from qdialect.frontends.torch.archive.members import shown
from qdialect.frontends.torch.decomposition import Decomposition, decompose, is_of_one_form, rounds_parts
from qdialect.frontends.torch.operators import Call, is_supported, planner_of
from qdialect.frontends.torch.operators.tensors import Quantized, RunTimeQuantized, RunTimeScale
from qdialect.frontends.torch.program.folding import FOLDABLE, fold
from qdialect.frontends.torch.program.functionalization import is_in_place
from qdialect.frontends.torch.program.model import UNKNOWN, Element, Graph, Node, Output, held_element
from qdialect.frontends.torch.program.reader import read_program
from qdialect.ir._mlir import ir
from qdialect.support.diagnostics import ImportModelError, QDialectError
from qdialect.support.options import check_choice

if TYPE_CHECKING:
    from torch.export import ExportedProgram

_ELEMENTS = ("i1", "i8", "ui8", "i16", "i32", "i64", "f32", "f16", "bf16")
_NAME = "program"
# PyTorch records other types for the parameters than it computes, and for ops that take one of them.
_MISNOTED = ("quantized_decomposed.choose_qparams_per_token", "getitem")
# Values and evaluations: far more than networks need, far fewer than one for each pair of nodes.
_MIN_STEPS = 1000
_STEPS_PER_NODE = 16
# Tensors between a dequantization and a quantization, which ask each other for what they hold.
_MAX_DEPTH = 64


_UNKNOWN_OUTPUT = Output((), UNKNOWN)


def import_torch(
    source: ExportedProgram | checks.Source,
    context: ir.Context | None = None,
    *,
    trust: bool = False,
    batch: int = 1,
    dims: Dims = NO_DIMS,
) -> ir.Module:
    """A verified module with one public function ``@main`` from an exported program that PT2E quantized.

    `source` is what `torch.export.export` gives for a model after ``convert_pt2e``, the path of an archive that
    `torch.export.save` wrote (``.pt2``), or its content.  Arguments and results keep the program's order, shapes and
    types; their attribute is `qnn.name`.  Operators between ``dequantize`` and ``quantize`` become integer ops and
    tables; the others run in float32.  Every op is located at the name of the node that it computes.

    Extents that inputs leave open (`dynamic_shapes` of `torch.export.export`) are `batch` where they stand first, and
    otherwise `dims` by their name in the program or as ``INPUT:AXIS``.

    Nothing in an archive is run unless `trust` is set; then PyTorch reads it, and it may run any code.

    Raises `ImportModelError` for a damaged archive, one that cannot be read without `trust`, for extents that stay
    open, where the package `torch` is not installed, and for a program with nodes that the dialect cannot express; then
    every such node is a note.
    """
    extents = Extents(batch, dims)
    graph, name = read_graph(source, extents, trust=trust)
    return module_of(_planned(graph, name, extents.hints()), name, context)


def nodes_of(
    source: ExportedProgram | checks.Source, *, trust: bool = False, batch: int = 1, dims: Dims = NO_DIMS
) -> tuple[checks.GraphNode, ...]:
    """The nodes of a program, supported or not; raises `ImportModelError` for one that cannot be read."""
    graph, _ = read_graph(source, Extents(batch, dims), trust=trust)
    return tuple(checks.GraphNode(node.title, node.kind, node.refs(), (node.name,)) for node in graph.nodes)


def read_graph(source: ExportedProgram | checks.Source, extents: Extents, *, trust: bool) -> tuple[Graph, str]:
    """The graph of a program, supported or not, and what messages call it; raises `ImportModelError`.

    `extents` sets the extents that inputs leave open.
    """
    check_choice("trust", trust, (True, False))
    if not isinstance(source, checks.Source):
        if not hasattr(source, "graph_signature"):
            wanted = "torch.export.export(model.eval(), example_inputs), or the path or content of its archive"
            raise ImportModelError(f"source must be {wanted}, but got {type(source).__name__}")
        return read_program(source, extents), _NAME
    content, name = checks.content_of(source, "model.pt2")
    try:
        return read_archive(content, extents, trust=trust), name
    except ImportModelError as error:
        raise type(error)(f"'{name}': {error.message}") from error


def import_graph(graph: Graph, name: str, context: ir.Context | None = None) -> ir.Module:
    """The module of a graph, as `import_torch`; `name` is what messages call it."""
    return module_of(_planned(graph, name), name, context)


def _planned(graph: Graph, name: str, hints: Sequence[str] = ()) -> Planned:
    """The plan of a graph, whose buffers that are written to are states; raises as `planned`."""
    checks.refuse(name, [graph.entangled] if graph.entangled else [], hints)
    found = TorchPlanner(graph.opened(), name).run(hints)
    written = enumerate(graph.written, len(graph.outputs))
    return replace(found, states={one: checks.State(result, graph.constants[one]) for result, one in written})


class TorchPlanner(Planner[Node]):
    """Plans a graph of PyTorch operators."""

    def __init__(self, graph: Graph, name: str) -> None:
        size = sum(array.nbytes for array in graph.constants.values())
        limit = _MIN_STEPS + _STEPS_PER_NODE * len(graph.nodes)
        super().__init__(name, _ELEMENTS, tensors.Plan(budget=checks.Budget.of_file(size), limit=limit))
        self._graph = graph
        inputs = {tensor.name: Output(tensor.shape, tensor.element) for tensor in graph.inputs}
        constants = {name: _output_of(array) for name, array in graph.constants.items()}
        self._tensors = {**inputs, **constants, **{node.name: node.outputs[0] for node in graph.nodes if node.outputs}}
        self._taken = _taken(live_nodes(graph))
        # How many tensors wait for each other until one is quantized.
        self._depths: dict[str, int] = {}
        self._wide: dict[tensors.Constant, tensors.Constant] = {}
        """By constants of small floats: the same numbers in f32."""

    def run(self, hints: Sequence[str] = ()) -> Planned:
        """The plan of the graph; raises as `planned`."""
        graph = self._graph
        return self.planned(graph.inputs, graph.constants, live_nodes(graph), graph.outputs, hints)

    def judge(self) -> Planned:
        """The plan as far as there is one, as `judged`."""
        graph = self._graph
        return self.judged(graph.inputs, graph.constants, live_nodes(graph), graph.outputs)

    def reads(self, node: Node) -> Sequence[str]:
        return node.refs()

    def gives(self, node: Node) -> Sequence[str]:
        return (node.name,)

    def check_operator(self, node: Node) -> None:
        if not is_supported(node.kind):
            for part in self._decomposed(node).nodes:
                self.check_operator(part)

    def types_of(self, node: Node) -> Sequence[checks.Interface]:
        (output,) = node.outputs if len(node.outputs) == 1 else (None,)
        return (checks.Interface(node.name, output.shape, output.element),) if output is not None else ()

    def results_of(self, node: Node) -> Mapping[str, Result]:
        self._check_small(node)
        inputs = {name: self._in_f32(found) for name in node.refs() if (found := self.results[name]) is not None}
        plain = _in_f32(node)
        try:
            if node.kind.startswith(_IN_COMMON_TYPE):
                plain, inputs = self._in_common_type(plain, inputs)
            return {node.name: self._as_noted(node, self._bounded(plain, self._result(node, plain, inputs)))}
        except (checks.UnsupportedError, QDialectError):
            raise
        except Exception as error:
            # Arguments come from a file, and may cause any exception.
            reason = shown(f"{type(error).__name__}: {error}")
            raise checks.UnsupportedError(f"arguments must be such as the operator takes ({reason})") from error

    def _check_small(self, node: Node) -> None:
        """Raise `UnsupportedError` where PyTorch's kernel for small floats does something of its own."""
        own = next((reason for kind, reason in _OWN_KERNELS.items() if node.kind.startswith(kind)), "")
        read = [result for name in node.refs() if not isinstance(result := self.results[name], tuple | None)]
        found = next((element for one in read if (element := element_type(one)) in SMALL_FLOATS), "")
        checks.require(not own or not found, f"operand must not be {found}: {own}")

    def _in_f32(self, result: Result) -> Result:
        """The operands of a node: small floats as the f32 numbers that they are."""
        if isinstance(result, tuple):
            return tuple(cast("tensors.Tensor", self._in_f32(part)) for part in result)
        if isinstance(result, tensors.Constant):
            is_small = held_element(result.array) in SMALL_FLOATS
            return self._widened(result) if is_small else result
        return (
            tensors.in_f32(self.plan, result)
            if isinstance(result, Value) and result.element in SMALL_FLOATS
            else result
        )

    def _in_common_type(self, node: Node, inputs: Mapping[str, Result]) -> tuple[Node, dict[str, Result]]:
        """A node whose numbers and scalars become small floats, where the other tensors that it reads are such."""
        results = {name: result for name in inputs if not isinstance(result := self.results[name], tuple | None)}
        found = {element_type(result) for result in results.values() if result.shape}
        element = found.pop() if len(found) == 1 else ""
        if element not in SMALL_FLOATS:
            return node, dict(inputs)
        to = NUMPY_DTYPES[element].type
        arguments = {
            name: float(to(value)) if isinstance(value, int | float) and not isinstance(value, bool) else value
            for name, value in node.arguments.items()
        }
        scalars = {name: result for name, result in results.items() if element_type(result) == "f32"}
        rounded = {name: self._in_f32(self._rounded(node, result, element)) for name, result in scalars.items()}
        return replace(node, arguments=arguments), {**inputs, **rounded}

    def _widened(self, constant: tensors.Constant) -> tensors.Constant:
        if constant not in self._wide:
            self.plan.budget.spend_constant(constant.shape, np.dtype(np.float32).itemsize)
            self._wide[constant] = tensors.Constant(constant.array.astype(np.float32))
        return self._wide[constant]

    def _as_noted(self, node: Node, result: Result) -> Result:
        """The result of a node that was computed in f32, in the types that PyTorch gives it."""
        if isinstance(result, tuple):
            pairs = zip_longest(result, node.outputs[: len(result)], fillvalue=_UNKNOWN_OUTPUT)
            return tuple(self._rounded(node, cast("tensors.Tensor", part), output.element) for part, output in pairs)
        return self._rounded(node, result, node.outputs[0].element if node.outputs else UNKNOWN)

    def _rounded(self, node: Node, tensor: tensors.Tensor, element: str) -> tensors.Tensor:
        # Packed weights stay as they are: they are nearer to what was quantized than numbers rounded to 8 bits.
        is_so = isinstance(tensor, Value) and tensor.element == element
        if element not in SMALL_FLOATS or is_so or isinstance(tensor, BlockQuantized):
            return tensor
        array = tensors.known_array(tensor)
        if array is not None:
            self.plan.budget.spend_constant(array.shape, NUMPY_DTYPES[element].itemsize)
            with np.errstate(over="ignore"):
                return tensors.Constant(array.astype(NUMPY_DTYPES[element]))
        assert not isinstance(tensor, tensors.Constant), "it would be known"
        value = tensor.f32(self.plan, node.name) if isinstance(tensor, tensors.F32Tensor) else tensor
        return tensors.in_small_float(self.plan, node.name, value, element)

    def _result(self, original: Node, node: Node, inputs: dict[str, Result]) -> Result:
        if node.kind in FOLDABLE and not _stays_packed(node, inputs):
            constants = {name: tensors.known_array(one) for name, one in inputs.items() if isinstance(one, _FOLDED)}
            arrays = {name: array for name, array in constants.items() if array is not None}
            if len(arrays) == len(inputs):
                return tensors.Constant(fold(node, arrays, self.plan.budget))
        self.plan.budget.spend(sum(map(_constant_bytes, inputs.values())), "constants that the node reads")
        return self._planned_result(original, node, inputs)

    def _planned_result(self, original: Node, node: Node, inputs: dict[str, Result]) -> Result:
        if is_of_one_form(original, self._tensors):
            return self._inlined(self._decomposed(original, is_rounding=True))
        if rounds_parts(original, self._tensors):
            with suppress(checks.UnsupportedError):
                return self._inlined(self._decomposed(original, is_rounding=True))
        if not is_supported(node.kind):
            is_known = all(-1 not in output.shape for output in node.outputs)
            checks.require(is_known, "extents of a result must be known before the program runs, but depend on data")
            return self._inlined(self._decomposed(original))
        call = Call(self.plan, node, inputs, self._tensors, self._taken.get(node.name))
        try:
            result = planner_of(node.kind)(call)
            call.check_read()
            _check_results(node, result)
            return result
        except checks.UnsupportedError as error:
            try:
                return self._inlined(self._decomposed(original))
            except checks.UnsupportedError:
                raise error from None

    def _decomposed(self, node: Node, *, is_rounding: bool = False) -> Decomposition:
        found = decompose(node, self._tensors, is_rounding=is_rounding)
        self.plan.allow(_STEPS_PER_NODE * len(found.nodes))
        self._tensors.update({name: _output_of(array) for name, array in found.constants.items()})
        self._tensors.update({part.name: part.outputs[0] for part in found.nodes})
        self._taken.update(_taken(found.nodes))
        return found

    def _inlined(self, parts: Decomposition) -> Result:
        self.results.update({name: tensors.Constant(array) for name, array in parts.constants.items()})
        first = _needed(parts.nodes, parts.outputs[:1])
        for part in parts.nodes:
            self._inline(part, is_optional=part.name not in first)
        results = [self.results[name] for name in parts.outputs]
        # Results that cannot be had may not be read either.
        given = takewhile(lambda result: result is not None, results)
        found = tuple(result for result in given if result is not None and not isinstance(result, tuple))
        return found[0] if parts.is_single else found

    def _inline(self, part: Node, *, is_optional: bool) -> None:
        self.results[part.name] = None
        if any(self.results[name] is None for name in part.refs()):
            return
        try:
            self.results.update(self.results_of(part))
        except checks.UnsupportedError as error:
            if is_optional:
                return
            raise checks.UnsupportedError(f"is made of {part.kind.removesuffix('.default')}: {error}") from error

    def _bounded(self, node: Node, result: Result) -> Result:
        """`result`, computed in f32 where too many tensors would wait for it."""
        depth = 1 + max((self._depths.get(name, 0) for name in node.refs()), default=0)
        if isinstance(
            result, Quantized | tensors.Computed | tensors.Constant | Value | RunTimeQuantized | RunTimeScale
        ):
            return result
        if depth < _MAX_DEPTH or isinstance(result, tuple):
            self._depths[node.name] = depth
            return result
        return tensors.Computed(result.shape, result.f32(self.plan, node.name))


def _output_of(array: checks.Array) -> Output:
    return Output(array.shape, held_element(array))


# A node that reads or gives small floats computes in f32, as PyTorch's kernels do, and what it gives is rounded once.


_COMPARISONS = ("eq", "ge", "gt", "le", "lt", "ne")
_IN_COMMON_TYPE = tuple(
    f"aten.{name}." for name in ("add", "fmod", "hardshrink", "pow", "remainder", "rsub", "sub", *_COMPARISONS)
)
"""Operators that PyTorch computes in the type of the result; the kernels of others take numbers as float32."""


_OWN_KERNELS = {
    "aten.median.": "PyTorch leaves the order of equal numbers open, and small floats have many",
    "aten.grid_sampler_3d": "PyTorch computes coordinates in this type",
    "quantized_decomposed.choose_qparams_per_token": "PyTorch computes scales in this type",
    "quantized_decomposed._choose_qparams_per_token": "PyTorch computes scales in this type",
    "quantized_decomposed.dequantize_per_channel.": "PyTorch multiplies in the type of the scales",
}


def _wide_element(element: str) -> str:
    return "f32" if element in SMALL_FLOATS else element


def _in_f32(node: Node) -> Node:
    """The node whose operands and results are f32 in place of small floats."""
    outputs = tuple(replace(output, element=_wide_element(output.element)) for output in node.outputs)
    arguments = {
        name: Element(_wide_element(value.name)) if isinstance(value, Element) else value
        for name, value in node.arguments.items()
    }
    return replace(node, outputs=outputs, arguments=arguments)


def _taken(nodes: Sequence[Node]) -> dict[str, set[int]]:
    """Which results of nodes that give several are read."""
    found: dict[str, set[int]] = {}
    for node in nodes:
        if node.kind == "getitem":
            found.setdefault(node.arguments["0"].name, set()).add(node.arguments["1"])
    return found


def live_nodes(graph: Graph) -> list[Node]:
    """The nodes on which results depend, in order, and those that write to memory which others may read."""
    needed = _needed(graph.nodes, (*graph.outputs, *graph.written.values()))
    return [node for node in graph.nodes if node.name in needed]


def _needed(nodes: Sequence[Node], outputs: Sequence[str]) -> set[str]:
    """The names on which `outputs` depend, and all that write to memory."""
    needed = set(outputs)
    for node in reversed(nodes):
        if node.name in needed or is_in_place(node.kind):
            needed.update((node.name, *node.refs()))
    return needed


_FOLDED = tensors.Constant | BlockQuantized
_TRANSPOSING = ("aten.t.default", "aten.transpose.int", "aten.permute.default", "aten.numpy_T.default")
_CONVERTING = ("aten.to.", "aten._to_copy.")


def _stays_packed(node: Node, inputs: Mapping[str, Result]) -> bool:
    """Whether a node changes how constant weights of few bits are seen, and not their numbers: a product reads them."""
    (source, *others) = inputs.values() if inputs else (None,)
    if isinstance(source, BlockQuantized):
        return node.kind in _TRANSPOSING
    is_matrix = isinstance(source, tensors.Constant) and source.array.dtype.itemsize == 1 and source.array.ndim == 2
    return is_matrix and not others and node.kind.startswith(_CONVERTING) and node.outputs[0].element == "f32"


def _constant_bytes(result: Result) -> int:
    """How much of a constant a reader of `result` may copy."""
    if isinstance(result, tuple):
        return sum(map(_constant_bytes, result))
    if isinstance(result, tensors.Constant):
        return result.array.nbytes
    value = result.values if isinstance(result, Quantized) else result
    return value.data.nbytes if isinstance(value, Value) and value.data is not None else 0


def _check_results(node: Node, result: Result) -> None:
    """The front end and PyTorch agree on what the node gives."""
    given = result if isinstance(result, tuple) else (result,)
    for tensor, output in zip(given, node.outputs, strict=False):
        holds = tuple(tensor.shape) == output.shape
        checks.require(holds, f"result must have shape {list(output.shape)}, but got {list(tensor.shape)}")
        element = output.element if node.kind.startswith(_MISNOTED) else _element_of(tensor)
        checks.require(
            output.element in (element, UNKNOWN), f"result must be {output.element}, but {element} is computed"
        )


def _element_of(tensor: tensors.Tensor) -> str:
    if isinstance(tensor, tensors.Constant):
        return held_element(tensor.array)
    return "float64" if isinstance(tensor, RunTimeScale) else element_type(tensor)
