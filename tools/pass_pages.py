"""docs/passes.md: what each pass is for, its options, and what it does to the first function of its lit test."""

import contextlib
import io
import tempfile
from dataclasses import MISSING
from pathlib import Path

from lit_tests import failures, first_function, flags

from qdialect.cli import opt
from qdialect.passes.registry import Pass, all_passes

INTRODUCTION = """\
# Passes

Each pass is a flag of `qdialect-opt` and a name in a pipeline text. Each example is the first function of the lit test
of the pass, and the output of the tool for it. `--explain-matches` prints a located remark for every op that a pattern
did not rewrite.
"""
# Tables and weights longer than this are printed as '...'.
ELIDE = ["--mlir-elide-elementsattrs-if-larger", "16"]


def page(tests: Path) -> str:
    """The text of the page."""
    return "\n".join([INTRODUCTION, *(_section(pass_class, tests) for pass_class in all_passes().values())])


def _section(pass_class: type[Pass], tests: Path) -> str:
    parts = [f"## `{pass_class.name}`", pass_class.description(), *_options(pass_class)]
    test = _test_of(pass_class, tests)
    if test:
        given = first_function(test)
        arguments = [*flags(test), *ELIDE]
        parts += [
            f"```console\n$ qdialect-opt example.mlir {' '.join(arguments)}\n```",
            f"Before:\n\n```mlir\n{given}```",
            f"After:\n\n```mlir\n{_run(given, arguments)}```",
        ]
        unmatched = test.with_name(f"{test.stem}-no-match.mlir")
        parts += _match_failures(unmatched if unmatched.is_file() else test)
    return "\n\n".join(parts) + "\n"


def _test_of(pass_class: type[Pass], tests: Path) -> Path | None:
    for stem in (pass_class.name.removeprefix("qnn-"), f"pipeline-{pass_class.name}"):
        path = tests / f"{stem}.mlir"
        if path.is_file():
            return path
    return None


def _options(pass_class: type[Pass]) -> list[str]:
    kinds = pass_class.option_kinds()
    if not kinds:
        return []
    rows = ["| option | type | default |", "|---|---|---|"]
    for name, kind in kinds.items():
        # What a dataclass only passes on to its constructor is no field of it.
        default = getattr(pass_class, name.replace("-", "_"), MISSING)
        shown = "" if default is MISSING else f"`{default}`"
        rows.append(f"| `{name}` | {getattr(kind, '__name__', kind)} | {shown} |")
    return ["\n".join(rows)]


def _run(text: str, arguments: list[str]) -> str:
    """What the tool prints for `text`; raises `ValueError` where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        source, printed = Path(folder, "example.mlir"), Path(folder, "out.mlir")
        source.write_text(text)
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            code = opt.main([str(source), *arguments, "-o", str(printed)])
        if code != 0:
            raise ValueError(f"qdialect-opt {' '.join(arguments)} failed: {said.getvalue()}")
        return _without_module(printed.read_text())


def _without_module(text: str) -> str:
    lines = text.strip().splitlines()
    if lines[0] != "module {":
        return text
    return "".join(f"{line.removeprefix('  ')}\n" for line in lines[1:-1])


def _match_failures(test: Path) -> list[str]:
    reasons = failures(test)
    if not reasons:
        return []
    return ["Examples of match failures:", "\n".join(f"- {reason}" for reason in reasons)]
