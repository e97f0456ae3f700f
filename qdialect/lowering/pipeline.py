"""The phases of compilation, their order, and the passes that lead to each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from qdialect import context
from qdialect import target as targets
from qdialect._mlir import ir
from qdialect.diagnostics import CompileError, PassError
from qdialect.lowering import contracts, lowered
from qdialect.lowering.entry import check_entry
from qdialect.lowering.lowered import Lowered, error_at_module, phase_of, target_name_of
from qdialect.lowering.operands.constant_operands import check_elements
from qdialect.lowering.passes.pair_channels import PairChannelsPass
from qdialect.lowering.passes.to_linalg import ToLinalgPass
from qdialect.lowering.passes.to_llvm import ToLlvmPass
from qdialect.lowering.passes.to_threads import ToThreadsPass
from qdialect.lowering.passes.to_vector import ToVectorPass
from qdialect.lowering.passes.to_x86 import ToX86Pass
from qdialect.lowering.phase import Phase
from qdialect.lowering.qnn_to_linalg import main_function
from qdialect.lowering.threads import MIN_CYCLES
from qdialect.lowering.tiling.strategy import strategy_of
from qdialect.passes.fuse_qnn import FuseQnnPass
from qdialect.passes.inline_outlined import InlineOutlinedPass
from qdialect.passes.pass_base import Pass
from qdialect.pipeline import PassManager
from qdialect.target import Target


@dataclass(frozen=True)
class _Settings:
    target: Target
    threads: int
    clocked: bool
    min_cycles: int


# What leads to each phase from the one before.
_PASSES: Mapping[Phase, Callable[[_Settings], Sequence[Pass]]] = {
    Phase.FUSED: lambda settings: [InlineOutlinedPass(keep_handed_off=True), FuseQnnPass()],
    Phase.LINALG: lambda settings: [
        *([PairChannelsPass()] if strategy_of(settings.target).pair_model else []),
        ToLinalgPass(settings.target.name, settings.clocked, settings.threads),
    ],
    Phase.VECTOR: lambda settings: [
        ToVectorPass(),
        *([ToThreadsPass(settings.threads, settings.min_cycles)] if settings.threads > 1 else []),
    ],
    Phase.X86: lambda settings: [ToX86Pass()],
    Phase.LLVM: lambda settings: [ToLlvmPass()],
}


def passes_between(
    start: Phase,
    end: Phase,
    target: Target,
    *,
    threads: int = 1,
    clocked: bool = False,
    min_cycles: int = MIN_CYCLES,
) -> list[tuple[Phase, list[Pass]]]:
    """Each phase after `start` as far as `end`, with the passes that lead to it."""
    settings = _Settings(target, threads, clocked, min_cycles)
    return [(phase, list(_PASSES[phase](settings))) for phase in start.up_to(end)]


def lower(
    module: ir.Module,
    target: Target,
    until: Phase = Phase.LLVM,
    *,
    threads: int = 1,
    clocked: bool = False,
    min_cycles: int = MIN_CYCLES,
) -> Lowered:
    """Lower a copy of `module` from the phase it is at as far as `until`.

    From phase `vector` on its kernels of at least `min_cycles` are divided among `threads`. `clocked` code, which runs
    on one thread, writes down when each of its calls begins. What a module from phase `linalg` on says of its target
    and its threads must agree.

    Raises `CompileError` for what cannot be lowered and for a module that is beyond `until`, `PassError` where fusion
    fails.
    """
    if clocked and threads > 1:
        raise CompileError(f"clocked code must run on one thread, but got {threads}")
    start = phase_of(module)
    if start.number > until.number:
        raise error_at_module(module, f"module is at phase {start}, and cannot be lowered to phase {until}")
    if start.number < Phase.LINALG.number <= until.number:
        check_elements(module)
    copy = context.copy(module)
    if start is not Phase.QNN:
        _check_agreement(module, target, threads, clocked)
        _run(
            [ToThreadsPass(threads, min_cycles)] if start is Phase.VECTOR and _can_be_divided(module, threads) else [],
            copy,
        )
    else:
        _run([InlineOutlinedPass(keep_handed_off=True)], copy)
        # Raises where there is no such function, or one of several blocks.
        main_function(copy)
    for phase, passes in passes_between(start, until, target, threads=threads, clocked=clocked, min_cycles=min_cycles):
        _run(passes, copy)
        if phase is Phase.FUSED:
            # Once for all of its passes: the module that came in was valid.
            context.verify(copy)
            contracts.check_fused(copy)
    return _result(copy)


def lower_further(found: Lowered, target: Target) -> Lowered:
    """Lower the module of `found`, which is at phase `vector` or beyond, in place to phase `llvm`.

    Raises `CompileError` for what cannot be lowered.
    """
    for _, passes in passes_between(phase_of(found.module), Phase.LLVM, target):
        _run(passes, found.module)
    return _result(found.module)


def lower_kernels(module: ir.Module, target: Target) -> None:
    """Lower a module of kernels at phase `vector`, which says nothing of a network, in place to phase `llvm`.

    Raises `CompileError` for what cannot be lowered.
    """
    for _, passes in passes_between(phase_of(module), Phase.LLVM, target):
        _run(passes, module)


def compile_to(module: ir.Module, phase: Phase, target: Target, threads: int = 1) -> ir.Module:
    """The module at `phase`."""
    return lower(module, target, phase, threads=threads).module


def target_of(module: ir.Module, target: str | Target) -> Target:
    """The target to lower `module` for: its own where ``host`` is asked for and it has one."""
    own = target_name_of(module)
    return targets.resolve(own if own and target == "host" else target)


def threads_of(module: ir.Module, threads: int) -> int:
    """The number of threads to lower `module` for: its own where one is asked for and it has them."""
    return lowered.read(module).threads if threads == 1 and phase_of(module).number >= Phase.VECTOR.number else threads


def _check_agreement(module: ir.Module, target: Target, threads: int, clocked: bool) -> None:
    """Raise `CompileError` where a module from phase `linalg` on was lowered for something else."""
    phase, own_target, own = phase_of(module), target_name_of(module), lowered.read(module)
    check_entry(own)
    if own_target != target.name:
        raise error_at_module(module, f"module was lowered for target '{own_target}', but got '{target.name}'")
    if threads != own.threads and not _can_be_divided(module, threads):
        raise error_at_module(module, f"module at phase {phase} runs on {own.threads} threads, but got {threads}")
    if clocked and not own.clocked:
        raise error_at_module(module, f"clocked code must be lowered from phase qnn, but module is at phase {phase}")


def _can_be_divided(module: ir.Module, threads: int) -> bool:
    """Whether `module` may still be divided among `threads`."""
    phase = phase_of(module)
    return threads > 1 and (phase is Phase.LINALG or (phase is Phase.VECTOR and lowered.read(module).threads == 1))


def _run(passes: Sequence[Pass], module: ir.Module) -> None:
    """Run passes; what cannot be lowered is said without the name of the pass, at its op."""
    try:
        PassManager(*passes, verify=False).run(module)
    except PassError as error:
        if isinstance(error.__cause__, CompileError):
            raise error.__cause__ from error
        raise


def _result(module: ir.Module) -> Lowered:
    if phase_of(module) is not Phase.QNN:
        return lowered.read(module)
    function = main_function(module)
    inputs, outputs = lowered.ports(function, "arg"), lowered.ports(function, "res")
    return Lowered(module, np.empty(0, np.uint8), 0, inputs, outputs)
