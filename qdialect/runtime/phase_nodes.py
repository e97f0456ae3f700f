"""Which op of a network is the first that a phase computes differently.

The network is compiled once more with the value of every op among its results, and these are compared in their order.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from qdialect import context
from qdialect._mlir import ir, walk
from qdialect.context import location_of
from qdialect.dialect.constants import CONSTANT_OPS
from qdialect.locations import key_of, names_of
from qdialect.lowering.phase import Phase
from qdialect.lowering.pipeline import lower
from qdialect.lowering.qnn_to_linalg import main_function
from qdialect.reference import interpreter
from qdialect.runtime.comparison import Difference, first_difference
from qdialect.runtime.layers import return_also
from qdialect.runtime.phase_runs import RUNS
from qdialect.target import Target

Array = NDArray[Any]


@dataclass(frozen=True)
class Node:
    """An op of the fused network whose value differs, or a kernel call that makes an output differ."""

    op: str
    """Empty for a kernel call."""
    name: str
    """The names of the model's nodes that it computes, or its location in the text."""
    kernel: str
    """The function that computes it at the phases from `linalg` on; empty before, and where several ops have one."""
    difference: Difference


def first_node(
    modules: Mapping[Phase, ir.Module], phase: Phase, inputs: Sequence[Array], target: Target, threads: int
) -> Node | None:
    """The first op whose value differs at `phase`; None where a network that returns all values computes them alike.

    `modules` are the network at every phase as far as `phase`. None also where they begin after phase `fused`: there
    is no graph then.
    """
    if Phase.FUSED not in modules:
        return None
    if phase is Phase.FUSED:
        return _fused_node(modules[Phase.QNN], modules[Phase.FUSED], inputs)
    layered, operations = _with_all_values(modules[Phase.FUSED])
    lowered = lower(layered, target, phase, threads=threads).module
    found = RUNS[phase].run(lowered, inputs)
    expected = RUNS[Phase.FUSED].run(layered, inputs)
    first = len(expected) - len(operations)
    for op, wanted, got in zip(operations, expected[first:], found[first:], strict=True):
        difference = first_difference("value", wanted, got)
        if difference:
            return Node(op.name, title(op.location), _kernel(modules[Phase.LINALG], op), difference)
    return None


def _with_all_values(module: ir.Module) -> tuple[ir.Module, list[ir.Operation]]:
    """A network that returns the value of each of its ops too, and those ops."""
    copy = context.copy(module)
    function = main_function(copy)
    *operations, last = [op.operation for op in function.regions[0].blocks[0].operations]
    computing = [op for op in operations if op.name not in CONSTANT_OPS]
    return_also(function, last, [op.results[0] for op in computing])
    return copy, computing


def _fused_node(graph: ir.Module, fused: ir.Module, inputs: Sequence[Array]) -> Node | None:
    """The first op of the fused network that differs from the last op of the graph that it stands for."""
    known: dict[Hashable, Array] = {}

    def remember(op: ir.Operation, value: Array) -> None:
        known[key_of(op.location)] = value

    nodes: list[Node] = []

    def compare(op: ir.Operation, value: Array) -> None:
        parts = [known[key] for key in map(key_of, _parts(op.location)) if key in known]
        alike = [part for part in parts if part.shape == value.shape and part.dtype == value.dtype]
        differences = [first_difference("value", part, value) for part in alike]
        if differences and all(differences) and op.name not in CONSTANT_OPS:
            nodes.extend(Node(op.name, title(op.location), "", d) for d in differences[:1] if d)

    interpreter.run(graph, inputs, observe=remember)
    interpreter.run(fused, inputs, observe=compare)
    return nodes[0] if nodes else None


def _parts(location: ir.Location) -> list[ir.Location]:
    return list(location.locations) if isinstance(location, ir.FusedLoc) else [location]


def title(location: ir.Location) -> str:
    """The names of the model's nodes at a location, or where it stands in a text."""
    names = names_of(location)
    file, line, column = location_of(location)
    return f"'{', '.join(names)}'" if names else f"at {file}:{line}:{column}"


def _kernel(module: ir.Module, op: ir.Operation) -> str:
    """The function that computes `op` at phase `linalg`: that of the last call at its location."""
    calls: list[str] = []

    def visit(call: ir.Operation) -> ir.WalkResult:
        if call.name == "func.call" and key_of(call.location) == key_of(op.location):
            calls.append(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)
        return ir.WalkResult.ADVANCE

    walk(module.operation, visit)
    return calls[-1] if calls else ""
