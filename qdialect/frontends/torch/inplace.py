"""Operators that work in place become those that give a new tensor.

That is the same where nobody else reads what is overwritten; where somebody does, the operator keeps its name, which
the front end does not support.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from qdialect.frontends.torch.model import Node, Ref
from qdialect.frontends.torch.schemas import is_view, schema_of


def functional(nodes: Sequence[Node], outputs: Sequence[str]) -> tuple[Node, ...]:
    """The nodes, in order of execution, with those in place renamed; `outputs` are read by the caller.

    Takes one look at each node.
    """
    readers = Counter(name for node in nodes for name in node.refs())
    readers.update(set(outputs))
    # What nobody but its one reader sees: results of operators, and views of these alone.
    own: set[str] = set()
    found: list[Node] = []
    for node in nodes:
        schema = schema_of(node.kind)
        if schema is None:
            found.append(node)
            continue
        operand = next(iter(node.arguments.values()), None)
        if schema.is_mutable and isinstance(operand, Ref) and operand.name in own:
            found.append(replace(node, kind=_functional(node.kind)))
        else:
            found.append(node)
        if readers[node.name] <= 1 and (not is_view(schema) or all(name in own for name in node.refs())):
            own.add(node.name)
    return tuple(found)


def _functional(kind: str) -> str:
    name, _, overload = kind.rpartition(".")
    return f"{name.removesuffix('_')}.{overload}"
