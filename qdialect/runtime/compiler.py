"""From a `qnn` module to an `CompiledExecutable`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from qdialect import target as targets
from qdialect._mlir import dialect_module, ir, load_few_classes
from qdialect.context import load_dialects, make_context, verify
from qdialect.diagnostics import CompileError
from qdialect.late_imports import LATE_IMPORTS
from qdialect.lowering.lowered import phase_of
from qdialect.lowering.pipeline import Phase, lower, lower_further, target_of, threads_of
from qdialect.lowering.threads import MIN_CYCLES
from qdialect.runtime import memory, openmp, saving, workspace_pool
from qdialect.runtime.executable import CompiledExecutable
from qdialect.runtime.external_bindings import External
from qdialect.runtime.kernel_code import compiled_kernels
from qdialect.target import Target
from qdialect.threads import checked

_MET_IN_LOWERING = ("bufferization", "tensor", "ub")
"""Dialects that nothing here imports: the bindings do, where they meet an op."""


def check_target(target: Target) -> None:
    """Raise `CompileError` where this CPU lacks an instruction set of `target`."""
    missing = frozenset[str]() if target.is_portable else target.features - targets.host_features()
    if missing:
        raise CompileError(
            f"target '{target.name}' needs a CPU with {', '.join(sorted(missing))}, which this one lacks"
        )


def check_machine(target: str | Target, threads: int) -> None:
    """Raise `CompileError` where this machine cannot run code for `target`, or divide it among so many `threads`."""
    check_target(targets.resolve(target))
    if checked(threads) > 1:
        openmp.addresses()


def compile_module(
    module: ir.Module,
    *,
    target: str | Target = "host",
    threads: int = 1,
    allocate: memory.Allocate = memory.allocate,
    clocked: bool = False,
    externals: Mapping[str, External] = MappingProxyType({}),
    workspaces: int | None = None,
    min_cycles: int = MIN_CYCLES,
    is_verified: bool = False,
) -> CompiledExecutable:
    """Compile `module`, at whichever phase it is, for this machine; it stays as it is.

    `target` says which instructions may be used, as `qdialect.target.resolve` takes it: ``host`` is the best kind of
    code that this CPU has, and every CPU runs ``generic``. A call is divided among `threads` threads of the machine's
    OpenMP runtime, its kernels of at least `min_cycles` each, with the same result for every number. As many calls as
    `workspaces`, by default one for each CPU, run at the same time. `allocate` gives the memory for the constants and
    the workspaces. `clocked` code, which runs on one thread, writes into `ticks` of the executable when each of its
    calls begins. `externals` compute the functions that `qnn-outline-fused` has handed to a target, as
    `qdialect.compile` says. One that `is_verified` is not verified again.

    Raises `VerificationError` for a module that breaks a constraint, `CompileError` for one that cannot be lowered, for
    a target that this CPU cannot run, for more than one thread where there is no OpenMP runtime, and where `externals`
    lacks a function; `LoadError` for a library that cannot be loaded.
    """
    workspace_pool.checked(workspaces)
    chosen, wanted = prepared(module, target, threads, is_verified)
    early = max(phase_of(module), Phase.VECTOR, key=lambda phase: phase.number)
    found = lower(module, chosen, early, threads=wanted, clocked=clocked, min_cycles=min_cycles)
    # What a file would be made of: at phase `llvm` a module has ten times as many ops.
    kept = saving.kept(found.module)
    kernels = compiled_kernels(found.module, chosen) if early is Phase.VECTOR else None
    lowered = lower_further(found, chosen)
    return CompiledExecutable(lowered, allocate, workspaces, externals, kept=kept, empties=True, kernels=kernels)


def prepared(module: ir.Module, target: str | Target, threads: int, is_verified: bool = False) -> tuple[Target, int]:
    """The target and the number of threads that `module` is to be compiled for in this process.

    Raises `VerificationError` and `CompileError` as `compile_module` does before it compiles.
    """
    _load_dialects()
    chosen, wanted = target_of(module, target), threads_of(module, checked(threads))
    check_machine(chosen, wanted)
    if not is_verified:
        verify(module)
    return chosen, wanted


@cache
def _load_dialects() -> None:
    with LATE_IMPORTS:
        for namespace in _MET_IN_LOWERING:
            dialect_module(namespace)
        context = make_context()
        load_dialects(context, ("linalg", "llvm"))
        load_few_classes(context)
