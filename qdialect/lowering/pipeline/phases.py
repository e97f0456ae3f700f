"""The phases of compilation, their order, and the passes that lead to each."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from qdialect import targets
from qdialect.ir import context
from qdialect.ir._mlir import ir, walk
from qdialect.lowering.cost.register_tiles import Layout
from qdialect.lowering.cost.strategy import strategy_of
from qdialect.lowering.ir import lowered, phase_pass
from qdialect.lowering.ir.functions import MAIN, function_of, functions, has_body, name_of, ops_named
from qdialect.lowering.ir.lowered import PHASE, TARGET, Lowered, Phase, error_at_module, phase_of, target_name_of
from qdialect.lowering.ir.phase_pass import run_passes
from qdialect.lowering.linalg_to_vector.to_vector import ToVectorPass
from qdialect.lowering.qnn_to_linalg.pair_channels import PairChannelsPass
from qdialect.lowering.qnn_to_linalg.program.operands import check_elements
from qdialect.lowering.qnn_to_linalg.to_linalg import ToLinalgPass, main_function
from qdialect.lowering.threads import MIN_CYCLES
from qdialect.lowering.threads.to_threads import ToThreadsPass
from qdialect.lowering.vector_to_x86.to_x86 import ToX86Pass
from qdialect.lowering.x86_to_llvm.openmp import is_divided
from qdialect.lowering.x86_to_llvm.to_llvm import ToLlvmPass
from qdialect.passes.fuse_qnn import FuseQnnPass
from qdialect.passes.inline_outlined import InlineOutlinedPass
from qdialect.passes.pipeline import PassManager
from qdialect.passes.registry import Pass
from qdialect.support.diagnostics import CompileError, PassError
from qdialect.support.files import written_in_memory
from qdialect.targets import Target


@dataclass(frozen=True)
class _Settings:
    target: Target
    threads: int
    clocked: bool
    min_cycles: int


# The passes that lead to each phase from the one before.
_PASSES: Mapping[Phase, Callable[[_Settings], Sequence[Pass]]] = {
    Phase.FUSED: lambda settings: [InlineOutlinedPass(keep_extern=True), FuseQnnPass()],
    Phase.LINALG: lambda settings: [
        *([PairChannelsPass()] if Layout.PAIRS in strategy_of(settings.target).others else []),
        ToLinalgPass(settings.target.name, settings.clocked),
    ],
    Phase.VECTOR: lambda settings: [
        ToVectorPass(),
        *([ToThreadsPass(settings.threads, settings.min_cycles)] if settings.threads > 1 else []),
    ],
    Phase.X86: lambda settings: [ToX86Pass()],
    Phase.LLVM: lambda settings: [ToLlvmPass()],
}


def passes_between(
    start: Phase, end: Phase, target: Target, *, threads: int = 1, clocked: bool = False, min_cycles: int = MIN_CYCLES
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

    From phase `vector` on its kernels of at least `min_cycles` are divided among `threads`. `clocked` code writes the
    cycle counter before each of its calls, and on several threads behind each too. The target and threads in the
    attributes of a module from phase `linalg` on must agree.

    Raises `CompileError` for what cannot be lowered and for a module that is beyond `until`, `PassError` where fusion
    fails.
    """
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
        _run([InlineOutlinedPass(keep_extern=True)], copy)
        # Raises if there is no such function, or if it has several blocks.
        main_function(copy)
    for phase, passes in passes_between(start, until, target, threads=threads, clocked=clocked, min_cycles=min_cycles):
        _run(passes, copy)
        if phase is Phase.FUSED:
            # Once for all passes of a phase: the input module was valid.
            context.verify(copy)
            phase_pass.check_fused(copy)
    return _result(copy)


def lower_further(found: Lowered, target: Target) -> Lowered:
    """Lower the module of `found`, which is at phase `vector` or beyond, in place to phase `llvm`.

    Raises `CompileError` for what cannot be lowered.
    """
    for _, passes in passes_between(phase_of(found.module), Phase.LLVM, target):
        _run(passes, found.module)
    return _result(found.module)


# The data of constants: a listing is read, not parsed.
_DATA = re.compile(r'dense<"0x[0-9A-F]*">')
_SNAPSHOT = "builtin.module(snapshot-op-locations{{filename='{}'}})"
_SCOPES = "builtin.module(ensure-debug-info-scope-on-llvm-func{emission-kind=LineTablesOnly})"


def lower_with_lines(
    module: ir.Module, target: Target, listing: Path, *, threads: int = 1, clocked: bool = False
) -> tuple[Lowered, str]:
    """As `lower` to phase `llvm`, with line tables, and the text that belongs into the file `listing`.

    That is the text of phase `x86`, where most ops of vectors are one instruction. The code is the same as without.
    Raises what `lower` raises, and `CompileError` for a module that is beyond phase `x86`.
    """
    found = lower(module, target, Phase.X86, threads=threads, clocked=clocked)
    listed = written_in_memory(lambda path: run_passes(found.module, _SNAPSHOT.format(path), "line tables"))
    text = _DATA.sub("dense<...>", listed.decode())
    name = str(listing).encode(errors="replace").decode()

    def rename(op: ir.Operation) -> ir.WalkResult:
        _, line, column = context.location_of(op.location)
        op.location = context.file_location(name, line, column, op.context)
        return ir.WalkResult.ADVANCE

    def place(op: ir.Operation) -> ir.WalkResult:
        # LLVM wants a location where it may put the callee's code.
        if op.name in ("llvm.func", "llvm.call") and context.location_of(op.location)[0] != name:
            op.location = context.file_location(name, 1, 1, op.context)
        return ir.WalkResult.ADVANCE

    walk(found.module.operation, rename)
    lowered = lower_further(found, target)
    walk(lowered.module.operation, place)
    run_passes(lowered.module, _SCOPES, "line tables")
    return lowered, text


def lower_kernels(module: ir.Module, target: Target) -> None:
    """Lower a module of kernels at phase `vector`, without the attributes of a network, in place to phase `llvm`.

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
    phase = phase_of(module)
    return threads > 1 and (phase is Phase.LINALG or (phase is Phase.VECTOR and lowered.read(module).threads == 1))


def _run(passes: Sequence[Pass], module: ir.Module) -> None:
    """Run passes; errors are reported at the op, without the name of the pass."""
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


# Whether the `main` of a module has the arguments that the module's attributes describe: else it would be miscalled.

_ENTRY = "main"
_WORD_BYTES = 8


def check_entry(lowered: Lowered) -> None:
    """Raise `CompileError` where `main` of a module from phase `linalg` on does not match its attributes.

    It takes the arrays of all inputs and outputs, the readings of the clock if it is clocked, the constants, the
    working memory and, in phase `llvm`, the number of threads that it may ask for if it is divided. Before phase `llvm`
    every argument has a size, which is checked too.
    """
    module = lowered.module
    functions = (op.operation for op in module.body.operations if "sym_name" in op.operation.attributes)
    named = [op for op in functions if ir.StringAttr(op.attributes["sym_name"]).value == _ENTRY]
    if not named or not named[0].regions[0].blocks:
        raise error_at_module(module, f"module must have a function '{_ENTRY}' with a body to be run")
    types = [argument.type for argument in named[0].regions[0].blocks[0].arguments]
    # Bytes of each argument by the module's attributes; an empty one has one byte.
    ports = [(math.prod(port.shape) * port.dtype.itemsize) for port in (*lowered.inputs, *lowered.outputs)]
    clock = [_WORD_BYTES * lowered.readings] if lowered.clocked else []
    thread_limit = [_WORD_BYTES] if is_divided(lowered.module) else []
    sizes = [*ports, *clock, max(lowered.constants.size, 1), max(lowered.arena_bytes, 1), *thread_limit]
    if len(types) != len(sizes):
        raise error_at_module(module, f"function '{_ENTRY}' must take {len(sizes)} arguments, but takes {len(types)}")
    for index, (type_, size) in enumerate(zip(types, sizes, strict=True)):
        found = _bytes(type_)
        if found is not None and found > size:
            message = f"argument {index} of '{_ENTRY}' must have at most {size} bytes, but has {found}"
            raise error_at_module(module, message)


def _bytes(type_: ir.Type) -> int | None:
    """Size of a memref; None for a pointer, which has none."""
    if not isinstance(type_, ir.MemRefType) or not type_.has_static_shape:
        return None
    element = type_.element_type
    bits = element.width if isinstance(element, ir.IntegerType | ir.FloatType) else 8
    return math.prod(type_.shape) * bits // 8


# Lowers kernels separately from their network, a few at a time.

_KERNELS = 16
# Kernels in all: an engine for a group takes some milliseconds to start, and few kernels need little memory.
_WORTH = 4 * _KERNELS
_NAMES_ANOTHER = ("func.call", "func.constant", "memref.get_global", "llvm.call", "llvm.mlir.addressof")


def taken_groups(module: ir.Module) -> Iterator[ir.Module]:
    """Move the kernels of a module at phase `vector` into modules, group by group; declarations stay.

    Functions that reference other functions or constants of the module stay too. Each module has an empty `main`.
    """
    # The functions of `module`, except `main`, that reference no other function and no constant of it.
    tied = {name_of(function_of(op)) for op in ops_named(module, *_NAMES_ANOTHER)} | {MAIN}
    kernels = [one for one in functions(module) if has_body(one) and name_of(one) not in tied]
    if len(kernels) < _WORTH:
        return
    count = -(-len(kernels) // _KERNELS)
    for index in range(count):
        yield _taken(module, kernels[index * len(kernels) // count : (index + 1) * len(kernels) // count])


def add_table(group: ir.Module) -> list[str]:
    """Make `main` of a group at phase `llvm` write the addresses of its kernels into an array; returns their names."""
    ops = [op.operation for op in group.body.operations if op.operation.name == "llvm.func"]
    names = [name_of(op) for op in ops if len(op.regions[0].blocks)]
    names.remove(MAIN)
    with group.context, ir.Location.unknown():
        references = [str(ir.FlatSymbolRefAttr.get(name)) for name in names]
        next(op for op in ops if name_of(op) == MAIN).erase()
        source = ir.Module.parse(_table(references))
        with ir.InsertionPoint(group.body):
            main = next(op.operation for op in source.body.operations if name_of(op.operation) == MAIN)
            main.clone()
    return names


def _taken(module: ir.Module, kernels: Sequence[ir.Operation]) -> ir.Module:
    with module.context, module.operation.location:
        group = ir.Module.parse("func.func @main() {\n return\n}")
        for name in (PHASE, TARGET):
            group.operation.attributes[name] = module.operation.attributes[name]
        for kernel in kernels:
            with ir.InsertionPoint(kernel), kernel.location:
                kept = {name: kernel.attributes[name] for name in ("sym_name", "function_type")}
                private = {"sym_visibility": ir.StringAttr.get("private")}
                ir.Operation.create("func.func", attributes={**kept, **private}, regions=1)
            kernel.attributes["sym_visibility"] = ir.StringAttr.get("private")
            kernel.detach_from_parent()
            group.body.append(kernel)
    return group


def _table(references: Sequence[str]) -> str:
    """A module with `main` that stores the addresses of functions."""
    declarations = [f"llvm.func {reference}()" for reference in references]
    stores = [
        f"%a{i} = llvm.mlir.addressof {reference} : !llvm.ptr\n"
        f"%p{i} = llvm.getelementptr %table[{i}] : (!llvm.ptr) -> !llvm.ptr, i64\n"
        f"llvm.store %a{i}, %p{i} : !llvm.ptr, !llvm.ptr"
        for i, reference in enumerate(references)
    ]
    return "\n".join([*declarations, f"llvm.func @{MAIN}(%table: !llvm.ptr) {{", *stores, "llvm.return", "}"])
