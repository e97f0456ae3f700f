"""Runs nodes by PyTorch's own operators, looked up by their names.

A program may name any operator of PyTorch's registry that computes its result from tensors: one that writes into what
it reads, or that takes a text, such as the name of a file, and no tensor, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from qdialect.diagnostics import ImportModelError, InputError
from qdialect.frontends.common import Array
from qdialect.frontends.torch.folding import operator_of, parameters_of, torch_name
from qdialect.frontends.torch.model import Element, Node, Ref
from qdialect.frontends.torch.package import torch_package
from qdialect.frontends.torch.schemas import schema_of

Values = dict[str, Any]
Step = Callable[[Values], Any]


def runner(
    nodes: Sequence[Node], inputs: Sequence[str], outputs: Sequence[str], constants: Mapping[str, Array]
) -> Callable[[Sequence[Array]], Sequence[Array]]:
    """A function of the inputs that runs `nodes` in order; arrays are read and given where they lie.

    Raises `ImportModelError` for an operator that must not be run. The function raises `InputError` where one fails.
    """
    torch = torch_package()
    held = {name: torch.from_numpy(np.array(array)) for name, array in constants.items()}
    steps = [(node, _step(torch, node)) for node in nodes]

    def call(arrays: Sequence[Array]) -> Sequence[Array]:
        given = (array if array.flags.writeable else np.array(array) for array in arrays)
        values: Values = {**held, **dict(zip(inputs, map(torch.from_numpy, given), strict=True))}
        with torch.no_grad():
            for node, step in steps:
                _run(node, step, values)
        return [values[name].contiguous().numpy() for name in outputs]

    return call


def _run(node: Node, step: Step, values: Values) -> None:
    try:
        values[node.name] = step(values)
    except Exception as error:
        raise InputError(f"PyTorch cannot run {node.title}: {' '.join(str(error).split())}") from error


def _step(torch: Any, node: Node) -> Step:
    if node.kind == "getitem":
        source, index = node.arguments["0"].name, node.arguments["1"]
        return lambda values: values[source][index]
    _check(node)
    operator = operator_of(torch, node.kind)
    parameters = [parameter for parameter in parameters_of(node.kind) if parameter.name in node.arguments]
    positional = [node.arguments[parameter.name] for parameter in parameters if not parameter.is_named]
    named = {parameter.name: node.arguments[parameter.name] for parameter in parameters if parameter.is_named}
    # Where tensors lie is not for the program to say.
    named = {name: value for name, value in named.items() if name != "device"}

    def step(values: Values) -> Any:
        given = [_argument(torch, value, values) for value in positional]
        return operator(*given, **{name: _argument(torch, value, values) for name, value in named.items()})

    return step


def _check(node: Node) -> None:
    schema = schema_of(node.kind)
    is_text = any(isinstance(value, str) for name, value in node.arguments.items() if name != "device")
    if schema is None or schema.is_mutable or (is_text and not node.refs()):
        pure = "it must be an operator of PyTorch that computes its result from tensors and writes nothing else"
        raise ImportModelError(f"PyTorch must not run {node.title}: {pure}")


def _argument(torch: Any, argument: Any, values: Values) -> Any:
    if isinstance(argument, Ref):
        return values[argument.name]
    if isinstance(argument, tuple):
        return [_argument(torch, part, values) for part in cast("tuple[Any, ...]", argument)]
    return getattr(torch, torch_name(argument)) if isinstance(argument, Element) else argument
