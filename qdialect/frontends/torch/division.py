"""Divides a PyTorch program, exported or captured by Dynamo, between this compiler and PyTorch's own operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from operator import getitem
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from qdialect.dialect.type_constraints import NUMPY_DTYPES
from qdialect.frontends.building.checks import Array, Interface, Shape, Source
from qdialect.frontends.building.extents import NO_DIMS, Dims, Extents
from qdialect.frontends.frameworks import PYTORCH
from qdialect.frontends.planning import partition
from qdialect.frontends.planning.planner import PlannedDivision
from qdialect.frontends.torch.importer import TorchPlanner, live_nodes, read_graph
from qdialect.frontends.torch.operators.tensors import RunTimeScale
from qdialect.frontends.torch.program import pytorch_operators
from qdialect.frontends.torch.program.dynamo import Lowered
from qdialect.frontends.torch.program.functionalization import is_in_place, written_operand
from qdialect.frontends.torch.program.model import FLOAT8, Element, Graph, Node, Ref, held_element, in_own_memory
from qdialect.frontends.torch.program.reader import read_captured
from qdialect.ir._mlir import ir
from qdialect.support.diagnostics import CompileError, ImportModelError, InputError

if TYPE_CHECKING:
    from torch.export import ExportedProgram


# A PyTorch program divided between this compiler and PyTorch's own operators.

_DEQUANTIZE = "quantized_decomposed.dequantize_"
_QUANTIZE = "quantized_decomposed.quantize_"
_CHANGES = "the program changes memory that it reads again"


class TorchDivision(PlannedDivision):
    """A program, judged node by node with the types that its tracer noted."""

    framework = PYTORCH.name

    def __init__(
        self, source: ExportedProgram | Source | Graph, *, trust: bool = False, batch: int = 1, dims: Dims = NO_DIMS
    ) -> None:
        """Raises `ImportModelError` for a program that cannot be read; `batch` and `dims` as `import_torch`."""
        if isinstance(source, Graph):
            graph, self.name = source, "program"
        else:
            graph, self.name = read_graph(source, Extents(batch, dims), trust=trust)
        self.judged = TorchPlanner(graph.opened(), self.name)
        self.judged.judge()
        nodes, held = live_nodes(graph.opened()), {name: graph.constants[name] for name in graph.written}
        writing = [node for node in nodes if is_in_place(node.kind) and node.title in self.judged.reasons]
        is_narrow = any(held_element(array) in FLOAT8 for array in held.values())
        self._changes = bool(writing or graph.entangled or is_narrow)
        """Whether the program changes memory that it reads again: then PyTorch runs it as a whole."""
        if self._changes:
            self.judged = TorchPlanner(graph, self.name)
            self.judged.judge()
            nodes = live_nodes(graph)
            self.hides_state = bool(held) or any(_is_of(graph, node) for node in writing)
        else:
            self.states = {name: (array, graph.written[name]) for name, array in held.items()}
        self._graph = graph
        names = graph.constants if self._changes else self.judged.results
        self.known = {name: array for name in names if (array := self.array_of(name)) is not None}
        self._nodes = [node for node in nodes if node.name not in self.known]
        self._noted = {node.name: node.outputs for node in self._nodes}
        self.nodes = partition.with_copies(map(self._partition_node, self._nodes))
        self.inputs = [_open(tensor.name, tensor.shape, tensor.element) for tensor in graph.inputs]
        self.outputs = [self._output(name) for name in graph.outputs]
        given = (*graph.outputs, *(result for _, result in self.states.values()))
        held = {name: self.known[name] for name in given if name in self.known}
        narrow = {name: array.astype(np.float32) for name, array in held.items() if array.dtype.name in FLOAT8}
        self.constants = held | narrow

    def module(self, part: partition.Part) -> ir.Module:
        nodes = tuple(self._nodes[index] for index in part.nodes)
        read = {name for node in nodes for name in node.refs()}
        constants = {name: self.known[name] for name in read if name in self.known}
        inputs = {name: self.interface(name) for name in part.inputs}
        unknown = {name: "its type is not known" for name, tensor in inputs.items() if tensor is None}
        if unknown:
            raise partition.PartRefusedError(partition.refused_nodes(part, self.nodes, {}, unknown))
        taken = tuple(tensor for tensor in inputs.values() if tensor is not None)
        planner = TorchPlanner(Graph(nodes, taken, part.outputs, constants), self.name)
        planned = planner.judge()
        return self.module_of(part, planner, planned)

    def runner(self, part: partition.Part, threads: int) -> partition.Runner:
        # How many threads PyTorch takes is the process's.
        del threads
        if self._changes:
            return self._whole_runner(part)
        nodes = [self._nodes[index] for index in part.nodes]
        read = {name for node in nodes for name in node.refs()}
        constants = {name: self.known[name] for name in read if name in self.known}
        elements = {tensor.name: tensor.element for tensor in self._graph.inputs}
        elements |= {name: outputs[0].element for name, outputs in self._noted.items() if len(outputs) == 1}
        return nodes_runner(nodes, part.inputs, part.outputs, constants, elements)

    def _whole_runner(self, part: partition.Part) -> partition.Runner:
        """Of the program, whose inputs and outputs stand in the order of the part."""
        run, graph = whole_runner(self._graph), self._graph
        places = [part.inputs.index(tensor.name) if tensor.name in part.inputs else None for tensor in graph.inputs]
        empty = [np.zeros(tensor.shape, NUMPY_DTYPES.get(tensor.element, np.float32)) for tensor in graph.inputs]

        def call(arrays: Sequence[Array]) -> Sequence[Array]:
            given = [empty[i] if place is None else arrays[place] for i, place in enumerate(places)]
            found = dict(zip(graph.outputs, run(given), strict=True))
            return [found[name] for name in part.outputs]

        return call

    def interface(self, name: str) -> Interface | None:
        """The value that crosses as `name`, as far as the plan knows it."""
        # A scale of run time is float64 for PyTorch, and no tensor of the dialect's.
        return None if isinstance(self.judged.results.get(name), RunTimeScale) else super().interface(name)

    def _output(self, name: str) -> partition.OpenInterface:
        tensor = self.interface(name)
        if tensor is not None:
            return _open(name, tensor.shape, tensor.element)
        if name in self.known:
            return _open(name, self.known[name].shape, held_element(self.known[name]))
        given = next((t for t in self._graph.inputs if t.name == name), None)
        (output,) = (given,) if given is not None else self._noted[name]
        return _open(name, output.shape, output.element)

    def _partition_node(self, node: Node) -> partition.PartitionNode:
        tensor = self.interface(node.name)
        reason = self.judged.reasons.get(node.title, _CHANGES if self._changes else "")
        return partition.PartitionNode(
            node.title,
            tuple(name for name in node.refs() if name not in self.known),
            (node.name,),
            products(node, self.shape_of),
            sum(math.prod(output.shape) for output in node.outputs),
            reason,
            is_copied=not reason and node.kind.startswith(_DEQUANTIZE),
            # One of several results stays with the node that gives them.
            ends_group=node.kind.startswith(_QUANTIZE) or node.kind == "getitem",
            is_narrow=tensor is None or tensor.element != "f32",
        )


def _is_of(graph: Graph, node: Node) -> bool:
    """Whether a node may write to a constant: to what it reads first, or to what that was taken of."""
    nodes = {one.name: one for one in graph.nodes}
    name = next(iter(node.refs()), "")
    while name in nodes:
        name = next(iter(nodes[name].refs()), "")
    return name in graph.constants


def _open(name: str, shape: Shape, element: str) -> partition.OpenInterface:
    """float8 numbers are float32 for callers, which has all their values."""
    dtype = NUMPY_DTYPES[element].name if element in NUMPY_DTYPES else element
    return partition.OpenInterface(name, shape, "float32" if element in FLOAT8 else dtype)


# How many products a node sums up, from the shapes of what it reads and gives.

ShapeOf = Callable[[str], Shape | None]
"""The shape of what a name stands for."""

_BY_ROWS = {
    "aten.linear.default": "input",
    "aten.matmul.default": "self",
    "aten.mm.default": "self",
    "aten.bmm.default": "self",
    "aten.addmm.default": "mat1",
}
_CONVOLUTIONS = ("aten.conv1d.", "aten.conv2d.", "aten.conv3d.", "aten.convolution.")


def products(node: Node, shape_of: ShapeOf) -> int:
    """Of one call, 0 for a node that sums up none and for one whose shapes are not known."""
    elements = sum(math.prod(output.shape) for output in node.outputs)
    if node.kind in _BY_ROWS:
        rows = _shape(node, _BY_ROWS[node.kind], shape_of)
        return elements * rows[-1] if rows else 0
    weight = _shape(node, "weight", shape_of)
    if node.kind.startswith("aten.conv_transpose") or node.arguments.get("transposed") is True:
        return math.prod(_shape(node, "input", shape_of)) * math.prod(weight[1:]) if weight else 0
    return elements * math.prod(weight[1:]) if weight and node.kind.startswith(_CONVOLUTIONS) else 0


def _shape(node: Node, argument: str, shape_of: ShapeOf) -> Shape:
    value = node.arguments.get(argument)
    return (shape_of(value.name) or ()) if isinstance(value, Ref) else ()


# Graphs that Dynamo captured, divided by PyTorch's own partitioner.

Compiled = TypeVar("Compiled")
_DEQUANTIZE_CALL = "dequantize_per_"
_CHECK_OF_TYPES = "aten._assert_tensor_metadata"
_UNSEEN = "is used by a node that computes no tensor of the dialect"
_PREFIX = "qdialect_region_"


@dataclass(frozen=True)
class Fused(Generic[Compiled]):
    """A part that is one module of the captured graph, called `name`.

    `arguments` and `results` are the names, in the graph as it was, of what the module takes and gives.
    """

    name: str
    part: partition.Part
    compiled: Compiled
    arguments: tuple[str, ...]
    results: tuple[str, ...]


class CapturedDivision(Generic[Compiled]):
    """A captured module of which PyTorch's eager mode runs what cannot be compiled."""

    def __init__(self, graph: Lowered, examples: Sequence[Any], compile_: Callable[[ir.Module], Compiled]) -> None:
        """Raises `ImportModelError` for a graph that cannot be read."""
        self.module = _with_copies(graph.module)
        """The whole graph; a dequantization is there once for each reader, and types need no check."""
        self.division = TorchDivision(read_captured(self.module, examples, written=graph.written))
        self.reasons = {i: node.reason for i, node in enumerate(self.division.nodes) if node.reason}
        """Why nodes of the division are not compiled, by their indices."""
        self._compile_ = compile_
        self._indices = {node.gives[0]: index for index, node in enumerate(self.division.nodes)}
        self._done: dict[frozenset[str], tuple[partition.Part, Compiled]] = {}

    def fuse(self) -> list[Fused[Compiled]]:
        """Make a module of every compiled part, in the order of execution.

        The partitioner proposes again and again, until all that it proposes is compiled.
        """
        packages: Any = import_module("torch.fx.passes.infra.partitioner")
        supports: Any = import_module("torch.fx.passes.operator_support")
        support = supports.create_op_support(self._is_compiled)
        while True:
            partitioner = packages.CapabilityBasedPartitioner(self.module, support, allows_single_node_partition=True)
            proposed = partitioner.propose_partitions()
            refused = self._refused([frozenset(node.name for node in one.nodes) for one in proposed])
            if not refused:
                return list(self._fused(partitioner.fuse_partitions(proposed, prefix=_PREFIX)))
            self.reasons.update(refused)

    def _is_compiled(self, modules: object, node: Any) -> bool:
        """In the form in which the partitioner asks."""
        del modules
        index = self._indices.get(str(node.name))
        return index is not None and index not in self.reasons

    def _refused(self, proposed: Sequence[frozenset[str]]) -> dict[int, str]:
        """Compile what is proposed; why nodes of it cannot be."""
        found: dict[int, str] = {}
        for names in proposed:
            if names not in self._done:
                found.update(self._compile(names))
        return found

    def _compile(self, names: frozenset[str]) -> dict[int, str]:
        if not names <= self._indices.keys():
            # The partitioner puts what takes a result of several to the node that gives them.
            return {self._indices[name]: _UNSEEN for name in names & self._indices.keys()}
        part = self._part(names)
        if sum(self.division.nodes[index].work for index in part.nodes) < partition.least_work(self.division.nodes):
            return dict.fromkeys(part.nodes, partition.TOO_SMALL)
        try:
            self._done[names] = part, self._compile_(self.division.module(part))
        except partition.PartRefusedError as error:
            return dict(error.reasons)
        except (ImportModelError, CompileError) as error:
            return dict.fromkeys(part.nodes, error.message)
        return {}

    def _part(self, names: frozenset[str]) -> partition.Part:
        nodes = self.division.nodes
        indices = sorted(self._indices[name] for name in names)
        read = dict.fromkeys(name for index in indices for name in nodes[index].reads if name not in names)
        # What nothing of the division reads, a check does, may be read by the rest of the captured graph.
        readers = {str(node.name): [str(user.name) for user in node.users] for node in self.module.graph.nodes}
        given = (nodes[index].gives[0] for index in indices)
        return partition.Part(
            tuple(indices), True, tuple(read), tuple(name for name in given if set(readers[name]) - names)
        )

    def _fused(self, module: Any) -> Iterator[Fused[Compiled]]:
        results: dict[str, tuple[str, ...]] = {}
        for node in module.graph.nodes:
            name = str(node.target)
            if node.op != "call_module" or not name.startswith(_PREFIX):
                continue
            inner = getattr(module, name).graph
            given: Any = inner.output_node().args[0]
            listed = cast("tuple[Any, ...]", given) if isinstance(given, tuple) else (given,)
            results[name] = tuple(str(one.name) for one in listed)
            part, compiled = self._done[frozenset(one.name for one in inner.nodes if one.op.startswith("call"))]
            arguments = tuple(_original(argument, results) for argument in node.args)
            yield Fused(name, part, compiled, arguments, results[name])


def _original(argument: Any, results: dict[str, tuple[str, ...]]) -> str:
    """The name of an argument before modules took the place of nodes."""
    if argument.op == "call_module" and argument.target in results:
        return results[argument.target][0]
    source = argument.args[0] if argument.target is getitem else None
    several = results.get(str(getattr(source, "target", "")), ())
    # A module of one result is not indexed by the partitioner but, perhaps, by the model.
    return several[int(argument.args[1])] if len(several) > 1 else str(argument.name)


def _with_copies(module: Any) -> Any:
    """`module` with a dequantization for each reader, so that every part has its own, and without checks of types.

    Those were made when it was traced, and would make results of what they read.
    """
    fx: Any = import_module("torch.fx")
    graph = fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    for node in list(graph.nodes):
        if node.op == "call_function" and _DEQUANTIZE_CALL in str(node.target):
            for reader in list(node.users)[1:]:
                with graph.inserting_before(reader):
                    copied = graph.node_copy(node)
                reader.replace_input_with(node, copied)
        elif node.op == "call_function" and str(node.target).startswith(_CHECK_OF_TYPES):
            graph.erase_node(node)
    return fx.GraphModule(module, graph)


# Nodes run by PyTorch's own operators, looked up by their names.
#
# A program may name any operator of PyTorch's registry that computes its result from tensors: one that takes a text,
# such as the name of a file, and no tensor, is refused, and so is one that writes into what it reads, unless the whole
# program is run here: then it writes to the program's own memory.

Values = dict[str, Any]
Step = Callable[[Values], Any]
# Where PyTorch's own memory begins, which some of its kernels count on.
_ALIGNMENT = 64


def nodes_runner(
    nodes: Sequence[Node],
    inputs: Sequence[str],
    outputs: Sequence[str],
    constants: Mapping[str, Array],
    elements: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Sequence[Array]], Sequence[Array]]:
    """A function of the inputs that runs `nodes` in order; arrays are read and given where they lie.

    `elements` are the types of inputs: float8 numbers come, and results of such types go, as float32 numbers.
    Raises `ImportModelError` for an operator that must not be run. The function raises `InputError` where one fails.
    """
    torch: Any = pytorch_operators.torch_package()
    held = {name: pytorch_operators.tensor_of(array).clone() for name, array in constants.items()}
    steps = _Steps(torch, nodes, may_write=False)

    def call(arrays: Sequence[Array]) -> Sequence[Array]:
        given = {name: _given(torch, array, elements.get(name)) for name, array in zip(inputs, arrays, strict=True)}
        values: Values = {**held, **given}
        with torch.no_grad():
            steps.run(values)
        return [_result(values[name]) for name in outputs]

    return call


def whole_runner(graph: Graph) -> Callable[[Sequence[Array]], Sequence[Array]]:
    """A function of the inputs of a program that changes its own buffers; these keep what they hold between calls.

    Raises as `nodes_runner`, and for a program that writes to an input; the function raises `InputError` where it does
    so by another name.
    """
    torch: Any = pytorch_operators.torch_package()
    nodes, outputs = graph.original or (graph.nodes, graph.outputs)
    inputs = {tensor.name for tensor in graph.inputs}
    for node in nodes:
        if written_operand(node) in inputs:
            raise ImportModelError(f"PyTorch must not run {node.title}: it writes to an input of the program")
    own = in_own_memory(graph.constants)
    held = {name: pytorch_operators.tensor_of(array) for name, array in own.items()}
    steps, lock = _Steps(torch, nodes, may_write=True), Lock()
    count = len(outputs) - len(graph.written)

    def call(arrays: Sequence[Array]) -> Sequence[Array]:
        pairs = zip(graph.inputs, arrays, strict=True)
        given = {tensor.name: _given(torch, array, tensor.element).clone() for tensor, array in pairs}
        before = {name: tensor._version for name, tensor in given.items()}
        values: Values = {**held, **given}
        with lock, torch.no_grad():
            steps.run(values)
            written = [name for name, tensor in given.items() if tensor._version != before[name]]
            if written:
                raise InputError(f"program must not write to its input '{written[0]}'")
            for name, value in zip(graph.written, outputs[count:], strict=True):
                held[name].copy_(values[value])
            return [np.array(_result(values[name])) for name in outputs[:count]]

    return call


def _given(torch: Any, array: Array, element: str | None) -> Any:
    """An input as PyTorch's kernels take it."""
    tensor = pytorch_operators.tensor_of(array)
    if element in FLOAT8:
        return tensor.to(getattr(torch, element))
    return tensor if tensor.data_ptr() % _ALIGNMENT == 0 else tensor.clone()


def _result(tensor: Any) -> Array:
    is_float8 = str(tensor.dtype).removeprefix("torch.") in FLOAT8
    return pytorch_operators.array_of((tensor.float() if is_float8 else tensor).contiguous())


class _Steps:
    """Nodes in the order in which they are run."""

    def __init__(self, torch: Any, nodes: Sequence[Node], *, may_write: bool) -> None:
        self._torch, self._may_write = torch, may_write
        self._steps = [(node, self._step(node)) for node in nodes]

    def run(self, values: Values) -> None:
        """Add what the nodes give; raises `InputError` where one fails."""
        for node, step in self._steps:
            try:
                values[node.name] = step(values)
            except InputError:
                raise
            except Exception as error:
                raise InputError(f"PyTorch cannot run {node.title}: {' '.join(str(error).split())}") from error

    def _step(self, node: Node) -> Step:
        if node.kind == "getitem":
            source, index = node.arguments["0"].name, node.arguments["1"]
            return lambda values: values[source][index]
        if node.kind in _CONTROL:
            control = _CONTROL[node.kind]
            read = node.arguments.values()
            given = [self._function(value) if isinstance(value, Graph) else value for value in read]
            return lambda values: control(self._torch, *(self._argument(value, values) for value in given))
        schema = pytorch_operators.schema_of(node.kind)
        is_text = any(isinstance(value, str) for name, value in node.arguments.items() if name != "device")
        if schema is None or (schema.is_mutable and not self._may_write) or (is_text and not node.refs()):
            pure = "it must be an operator of PyTorch that computes its result from tensors and writes nothing else"
            raise ImportModelError(f"PyTorch must not run {node.title}: {pure}")
        operator = pytorch_operators.operator_of(node.kind)
        parameters = [
            parameter for parameter in pytorch_operators.parameters_of(node.kind) if parameter.name in node.arguments
        ]
        positional = [node.arguments[parameter.name] for parameter in parameters if not parameter.is_named]
        named = {parameter.name: node.arguments[parameter.name] for parameter in parameters if parameter.is_named}
        # The program does not choose the device of tensors.
        named = {name: value for name, value in named.items() if name != "device"}

        def step(values: Values) -> Any:
            given = [self._argument(value, values) for value in positional]
            return operator(*given, **{name: self._argument(value, values) for name, value in named.items()})

        return step

    def _function(self, graph: Graph) -> Callable[..., tuple[Any, ...]]:
        """A graph that an operator runs."""
        nodes, outputs = graph.original or (graph.nodes, graph.outputs)
        steps = _Steps(self._torch, nodes, may_write=self._may_write)
        held = {name: pytorch_operators.tensor_of(array).clone() for name, array in graph.constants.items()}

        def call(*given: Any) -> tuple[Any, ...]:
            values = held | {tensor.name: one for tensor, one in zip(graph.inputs, given, strict=True)}
            steps.run(values)
            return tuple(values[name] for name in outputs)

        return call

    def _argument(self, argument: Any, values: Values) -> Any:
        if isinstance(argument, Ref):
            return values[argument.name]
        if isinstance(argument, tuple):
            return [self._argument(part, values) for part in cast("tuple[Any, ...]", argument)]
        return (
            getattr(self._torch, pytorch_operators.torch_name(argument)) if isinstance(argument, Element) else argument
        )


def _cond(torch: Any, condition: Any, then: Any, otherwise: Any, operands: Sequence[Any]) -> Any:
    del torch
    return (then if condition else otherwise)(*operands)


def _while(torch: Any, condition: Any, body: Any, carried: Sequence[Any], others: Sequence[Any]) -> Any:
    del torch
    while condition(*carried, *others)[0]:
        carried = body(*carried, *others)
    return carried


_CONTROL: dict[str, Callable[..., Any]] = {"higher_order.cond": _cond, "higher_order.while_loop": _while}
"""The functions of operators that run graphs."""
