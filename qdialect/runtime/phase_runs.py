"""How a module is run at each phase, by as little as possible of what comes after that phase."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from qdialect import context
from qdialect._mlir import ir
from qdialect.lowering import lowered
from qdialect.lowering.phase import Phase
from qdialect.lowering.pipeline import lower, target_of
from qdialect.lowering.plain_loops import linalg_to_plain_loops
from qdialect.lowering.plain_vectors import vector_to_plain_code
from qdialect.lowering.qnn_to_linalg import main_function
from qdialect.reference import interpreter
from qdialect.runtime.compiler import check_target
from qdialect.runtime.executable import CompiledExecutable

Array = NDArray[Any]


@dataclass(frozen=True)
class PhaseRun:
    """How a module at some phase is run."""

    means: str
    """What computes, in a few words."""
    run: Callable[[ir.Module, Sequence[Array]], tuple[Array, ...]]
    code: Callable[[ir.Module], ir.Module] | None = None
    """The functions of the LLVM dialect that are run; None where NumPy computes."""


def _reference(module: ir.Module, inputs: Sequence[Array]) -> tuple[Array, ...]:
    copy = context.copy(module)
    with copy.context:
        # The interpreter runs a function of this name.
        main_function(copy).attributes["sym_name"] = ir.StringAttr.get("main")
    return interpreter.run(copy, inputs)


def _plain_loops(module: ir.Module) -> ir.Module:
    copy = context.copy(module)
    linalg_to_plain_loops(copy)
    return copy


def _plain_vectors(module: ir.Module) -> ir.Module:
    copy = context.copy(module)
    vector_to_plain_code(copy)
    return copy


def _target_code(module: ir.Module) -> ir.Module:
    target = target_of(module, "host")
    check_target(target)
    return lower(module, target, threads=lowered.read(module).threads).module


def _compiled(means: str, code: Callable[[ir.Module], ir.Module]) -> PhaseRun:
    return PhaseRun(means, lambda module, inputs: called(code(module), inputs), code)


def called(module: ir.Module, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """What ``main`` of a module at phase `llvm` gives."""
    found = CompiledExecutable(lowered.read(module))(*inputs)
    return found if isinstance(found, tuple) else (found,)


RUNS: Mapping[Phase, PhaseRun] = {
    Phase.QNN: PhaseRun("NumPy reference", _reference),
    Phase.FUSED: PhaseRun("NumPy reference", _reference),
    Phase.LINALG: _compiled("loops over scalars", _plain_loops),
    Phase.VECTOR: _compiled("vector code for any CPU", _plain_vectors),
    Phase.X86: _compiled("the target's instructions", _target_code),
    Phase.LLVM: _compiled("machine code of the text", _target_code),
}
"""How each phase is run."""
