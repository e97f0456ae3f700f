"""Reads what PyTorch holds in memory: exported programs and graphs that Dynamo captured.

Classes of the package `torch` are taken as they come, untyped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from qdialect.diagnostics import ImportModelError
from qdialect.frontends.common import Array, Interface, Shape
from qdialect.frontends.torch.inplace import functional
from qdialect.frontends.torch.model import ELEMENTS, UNKNOWN, Graph, Node, Output, Ref
from qdialect.frontends.torch.schemas import element_of

_CONSTANTS = ("PARAMETER", "BUFFER", "CONSTANT_TENSOR")
_CALLS = ("call_function", "call_method", "call_module")


def read_program(program: Any) -> Graph:
    """The graph of an exported program, its parameters and buffers as constants.

    Raises `ImportModelError` for one that changes its buffers, has inputs that are no tensors or an unknown extent.
    """
    nodes = {node.name: node for node in program.graph.nodes}
    constants: dict[str, Array] = {}
    inputs: list[Interface] = []
    for spec in program.graph_signature.input_specs:
        kind, name = spec.kind.name, getattr(spec.arg, "name", "")
        if kind in _CONSTANTS:
            constants[name] = _array(_held(program, spec.target))
        elif kind == "USER_INPUT" and _is_tensor(_value(nodes.get(name))):
            _check_extents(_value(nodes[name]), name)
            inputs.append(_interface(nodes[name]))
        else:
            raise ImportModelError(f"input '{name}' must be a tensor")
    for spec in program.graph_signature.output_specs:
        if spec.kind.name != "USER_OUTPUT":
            raise ImportModelError(f"model must not change '{spec.target}' when it runs")
    return _graph(program.graph, program.graph_module, inputs, constants)


def has_open_extents(program: Any) -> bool:
    """Whether an exported program is one for many shapes."""
    inputs = (_value(node) for node in program.graph.nodes if node.op == "placeholder")
    return any(not _is_known(value) for value in inputs if _is_tensor(value))


def _is_known(tensor: Any) -> bool:
    return all(isinstance(extent, int) for extent in tensor.shape)


def _check_extents(tensor: Any, name: str) -> None:
    """A program for many shapes is not one for the shape that it was exported with."""
    if not _is_known(tensor):
        raise ImportModelError(f"input '{name}' must have known extents, but got {list(tensor.shape)}")


def read_captured(module: Any, examples: Sequence[Any]) -> Graph:
    """The graph that Dynamo captured for inputs like `examples`; parameters and buffers among them become constants.

    Raises `ImportModelError` for inputs that are neither tensors nor extents.
    """
    is_static: Callable[[Any], object] = import_module("torch._dynamo.utils").get_static_address_type
    constants: dict[str, Array] = {}
    inputs: list[Interface] = []
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node, example in zip(placeholders, examples, strict=True):
        if not _is_tensor(example):
            # An extent of another input: it is part of the shapes.
            _integer(example, node.name)
        elif is_static(example) is not None:
            constants[node.name] = _array(example)
        else:
            inputs.append(_interface(node))
    return _graph(module.graph, module, inputs, constants)


def read_traced(module: Any, names: Sequence[str]) -> tuple[Graph, dict[str, str]]:
    """The graph of operators that were traced, and which of `names` each of its arguments is, in order."""
    placeholders = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    return _graph(module.graph, module, (), {}), dict(zip(placeholders, names, strict=True))


def captured_inputs(module: Any, graph: Graph) -> tuple[int, ...]:
    """Which of the arguments of a captured graph are the inputs of `graph`, in order."""
    names = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    return tuple(names.index(tensor.name) for tensor in graph.inputs)


def _graph(graph: Any, module: Any, inputs: Sequence[Interface], constants: dict[str, Array]) -> Graph:
    nodes: list[Node] = []
    outputs: tuple[str, ...] = ()
    for node in graph.nodes:
        if node.op == "get_attr":
            constants[node.name] = _array(_attribute(module, node.target))
        elif node.op == "output":
            outputs = tuple(_result(result) for result in _flat(node.args[0]))
        elif node.op in _CALLS and not _is_number(_value(node)):
            nodes.append(_node(node))
    pure, results = functional(nodes, outputs)
    return Graph(pure, tuple(inputs), results, constants)


def _flat(results: Any) -> list[Any]:
    return [part for result in _parts(results) for part in _flat(result)] if _is_list(results) else [results]


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _parts(value: Any) -> tuple[Any, ...]:
    return tuple(value)


def _result(result: Any) -> str:
    if not hasattr(result, "op") or not _is_tensor(_value(result)):
        raise ImportModelError(f"result must be a tensor, but got {result}")
    return result.name


def _held(program: Any, target: str) -> Any:
    return program.state_dict[target] if target in program.state_dict else program.constants[target]


def _attribute(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part)
    return module


def _array(tensor: Any) -> Array:
    to_channels_first = tensor.detach().cpu()
    if str(to_channels_first.dtype) == "torch.bfloat16":
        raise ImportModelError("constants must not be bfloat16")
    return np.array(to_channels_first.contiguous().numpy())


def _value(node: Any) -> Any:
    """What the tracer noted of a node's result."""
    return None if node is None else node.meta.get("val", node.meta.get("example_value"))


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _is_number(value: Any) -> bool:
    return hasattr(value, "node") or isinstance(value, int | float)


def _integer(extent: Any, name: str) -> int:
    """An extent; one that Dynamo left open becomes the one of this call, which Dynamo then guards."""
    try:
        return int(extent)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ImportModelError(f"'{name}' must be a tensor with known extents, but got {extent}") from error


def _shape(tensor: Any, name: str) -> Shape:
    return tuple(_integer(extent, name) for extent in tensor.shape)


def _interface(node: Any) -> Interface:
    output = _output(_value(node), node.name)
    return Interface(node.name, output.shape, output.element)


def _output(value: Any, name: str) -> Output:
    if not _is_tensor(value):
        return Output((), UNKNOWN)
    found = str(value.dtype).removeprefix("torch.")
    return Output(_shape(value, name), ELEMENTS.get(found, found))


def _node(node: Any) -> Node:
    value = _value(node)
    outputs = tuple(_output(result, node.name) for result in (_parts(value) if _is_list(value) else (value,)))
    call = _Call(node)
    return Node(node.name, call.kind(), call.arguments(), outputs, _where(node))


def _where(node: Any) -> str:
    """The path of the innermost module that the call came from."""
    stack: Mapping[str, Any] = node.meta.get("nn_module_stack") or {}
    entries = list(stack.values())
    path = str(entries[-1][0]) if entries else ""
    return path.removeprefix("L['self']").lstrip(".")


@dataclass(frozen=True)
class _Call:
    node: Any

    def _schema(self) -> Any:
        return getattr(self.node.target, "_schema", None)

    def kind(self) -> str:
        """``namespace.operator.overload``."""
        target = self.node.target
        if self._schema() is not None:
            return str(target)
        return target if isinstance(target, str) else getattr(target, "__name__", str(target))

    def arguments(self) -> dict[str, Any]:
        """By the names in the operator's schema, defaults among them."""
        schema = self._schema()
        if schema is None:
            named = {str(index): argument for index, argument in enumerate(self.node.args)} | self.node.kwargs
            return {name: _argument(argument) for name, argument in named.items()}
        given = dict(zip((argument.name for argument in schema.arguments), self.node.args, strict=False))
        given |= self.node.kwargs
        defaults = {a.name: a.default_value for a in schema.arguments if a.name not in given}
        return {name: _argument(argument) for name, argument in (given | defaults).items()}


def _argument(argument: Any) -> Any:
    if _is_list(argument):
        return tuple(_argument(part) for part in _parts(argument))
    if argument is None or isinstance(argument, bool | int | float | str):
        return argument
    if hasattr(argument, "op"):
        value = _value(argument)
        return _integer(value, argument.name) if _is_number(value) else Ref(argument.name)
    name = str(argument)
    if name.startswith("torch."):
        return element_of(name)
    return _integer(argument, name) if _is_number(argument) else name
