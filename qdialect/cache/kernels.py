"""Kernels one by one: each that needs nothing of its network is compiled alone, under a name of its own.

A network is taken apart at phase `vector`, after it was divided among threads: from there on each function is lowered
for itself, and most of the time of a compilation is still to come. Two networks that have a layer of the same shape and
arithmetic have the same kernel, whatever its weights are: these are arguments.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qdialect.aot.artifact import rename
from qdialect.aot.object_file import WRAPPER, c_compiler, object_file, renamed, run_linker
from qdialect.cache.fingerprint import key
from qdialect.cache.store import Store
from qdialect.ir._mlir import ir, ops_in
from qdialect.lowering.ir.functions import REFERENCES, symbols
from qdialect.lowering.ir.lowered import TARGET
from qdialect.support.diagnostics import CompileError
from qdialect.support.limits import SYMBOLS
from qdialect.support.log import tell

ENTRY = "main"

_KIND, _GROUP_KIND = "kernel", "group of kernels"
_OBJECT, _GROUP = "object", "group"
_FUNCTION, _GLOBAL = "func.func", "memref.global"
_LLVM_FUNCTION = "llvm.func"
_SYMBOL = re.compile(r"@([A-Za-z_][\w$.]*)")
_QUOTED_SYMBOL = '@"'


@dataclass(frozen=True)
class Kernel:
    """A function at phase `vector` that needs nothing of its module but constants that are its alone."""

    name: str
    constants: tuple[str, ...]
    key: str
    """The name of its entry, which depends on all that its code depends on."""

    @property
    def symbol(self) -> str:
        """Its symbol in object files."""
        return f"{_KIND}_{self.key[:32]}"


@dataclass(frozen=True)
class KnownKernels:
    """Kernels that were compiled before, with others of a network: starting an engine takes longer than a kernel."""

    keys: frozenset[str]
    objects: Mapping[str, bytes]
    """The object files that have them, by the name of their entry."""


def kernels_of(module: ir.Module, *parts: bytes | str) -> list[Kernel]:
    """The kernels of a module at phase `vector` that can be compiled alone; `parts` are what else code depends on."""
    texts = {name: op.get_asm(enable_debug_info=False, assume_verified=True) for name, op in _bodies(module)}
    references = {name: set(_SYMBOL.findall(text)) & texts.keys() - {name} for name, text in texts.items()}
    functions = {name for name, op in symbols(module) if op.name == _FUNCTION}
    readers: dict[str, set[str]] = {}
    for name, found in references.items():
        for reference in found:
            readers.setdefault(reference, set()).add(name)
    declared = {name for name, _ in symbols(module)} - texts.keys()
    kernels: list[Kernel] = []
    for name in functions & texts.keys() - {ENTRY}:
        constants = sorted(references[name])
        is_alone = all(readers[one] == {name} and one not in functions for one in constants)
        text = "\n".join([texts[name], *(texts[one] for one in constants)])
        if not is_alone or _QUOTED_SYMBOL in text or declared & set(_SYMBOL.findall(text)):
            continue
        own = text.replace(f"@{name}", f"@{_KIND}")
        kernels.append(Kernel(name, tuple(constants), key(_KIND, own, *parts)))
    return sorted(kernels, key=lambda kernel: list(texts).index(kernel.name))


def known_kernels(store: Store, kernels: Sequence[Kernel]) -> KnownKernels:
    """Those of `kernels` that were compiled before."""
    found = {kernel.key: store.get(kernel.key) for kernel in kernels}
    group_of = {name: bytes(sections[_GROUP]).decode() for name, sections in found.items() if sections}
    contents = {group: store.get(group) for group in dict.fromkeys(group_of.values())}
    objects = {group: bytes(sections[_OBJECT]) for group, sections in contents.items() if sections}
    return KnownKernels(frozenset(name for name, group in group_of.items() if group in objects), objects)


def drop_bodies(module: ir.Module, kernels: Sequence[Kernel]) -> None:
    """Leave of `kernels`, in a module at phase `vector`, their declarations alone."""
    names = {kernel.name for kernel in kernels}
    constants = {name for kernel in kernels for name in kernel.constants}
    for name, op in list(symbols(module)):
        if name in names:
            with ir.InsertionPoint(op), op.location:
                kept = {key: op.attributes[key] for key in ("sym_name", "function_type", "sym_visibility")}
                ir.Operation.create(_FUNCTION, attributes=kept, regions=1)
        if name in names | constants:
            op.erase()


def compiled_apart(module: ir.Module, kernels: Sequence[Kernel], known: KnownKernels, store: Store) -> list[bytes]:
    """The object files of a network at phase `llvm`: that of `main` and of what is not a kernel, and those of kernels.

    Of those that are `known`, `module` has the declarations alone. `module` is used up. What is compiled is put into
    `store`.
    """
    objects = dict(known.objects)
    fresh = [kernel for kernel in kernels if kernel.key not in known.keys]
    if fresh:
        tell("machine code of kernels")
        group = key(_GROUP_KIND, *(kernel.key for kernel in fresh))
        objects[group] = object_file(_taken_out(module, fresh), fresh[0].symbol)
        is_kept = store.put(group, {_OBJECT: objects[group]})
        for kernel in fresh if is_kept else ():
            store.put(kernel.key, {_GROUP: group.encode()})
    _rename(module, {kernel.name: kernel.symbol for kernel in kernels})
    add(module)
    rest = object_file(module, ENTRY, shown=SHOWN_ENTRY)
    # Debuggers and profilers of this process show them as all tools do.
    names = {kernel.symbol: kernel.name for kernel in kernels}
    return [renamed(one, names) for one in (rest, *objects.values())]


def _taken_out(module: ir.Module, kernels: Sequence[Kernel]) -> ir.Module:
    """A module with kernels of one at phase `llvm`, under their symbols; that one keeps the declarations."""
    ops = dict(symbols(module))
    with module.context, ir.Location.unknown():
        apart = ir.Module.create()
        # How it is compiled depends on its target.
        apart.operation.attributes[TARGET] = module.operation.attributes[TARGET]
        names: dict[str, str] = {}
        for kernel in kernels:
            own = (kernel.name, *kernel.constants)
            names.update((name, name.replace(kernel.name, kernel.symbol, 1)) for name in own)
            _take(kernel, ops, names, apart)
        _rename(apart, names)
    return apart


def _take(kernel: Kernel, ops: Mapping[str, ir.Operation], names: Mapping[str, str], apart: ir.Module) -> None:
    """Move a kernel and its constants to the module `apart`; its declaration stays."""
    function = ops[kernel.name]
    there = {name for name, _ in symbols(apart)}
    with ir.InsertionPoint(function):
        kept = {key: function.attributes[key] for key in ("sym_name", "function_type")}
        ir.Operation.create(_LLVM_FUNCTION, attributes={**kept, "linkage": _linkage("external")}, regions=1)
    with ir.InsertionPoint(apart.body):
        # The symbols that a function of the LLVM dialect references.
        named = ((op, one) for op in ops_in(function) for one in REFERENCES if one in op.attributes)
        for name in dict.fromkeys([ir.FlatSymbolRefAttr(op.attributes[one]).value for op, one in named]):
            if name not in kernel.constants and name not in there:
                ops[name].clone()
    for name in (*kernel.constants, kernel.name):
        ops[name].detach_from_parent()
        apart.body.append(ops[name])
        # A linker leaves out what a network does not use of an object.
        kind = "text" if name == kernel.name else "rodata"
        ops[name].attributes["section"] = ir.StringAttr.get(f".{kind}.{names[name]}")
    if "sym_visibility" in function.attributes:
        del function.attributes["sym_visibility"]
    # Kernels are internal to their network. Where two objects have the same one, either will do.
    function.attributes["linkage"] = _linkage("weak_odr")


def _linkage(kind: str) -> ir.Attribute:
    return ir.Attribute.parse(f"#llvm.linkage<{kind}>")


def _rename(module: ir.Module, names: Mapping[str, str]) -> None:
    """Give functions and constants of a module of the LLVM dialect, and all that names them, new names."""
    with module.context:
        for _, op in list(symbols(module)):
            rename(op, names)


def _bodies(module: ir.Module) -> Iterator[tuple[str, ir.Operation]]:
    """Those that are not just declared."""
    for name, op in symbols(module):
        if op.name == _GLOBAL or len(op.regions[0].blocks):
            yield name, op


# The functions of the OpenMP runtime that compiled code calls, as calls by a table of addresses.
#
# Which runtime a process uses is known when a network is loaded: it may be one that PyTorch brought, or the one that an
# environment variable names. So the code depends on none: whoever loads it writes the addresses into the table.

TABLE = "qdialect_openmp"
"""The symbol of the table, an array of pointers in the order of `SYMBOLS`; only code that calls the runtime has it."""

SHOWN_ENTRY = f"{WRAPPER}main"
"""The function of a network's code that is called, with an array of pointers to the arguments of `main`."""

# Parameters and the result of each function.
_TYPES = {
    "GOMP_parallel": ("!llvm.ptr, !llvm.ptr, i32, i32", ""),
    "omp_get_num_threads": ("", "i32"),
    "omp_get_thread_num": ("", "i32"),
}


def add(module: ir.Module) -> None:
    """Define what a module of the LLVM dialect declares of the runtime; one that declares nothing stays as it is."""
    declared = {ir.StringAttr(op.operation.attributes["sym_name"]).value: op.operation for op in module.body.operations}
    called = [symbol for symbol in SYMBOLS if symbol in declared]
    if not called:
        return
    with module.context, ir.Location.unknown():
        source = ir.Module.parse("\n".join([_table(), *map(_call, called)]))
        with ir.InsertionPoint(module.body):
            for op in list(source.body.operations):
                op.operation.clone()
    for symbol in called:
        declared[symbol].erase()
    _rename(module, {symbol: f"{TABLE}.{symbol}" for symbol in called})


def _table() -> str:
    type_ = f"!llvm.array<{len(SYMBOLS)} x ptr>"
    return (
        f"llvm.mlir.global external @{TABLE}() : {type_} {{ %0 = llvm.mlir.zero : {type_} llvm.return %0 : {type_} }}"
    )


def _call(symbol: str) -> str:
    parameters, result = _TYPES[symbol]
    types = parameters.split(", ") if parameters else []
    typed = ", ".join(f"%a{i}: {type_}" for i, type_ in enumerate(types))
    arguments = ", ".join(f"%a{i}" for i in range(len(types)))
    returned = "%r = " if result else ""
    return f"""
llvm.func internal @{TABLE}.{symbol}({typed}){f" -> {result}" if result else ""} {{
  %table = llvm.mlir.addressof @{TABLE} : !llvm.ptr
  %slot = llvm.getelementptr %table[{SYMBOLS.index(symbol)}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %function = llvm.load %slot : !llvm.ptr -> !llvm.ptr
  {returned}llvm.call %function({arguments}) : !llvm.ptr, ({parameters}) -> {result or "()"}
  llvm.return {f"%r : {result}" if result else ""}
}}"""


# Object files as one shared library, where the machine has a linker.

_OPTIONS = (
    *("-shared", "-nostartfiles", "-Wl,--version-script=symbols.map", "-Wl,--build-id=none", "-Wl,--gc-sections"),
    *("-Wl,-z,now", "-Wl,-z,relro", "-Wl,-z,noexecstack", "-Wl,--as-needed", "-o", "network.so"),
)


def linked(objects: Sequence[bytes]) -> bytes | None:
    """The shared library of a network's objects, the same for the same ones; None where no C compiler links it."""
    try:
        command = c_compiler()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            files = [f"{number}.o" for number in range(len(objects))]
            for file, content in zip(files, objects, strict=True):
                (folder / file).write_bytes(content)
            (folder / "symbols.map").write_text(f"{{ global: {SHOWN_ENTRY}; {TABLE}; local: *; }};\n")
            run_linker([*command, *_OPTIONS, *files, "-lm"], folder)
            return (folder / "network.so").read_bytes()
    except (CompileError, OSError):
        return None
