"""Whether a module that is printed and parsed is the module that it was."""

from __future__ import annotations

from itertools import zip_longest

from qdialect._mlir import ir
from qdialect.context import make_context, parse
from qdialect.diagnostics import VerificationError
from qdialect.module_text import Printing, bytecode


def check(module: ir.Module) -> None:
    """Print `module` as text and as bytecode, and parse each in a context of its own.

    Raises `ParseError` where the printed text is no module, and `VerificationError` with the first line that differs
    where it is another one.
    """
    printed = Printing().text(module)
    _compare("text", printed, parse(printed, _context_for(module)))
    # The reader of strangers' bytecode is a process of its own; this was written here.
    _compare("bytecode", printed, ir.Module.parse(bytecode(module), _context_for(module)))


def _context_for(module: ir.Module) -> ir.Context:
    context = make_context()
    context.allow_unregistered_dialects = module.context.allow_unregistered_dialects
    return context


def _compare(form: str, printed: str, module: ir.Module) -> None:
    lines = zip_longest(printed.splitlines(), Printing().text(module).splitlines(), fillvalue="")
    for number, (wanted, found) in enumerate(lines, 1):
        if wanted != found:
            difference = f"line {number} of its print must be '{wanted}', but got '{found}'"
            raise VerificationError(f"module must be the same after a round trip through {form}: {difference}")
