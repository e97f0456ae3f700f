"""Kernels one by one: each that needs nothing of its network is compiled alone, under a name of its own.

A network is taken apart at phase `vector`, after it was divided among threads: from there on each function is lowered
for itself, and most of the time of a compilation is still to come. Two networks that have a layer of the same shape and
arithmetic have the same kernel, whatever its weights are: these are arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from qdialect._mlir import ir, walk
from qdialect.aot.object_file import object_file
from qdialect.cache import openmp_calls
from qdialect.cache.keys import key
from qdialect.cache.store import Store
from qdialect.lowering.functions import REFERENCES, symbols
from qdialect.lowering.lowered import TARGET

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
        """What it is called in object files."""
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
        group = key(_GROUP_KIND, *(kernel.key for kernel in fresh))
        objects[group] = object_file(_taken_out(module, fresh), fresh[0].symbol)
        is_kept = store.put(group, {_OBJECT: objects[group]})
        for kernel in fresh if is_kept else ():
            store.put(kernel.key, {_GROUP: group.encode()})
    _rename(module, {kernel.name: kernel.symbol for kernel in kernels})
    openmp_calls.add(module)
    rest = object_file(module, ENTRY, shown=openmp_calls.SHOWN_ENTRY)
    return [rest, *objects.values()]


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
        for name in dict.fromkeys(_references(function)):
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
    for name, op in list(symbols(module)):
        with module.context:
            op.attributes["sym_name"] = ir.StringAttr.get(names.get(name, name))

    def visit(op: ir.Operation) -> ir.WalkResult:
        for attribute in REFERENCES:
            if attribute in op.attributes:
                name = ir.FlatSymbolRefAttr(op.attributes[attribute]).value
                op.attributes[attribute] = ir.FlatSymbolRefAttr.get(names.get(name, name), module.context)
        return ir.WalkResult.ADVANCE

    walk(module.operation, visit)


def _references(function: ir.Operation) -> list[str]:
    """What a function of the LLVM dialect calls or reads, by name."""
    found: list[str] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.extend(ir.FlatSymbolRefAttr(op.attributes[one]).value for one in REFERENCES if one in op.attributes)
        return ir.WalkResult.ADVANCE

    walk(function, visit)
    return found


def _bodies(module: ir.Module) -> Iterator[tuple[str, ir.Operation]]:
    """Those that are not just declared."""
    for name, op in symbols(module):
        if op.name == _GLOBAL or len(op.regions[0].blocks):
            yield name, op
