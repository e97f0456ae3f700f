"""From a `qnn` module to an `CompiledExecutable`."""

from __future__ import annotations

from functools import cache

from qdialect import target as targets
from qdialect._mlir import dialect_module, ir
from qdialect.context import verify
from qdialect.diagnostics import CompileError
from qdialect.late_imports import LATE_IMPORTS
from qdialect.lowering.pipeline import Phase, lower, target_of, threads_of
from qdialect.runtime import memory, openmp
from qdialect.runtime.executable import CompiledExecutable
from qdialect.target import Target
from qdialect.threads import checked

_MET_IN_LOWERING = ("bufferization", "linalg", "tensor", "ub")
"""Dialects that nothing here imports: the bindings do, where they meet an op."""


def check_target(target: Target) -> None:
    """Raise `CompileError` where this CPU lacks an instruction set of `target`."""
    missing = frozenset[str]() if target.is_portable else target.features - targets.host_features()
    if missing:
        raise CompileError(
            f"target '{target.name}' needs a CPU with {', '.join(sorted(missing))}, which this one lacks"
        )


def compile_module(
    module: ir.Module,
    *,
    target: str | Target = "host",
    threads: int = 1,
    allocate: memory.Allocate = memory.allocate,
    clocked: bool = False,
) -> CompiledExecutable:
    """Compile `module`, at whichever phase it is, for this machine; it stays as it is.

    `target` says which instructions may be used, as `qdialect.target.resolve` takes it: ``host`` is the best kind of
    code that this CPU has, and every CPU runs ``generic``. A call is divided among `threads` threads of the machine's
    OpenMP runtime, with the same result for every number. `allocate` gives the memory for the constants and the working
    memory. `clocked` code, which runs on one thread, writes into `ticks` of the executable when each of its calls
    begins.

    Raises `VerificationError` for a module that breaks a constraint, `CompileError` for one that cannot be lowered, for
    a target that this CPU cannot run, and for more than one thread where there is no OpenMP runtime.
    """
    _load_dialects()
    chosen, wanted = target_of(module, target), threads_of(module, checked(threads))
    check_target(chosen)
    if wanted > 1:
        openmp.addresses()
    verify(module)
    return CompiledExecutable(lower(module, chosen, Phase.LLVM, threads=wanted, clocked=clocked), allocate)


@cache
def _load_dialects() -> None:
    with LATE_IMPORTS:
        for namespace in _MET_IN_LOWERING:
            dialect_module(namespace)
