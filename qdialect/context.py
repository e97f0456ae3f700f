"""The only factory of MLIR contexts, and how their diagnostics become Python errors.

With threads on, a Python verifier and more than one function, the bindings hang in parse, verify and print: contexts come
from here alone, with threads off.
"""

from __future__ import annotations

import re
from pathlib import Path

from qdialect import dialect
from qdialect._mlir import ir
from qdialect.diagnostics import Diagnostic, ParseError, Severity, VerificationError

_PLACE = re.compile(r'"([^"]*)":(\d+):(\d+)')
_SEVERITIES = {
    ir.DiagnosticSeverity.ERROR: Severity.ERROR,
    ir.DiagnosticSeverity.WARNING: Severity.WARNING,
    ir.DiagnosticSeverity.NOTE: Severity.NOTE,
    ir.DiagnosticSeverity.REMARK: Severity.REMARK,
}


def make_context() -> ir.Context:
    """A context with the `qnn` dialect loaded, every upstream dialect available and threads off."""
    context = ir.Context()
    context.enable_multithreading(False)
    dialect.load(context)
    return context


def parse(source: str | Path, context: ir.Context | None = None, file_name: str | None = None) -> ir.Module:
    """Parse MLIR text, or the file at a path, into a verified module.

    A `Path`, or a one-line `str` that ends in ``.mlir``, is a file to read; any other `str` is MLIR text.  `file_name`
    is what the diagnostics of a text say.  Raises `ParseError` with every diagnostic, each with file, line and column.
    """
    text, name = _text_of(source)
    name = file_name or name
    context = context or make_context()
    with context:
        try:
            return ir.Module.parse(text)
        except ir.MLIRError as error:
            diagnostics = tuple(converted(info, name) for info in error.error_diagnostics) or (_silent(name),)
            raise ParseError(diagnostics[0].message, diagnostics) from error


def verify(module: ir.Module) -> None:
    """Check every op of `module`; raises `VerificationError` with the located diagnostics."""
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        diagnostics = tuple(map(converted, error.error_diagnostics))
        message = diagnostics[0].message if diagnostics else error.message
        raise VerificationError(message, diagnostics) from error


def converted(info: ir.Diagnostic | ir.DiagnosticInfo, text_name: str = "-") -> Diagnostic:
    """A diagnostic of the bindings as our own; `text_name` stands for the ``-`` of a module parsed from text."""
    file, line, column = place_of(info.location)
    notes = tuple(converted(note, text_name) for note in info.notes)
    return Diagnostic(_SEVERITIES[info.severity], info.message, text_name if file == "-" else file, line, column, notes)


def place_of(location: ir.Location) -> tuple[str, int, int]:
    """File, line and column that a location starts with; empty and zeros where it has none."""
    found = _PLACE.search(str(location))
    return (found[1], int(found[2]), int(found[3])) if found else ("", 0, 0)


def _text_of(source: str | Path) -> tuple[str, str]:
    names_file = isinstance(source, Path) or ("\n" not in source and source.endswith(".mlir"))
    if not names_file:
        return str(source), "-"
    try:
        return Path(source).read_text(encoding="utf-8"), str(source)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ParseError(f"cannot read '{source}': {reason}") from error


def _silent(name: str) -> Diagnostic:
    # The only failure the bindings leave without a word: `qnn.op %x : ...`, an op written in a pretty form.
    message = 'cannot parse: an op of a Python-defined dialect has the generic form only, "qnn.op"(%x) {...} : ...'
    return Diagnostic(Severity.ERROR, message, name, 1, 1)
