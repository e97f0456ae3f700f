"""The functions of a module that is lowered: `main`, and the kernels that it calls."""

from __future__ import annotations

from collections.abc import Iterator

from qdialect.ir._mlir import ir, rewrite
from qdialect.lowering.ir.errors import error_at
from qdialect.support.late_imports import UNINTERRUPTED

MAIN = "main"
CLOCK = "llvm.readcyclecounter"
"""The intrinsic that reads the counter of cycles."""
REFERENCES = ("callee", "global_name")
"""Attributes of the LLVM dialect that name another function or constant of the module."""


def name_of(function: ir.Operation) -> str:
    """The symbol of a function."""
    return ir.StringAttr(function.attributes["sym_name"]).value


def functions(module: ir.Module) -> list[ir.Operation]:
    """The functions of `module`, declarations too."""
    return [op.operation for op in module.body.operations if op.operation.name == "func.func"]


def ops_named(module: ir.Module, *names: str) -> list[ir.Operation]:
    """Every op of `module` with one of these names, at any depth; an op comes after those in its regions.

    MLIR compares the names: a walk that calls Python for each op takes twenty times as long.
    """
    found: list[ir.Operation] = []

    def note(op: ir.OpView, _: rewrite.PatternRewriter) -> bool:
        found.append(op.operation)
        return True

    patterns = rewrite.RewritePatternSet(module.context)
    for name in names:
        patterns.add(name, note)
    with UNINTERRUPTED:
        rewrite.walk_and_apply_patterns(module.operation, patterns.freeze())
    return found


def owner_of(value: ir.Value) -> ir.Operation | None:
    """The op that gives `value`; None for an argument of a block."""
    owner = value.owner
    return owner.operation if isinstance(owner, ir.Operation | ir.OpView) else None


def op_in(op: ir.Operation, block: ir.Block) -> ir.Operation:
    """The op of `block` that is `op` or holds it."""
    while op.block != block and op.parent:
        op = op.parent.operation
    return op


def symbols(module: ir.Module) -> Iterator[tuple[str, ir.Operation]]:
    """The functions and constants of a module, each with its name."""
    for op in [op.operation for op in module.body.operations]:
        yield name_of(op), op


def function_of(op: ir.Operation) -> ir.Operation:
    """The outermost op of the module that `op` is in, or is."""
    while (parent := op.parent) is not None and parent.parent is not None:
        op = parent.operation
    return op


def has_body(function: ir.Operation) -> bool:
    """Whether `function` is more than a declaration."""
    return len(function.regions[0].blocks) > 0


def entry(module: ir.Module) -> ir.Operation:
    """The function `main`; raises `CompileError` where `module` has none with a body."""
    found = functions(module)
    main = next((function for function in found if name_of(function) == MAIN), None)
    if main is not None and has_body(main):
        return main
    what = "a declaration" if main else ", ".join(map(name_of, found)) or "no function"
    message = f"a module must have a function {MAIN} with a body to be lowered, but got {what}"
    first = next((op.operation for op in module.body.operations), module.operation)
    raise error_at((main or first).location, message)
