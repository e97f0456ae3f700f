"""Reads PyTorch programs in memory: exported programs and graphs that Dynamo captured.

Classes of the package `torch` are taken as they come, untyped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from qdialect.frontends.building.checks import Array, Interface, Shape
from qdialect.frontends.building.extents import Extents
from qdialect.frontends.torch.program.functionalization import graph_of
from qdialect.frontends.torch.program.model import (
    ELEMENTS,
    UNKNOWN,
    Graph,
    Node,
    Output,
    Ref,
    in_own_memory,
    is_contiguous,
)
from qdialect.frontends.torch.program.pytorch_operators import array_of, element_of, is_check
from qdialect.frontends.torch.program.symbolic_shapes import Number, extent_of, number, sizes_of
from qdialect.support.diagnostics import ImportModelError

_CONSTANTS = ("PARAMETER", "BUFFER", "CONSTANT_TENSOR")
_CALLS = ("call_function", "call_method", "call_module")


def read_program(program: Any, extents: Extents) -> Graph:
    """The graph of an exported program, its parameters and buffers as constants; `extents` sets the open extents.

    Raises `ImportModelError` for one that changes its buffers, has inputs that are no tensors or an unknown extent.
    """
    program = without_wrappers(program)
    nodes = {node.name: node for node in program.graph.nodes}
    held: dict[str, Any] = {}
    given: list[Any] = []
    buffers: dict[str, str] = {}
    for spec in program.graph_signature.input_specs:
        kind, name = spec.kind.name, getattr(spec.arg, "name", "")
        if kind in _CONSTANTS:
            buffers[spec.target] = name
            held[name] = _held(program, spec.target)
        elif kind == "USER_INPUT" and _is_tensor(_value(nodes.get(name))):
            given.append(nodes[name])
        else:
            raise ImportModelError(f"input '{name}' must be a tensor")
    written: dict[str, str] = {}
    for spec in program.graph_signature.output_specs:
        if spec.kind.name == "BUFFER_MUTATION":
            written[buffers[spec.target]] = spec.arg.name
        elif spec.kind.name != "USER_OUTPUT":
            raise ImportModelError(f"model must not change '{spec.target}' when it runs")
    declared = {node.name: tuple(map(_declared, _value(node).shape)) for node in given}
    ranges = {
        str(symbol): (_end(found.lower, 0), _end(found.upper, math.inf))
        for symbol, found in program.range_constraints.items()
    }
    sizes = sizes_of(declared, extents, ranges)
    reader = _Reader(
        lambda found, name: number(_expression(found), sizes, name),
        extent_of=lambda found, name: extent_of(_expression(found), sizes, name),
    )
    inputs = [reader.interface(node) for node in given]
    constants = in_own_memory({name: _array_of(tensor) for name, tensor in held.items()})
    return reader.graph(program.graph, program.graph_module, inputs, constants, written)


def _declared(extent: Any) -> int | str:
    """An extent that is known, or the expression of one that is open."""
    return extent if isinstance(extent, int) else _expression(extent)


def _expression(number: Any) -> str:
    """The form of a symbolic number in PyTorch's archives."""
    text: str = import_module("sympy").srepr(number.node.expr)
    return text


def _end(bound: Any, infinity: float) -> float:
    """An end of a range, which may be PyTorch's own infinity."""
    return int(bound) if bound.is_Integer else infinity


def read_captured(module: Any, examples: Sequence[Any], *, written: Collection[int] = ()) -> Graph:
    """The graph that Dynamo captured for inputs like `examples`; parameters and buffers among them become constants.

    Those that are `written` stay inputs, and so do those of a type that no constant has.

    Raises `ImportModelError` for inputs that are neither tensors nor numbers.
    """
    is_static: Callable[[Any], object] = import_module("torch._dynamo.utils").get_static_address_type
    constants: dict[str, Array] = {}
    inputs: list[Interface] = []
    reader = _Reader(of_this_call, leaves_numbers=True)
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    for position, (node, example) in enumerate(zip(placeholders, examples, strict=True)):
        if not node.users or (_is_passed(node) and all(user.op == "output" for user in node.users)):
            # A number that is known, or given back, may be a tensor of a type that the dialect lacks.
            continue
        if not _is_tensor(example):
            # An extent of another input: it is part of the shapes.
            of_this_call(example, node.name)
        elif is_static(example) is not None and position not in written and _is_readable(example):
            constants[node.name] = _copied(example)
        else:
            inputs.append(reader.interface(node))
    return reader.graph(module.graph, module, inputs, constants)


def read_traced(module: Any, names: Sequence[str]) -> tuple[Graph, dict[str, str]]:
    """The graph of operators that were traced, and which of `names` each of its arguments is, in order."""
    placeholders = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    graph = _Reader(of_this_call).graph(module.graph, module, (), {})
    return graph, dict(zip(placeholders, names, strict=True))


def captured_results(module: Any) -> tuple[Any, ...]:
    """The results of a captured graph, in order.

    An ellipsis for each tensor, a getter for what is one of the arguments, and else numbers, of this call, and None.
    """
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]

    def known(result: Any) -> Any:
        if not hasattr(result, "op"):
            return result
        if _is_passed(result):
            return itemgetter(placeholders.index(result))
        return of_this_call(_value(result), result.name) if _is_number(_value(result)) else ...

    return tuple(map(known, _flat(module.graph.output_node().args[0])))


def _is_passed(node: Any) -> bool:
    """Whether a result is a number of each call, which Dynamo takes as float64 tensor where it has a fraction."""
    value = _value(node)
    return node.op == "placeholder" and (_is_number(value) or (str(value.dtype), value.shape) == ("torch.float64", ()))


def captured_inputs(module: Any, graph: Graph) -> tuple[int, ...]:
    """Which of the arguments of a captured graph are the inputs of `graph`, in order."""
    names = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    return tuple(names.index(tensor.name) for tensor in graph.inputs)


@dataclass(frozen=True)
class _Reader:
    """Reads nodes; ``number_of(found, name)`` is what a symbolic number called `name` stands for."""

    number_of: Callable[[Any, str], Number]
    leaves_numbers: bool = False
    """Whether results may be numbers, which are not values of the graph."""
    extent_of: Callable[[Any, str], int] | None = None
    """As `number_of`, but -1 for an extent that depends on data; None where no extent does."""

    def graph(
        self,
        graph: Any,
        module: Any,
        inputs: Sequence[Interface],
        constants: dict[str, Array],
        written: Mapping[str, str] | None = None,
    ) -> Graph:
        """The nodes of `graph` that give tensors; attributes of `module` are constants, `written` as in `graph_of`."""
        nodes: list[Node] = []
        outputs: tuple[str, ...] = ()
        parts: dict[str, Graph] = {}
        for node in graph.nodes:
            if node.op == "get_attr":
                held = attrgetter(node.target)(module)
                if hasattr(held, "graph"):
                    parts[node.name] = self._subgraph(held)
                else:
                    constants[node.name] = _copied(held)
            elif node.op == "output":
                outputs = tuple(
                    _result(one) for one in _flat(node.args[0]) if one is not None and not self._is_left(one)
                )
            elif node.op in _CALLS and not _is_number(_value(node)) and not is_check(_kind(node.target)):
                nodes.append(self._node(node, parts))
        # The new values of buffers come first.
        return graph_of(nodes, inputs, outputs[len(written or ()) :], constants, written)

    def _subgraph(self, module: Any) -> Graph:
        """A graph that an operator runs; inputs that are not tensors have no name."""
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        number = Interface("", (), UNKNOWN)
        inputs = [self.interface(node) if _is_tensor(_value(node)) else number for node in placeholders]
        return self.graph(module.graph, module, inputs, {})

    def interface(self, node: Any) -> Interface:
        """An input."""
        output = self._output(_value(node), node.name)
        return Interface(node.name, output.shape, output.element)

    def _node(self, node: Any, graphs: Mapping[str, Graph]) -> Node:
        value = _value(node)
        results = _parts(value) if _is_list(value) else (value,)
        outputs = tuple(self._output(result, node.name) for result in results)
        arguments = {name: self._argument(argument, graphs) for name, argument in _arguments(node).items()}
        stack: Mapping[str, Any] = node.meta.get("nn_module_stack") or {}
        entries = list(stack.values())
        path = str(entries[-1][0]) if entries else ""
        return Node(node.name, _kind(node.target), arguments, outputs, path.removeprefix("L['self']").lstrip("."))

    def _output(self, value: Any, name: str) -> Output:
        if not _is_tensor(value):
            return Output((), UNKNOWN)
        found = str(value.dtype).removeprefix("torch.")
        shape: Shape = tuple(self._extent(extent, name) for extent in value.shape)
        strides: Shape = tuple(self._extent(stride, name) for stride in value.stride())
        return Output(shape, ELEMENTS.get(found, found), is_contiguous(shape, strides))

    def _is_left(self, result: Any) -> bool:
        """Whether a result is a number, which whoever calls a captured graph knows."""
        if isinstance(result, int | float):
            return self.leaves_numbers
        return self.leaves_numbers and (_is_number(_value(result)) or _is_passed(result))

    def _number(self, found: Any, name: str) -> Number:
        return found if isinstance(found, int | float) else self.number_of(found, name)

    def _extent(self, found: Any, name: str) -> int:
        if isinstance(found, int):
            return found
        return int(self.number_of(found, name)) if self.extent_of is None else self.extent_of(found, name)

    def _argument(self, argument: Any, graphs: Mapping[str, Graph]) -> Any:
        if _is_list(argument):
            return tuple(self._argument(part, graphs) for part in _parts(argument))
        if argument is None or isinstance(argument, bool | int | float | str):
            return argument
        if hasattr(argument, "op"):
            if argument.name in graphs:
                return graphs[argument.name]
            value = _value(argument)
            return self._number(value, argument.name) if _is_number(value) else Ref(argument.name)
        name = str(argument)
        if name.startswith("torch."):
            return element_of(name)
        return self._number(argument, name) if _is_number(argument) else name


def of_this_call(found: Any, name: str) -> Number:
    """A number; one that Dynamo left open becomes the one of this call, which Dynamo then guards."""
    try:
        return float(found) if "Float" in type(found).__name__ else int(found)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ImportModelError(f"'{name}' must be a tensor with known extents, but got {found}") from error


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


def _copied(tensor: Any) -> Array:
    """The array of a constant, in memory of its own."""
    return np.array(_array_of(tensor))


def _array_of(tensor: Any) -> Array:
    """The array of a constant, in its memory."""
    try:
        return array_of(tensor)
    except TypeError as error:
        raise ImportModelError(f"constants must be of a type of arrays, but got {tensor.dtype}") from error


def _is_readable(tensor: Any) -> bool:
    """Whether arrays have the type of a tensor; they lack those of less than a byte."""
    try:
        array_of(import_module("torch").empty(0, dtype=tensor.dtype))
    except TypeError:
        return False
    return True


def _value(node: Any) -> Any:
    """The tracer's metadata of a node's result."""
    return None if node is None else node.meta.get("val", node.meta.get("example_value"))


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _is_number(value: Any) -> bool:
    return hasattr(value, "node") or isinstance(value, int | float)


def _kind(target: Any) -> str:
    """``namespace.operator.overload``."""
    if getattr(target, "_schema", None) is not None:
        return str(target)
    if getattr(target, "namespace", "") == "higher_order":
        return f"higher_order.{target.__name__}"
    return target if isinstance(target, str) else getattr(target, "__name__", str(target))


def _arguments(node: Any) -> dict[str, Any]:
    """By the names in the operator's schema, defaults among them."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return {str(index): argument for index, argument in enumerate(node.args)} | node.kwargs
    given = dict(zip((argument.name for argument in schema.arguments), node.args, strict=False))
    given |= node.kwargs
    return given | {a.name: a.default_value for a in schema.arguments if a.name not in given}


# Tensors that are made of others, such as the weights that torchao's ``quantize_`` puts into a model.
#
# PyTorch calls them traceable wrapper subclasses.  A graph holds what they are made of.


def is_wrapper(tensor: Any) -> bool:
    """Whether a tensor is made of others."""
    return bool(import_module("torch.utils._python_dispatch").is_traceable_wrapper_subclass(tensor))


def without_wrappers(program: Any) -> Any:
    """An exported program whose parameters and buffers are plain tensors."""
    held = (*program.state_dict.values(), *program.constants.values())
    return program.run_decompositions({}) if any(map(is_wrapper, held)) else program


@dataclass(frozen=True)
class Wrapper:
    """How an argument of a call is made of plain ones."""

    kind: Any
    """Its class, None for an argument that is plain itself."""
    parts: tuple[tuple[str, Wrapper], ...] = ()
    """The attributes that hold tensors."""
    context: Any = None
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()

    @classmethod
    def of(cls, argument: Any) -> Wrapper:
        """How `argument` is made."""
        if not is_wrapper(argument):
            return cls(None)
        names, context = argument.__tensor_flatten__()
        parts = tuple((name, cls.of(getattr(argument, name))) for name in names)
        return cls(type(argument), parts, context, tuple(argument.shape), tuple(argument.stride()))

    def plain(self, argument: Any) -> Iterator[Any]:
        """The plain arguments of which one is made."""
        if self.kind is None:
            yield argument
        for name, part in self.parts:
            yield from part.plain(getattr(argument, name))

    def made(self, plain: Iterator[Any]) -> Any:
        """An argument made of the next plain ones."""
        if self.kind is None:
            return next(plain)
        parts = {name: part.made(plain) for name, part in self.parts}
        return self.kind.__tensor_unflatten__(parts, self.context, self.shape, self.strides)


@dataclass(frozen=True)
class Wrapped:
    """The arguments of a call, which may be made of others."""

    arguments: tuple[Wrapper, ...]

    @classmethod
    def of(cls, arguments: Sequence[Any]) -> Wrapped:
        """How `arguments` are made."""
        return cls(tuple(map(Wrapper.of, arguments)))

    @cached_property
    def is_plain(self) -> bool:
        """Whether no argument is made of others."""
        return not any(wrapper.parts for wrapper in self.arguments)

    def plain(self, arguments: Sequence[Any]) -> list[Any]:
        """The plain arguments of which `arguments` are made, in order."""
        if self.is_plain:
            return list(arguments)
        pairs = zip(self.arguments, arguments, strict=True)
        return [part for wrapper, argument in pairs for part in wrapper.plain(argument)]

    def plain_constants(self, arguments: Sequence[Any]) -> list[Any]:
        """As `plain`; the parts of parameters and buffers are marked static, as Dynamo marks those."""
        dynamo: Any = import_module("torch._dynamo")
        is_static: Any = import_module("torch._dynamo.utils").get_static_address_type
        for wrapper, argument in zip(self.arguments, arguments, strict=True):
            if wrapper.parts and is_static(argument) is not None:
                for part in wrapper.plain(argument):
                    dynamo.mark_static_address(part, guard=False)
        return self.plain(arguments)

    def made(self, plain: Sequence[Any]) -> list[Any]:
        """The arguments that are made of plain ones."""
        remaining = iter(plain)
        return [wrapper.made(remaining) for wrapper in self.arguments]
