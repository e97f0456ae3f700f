"""Kernels one by one: each that needs nothing of its network is compiled alone, under a name of its own.

A network is taken apart at phase `vector`, after it was divided among threads: from there on each function is lowered
for itself, and most of the time of a compilation is still to come. Two networks that have a layer of the same shape and
arithmetic have the same kernel, whatever its weights are: these are arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from qdialect._mlir import ir
from qdialect.aot.object_file import object_file
from qdialect.cache import openmp_calls
from qdialect.cache.keys import key
from qdialect.cache.store import Store
from qdialect.lowering.lowered import TARGET

ENTRY = "main"

_KIND = "kernel"
_SECTION = "object"
_FUNCTION, _GLOBAL = "func.func", "memref.global"
_LLVM_FUNCTION, _LLVM_GLOBAL = "llvm.func", "llvm.mlir.global"
# Attributes of the LLVM dialect that name another function or constant of the module.
_REFERENCES = ("callee", "global_name")
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


def kernels_of(module: ir.Module, *parts: bytes | str) -> list[Kernel]:
    """The kernels of a module at phase `vector` that can be compiled alone; `parts` are what else code depends on."""
    texts = {name: op.get_asm(enable_debug_info=False, assume_verified=True) for name, op in _bodies(module)}
    references = {name: set(_SYMBOL.findall(text)) & texts.keys() - {name} for name, text in texts.items()}
    functions = {name for name, op in _named(module) if op.name == _FUNCTION}
    readers: dict[str, set[str]] = {}
    for name, found in references.items():
        for reference in found:
            readers.setdefault(reference, set()).add(name)
    declared = {name for name, _ in _named(module)} - texts.keys()
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


def known_objects(store: Store, kernels: Sequence[Kernel]) -> dict[str, bytes]:
    """The object files of those kernels that were compiled before, by key."""
    found = {kernel.key: store.get(kernel.key) for kernel in kernels}
    return {name: bytes(sections[_SECTION]) for name, sections in found.items() if sections}


def drop_bodies(module: ir.Module, kernels: Sequence[Kernel]) -> None:
    """Leave of `kernels`, in a module at phase `vector`, their declarations alone."""
    names = {kernel.name for kernel in kernels}
    constants = {name for kernel in kernels for name in kernel.constants}
    for name, op in list(_named(module)):
        if name in names:
            with ir.InsertionPoint(op), op.location:
                kept = {key: op.attributes[key] for key in ("sym_name", "function_type", "sym_visibility")}
                ir.Operation.create(_FUNCTION, attributes=kept, regions=1)
        if name in names | constants:
            op.erase()


def compiled_apart(
    module: ir.Module, kernels: Sequence[Kernel], known: Mapping[str, bytes], store: Store
) -> list[bytes]:
    """The object files of a network at phase `llvm`: that of `main` and of what is not a kernel, and each kernel's.

    `known` are those of kernels of which `module` has the declaration alone. `module` is used up. What is compiled is
    put into `store`.
    """
    objects = dict(known)
    for kernel in kernels:
        if kernel.key not in objects:
            objects[kernel.key] = object_file(_taken_out(module, kernel), kernel.symbol)
            store.put(kernel.key, {_SECTION: objects[kernel.key]})
    _rename(module, {kernel.name: kernel.symbol for kernel in kernels})
    openmp_calls.add(module)
    rest = object_file(module, ENTRY, shown=openmp_calls.SHOWN_ENTRY)
    return [rest, *objects.values()]


def _taken_out(module: ir.Module, kernel: Kernel) -> ir.Module:
    """A module with a kernel of one at phase `llvm`, under its symbol; that one keeps the declaration."""
    ops = dict(_named(module))
    function = ops[kernel.name]
    with module.context, ir.Location.unknown():
        alone = ir.Module.create()
        # How it is compiled depends on its target.
        alone.operation.attributes[TARGET] = module.operation.attributes[TARGET]
        with ir.InsertionPoint(alone.body):
            for name in dict.fromkeys((*kernel.constants, *_references(function))):
                ops[name].clone()
            copy = function.clone()
        if "sym_visibility" in copy.attributes:
            del copy.attributes["sym_visibility"]
        # Kernels are internal to their network.
        external = ir.Attribute.parse("#llvm.linkage<external>")
        copy.attributes["linkage"] = external
        renamed = {name: name.replace(kernel.name, kernel.symbol, 1) for name in (kernel.name, *kernel.constants)}
        _rename(alone, renamed)
        with ir.InsertionPoint(function):
            kept = {key: function.attributes[key] for key in ("sym_name", "function_type")}
            ir.Operation.create(_LLVM_FUNCTION, attributes={**kept, "linkage": external}, regions=1)
        for name in (kernel.name, *kernel.constants):
            ops[name].erase()
    return alone


def _rename(module: ir.Module, names: Mapping[str, str]) -> None:
    """Give functions and constants of a module of the LLVM dialect, and all that names them, new names."""
    for name, op in list(_named(module)):
        with module.context:
            op.attributes["sym_name"] = ir.StringAttr.get(names.get(name, name))

    def visit(op: ir.Operation) -> ir.WalkResult:
        for attribute in _REFERENCES:
            if attribute in op.attributes:
                name = ir.FlatSymbolRefAttr(op.attributes[attribute]).value
                op.attributes[attribute] = ir.FlatSymbolRefAttr.get(names.get(name, name), module.context)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)


def _references(function: ir.Operation) -> list[str]:
    """What a function of the LLVM dialect calls or reads, by name."""
    found: list[str] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.extend(ir.FlatSymbolRefAttr(op.attributes[one]).value for one in _REFERENCES if one in op.attributes)
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _named(module: ir.Module) -> Iterator[tuple[str, ir.Operation]]:
    """The functions and constants of a module, each with its name."""
    for op in [op.operation for op in module.body.operations]:
        yield ir.StringAttr(op.attributes["sym_name"]).value, op


def _bodies(module: ir.Module) -> Iterator[tuple[str, ir.Operation]]:
    """Those that are not just declared."""
    for name, op in _named(module):
        if op.name == _GLOBAL or len(op.regions[0].blocks):
            yield name, op
