"""What is legal after each phase; a breach is one error with a note per offender."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from qdialect._mlir import ir
from qdialect.context import place_of
from qdialect.diagnostics import CompileError, Diagnostic, Severity
from qdialect.target import Target

_MOST_NOTES = 10

Problem = Callable[[ir.Operation], str | None]


def check_fused(module: ir.Module) -> None:
    """Fused: only `qnn` ops, constants and the function around them."""
    _check(module, "fused", _unknown_op(("qnn.", "func.", "builtin.", "arith.constant")))


def check_linalg(module: ir.Module) -> None:
    """linalg: kernels of linalg, tensor and scalar ops; between kernels only buffers."""
    allowed = ("func.", "builtin.", "linalg.", "tensor.", "arith.", "math.", "memref.", "bufferization.")
    _check(module, "linalg", _unknown_op(allowed))


def check_vector(module: ir.Module) -> None:
    """vector: no tensors, nothing left unvectorized, no allocation."""
    allowed = ("func.", "builtin.", "vector.", "scf.", "arith.", "math.", "memref.", "ub.", "affine.")
    unknown = _unknown_op(allowed)

    def problem(op: ir.Operation) -> str | None:
        if op.name in ("memref.alloc", "memref.alloca"):
            return "allocates memory inside a kernel"
        return unknown(op)

    _check(module, "vector", problem)


def check_x86(module: ir.Module, target: Target) -> None:
    """x86: where the target has VBMI, every table read is a permute."""
    forbidden = {"vector.gather"} if target.has_vbmi else set[str]()
    _check(module, "x86", lambda op: "is left" if op.name in forbidden else None)


def check_llvm(module: ir.Module) -> None:
    """llvm: the LLVM dialect alone."""
    _check(module, "llvm", _unknown_op(("llvm.", "builtin.module")))


def _unknown_op(prefixes: tuple[str, ...]) -> Problem:
    return lambda op: None if op.name.startswith(prefixes) else "is not allowed"


def _check(module: ir.Module, phase: str, problem: Problem) -> None:
    offenders = [(op, text) for op in _walk(module.operation) if (text := problem(op))]
    if not offenders:
        return
    message = f"after phase {phase}: {len(offenders)} ops break its contract"
    notes = tuple(_note(op, text) for op, text in offenders[:_MOST_NOTES])
    raise CompileError(message, (Diagnostic(Severity.ERROR, message, notes=notes),))


def _note(op: ir.Operation, text: str) -> Diagnostic:
    return Diagnostic(Severity.NOTE, f"'{op.name}' op {text}", *place_of(op.location))


def _walk(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                yield child.operation
                yield from _walk(child.operation)
