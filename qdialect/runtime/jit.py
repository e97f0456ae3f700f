"""Machine code of a module, made and called in this process."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from qdialect.aot.object_file import WRAPPER, functions_of
from qdialect.ir._mlir import ExecutionEngine, ir, llvm
from qdialect.ir.context import captured_diagnostics
from qdialect.lowering.x86_to_llvm.to_llvm import optimization_level
from qdialect.runtime.library import PERF_MAP
from qdialect.runtime.native import BoundCall, packed_call
from qdialect.support.diagnostics import CompileError
from qdialect.support.files import written_in_memory

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
