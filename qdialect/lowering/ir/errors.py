"""Errors of the lowering, at the op they are about."""

from __future__ import annotations

from qdialect.ir._mlir import ir
from qdialect.ir.context import location_of
from qdialect.support.diagnostics import CompileError, Diagnostic, Severity


def error_at(location: ir.Location, message: str, notes: tuple[Diagnostic, ...] = ()) -> CompileError:
    """An error at `location`, with `notes` below it."""
    return CompileError(message, (Diagnostic(Severity.ERROR, message, *location_of(location), notes),))


def note_at(op: ir.Operation, text: str) -> Diagnostic:
    """``'name' op text``, at `op`."""
    return Diagnostic(Severity.NOTE, f"'{op.name}' op {text}", *location_of(op.location))


def op_error(op: ir.Operation, text: str) -> CompileError:
    """The error ``'name' op text``, at `op`."""
    return error_at(op.location, f"'{op.name}' op {text}")
