"""A model that is divided between this compiler and its own framework, whatever the format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from qdialect._mlir import ir
from qdialect.diagnostics import NOT_COMPILED
from qdialect.frontends.common import Array
from qdialect.frontends.planning.module import ValueRefusedError
from qdialect.frontends.planning.partition import Part, Partition, PartitionNode, partition

Runner = Callable[[Sequence[Array]], Sequence[Array]]
"""Computes the outputs of a region of the framework from its inputs."""
Compiled = TypeVar("Compiled")
# A region that is refused so often is left to the framework as a whole.
_MAX_ROUNDS = 16


class PartRefusedError(Exception):
    """Nodes of a part cannot be compiled: why, by their indices."""

    def __init__(self, reasons: Mapping[int, str]) -> None:
        super().__init__()
        self.reasons = reasons


@dataclass(frozen=True)
class OpenInterface:
    """An input or output of a divided model; an extent of -1 is known when it runs and not before."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    """By NumPy's name."""
    scale: float | None = None
    zero_point: int | None = None


class Division(ABC):
    """What of a model can be compiled, and how its parts are compiled or given to the framework.

    `name` is what messages call the model, `framework` is that of the framework.
    """

    name: str
    framework: str
    nodes: Sequence[PartitionNode]
    """Those that compute something, in the order of execution."""
    inputs: Sequence[OpenInterface]
    outputs: Sequence[OpenInterface]
    constants: Mapping[str, Array]
    """Outputs that are known."""

    @abstractmethod
    def module(self, part: Part) -> ir.Module:
        """The module of a part; raises `PartRefusedError`, and `ImportModelError` for the part as a whole."""

    @abstractmethod
    def runner(self, part: Part, threads: int) -> Runner:
        """The framework with a part loaded; raises `ImportModelError` where the framework does not take it."""


def divide(division: Division, compile_: Callable[[ir.Module], Compiled]) -> tuple[Partition, list[Compiled | None]]:
    """The partition of a model all of whose compiled parts are compiled, and what `compile_` made of each.

    What a part cannot have where it begins or ends shows when it is imported, so the model is divided again and again
    until every part is compiled; what was compiled is kept.
    """
    outputs = [tensor.name for tensor in division.outputs]
    reasons: dict[int, str] = {}
    done: dict[Part, Compiled] = {}
    rounds = 0
    while True:
        nodes = [replace(node, reason=reasons.get(i, node.reason)) for i, node in enumerate(division.nodes)]
        found = partition(nodes, outputs)
        refused: dict[int, str] = {}
        for part in found.parts:
            if part.is_compiled and part not in done:
                refused.update(_compile(division, part, compile_, done, is_whole=rounds >= _MAX_ROUNDS))
        if not refused:
            return found, [done.get(part) for part in found.parts]
        reasons.update(refused)
        rounds += 1


def _compile(
    division: Division,
    part: Part,
    compile_: Callable[[ir.Module], Compiled],
    done: dict[Part, Compiled],
    *,
    is_whole: bool,
) -> Mapping[int, str]:
    """Put what a part is compiled to into `done`; else why its nodes cannot be."""
    try:
        done[part] = compile_(division.module(part))
    except PartRefusedError as error:
        if not is_whole:
            return error.reasons
        return dict.fromkeys(part.nodes, next(iter(error.reasons.values())))
    except NOT_COMPILED as error:
        value = error.value if isinstance(error, ValueRefusedError) and not is_whole else ""
        given = {name: index for index in part.nodes for name in division.nodes[index].gives}
        return dict.fromkeys([given[value]] if value in given else part.nodes, error.message)
    return {}


def refused_nodes(
    part: Part,
    nodes: Sequence[PartitionNode],
    reasons: Mapping[str, str],
    interface_reasons: Mapping[str, str],
) -> dict[int, str]:
    """Why nodes of a part cannot be compiled, by what a planner says of titles, and of inputs and outputs by name."""
    found = {index: reasons[nodes[index].title] for index in part.nodes if nodes[index].title in reasons}
    for index in part.nodes:
        near = [name for name in (*nodes[index].reads, *nodes[index].gives) if name in interface_reasons]
        at_edge = [name for name in near if name in nodes[index].gives or name in part.inputs]
        if at_edge and index not in found:
            found[index] = f"'{at_edge[0]}' cannot leave its region: {interface_reasons[at_edge[0]]}"
    return found
