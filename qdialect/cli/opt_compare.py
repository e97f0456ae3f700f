"""``qdialect-opt --compare-phases``: every phase run on the same arrays, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from qdialect.cli import terminal
from qdialect.cli.npy import read_npy
from qdialect.ir._mlir import ir
from qdialect.lowering.ir import lowered
from qdialect.lowering.pipeline.phases import Phase
from qdialect.lowering.qnn_to_linalg.to_linalg import main_function
from qdialect.runtime.comparison import random_inputs
from qdialect.runtime.phase_comparison import RUNS, PhaseResult, compare_phases
from qdialect.support.interface import Array


def comparison(module: ir.Module, names: Sequence[str], target: str, threads: int) -> tuple[str, bool]:
    """A table of what each phase of `module` computes on the arrays of these files, and whether it is the same.

    Without files the inputs are random. Raises what `compare_phases` raises.
    """
    inputs = [read_npy(name) for name in names] or _random_inputs(module)
    results = compare_phases(module, inputs, target=target, threads=threads, progress=_tell)
    rows = [(result.phase, RUNS[result.phase].means, f"{result.differing} of {result.elements}") for result in results]
    text = terminal.render_table(("phase", "run as", "elements that differ"), rows)
    first = next((result for result in results if result.differing), None)
    return "\n".join([text, "", _verdict(results, first)]) + "\n", first is None


def _random_inputs(module: ir.Module) -> list[Array]:
    at_graph = lowered.phase_of(module) is Phase.QNN
    ports = lowered.ports(main_function(module), "arg") if at_graph else lowered.read(module).inputs
    return random_inputs(ports, 0)


def _tell(result: PhaseResult) -> None:
    terminal.progress(f"phase {result.phase}: {result.differing} of {result.elements} elements differ")


def _verdict(results: Sequence[PhaseResult], first: PhaseResult | None) -> str:
    if first is None:
        return f"all phases compute the same bits as phase {results[0].phase}"
    lines = [f"phase {first.phase} is the first that differs from phase {results[0].phase}: output {first.first}"]
    node = first.node
    if node is None:
        lines.append("no op or kernel differs on its own")
    elif node.op:
        kernel = f" in kernel @{node.kernel}" if node.kernel else ""
        lines.append(f"first op that differs: '{node.op}' {node.name}{kernel}: {node.difference}")
    else:
        lines.append(f"first kernel that differs: @{node.kernel} {node.name}: {node.difference}")
    return "\n".join(lines)
