"""Replaces calls of a model's functions, and If nodes whose condition is known, by the nodes that they stand for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from qdialect.frontends.building.checks import Array
from qdialect.frontends.onnx.model import Graph, Node, callees_first
from qdialect.support.diagnostics import ImportModelError

if TYPE_CHECKING:
    import onnx


# Functions that a model defines: every call of one is replaced by its nodes, as the package `onnx` does it.

_MAX_NODES = 1_000_000

Key = tuple[str, str, str]


def inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model without calls of its own functions.

    Raises `ImportModelError` where a function calls itself, and where more than a million nodes would result.
    """
    from onnx import inliner

    if not model.functions:
        return model
    _check_size(model)
    try:
        return inliner.inline_local_functions(model)
    # The package raises several exceptions where a function does not fit its calls.
    except (RuntimeError, ValueError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise ImportModelError(f"file is damaged: its functions cannot be inlined: {reason}") from error


def graphs_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs that a node holds."""
    held = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    return [*held, *(graph for attribute in node.attribute for graph in attribute.graphs)]


def captured(node: onnx.NodeProto) -> list[str]:
    """Names that graphs inside a node read and do not define.

    What waits is a list, however deep graphs are nested.
    """
    found: list[str] = []
    waiting: list[tuple[onnx.GraphProto, frozenset[str]]] = [(graph, frozenset()) for graph in graphs_of(node)]
    while waiting:
        graph, outer = waiting.pop()
        defined = outer | _defined(graph)
        for inner in graph.node:
            found += [name for name in inner.input if name and name not in defined]
            waiting += [(held, defined) for held in graphs_of(inner)]
        found += [value.name for value in graph.output if value.name not in defined]
    return found


def _check_size(model: onnx.ModelProto) -> None:
    functions = {(one.domain, one.name, one.overload): one for one in model.functions}
    calls = {key: _calls(function.node) for key, function in functions.items()}
    order = callees_first({key: [other for other in found if other in functions] for key, found in calls.items()})
    if order is None:
        raise ImportModelError("file is damaged: a function of the model calls itself")
    sizes: dict[Key, int] = {}
    for key in order:
        sizes[key] = _size(calls[key], sizes)
    total = _size(_calls(model.graph.node), sizes)
    if total > _MAX_NODES:
        raise ImportModelError(f"functions of the model must give at most {_MAX_NODES} nodes, but give {total}")


def _size(calls: Counter[Key], sizes: dict[Key, int]) -> int:
    return sum(count * sizes.get(key, 1) for key, count in calls.items())


def _calls(nodes: Iterable[onnx.NodeProto]) -> Counter[Key]:
    """How often each operator is there, in graphs of nodes too."""
    found, waiting = Counter[Key](), list(nodes)
    while waiting:
        node = waiting.pop()
        found[node.domain, node.op_type, node.overload] += 1
        waiting += [inner for graph in graphs_of(node) for inner in graph.node]
    return found


# If nodes whose condition is known when the model is read: the branch that is taken becomes part of the graph.
# Others choose at run time; a model is compiled for both values of their conditions.
#
# Exporters write them around what depends on an extent, which is known by then.


Branches = Mapping[str, bool]
"""Values of conditions of If nodes, by their names."""
NO_BRANCHES: Branches = MappingProxyType({})


def known_conditions(
    graph: Graph, known: Callable[[Graph, Sequence[str]], Mapping[str, Array]], given: Branches
) -> dict[str, bool]:
    """Conditions by the names of what If nodes give first; `known` finds the constants among the names of a graph.

    `given` are values of conditions by their own names.
    """
    nodes = {node.outputs[0]: node.inputs[0] for node in graph.nodes if is_branching(node)}
    conditions = [name for name in dict.fromkeys(nodes.values()) if name not in given]
    arrays: Mapping[str, Array] = known(_ancestors(graph, conditions), conditions) if conditions else {}
    values = {name: bool(array.ravel()[0]) for name, array in arrays.items() if array.size == 1} | dict(given)
    return {output: values[condition] for output, condition in nodes.items() if condition in values}


@dataclass(frozen=True)
class RunTimeCondition:
    """A condition by the name that the option `branches` takes; `model` computes it, unless it is an input."""

    name: str
    model: bytes | None = None


def first_condition(graph: Graph) -> str | None:
    """The condition of the first If node; None where there is none."""
    return next((node.inputs[0] for node in graph.nodes if is_branching(node)), None)


def computing(model: onnx.ModelProto, graph: Graph, name: str) -> onnx.ModelProto:
    """The part of a model that gives `name`, a boolean; its inputs are those of the model."""
    from onnx import ModelProto, TensorProto, helper, numpy_helper

    result = ModelProto()
    result.CopyFrom(model)
    kept = {output for node in _ancestors(graph, [name]).nodes for output in node.outputs if output}
    nodes = [node for node in model.graph.node if not kept.isdisjoint(node.output)]
    read = {one for node in nodes for one in (*node.input, *captured(node))}
    given = {value.name for value in model.graph.input}
    constants = [
        numpy_helper.from_array(graph.constants[tensor.name], tensor.name) if tensor.external_data else tensor
        for tensor in model.graph.initializer
        if tensor.name in read | given
    ]
    for field in ("node", "initializer", "output"):
        result.graph.ClearField(field)
    result.graph.node.extend(nodes)
    result.graph.initializer.extend(constants)
    result.graph.output.append(helper.make_tensor_value_info(name, TensorProto.BOOL, None))
    return result


def is_branching(node: Node) -> bool:
    """Whether a node is an If as the schema has it."""
    has_branches = {"then_branch", "else_branch"} <= node.attributes.keys()
    return node.kind == "If" and has_branches and len(node.inputs) == 1 and len(node.outputs) >= 1


def _ancestors(graph: Graph, names: Sequence[str]) -> Graph:
    """The part of a graph that `names` depend on."""
    wanted, kept = set(names), list[Node]()
    for node in reversed(graph.nodes):
        if not wanted.isdisjoint(node.outputs):
            kept.append(node)
            wanted.update(node.inputs, node.captured)
    return Graph(tuple(reversed(kept)), graph.inputs, (), graph.constants, graph.unsupported, graph.declared)


def take_branches(model: onnx.ModelProto, conditions: Mapping[str, bool]) -> onnx.ModelProto:
    """The model with the branches of If nodes in their stead; `conditions` are by what the nodes give first."""
    from onnx import ModelProto

    result = ModelProto()
    result.CopyFrom(model)
    del result.graph.node[:]
    for node in model.graph.node:
        output = node.output[0] if node.output else ""
        if node.op_type != "If" or node.domain not in ("", "ai.onnx") or output not in conditions:
            result.graph.node.append(node)
            continue
        name = "then_branch" if conditions[output] else "else_branch"
        branch = next(attribute.g for attribute in node.attribute if attribute.name == name)
        nodes, constants = _spliced(branch, node.output)
        result.graph.node.extend(nodes)
        result.graph.initializer.extend(constants)
    return result


def _spliced(branch: onnx.GraphProto, outputs: Sequence[str]) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    """Its nodes and constants with names of their own; the last nodes give `outputs`."""
    from onnx import NodeProto, TensorProto, helper

    defined = {name for node in branch.node for name in node.output} | {one.name for one in branch.initializer}
    names = {name: f"{outputs[0]}/{name}" for name in defined if name}
    nodes: list[NodeProto] = []
    for node in branch.node:
        copy = NodeProto()
        copy.CopyFrom(node)
        _rename(copy, names)
        nodes.append(copy)
    constants: list[TensorProto] = []
    for tensor in branch.initializer:
        constant = TensorProto()
        constant.CopyFrom(tensor)
        constant.name = names[tensor.name]
        constants.append(constant)
    given = (names.get(value.name, value.name) for value in branch.output)
    nodes += [
        helper.make_node("Identity", [name], [output]) for name, output in zip(given, outputs, strict=False) if output
    ]
    return nodes, constants


def _rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Names that a node reads and gives, and those that graphs inside it read and do not define."""
    node.output[:] = [names.get(name, name) for name in node.output]
    waiting = [(node, names)]
    while waiting:
        inner, own = waiting.pop()
        inner.input[:] = [own.get(name, name) for name in inner.input]
        for graph in graphs_of(inner):
            defined = _defined(graph)
            visible = {name: new for name, new in own.items() if name not in defined}
            for value in graph.output:
                value.name = visible.get(value.name, value.name)
            waiting += [(one, visible) for one in graph.node]


def _defined(graph: onnx.GraphProto) -> set[str]:
    given = (one.name for values in (graph.input, graph.initializer) for one in values)
    return {*given, *(name for node in graph.node for name in node.output)}
