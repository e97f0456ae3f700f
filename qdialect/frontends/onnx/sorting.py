"""Nodes in an order in which they can be executed: a file may hold them in any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush
from typing import TypeVar

from qdialect.frontends.onnx.model import Node

T = TypeVar("T")


def in_order(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """`nodes`, each after those that give what it and the graphs in it read; of others the first of the file is first.

    Nodes on a cycle, and what depends on them, come last as they stand in the file.
    """
    giver = {name: index for index, node in reversed(list(enumerate(nodes))) for name in node.outputs if name}
    waits = [{giver[name] for name in (*node.inputs, *node.captured) if name in giver} for node in nodes]
    readers: list[list[int]] = [[] for _ in nodes]
    for index, needed in enumerate(waits):
        for other in needed:
            readers[other].append(index)
    ready = [index for index, needed in enumerate(waits) if not needed]
    heapify(ready)
    order: list[int] = []
    while ready:
        found = heappop(ready)
        order.append(found)
        for reader in readers[found]:
            waits[reader].discard(found)
            if not waits[reader]:
                heappush(ready, reader)
    done = set(order)
    return tuple(nodes[index] for index in (*order, *(i for i in range(len(nodes)) if i not in done)))


def callees_first(calls: Mapping[T, Sequence[T]]) -> list[T] | None:
    """The functions of `calls`, which says what each of them calls, after those that they call; None for a cycle."""
    sorter = TopologicalSorter(calls)
    try:
        return list(sorter.static_order())
    except CycleError:
        return None
