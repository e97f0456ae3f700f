"""Operators as PyTorch itself decomposes them, one level at a time.

An operator that the front end does not know is traced on tensors without memory, so that the simpler operators of which
PyTorch makes it come to light; each of these is planned in its stead, or decomposed again.  Only PyTorch's own code
runs: the kernels of its composite operators and the entry of its decomposition table for this very operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

from qdialect.frontends.building.checks import Array, UnsupportedError, require
from qdialect.frontends.torch.program.functionalization import is_in_place
from qdialect.frontends.torch.program.model import Node, Output
from qdialect.frontends.torch.program.pytorch_operators import (
    call_operator,
    dtype_of,
    first_line,
    operator_of,
    schema_of,
    torch_package,
)
from qdialect.frontends.torch.program.reader import read_traced
from qdialect.support.diagnostics import ImportModelError

_MAX_NODES = 4096


@dataclass(frozen=True)
class Decomposition:
    """Nodes in order, constants among what they read, and for each result of the operator the name of what gives it."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]
    outputs: tuple[str, ...]
    is_single: bool
    """Whether the operator gives one tensor, not a list or several."""


def decompose(node: Node, tensors: Mapping[str, Output]) -> Decomposition:
    """The simpler operators of which PyTorch makes that of a node, given all tensors that the node reads.

    The names of the parts begin with that of the node.  Raises `UnsupportedError` where PyTorch knows no simpler form.
    """
    schema = schema_of(node.kind)
    if schema is None or not node.kind.startswith(("aten.", "torchao.")) or is_in_place(node.kind):
        raise UnsupportedError("operator is not supported")
    names = node.refs()
    module = _traced(node, names, tensors)
    try:
        graph, placeholders = read_traced(module, names)
    except ImportModelError as error:
        raise UnsupportedError(str(error)) from error
    # Below PyTorch's operators lie primitives, which are further from ours.
    is_simpler = all(part.kind != node.kind and not part.kind.startswith("prims.") for part in graph.nodes)
    require(is_simpler, "operator is not supported")

    def name_of(name: str) -> str:
        return placeholders.get(name, f"{node.name}.{name}")

    return Decomposition(
        tuple(_part(part.renamed(name_of), node, name_of(part.name)) for part in graph.nodes),
        {name_of(name): array for name, array in graph.constants.items()},
        tuple(map(name_of, graph.outputs)),
        [str(result.type) for result in schema.returns] == ["Tensor"],
    )


def _part(part: Node, node: Node, name: str) -> Node:
    return replace(part, name=name, where=node.where, origin=node.label)


def _traced(node: Node, names: tuple[str, ...], tensors: Mapping[str, Output]) -> Any:
    """The graph module of what the operator calls on tensors without memory."""
    torch = torch_package()
    examples = [
        torch.empty(tensors[name].shape, dtype=dtype_of(tensors[name].element), device="meta") for name in names
    ]
    table: Mapping[Any, Any] = import_module("torch._decomp").decomposition_table
    operator = operator_of(node.kind)
    own = {operator: table[operator]} if operator in table else {}
    # Coordinates are computed once for all channels, as in PyTorch's own compiler.
    plain = getattr(import_module("torch._decomp.decompositions"), "_grid_sampler_2d", None)
    if node.kind == "aten.grid_sampler_2d.default" and plain is not None:
        own = {operator: partial(plain, _expand_grid=examples[0].shape[1] == 1)}
    trace: Any = import_module("torch.fx.experimental.proxy_tensor").make_fx

    def call(*given: Any) -> Any:
        held = dict(zip(names, given, strict=True))
        return call_operator(node, lambda name: held[name], "meta")

    try:
        with torch.no_grad(), _counting(torch):
            return trace(call, decomposition_table=own, tracing_mode="real")(*examples)
    except UnsupportedError:
        raise
    except Exception as error:
        # Decompositions raise whatever they do, AssertionError among it.
        raise UnsupportedError(f"operator must take the arguments: {first_line(error)}") from error


def _counting(torch: Any) -> Any:
    """A mode that stops an operator which calls too many others."""
    base: Any = import_module("torch.utils._python_dispatch").TorchDispatchMode

    class Counting(base):
        """Counts calls."""

        calls = 0

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.calls += 1
            require(self.calls <= _MAX_NODES, f"operator must not be made of more than {_MAX_NODES} others")
            return function(*args, **(kwargs or {}))

    return Counting()
