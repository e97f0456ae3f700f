"""From a `qnn` module to a `CompiledExecutable`: a network that was compiled in this process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from ctypes import addressof
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from qdialect import targets
from qdialect.aot.object_file import WRAPPER, functions_of
from qdialect.aot.record import Batch, name_of_file
from qdialect.ir._mlir import ExecutionEngine, dialect_module, ir, llvm, load_few_classes
from qdialect.ir.context import captured_diagnostics, load_dialects, make_context, verify
from qdialect.ir.module_text import metadata_of
from qdialect.lowering.ir.functions import MAIN
from qdialect.lowering.ir.lowered import CONSTANTS, phase_of, target_name_of
from qdialect.lowering.pipeline import phases
from qdialect.lowering.pipeline.phases import Lowered, Phase, lower, target_of, threads_of
from qdialect.lowering.threads import MIN_CYCLES
from qdialect.lowering.x86_to_llvm.openmp import is_divided
from qdialect.lowering.x86_to_llvm.to_llvm import is_left_as_it_is, keep_to_target, optimization_level
from qdialect.runtime import memory, openmp
from qdialect.runtime.constants import Constants, placed
from qdialect.runtime.external_calls import External, ExternalBindings
from qdialect.runtime.library import PERF_MAP
from qdialect.runtime.native import (
    BoundCall,
    NativeExecutable,
    NetworkCode,
    allocated,
    compiled_region,
    packed_call,
    starts_of,
)
from qdialect.runtime.openmp import THREAD_LIMIT
from qdialect.support.diagnostics import CompileError
from qdialect.support.files import written_in_memory
from qdialect.support.late_imports import LATE_IMPORTS
from qdialect.support.limits import checked
from qdialect.support.log import tell
from qdialect.targets import Target

# Machine code of a module, made and called in this process.

_WORD = 64

PERF_FOLDER = os.path.join("/", "tmp")
"""Where it looks for them, independent of the environment's folder for temporary files."""


class MachineCode:
    """A module of the LLVM dialect as machine code for this machine's CPU.

    Functions live as long as this object; `symbols` are the addresses of external symbols.
    Raises `CompileError` where LLVM refuses the module.
    """

    def __init__(self, module: ir.Module, symbols: Mapping[str, int] = MappingProxyType({})) -> None:
        with captured_diagnostics(module.context) as said:
            try:
                level = optimization_level(module)
                self._engine = ExecutionEngine(module, opt_level=level, enable_object_dump=PERF_MAP in os.environ)
            except RuntimeError as error:
                raise CompileError("module cannot be turned into machine code", tuple(said)) from error
        self._functions = _functions(module)
        self._is_mapped = False
        for name, address in symbols.items():
            self._engine.raw_register_runtime(name, ctypes.c_void_p(address))

    def bind(
        self, name: str, values: Sequence[int], keep: Sequence[object] = (), *, is_short: bool = False
    ) -> BoundCall:
        """A call of the function `name`, which returns nothing, with these values for its arguments, 64 bits each.

        It keeps this object and what is in `keep` alive. Raises `CompileError` where the module has no such function,
        or one with other arguments.
        """
        if name not in self._functions:
            raise CompileError(f"module must have a function '{name}' that can be called")
        _check_call(name, self._functions[name], len(values))
        # The engine has a wrapper for every function, which takes an array of pointers to its arguments.
        address = self._engine.raw_lookup(name)
        if PERF_MAP in os.environ and not self._is_mapped:
            self._is_mapped = True
            _write_perf_map(self._engine, WRAPPER + name, address)
        return packed_call(address, values, (self, *keep), is_short=is_short)


def _write_perf_map(engine: ExecutionEngine, known: str, address: int) -> None:
    """Add the functions of `engine` to the file where ``perf`` looks for them; that of the name `known` is there."""
    functions = functions_of(written_in_memory(engine.dump_to_object_file))
    (here,) = (function for function in functions if function.name == known)
    start = address - here.start
    own = [one for one in functions if one.section == here.section and not one.name.startswith(WRAPPER)]
    lines = [f"{start + one.start:x} {one.size:x} {one.name}\n" for one in own]
    with Path(PERF_FOLDER, f"perf-{os.getpid()}.map").open("a", encoding="utf-8") as file:
        file.writelines(lines)


@dataclass(frozen=True)
class _Signature:
    """The signature of a function, without MLIR's types, which would keep all constants of their context."""

    arguments: int
    problem: str
    """Why it cannot be called with values of 64 bits; empty where it can."""


def _functions(module: ir.Module) -> dict[str, _Signature]:
    """The signatures of the functions that have a body, by name."""
    found = [op.operation for op in module.body.operations if op.operation.name == "llvm.func"]
    named = {ir.StringAttr(op.attributes["sym_name"]).value: op for op in found if len(op.regions[0].blocks)}
    return {name: _signature(name, op) for name, op in named.items()}


def _signature(name: str, function: ir.Operation) -> _Signature:
    type_ = llvm.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    for index, argument in enumerate(type_.inputs):
        if not isinstance(argument, llvm.PointerType) and not _is_word(argument):
            what = "an integer of at most 64 bits or a pointer"
            problem = f"argument {index} of function '{name}' must be {what}, but got {argument}"
            return _Signature(len(type_.inputs), problem)
    is_void = str(type_.return_type) == "!llvm.void"
    problem = f"function '{name}' must return nothing to be called, but got {type_.return_type}"
    return _Signature(len(type_.inputs), "" if is_void else problem)


def _check_call(name: str, signature: _Signature, count: int) -> None:
    """Raise `CompileError` where the function cannot be called with `count` values of 64 bits."""
    if count != signature.arguments:
        raise CompileError(f"function '{name}' must be called with {signature.arguments} values, but got {count}")
    if signature.problem:
        raise CompileError(signature.problem)


def _is_word(type_: ir.Type) -> bool:
    return isinstance(type_, ir.IntegerType) and type_.width <= _WORD


_MET_IN_LOWERING = ("bufferization", "tensor", "ub")
"""Dialects that nothing here imports: the bindings import them when they see an op."""


def check_target(target: Target) -> None:
    """Raise `CompileError` where this CPU lacks an instruction set of `target`."""
    missing = frozenset[str]() if target.is_portable else target.features - targets.host_features()
    if missing:
        raise CompileError(
            f"target '{target.name}' needs a CPU with {', '.join(sorted(missing))}, which this one lacks"
        )


def check_machine(target: str | Target, threads: int) -> None:
    """Raise `CompileError` if this machine cannot run code for `target`, or cannot run `threads` threads."""
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

    `target` sets which instructions may be used, as `qdialect.targets.resolve` takes it: ``host`` is the best kind of
    code that this CPU has, and every CPU runs ``generic``. A call is divided among `threads` threads of the machine's
    OpenMP runtime, its kernels of at least `min_cycles` each, with the same result for every number. As many calls as
    `workspaces`, by default one for each CPU, run at the same time. `allocate` gives the memory for the constants and
    the workspaces. `clocked` code writes into `ticks` of the executable when each of its
    calls begins. `externals` compute the functions that `qnn-outline-fused` has handed to a target, as
    `qdialect.compile` describes. One that `is_verified` is not verified again.

    Raises `VerificationError` for a module that breaks a constraint, `CompileError` for one that cannot be lowered, for
    a target that this CPU cannot run, for more than one thread where there is no OpenMP runtime, and where `externals`
    lacks a function; `LoadError` for a library that cannot be loaded.
    """
    memory.checked(workspaces)
    chosen, wanted = prepared(module, target, threads, is_verified)
    early = max(phase_of(module), Phase.VECTOR, key=lambda phase: phase.number)
    found = lower(module, chosen, early, threads=wanted, clocked=clocked, min_cycles=min_cycles)
    # A file is made from this phase: at phase `llvm` a module has ten times the ops.
    kept = kept_for_saving(found.module)
    kernels = compiled_kernels(found.module, chosen) if early is Phase.VECTOR else None
    lowered = phases.lower_further(found, chosen)
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


_ENTRY = "main"


class CompiledExecutable(NativeExecutable):
    """A network as machine code of this process, with its constants and workspaces."""

    def __init__(
        self,
        lowered: Lowered,
        allocate: memory.Allocate = memory.allocate,
        workspaces: int | None = None,
        externals: Mapping[str, External] = MappingProxyType({}),
        *,
        kept: bytes | None = None,
        empties: bool = False,
        kernels: KernelCode | None = None,
    ) -> None:
        """`lowered` is at phase `llvm`; `allocate` gives the memory for the constants and the workspaces.

        `externals` implement the extern functions. `kept` is the module as `kept_for_saving` gives it, at this phase or
        an earlier one, and `kernels` are those that were compiled before the rest. A caller that does not need the
        module any more lets it be emptied, as `CompiledCode` does. Raises `CompileError` if there is not enough memory,
        and if an extern function is missing.
        """
        limit = memory.checked(workspaces)
        self.inputs = lowered.inputs
        self.outputs = lowered.outputs
        self.kernels = lowered.kernels
        self.calls = lowered.calls
        self.threads = lowered.threads
        self.target = target_name_of(lowered.module) or targets.GENERIC.name
        self.metadata = metadata_of(lowered.module)
        self.constants_bytes = lowered.constants.size
        self.working_memory = lowered.arena_bytes
        self.regions = (compiled_region(self),)
        self.starts = starts_of(lowered.states, lowered.outputs, lowered.constants)
        self.ticks: NDArray[np.int64] = np.zeros(lowered.readings if lowered.clocked else 0, np.int64)
        """Of clocked code, the readings of the cycle counter in the last run, as `Lowered` has them; else empty."""
        self._kept = kept_for_saving(lowered.module) if kept is None else kept
        self._constants = placed(lowered.constants, allocate)
        clock = [self.ticks] if lowered.clocked else []
        code = CompiledCode(lowered, self._constants, allocate, clock, externals, empties=empties, kernels=kernels)
        self._takes_python = code.takes_python
        self._prepare(code, limit)

    def library(self, name: str) -> bytes:
        if self._takes_python:
            raise CompileError("network must not call Python functions to be saved, but externals has one")
        return library([(self._kept, self._constants.content())], name)


class CompiledCode(NetworkCode):
    """The code that the JIT compiler made, and its constants."""

    def __init__(
        self,
        lowered: Lowered,
        constants: Constants,
        allocate: memory.Allocate = memory.allocate,
        clock: Sequence[NDArray[np.int64]] = (),
        externals: Mapping[str, External] = MappingProxyType({}),
        *,
        empties: bool = False,
        kernels: KernelCode | None = None,
    ) -> None:
        """With `empties` all ops of the module of `lowered` are erased.

        LLVM has its own IR, from which it generates machine code at the first `bind`: else both and the code
        generator's IR would be in memory at once.
        """
        self._constants, self._clock = constants, clock
        self._arena_bytes, self._allocate = lowered.arena_bytes, allocate
        self._is_divided = is_divided(lowered.module)
        keep_to_target(lowered.module, targets.resolve(target_name_of(lowered.module) or targets.GENERIC))
        self._externals = ExternalBindings(lowered.external_functions(), externals)
        self._externals.set_records([constants.block.ctypes.data + start for start, _ in lowered.externals])
        runtime = openmp.addresses() if lowered.threads > 1 else {}
        self._kernels = kernels or KernelCode()
        symbols = {**runtime, **self._externals.symbols, **self._kernels.addresses}
        self._machine_code = MachineCode(lowered.module, symbols)
        if empties:
            empty(lowered.module)

    @property
    def takes_python(self) -> bool:
        """Whether a Python function implements one of the extern functions."""
        return self._externals.takes_python

    def workspace(self) -> memory.Block:
        return allocated("working memory", self._arena_bytes, self._allocate)

    def bind(self, starts: Sequence[int], workspace: memory.Block, keep: Sequence[object] = ()) -> BoundCall:
        blocks = [*self._clock, self._constants.block, workspace]
        values = [*starts, *(block.ctypes.data for block in blocks)]
        if self._is_divided:
            values.append(addressof(THREAD_LIMIT))
        kept = *blocks, self._constants, self._externals, self._kernels, *keep
        is_short = self.is_short and not self._externals.count
        bound = self._machine_code.bind(_ENTRY, values, kept, is_short=is_short)
        return self._externals.checked(bound, workspace.ctypes.data)


# Machine code of kernels that are compiled before the rest of their network, a few at a time.


@dataclass(frozen=True)
class KernelCode:
    """The addresses of kernels, by their symbols."""

    groups: list[MachineCode] = field(default_factory=list)
    addresses: dict[str, int] = field(default_factory=dict)

    def add(self, group: ir.Module, target: Target) -> None:
        """Compile a group at phase `vector`, which is lowered in place."""
        phases.lower_kernels(group, target)
        keep_to_target(group, target)
        names = phases.add_table(group)
        code = MachineCode(group)
        empty(group)
        table = np.zeros(len(names), np.uint64)
        code.bind(MAIN, [table.ctypes.data]).call()
        self.groups.append(code)
        self.addresses.update(zip(names, map(int, table), strict=True))


def compiled_kernels(module: ir.Module, target: Target) -> KernelCode:
    """Compile kernels of a module at phase `vector`; the module keeps only their declarations.

    If LLVM optimizes, functions stay together: it uses the arguments that `main` passes to them.
    """
    found = KernelCode()
    if is_left_as_it_is(module):
        for group in phases.taken_groups(module):
            tell("machine code of kernels")
            found.add(group, target)
    return found


def empty(module: ir.Module) -> None:
    """Erase all ops of a module that LLVM has translated."""
    for op in list(module.body.operations):
        op.operation.erase()


# Writes a compiled network as a file, from the module that an executable keeps.


def kept_for_saving(module: ir.Module) -> bytes:
    """A module from phase `vector` on without its constants, as bytecode, which takes the least memory."""
    attributes, content = module.operation.attributes, BytesIO()
    if CONSTANTS not in attributes:
        module.operation.write_bytecode(content)
        return content.getvalue()
    constants = attributes[CONSTANTS]
    del attributes[CONSTANTS]
    module.operation.write_bytecode(content)
    attributes[CONSTANTS] = constants
    return content.getvalue()


def library(parts: Sequence[tuple[bytes, NDArray[np.uint8]]], name: str, batch: Batch | None = None) -> bytes:
    """The network of modules that were `kept_for_saving`, each with its constants, as a shared library.

    There is one module or, with `batch`, one for each of its sizes.
    """
    with LATE_IMPORTS:
        from qdialect.aot.artifact import artifact_of
        from qdialect.aot.object_file import c_compiler

    # Before minutes of compilation, check that there is a compiler.
    c_compiler()
    # All modules of the library must be in one context.
    context = make_context()
    modules = [_with_constants(ir.Module.parse(content, context), constants) for content, constants in parts]
    target = targets.resolve(target_name_of(modules[0]) or targets.GENERIC)
    versions = [lower(module, target, threads=threads_of(module, 1)) for module in modules]
    return artifact_of(name_of_file(Path(name)), [target], versions, batch).library(name)


def _with_constants(module: ir.Module, constants: NDArray[np.uint8]) -> ir.Module:
    if constants.size:
        with module.context:
            module.operation.attributes[CONSTANTS] = ir.DenseElementsAttr.get(constants.view(np.int8))
    return module
