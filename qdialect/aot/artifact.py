"""A network compiled ahead of time: one module with all versions of it, and the files that can be written."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from qdialect.aot import entry_points, record
from qdialect.aot.cpu_dispatch import symbol_part
from qdialect.aot.entry_points import FUNCTIONS, Body, start_symbol
from qdialect.aot.object_file import object_file, shared_library
from qdialect.aot.record import ALIGNMENT, Batch, Network, Version, checked_name, open_ports
from qdialect.ir._mlir import ir, llvm, walk
from qdialect.ir.module_text import metadata_of
from qdialect.lowering.ir.functions import REFERENCES, symbols
from qdialect.lowering.ir.lowered import TARGET, Lowered
from qdialect.lowering.x86_to_llvm.openmp import is_divided
from qdialect.support.diagnostics import CompileError, InputError
from qdialect.support.externals import ExternalFunction
from qdialect.support.interface import State
from qdialect.support.log import tell
from qdialect.targets import GENERIC, Target

_WORD_BYTES = 8
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
        tell("machine code")
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
        return self.module.operation.get_asm()


def artifact_of(
    name: str, targets: Sequence[Target], lowered: Sequence[Lowered], batch: Batch | None = None
) -> Artifact:
    """The artifact of a network that was lowered for each of `targets`, those with the most features first.

    With a `batch` it was lowered for each of its sizes, the largest first, for one target after the other.

    `lowered` are at phase `llvm`, of one context, and are used up. Raises `InputError` for a name that C does not
    allow, and `CompileError` for code with a clock that takes any batch, and on a machine that is not x86-64.
    """
    first, machine = lowered[0], platform.machine()
    if machine not in _X86_64:
        # LLVM's JIT compiler makes code for the kind of machine that it runs on.
        raise CompileError(f"files of networks are compiled on x86-64 machines, but this one is {machine}")
    if first.clocked and batch:
        raise CompileError("code with a clock must be for a batch of one size")
    count = len(batch.rows) if batch else 1
    groups = [lowered[i : i + count] for i in range(0, len(lowered), count)]
    versions = tuple(_version(target, group) for target, group in zip(targets, groups, strict=True))
    threads = max(one.threads for one in lowered)
    inputs, outputs = first.inputs, first.outputs
    if batch:
        inputs, outputs = open_ports(inputs, batch.factors[0]), open_ports(outputs, batch.factors[1])
    functions = first.external_functions()
    calls = tuple(function.call for function in functions)
    metadata = metadata_of(first.module)
    network = Network(checked_name(name), inputs, outputs, threads, versions, batch, calls, metadata, first.states)
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
    clock = _clock(lowered[0])
    memory = clock[0] + clock[1] * _WORD_BYTES if clock else arena
    return Version(target.name, features, memory, constants, lowered[-1].calls, clock)


def _clock(lowered: Lowered) -> tuple[int, int] | None:
    """Where the readings of the clock stand, which is behind the working memory, and how many."""
    return (-(-lowered.arena_bytes // ALIGNMENT) * ALIGNMENT, lowered.readings) if lowered.clocked else None


# One module of the LLVM dialect with all versions of a network, its constants and its public functions.

_ENTRY = "main"
_CPU = "x86-64"
_FUNCTION = "llvm.func"
_GLOBAL = "llvm.mlir.global"


def module_of(network: Network, targets: Sequence[Target], lowered: Sequence[Lowered]) -> ir.Module:
    """The module of a network; `lowered` are its versions at phase `llvm`, of one context, which are used up.

    A version is lowered for each size of batches that its code is for; those of a version stand together.
    """
    with lowered[0].module.context, ir.Location.unknown():
        module = ir.Module.create()
        # All of it is compiled alike: as the version that LLVM has most to do for.
        decisive = next((target for target in targets if target.is_generic), targets[0])
        module.operation.attributes[TARGET] = ir.StringAttr.get(decisive.name)
        with ir.InsertionPoint(module.body):
            builder = _Builder(network, module)
            suffixes = [f".{rows}" for rows in network.batch.rows] if network.batch else [""]
            remaining = iter(lowered)
            versions = [
                [builder.add_version(symbol_part(target) + suffix, target, next(remaining)) for suffix in suffixes]
                for target in targets
            ]
            builder.add_constant(f"{network.name}.record", np.frombuffer(record.written(network), np.uint8))
            for state in network.states:
                builder.add_start(state, lowered[0].constants)
            builder.add_entry_points(entry_points.text(network, targets, versions))
    return module


@dataclass
class _Builder:
    """Adds to a module at the current insertion point."""

    network: Network
    module: ir.Module
    _blocks: dict[bytes, str] = field(default_factory=dict[bytes, str])
    _declared: set[str] = field(default_factory=set[str])

    def add_version(self, name: str, target: Target, lowered: Lowered) -> Body:
        """Add the functions and constants of a version, by names of its own."""
        prefix = f"{self.network.name}.{name}"
        # Its functions are known by their names, which change here.
        was_divided = is_divided(lowered.module)
        functions = list(symbols(lowered.module))
        renamed = {name: f"{prefix}.{name}" for name, op in functions if len(op.regions[0].blocks)}
        for name, op in functions:
            if name in renamed:
                self._add_own(op, renamed, target)
            elif name not in self._declared:
                # Symbols of a runtime or of libc.
                self._declared.add(name)
                op.clone()
        constants = self._add_block(f"{prefix}.constants", lowered.constants)
        clock = _clock(lowered)
        return Body(renamed[_ENTRY], constants, was_divided, clock[0] if clock else None)

    def add_constant(self, name: str, data: NDArray[np.uint8]) -> None:
        byte = ir.IntegerType.get_signless(8)
        attributes = {
            "sym_name": ir.StringAttr.get(name),
            "global_type": ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{data.size} x i8>")),
            "linkage": ir.Attribute.parse("#llvm.linkage<internal>"),
            "constant": ir.UnitAttr.get(),
            "alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ALIGNMENT),
            "addr_space": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0),
            "value": ir.DenseElementsAttr.get(data.view(np.int8), type=byte),
        }
        ir.Operation.create(_GLOBAL, attributes=attributes, regions=1)

    def add_start(self, state: State, constants: NDArray[np.uint8]) -> None:
        """Add what a state holds before the first call, which stands among the constants of a version."""
        if state.start >= 0:
            port = self.network.outputs[state.output]
            size = math.prod(port.shape) * port.dtype.itemsize
            self.add_constant(start_symbol(self.network, state), constants[state.start : state.start + size])

    def add_entry_points(self, text: str) -> None:
        """Add the functions of `text`; its declarations are defined here already."""
        present = {name for name, _ in symbols(self.module)}
        source = ir.Module.parse(text)
        for name, op in symbols(source):
            if name in present:
                continue
            if op.name == _FUNCTION:
                # It runs before the CPU is known.
                _name_cpu(op, GENERIC)
            op.clone()

    def _add_own(self, op: ir.Operation, renamed: dict[str, str], target: Target) -> None:
        rename(op, renamed)
        if op.name == _FUNCTION:
            _name_cpu(op, target)
        if "sym_visibility" in op.attributes:
            del op.attributes["sym_visibility"]
        op.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
        op.clone()

    def _add_block(self, name: str, data: NDArray[np.uint8]) -> str:
        """The symbol of the constants `data`, which versions may share."""
        # Whole lines, at least one: empty data has an address too.
        block = np.concatenate([data, np.zeros(-data.size % ALIGNMENT if data.size else ALIGNMENT, np.uint8)])
        key = block.tobytes()
        if key not in self._blocks:
            self._blocks[key] = name
            self.add_constant(name, block)
        return self._blocks[key]


def rename(op: ir.Operation, renamed: Mapping[str, str]) -> None:
    """Give a function or constant of the LLVM dialect, and all that it names, the new names."""
    name = ir.StringAttr(op.attributes["sym_name"]).value
    op.attributes["sym_name"] = ir.StringAttr.get(renamed.get(name, name))

    def visit(inner: ir.Operation) -> ir.WalkResult:
        for key in REFERENCES:
            if key in inner.attributes:
                name = ir.FlatSymbolRefAttr(inner.attributes[key]).value
                inner.attributes[key] = ir.FlatSymbolRefAttr.get(renamed.get(name, name))
        return ir.WalkResult.ADVANCE

    walk(op, visit)


def _name_cpu(function: ir.Operation, target: Target) -> None:
    """Set the features that the code of a function may use, and the CPU that it is tuned for."""
    names = [f"+{name}" for name in sorted(target.code_features)] or ["+sse2"]
    attribute = f"#llvm.target_features<{names}>".replace("'", '"')
    function.attributes["target_cpu"] = ir.StringAttr.get(_CPU)
    function.attributes["tune_cpu"] = ir.StringAttr.get(target.cpu)
    function.attributes["target_features"] = ir.Attribute.parse(attribute)
