"""A network compiled ahead of time: what can be written into files."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from qdialect._mlir import ir, llvm
from qdialect.aot.entry_points import FUNCTIONS
from qdialect.aot.linking import shared_library
from qdialect.aot.module import module_of
from qdialect.aot.network import Network, Version, checked_name
from qdialect.aot.object_file import object_file
from qdialect.diagnostics import CompileError, InputError
from qdialect.externals.function import ExternalFunction
from qdialect.lowering.lowered import Lowered
from qdialect.target import Target

_X86_64 = ("x86_64", "AMD64")


@dataclass(frozen=True)
class Artifact:
    """A network, and a module of the LLVM dialect with all of it."""

    network: Network
    module: ir.Module
    externals: tuple[ExternalFunction, ...]
    """The functions of other libraries, one for each call."""

    @cached_property
    def object(self) -> bytes:
        """An ELF object file; raises `CompileError` where LLVM refuses the module."""
        return object_file(self.module, f"{self.network.name}_network")

    def library(self, file_name: str) -> bytes:
        """A shared library that loaders know as `file_name`.

        Raises `CompileError` where there is no C compiler to link it, and where LLVM refuses the module.
        """
        return shared_library(self.object, self.network, file_name)

    def llvm_ir(self) -> str:
        """The module as text of LLVM IR, not yet optimized."""
        return llvm.translate_module_to_llvmir(self.module.operation)

    def mlir(self) -> str:
        """The module as text of MLIR's LLVM dialect."""
        return self.module.operation.get_asm()


def artifact_of(name: str, targets: Sequence[Target], lowered: Sequence[Lowered]) -> Artifact:
    """The artifact of a network that was lowered for each of `targets`, those with the most features first.

    `lowered` are at phase `llvm`, of one context, and are used up. Raises `InputError` for a name that C does not
    allow, and `CompileError` for code with a clock, which is not to be kept, and on a machine that is not x86-64.
    """
    first, machine = lowered[0], platform.machine()
    if machine not in _X86_64:
        # LLVM's JIT compiler makes code for the kind of machine that it runs on.
        raise CompileError(f"files of networks are compiled on x86-64 machines, but this one is {machine}")
    if first.clocked:
        raise CompileError("code with a clock is for profiles, and cannot be written into a file")
    versions = tuple(_version(target, one) for target, one in zip(targets, lowered, strict=True))
    threads = max(one.threads for one in lowered)
    functions = first.external_functions()
    calls = tuple(function.call for function in functions)
    network = Network(checked_name(name), first.inputs, first.outputs, threads, versions, calls)
    _check_symbols(network)
    return Artifact(network, module_of(network, targets, lowered), functions)


def _check_symbols(network: Network) -> None:
    """Raise `InputError` where a function of another library is called as one of the network's own."""
    own = {f"{network.name}_{function}" for function in FUNCTIONS}
    for call in network.external_calls:
        if call.symbol in own:
            wanted = f"name of a network that calls '{call.symbol}' must be another one"
            raise InputError(f"{wanted}, but got '{network.name}'")


def _version(target: Target, lowered: Lowered) -> Version:
    features = tuple(sorted(target.code_features))
    return Version(target.name, features, lowered.arena_bytes, lowered.constants.size, lowered.calls)
