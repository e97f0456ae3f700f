"""Functions that a model defines: every call of one is replaced by its nodes, as the package `onnx` does it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from qdialect.diagnostics import ImportModelError
from qdialect.frontends.onnx.sorting import callees_first

if TYPE_CHECKING:
    import onnx

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
    # The package says in several ways that a function does not fit its calls.
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
        defined = outer | {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        defined |= {name for inner in graph.node for name in inner.output}
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
