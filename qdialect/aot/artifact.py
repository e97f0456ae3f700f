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
from qdialect.aot.network import Batch, Network, Version, checked_name, open_ports
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


def artifact_of(
    name: str, targets: Sequence[Target], lowered: Sequence[Lowered], batch: Batch | None = None
) -> Artifact:
    """The artifact of a network that was lowered for each of `targets`, those with the most features first.

    With a `batch` it was lowered for each of its sizes, the largest first, for one target after the other.

    `lowered` are at phase `llvm`, of one context, and are used up. Raises `InputError` for a name that C does not
    allow, and `CompileError` for code with a clock, which is not to be kept, and on a machine that is not x86-64.
    """
    first, machine = lowered[0], platform.machine()
    if machine not in _X86_64:
        # LLVM's JIT compiler makes code for the kind of machine that it runs on.
        raise CompileError(f"files of networks are compiled on x86-64 machines, but this one is {machine}")
    if first.clocked:
        raise CompileError("code with a clock is for profiles, and cannot be written into a file")
    count = len(batch.rows) if batch else 1
    groups = [lowered[i : i + count] for i in range(0, len(lowered), count)]
    versions = tuple(_version(target, group) for target, group in zip(targets, groups, strict=True))
    threads = max(one.threads for one in lowered)
    inputs, outputs = first.inputs, first.outputs
    if batch:
        inputs, outputs = open_ports(inputs, batch.factors[0]), open_ports(outputs, batch.factors[1])
    functions = first.external_functions()
    calls = tuple(function.call for function in functions)
    network = Network(checked_name(name), inputs, outputs, threads, versions, batch, calls)
    _check_external_calls(network)
    return Artifact(network, module_of(network, targets, lowered), functions)


def _check_external_calls(network: Network) -> None:
    """Raise `InputError` for a call of a symbol of the network itself."""
    own = {f"{network.name}_{function}" for function in FUNCTIONS}
    for call in network.external_calls:
        if call.symbol in own:
            wanted = f"name of a network that calls '{call.symbol}' must be another one"
            raise InputError(f"{wanted}, but got '{network.name}'")


def _version(target: Target, lowered: Sequence[Lowered]) -> Version:
    features = tuple(sorted(target.code_features))
    arena = max(one.arena_bytes for one in lowered)
    # Sizes of batches may share their constants.
    constants = sum({one.constants.tobytes(): one.constants.size for one in lowered}.values())
    return Version(target.name, features, arena, constants, lowered[-1].calls)
