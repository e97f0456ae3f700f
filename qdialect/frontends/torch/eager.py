"""Runs nodes by PyTorch's own operators, looked up by their names.

A program may name any operator of PyTorch's registry that computes its result from tensors: one that takes a text, such
as the name of a file, and no tensor, is refused, and so is one that writes into what it reads, unless the whole program
is run here: then it writes to the program's own memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from qdialect.frontends.building.checks import Array
from qdialect.frontends.torch.program import pytorch_operators
from qdialect.frontends.torch.program.functionalization import written_operand
from qdialect.frontends.torch.program.model import FLOAT8, Element, Graph, Node, Ref, in_own_memory
from qdialect.support.diagnostics import ImportModelError, InputError

Values = dict[str, Any]
Step = Callable[[Values], Any]
# Where PyTorch's own memory begins, which some of its kernels count on.
_ALIGNMENT = 64


def runner(
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

    Raises as `runner`, and for a program that writes to an input; the function raises `InputError` where it does so by
    another name.
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
            given = [self._prepared(value) for value in node.arguments.values()]
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

    def _prepared(self, argument: Any) -> Any:
        return self._function(argument) if isinstance(argument, Graph) else argument

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
