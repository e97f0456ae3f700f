"""``qdialect-opt``: run passes on MLIR text; behaves as users of ``mlir-opt`` expect."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from qdialect import observers
from qdialect._mlir import ir
from qdialect.cli import expected, split_input, terminal
from qdialect.cli.opt_arguments import PROGRAM, Arguments, parse
from qdialect.context import captured_diagnostics, make_context
from qdialect.context import parse as parse_module
from qdialect.diagnostics import Diagnostic, QDialectError
from qdialect.passes.pattern import explain_matches

_STDIN = "<stdin>"


@dataclass(frozen=True)
class Outcome:
    """What came of one module: its print, None where it failed, and everything said about it."""

    text: str | None
    diagnostics: tuple[Diagnostic, ...]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    return terminal.run(PROGRAM, lambda: _run(parse(sys.argv[1:] if argv is None else argv)))


def _run(arguments: Arguments) -> int:
    if arguments.answer:
        terminal.write_output("-", arguments.answer())
        return 0
    timer = observers.Timer()
    with observers.observing(_printer(arguments), timer):
        texts = _process(arguments)
    if arguments.timing:
        terminal.say(timer.report())
    if texts is None:
        return 1
    terminal.write_output(arguments.output, f"{split_input.MARKER}\n".join(texts))
    return 0


def _process(arguments: Arguments) -> list[str] | None:
    """The print of each module that is to be written; None where something is wrong, which is on stderr then."""
    source = terminal.read_input(arguments.input)
    name = _STDIN if arguments.input == "-" else arguments.input
    marker = arguments.split_marker
    texts: list[str] = []
    good = True
    for part in [source] if marker is None else split_input.split(source, marker):
        outcome = _outcome(part, name, arguments)
        said = outcome.diagnostics
        if arguments.verify_diagnostics:
            said = expected.problems(part, name, said)
            good &= not said
        else:
            good &= outcome.text is not None
        terminal.say("\n".join(map(str, said)))
        texts += [outcome.text] if outcome.text is not None else []
    return texts if good else None


def _outcome(source: str, name: str, arguments: Arguments) -> Outcome:
    context = make_context()
    context.allow_unregistered_dialects = arguments.allow_unregistered
    text: str | None = None
    failure: tuple[Diagnostic, ...] = ()
    with captured_diagnostics(context) as emitted, explain_matches() as remarks:
        try:
            module = _parsed(source, name, context, arguments)
            arguments.passes.run(module)
            if arguments.phase:
                module = _lowered(module, arguments)
            text = _text_of(name, arguments)(module)
        except QDialectError as error:
            failure = error.diagnostics
    said = (*emitted, *(remarks if arguments.explain_matches else ()), *failure)
    return Outcome(text, tuple(_named(diagnostic, name) for diagnostic in said))


def _parsed(source: str, name: str, context: ir.Context, arguments: Arguments) -> ir.Module:
    # From the file itself the locations have its name; a part of a file or stdin is text, whose name is "-".
    is_file = name != _STDIN and arguments.split_marker is None and Path(name).is_file()
    return parse_module(Path(name) if is_file else source, context, name)


def _lowered(module: ir.Module, arguments: Arguments) -> ir.Module:
    # Most uses of this command need no lowering.
    from qdialect.lowering.pipeline import Phase, compile_to, target_of, threads_of

    target, threads = target_of(module, arguments.target), threads_of(module, arguments.threads)
    return compile_to(module, Phase(arguments.phase), target, threads)


def _text_of(name: str, arguments: Arguments) -> Callable[[ir.Module], str]:
    def text_of(module: ir.Module) -> str:
        text = module.operation.get_asm(
            large_elements_limit=arguments.elide_above,
            enable_debug_info=arguments.print_locations,
            print_generic_op_form=arguments.print_generic,
        )
        # No string attribute can contain this: their quotes are escaped.
        text = text.replace('loc("-":', f'loc("{name}":') if arguments.print_locations else text
        return text.rstrip("\n") + "\n"

    return text_of


def _named(diagnostic: Diagnostic, name: str) -> Diagnostic:
    """`diagnostic` with the name of the input in place of what the bindings call a text."""
    notes = tuple(_named(note, name) for note in diagnostic.notes)
    return replace(diagnostic, file=name if diagnostic.file == "-" else diagnostic.file, notes=notes)


def _printer(arguments: Arguments) -> observers.IRPrinter:
    name = _STDIN if arguments.input == "-" else arguments.input
    return observers.IRPrinter(
        names_before=arguments.print_before,
        names_after=arguments.print_after,
        before_all=arguments.print_before_all,
        after_all=arguments.print_after_all,
        text_of=_text_of(name, arguments),
    )


if __name__ == "__main__":
    sys.exit(main())
