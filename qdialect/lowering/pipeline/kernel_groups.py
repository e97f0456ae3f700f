"""Lowers kernels separately from their network, a few at a time.

The IR of a few kernels fits in the cache, and its memory is freed before the next kernels are lowered: at phase `llvm`
a network has ten times the ops of phase `vector`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qdialect.ir._mlir import ir
from qdialect.lowering.ir.functions import MAIN, function_of, functions, has_body, name_of, ops_named
from qdialect.lowering.ir.lowered import PHASE, TARGET

_KERNELS = 16
# Kernels in all: an engine for a group takes some milliseconds to start, and few kernels need little memory.
_WORTH = 4 * _KERNELS
_NAMES_ANOTHER = ("func.call", "func.constant", "memref.get_global", "llvm.call", "llvm.mlir.addressof")


def taken_groups(module: ir.Module) -> Iterator[ir.Module]:
    """Move the kernels of a module at phase `vector` into modules, group by group; declarations stay.

    Functions that reference other functions or constants of the module stay too. Each module has an empty `main`.
    """
    kernels = _alone(module)
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


def _alone(module: ir.Module) -> list[ir.Operation]:
    """The functions of `module`, except `main`, that reference no other function and no constant of it."""
    tied = {name_of(function_of(op)) for op in ops_named(module, *_NAMES_ANOTHER)} | {MAIN}
    return [one for one in functions(module) if has_body(one) and name_of(one) not in tied]


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
