"""Every phase of a compilation run on the same arrays, and compared bit for bit with the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from qdialect import context
from qdialect._mlir import ir
from qdialect.lowering import lowered
from qdialect.lowering.lowered import phase_of
from qdialect.lowering.phase import Phase
from qdialect.lowering.pipeline import lower, target_of, threads_of
from qdialect.lowering.qnn_to_linalg import main_function
from qdialect.module_text import Printing
from qdialect.runtime.comparison import Difference, differing_bits, first_difference
from qdialect.runtime.phase_kernels import first_kernel
from qdialect.runtime.phase_nodes import Node, first_node
from qdialect.runtime.phase_runs import RUNS
from qdialect.target import Target

Array = NDArray[Any]


@dataclass(frozen=True)
class PhaseResult:
    """What a phase computed, compared with the first phase."""

    phase: Phase
    differing: int
    """Elements of all outputs whose bits differ."""
    elements: int
    first: Difference | None
    """The first of them."""
    node: Node | None = None
    """Of the first phase that differs: the first op of the fused network whose value differs, or the first kernel."""


def compare_phases(
    module: ir.Module, inputs: Sequence[Array], *, target: str | Target = "host", threads: int = 1
) -> tuple[PhaseResult, ...]:
    """Run `module` at its own phase and at each one after it, and compare the outputs of each with those of the first.

    What is run is what the text of a phase says: each is printed and parsed before it is run and lowered further.
    Raises `CompileError` for a module that cannot be lowered or a target that this CPU cannot run, and `InputError`
    for arrays that do not fit.
    """
    chosen, count = target_of(module, target), threads_of(module, threads)
    start = phase_of(module)
    modules: dict[Phase, ir.Module] = {}
    results: list[PhaseResult] = []
    expected: tuple[Array, ...] = ()
    current = module
    for phase in [start, *start.up_to(Phase.LLVM)]:
        wanted = count if phase.number >= Phase.VECTOR.number else 1
        current = _reread(lower(current, chosen, phase, threads=wanted).module)
        modules[phase] = current
        found = RUNS[phase].run(current, inputs)
        expected = expected or found
        result = _compared(phase, _names(module, len(found)), expected, found)
        if result.differing and not any(earlier.differing for earlier in results):
            node = first_node(modules, phase, inputs, chosen, wanted) or first_kernel(modules, phase, inputs)
            result = replace(result, node=node)
        results.append(result)
    return tuple(results)


def _reread(module: ir.Module) -> ir.Module:
    return context.parse(Printing(enable_debug_info=True).text(module), context.make_context())


def _names(module: ir.Module, count: int) -> tuple[str, ...]:
    """The names of the outputs."""
    if phase_of(module) is Phase.QNN:
        return tuple(port.name for port in lowered.ports(main_function(module), "res"))[:count]
    return tuple(port.name for port in lowered.read(module).outputs)


def _compared(phase: Phase, names: Sequence[str], expected: Sequence[Array], found: Sequence[Array]) -> PhaseResult:
    pairs = list(zip(names, expected, found, strict=True))
    masks = [differing_bits(wanted, got) for _, wanted, got in pairs]
    firsts = (first_difference(name, wanted, got) for name, wanted, got in pairs)
    first = next((one for one in firsts if one is not None), None)
    return PhaseResult(phase, sum(int(mask.sum()) for mask in masks), sum(mask.size for mask in masks), first)
