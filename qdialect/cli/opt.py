"""``qdialect-opt``: run passes on MLIR text; behaves as users of ``mlir-opt`` expect."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from qdialect.cli import expected, opt_arguments, terminal
from qdialect.cli.arguments import target_name
from qdialect.cli.opt_arguments import PROGRAM, Arguments, parse
from qdialect.ir import module_text
from qdialect.ir._mlir import ir
from qdialect.ir.context import bytecode, captured_diagnostics, make_context
from qdialect.ir.context import parse as parse_module
from qdialect.passes import observers
from qdialect.passes.pattern import counted_rewrites, explain_matches
from qdialect.passes.pipeline import PassManager
from qdialect.support.diagnostics import Diagnostic, InputError, QDialectError
from qdialect.support.limits import using_jobs

_STDIN = "<stdin>"
_SHOWN = 160
"""Characters of a line that a diagnostic shows at most."""
_REPRODUCER_KEY = "'mlir_reproducer'"
"""In the parser's warning that it ignores the passes of a reproducer."""
_REPRODUCER = """\
{{-#
  external_resources: {{
    mlir_reproducer: {{
      pipeline: "{}",
      disable_threading: true,
      verify_each: true
    }}
  }}
#-}}
"""
_PIPELINE = re.compile(r'mlir_reproducer: \{\s*pipeline: "([^"]*)"')


@dataclass(frozen=True)
class Outcome:
    """The outcome of one module: its text or bytecode, None if it failed, and its diagnostics."""

    content: str | bytes | None
    diagnostics: tuple[Diagnostic, ...]
    is_good: bool


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    return terminal.run(PROGRAM, lambda: _run(parse(sys.argv[1:] if argv is None else argv)))


def _run(arguments: Arguments) -> int:
    if arguments.answer:
        terminal.write_output("-", arguments.answer())
        return 0
    if arguments.dump_pass_pipeline:
        terminal.say(f"Pass Manager with {len(arguments.passes)} passes:\n{arguments.passes}\n")
    timer = observers.Timer()
    with counted_rewrites() as counts, using_jobs(arguments.jobs):
        statistics = observers.Statistics(counts)
        with observers.observing(_printer(arguments), timer, statistics):
            contents, is_good = _process(arguments)
    if arguments.mlir_timing:
        terminal.say(timer.report())
    if arguments.mlir_pass_statistics:
        terminal.say(statistics.report())
    # A comparison is shown however it ends.
    if is_good or (arguments.compare_phases and contents):
        terminal.write_output(arguments.output, _joined(contents, arguments.output_marker))
    return 0 if is_good else 1


def _joined(contents: Sequence[str | bytes], marker: str) -> str | bytes:
    """The one module of bytecode, or all texts with a marker between them."""
    if contents and isinstance(contents[0], bytes):
        return contents[0]
    return f"{marker}\n".join(content for content in contents if isinstance(content, str))


def _process(arguments: Arguments) -> tuple[list[str | bytes], bool]:
    """The output of each module, and whether all succeeded; errors are on stderr."""
    source = terminal.read_input(arguments.input)
    name = _STDIN if arguments.input == "-" else arguments.input
    marker = arguments.split_marker
    contents: list[str | bytes] = []
    good = True
    parts = opt_arguments.split(source, marker) if marker is not None and isinstance(source, str) else [source]
    for part in parts:
        outcome = _outcome(part, name, arguments)
        said = outcome.diagnostics
        if arguments.verify_diagnostics and isinstance(part, str):
            said = expected.problems(part, name, said)
            good &= not said
        else:
            good &= outcome.is_good
        lines = part.split("\n") if isinstance(part, str) else []
        terminal.say("\n".join(text for one in said for text in _shown(one, name, lines)))
        contents += [outcome.content] if outcome.content is not None else []
    return contents, good


def _outcome(source: str | bytes, name: str, arguments: Arguments) -> Outcome:
    context = make_context()
    context.allow_unregistered_dialects = arguments.allow_unregistered_dialect
    content: str | bytes | None = None
    failure: tuple[Diagnostic, ...] = ()
    with captured_diagnostics(context) as emitted, explain_matches() as remarks:
        try:
            # From the file itself the locations have its name; a part of a file or stdin is text, whose name is "-".
            is_file = name != _STDIN and arguments.split_marker is None and Path(name).is_file()
            module = parse_module(Path(name) if is_file else source, context, name)
            if arguments.verify_roundtrip:
                module_text.check_round_trip(module)
            _run_passes(module, source, name, arguments)
            if arguments.tune:
                module = _tuned(module, arguments)
            if arguments.phase:
                module = _lowered(module, arguments)
            content, is_good = _content(module, name, arguments)
        except QDialectError as error:
            failure = error.diagnostics
            is_good = False
    said = (
        *(one for one in emitted if _REPRODUCER_KEY not in one.message),
        *(remarks if arguments.explain_matches else ()),
        *failure,
    )
    return Outcome(content, tuple(_named(diagnostic, name) for diagnostic in said), is_good)


def _shown(diagnostic: Diagnostic, name: str, lines: Sequence[str]) -> Iterator[str]:
    """A diagnostic and its notes, each with the line of the input `name` that it is about, and where in it."""
    yield str(replace(diagnostic, notes=()))
    if diagnostic.file == name and 0 < diagnostic.line <= len(lines) and diagnostic.column:
        line, before = lines[diagnostic.line - 1], lines[diagnostic.line - 1][: diagnostic.column - 1].expandtabs()
        # A constant may have megabytes.
        start = max(len(before) - _SHOWN // 2, 0)
        yield line.expandtabs()[start : start + _SHOWN]
        yield f"{' ' * (len(before) - start)}^"
    for note in diagnostic.notes:
        yield from _shown(note, name, lines)


def _run_passes(module: ir.Module, source: str | bytes, name: str, arguments: Arguments) -> None:
    """Run the passes of the command line, or those of a reproducer; the reproducer is there until they have ended."""
    passes = arguments.passes
    if arguments.run_reproducer:
        found = _PIPELINE.search(source) if isinstance(source, str) else None
        if found is None:
            raise InputError(f"'{name}' must be a crash reproducer, but names no pipeline")
        passes = PassManager.parse(found[1], verify=arguments.verify_each)
    path = arguments.crash_reproducer
    if path is not None:
        text = f"{arguments.printing.text(module, name)}\n{_REPRODUCER.format(passes)}"
        terminal.write_file(path, text.encode(errors="surrogateescape"))
    passes.run(module)
    if path is not None:
        Path(path).unlink()


def _content(module: ir.Module, name: str, arguments: Arguments) -> tuple[str | bytes, bool]:
    """The output of a module, and whether it succeeded."""
    if arguments.compare_phases:
        # Most uses of this command run nothing.
        from qdialect.cli.opt_compare import comparison

        return comparison(module, arguments.compared_inputs, target_name(arguments), arguments.threads)
    return (bytecode(module) if arguments.emit_bytecode else arguments.printing.text(module, name)), True


def _lowered(module: ir.Module, arguments: Arguments) -> ir.Module:
    # Most uses of this command need no lowering.
    from qdialect.lowering.pipeline.phases import Phase, compile_to, target_of, threads_of

    target, threads = target_of(module, target_name(arguments)), threads_of(module, arguments.threads)
    return compile_to(module, Phase(arguments.phase), target, threads)


def _tuned(module: ir.Module, arguments: Arguments) -> ir.Module:
    # Most uses of this command run nothing.
    from qdialect.cache.store import open_store
    from qdialect.cli import network_tables
    from qdialect.driver.tuning import tuned

    found, report = tuned(module, target_name(arguments), store=open_store(), progress=terminal.progress)
    terminal.note(network_tables.tuning_text(report))
    return found


def _named(diagnostic: Diagnostic, name: str) -> Diagnostic:
    """`diagnostic` with the name of the input in place of what the bindings call a text."""
    notes = tuple(_named(note, name) for note in diagnostic.notes)
    return replace(diagnostic, file=name if diagnostic.file == "-" else diagnostic.file, notes=notes)


def _printer(arguments: Arguments) -> observers.IRPrinter:
    name = _STDIN if arguments.input == "-" else arguments.input
    only_changed = arguments.mlir_print_ir_after_change
    return observers.IRPrinter(
        names_before=arguments.mlir_print_ir_before,
        names_after=arguments.mlir_print_ir_after,
        before_all=arguments.mlir_print_ir_before_all,
        after_all=arguments.mlir_print_ir_after_all or (only_changed and not arguments.mlir_print_ir_after),
        only_changed=only_changed,
        on_failure=arguments.mlir_print_ir_after_failure,
        module_scope=arguments.mlir_print_ir_module_scope,
        printing=arguments.printing,
        source=name,
        folder=Path(arguments.tree_dir) if arguments.tree_dir else None,
    )


if __name__ == "__main__":
    sys.exit(main())
