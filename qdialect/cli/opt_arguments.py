"""The command line of ``qdialect-opt``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import NoReturn

import qdialect
from qdialect.cli import arguments as args
from qdialect.cli.plugins import add_plugin_argument
from qdialect.frontends.model_files import FORMATS
from qdialect.ir.context import available_dialects
from qdialect.ir.module_text import Printing
from qdialect.ir.suggestions import UPSTREAM_PASSES
from qdialect.passes.options import TRUTH
from qdialect.passes.pipeline import PassManager, is_known, pass_names
from qdialect.passes.registry import all_passes
from qdialect.support.diagnostics import PipelineError, QDialectError, did_you_mean

# ``--split-input-file``: one file, several modules.

MARKER = "// -----"


def split(text: str, marker: str = MARKER) -> list[str]:
    """The parts of `text` between the lines that consist of `marker`.

    Each part begins with as many empty lines as the file has before it, so that its line numbers are the file's.
    """
    parts: list[str] = []
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.rstrip() == marker:
            parts.append("\n".join(lines) + "\n")
            lines = [""] * number
        else:
            lines.append(line)
    return [*parts, "\n".join(lines)]


# The printing flags of ``qdialect-opt``, by the names that ``mlir-opt`` has for them.


class PrintingArguments(argparse.Namespace):
    """The values of the flags below."""

    large_elements_limit: int | None
    large_resource_limit: int | None
    enable_debug_info: bool
    print_generic_op_form: bool
    use_local_scope: bool
    use_name_loc_as_prefix: bool
    emit_bytecode: bool

    @property
    def printing(self) -> Printing:
        return Printing(
            large_elements_limit=self.large_elements_limit,
            large_resource_limit=self.large_resource_limit,
            enable_debug_info=self.enable_debug_info,
            print_generic_op_form=self.print_generic_op_form,
            use_local_scope=self.use_local_scope,
            use_name_loc_as_prefix=self.use_name_loc_as_prefix,
        )


def add_printing_flags(add: Callable[..., object]) -> None:
    """Add the flags to a parser or one of its groups."""
    add("--emit-bytecode", action="store_true", help="write MLIR bytecode instead of text")
    for flag, dest, text in (
        ("--mlir-print-debuginfo", "enable_debug_info", "print the location of each op"),
        ("--mlir-print-op-generic", "print_generic_op_form", "print every op in the generic form"),
        ("--mlir-print-local-scope", "use_local_scope", "print locations and attributes in place, without aliases"),
        ("--mlir-use-nameloc-as-prefix", "use_name_loc_as_prefix", "name values after the names in their locations"),
    ):
        add(flag, dest=dest, action="store_true", help=text)
    for flag, dest, unit in (
        ("--mlir-elide-elementsattrs-if-larger", "large_elements_limit", "constants of more than N elements"),
        ("--mlir-elide-resource-strings-if-larger", "large_resource_limit", "resources of more than N characters"),
    ):
        add(flag, dest=dest, type=_count, metavar="N", help=f"leave out the data of {unit}")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"must be a number of elements, but got '{text}'")
    return int(text)


# The command line of ``qdialect-opt``.
#
# Every pass is a flag, so the flags are not known beforehand: argparse takes those of the command itself, and what it
# leaves are passes, in the order given.

PROGRAM = "qdialect-opt"
PHASES = ("qnn", "fused", "linalg", "vector", "x86", "llvm")

# The implied values of flags without a value.
_BARE = {"--split-input-file": MARKER, "--verify-each": "true"}
_ONE_DASH = re.compile(r"-[A-Za-z][\w-]")
_PASS_FLAG = re.compile(r"--(?P<name>[a-z][a-z0-9-]*)(?:=(?P<options>.*))?", re.DOTALL)
_RESTRICTED = re.compile(r"restricted to '([\w.]+)'")

_EXAMPLES = """\
Any pass is a flag, ours or one of MLIR's, and passes run in the order of their flags. Flags take one or two dashes.
'--list-passes' describes our passes.

examples:
  qdialect-opt model.mlir
      parse and verify, then print
  qdialect-opt model.mlir --fuse-qnn -o fused.mlir
      one op for each kernel
  qdialect-opt model.mlir --fuse-qnn --explain-matches
      and say of every op that stayed behind why it did
  qdialect-opt model.mlir --canonicalize='max-iterations=1' --qnn-decompose-fused --cse
      passes with options, ours and MLIR's
  qdialect-opt model.mlir --pass-pipeline='builtin.module(fuse-qnn,func.func(cse,canonicalize{max-iterations=1}))'
      the same as text, with passes on functions
  qdialect-opt model.mlir --fuse-qnn --mlir-print-ir-after-all --mlir-timing
      watch the passes at work
  qdialect-opt model.mlir --compile-to=llvm --target=host
      lower to the LLVM dialect; stop earlier with another phase
  qdialect-opt test.mlir --split-input-file --verify-diagnostics
      check the errors that comments such as 'expected-error @+1 {{text}}' announce
"""


class UsageError(QDialectError):
    """The command line makes no sense."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self._message = message

    def render(self) -> str:
        return f"{PROGRAM}: error: {self._message}; try '{PROGRAM} --help'"


class Arguments(PrintingArguments):
    """The command line, checked."""

    input: str
    output: str
    passes: PassManager
    pass_pipeline: str | None
    split_marker: str | None
    output_marker: str
    verify_diagnostics: bool
    verify_roundtrip: bool
    explain_matches: bool
    mlir_print_ir_before: frozenset[str]
    mlir_print_ir_after: frozenset[str]
    mlir_print_ir_before_all: bool
    mlir_print_ir_after_all: bool
    mlir_print_ir_after_change: bool
    mlir_print_ir_after_failure: bool
    mlir_print_ir_module_scope: bool
    tree_dir: str | None
    mlir_timing: bool
    mlir_pass_statistics: bool
    crash_reproducer: str | None
    run_reproducer: bool
    dump_pass_pipeline: bool
    compare_phases: bool
    compared_inputs: list[str]
    verify_each: bool
    allow_unregistered_dialect: bool
    phase: str | None
    target: str
    mattr: str | None
    explain_strategy: bool
    tune: bool
    threads: int
    jobs: int | None
    mlir_disable_threading: bool
    answer: Callable[[], str] | None
    """The text to print instead of doing anything else, if the command line asks for one."""


def parse(argv: Sequence[str]) -> Arguments:
    """Take `argv` apart; raises `UsageError` and `PipelineError`."""
    # `argv` with two dashes before every long flag, and a value for each of those that may stand without.
    double = [f"-{a}" if _ONE_DASH.match(a) else a for a in argv]
    found, rest = _parser().parse_known_args([f"{a}={_BARE[a]}" if a in _BARE else a for a in double], Arguments())
    if found.explain_strategy:
        found.answer = lambda: _explanation(found)
    if found.answer:
        return found
    for name in found.mlir_print_ir_before | found.mlir_print_ir_after:
        if not is_known(name):
            raise UsageError(f"unknown pass '{name}' to print the module around{did_you_mean(name, pass_names())}")
    if found.compared_inputs and not found.compare_phases:
        raise UsageError("--input must be given with --compare-phases")
    if found.compare_phases and (found.phase or found.emit_bytecode):
        raise UsageError("--compare-phases must be given without --compile-to and --emit-bytecode")
    _check_lowering(found)
    found.input, flags = _input_and_flags(rest)
    found.passes = _passes(found, flags)
    if found.run_reproducer and found.passes:
        raise UsageError("--run-reproducer must be given without passes: the file has its own")
    is_compiled = found.phase or found.compare_phases or found.tune or found.passes
    if found.jobs is not None and not is_compiled:
        raise UsageError("--jobs must be given with passes, --compile-to, --compare-phases or --tune")
    _check_input(found.input)
    if found.mlir_disable_threading:
        found.jobs = 1
    return found


def _input_and_flags(rest: Sequence[str]) -> tuple[str, list[str]]:
    """The input file, and the flags that are passes; raises `UsageError` for several files."""
    inputs = [argument for argument in rest if argument == "-" or not argument.startswith("-")]
    if len(inputs) > 1:
        raise UsageError(f"expected one input file, but got {', '.join(inputs)}")
    return inputs[0] if inputs else "-", [argument for argument in rest if argument not in inputs]


def _check_input(name: str) -> None:
    """Raise `UsageError` for a model file of a kind that another command reads."""
    suffix = Path(name).suffix
    if suffix in FORMATS and suffix != ".mlir":
        how = f"'qdialect-import {name} | {PROGRAM} --fuse-qnn'"
        raise UsageError(f"expected MLIR, but got a {suffix} file, which qdialect-import reads: {how}")


def _check_lowering(arguments: Arguments) -> None:
    """Raise `UsageError` for options of the lowering if no module is lowered."""
    is_lowered = bool(arguments.phase or arguments.compare_phases)
    given = {
        "--target": arguments.target != "host" and not (is_lowered or arguments.tune),
        "--mattr": arguments.mattr is not None and not (is_lowered or arguments.tune),
        "--threads": arguments.threads != 1 and not is_lowered,
    }
    for option, is_unused in given.items():
        if is_unused:
            raise UsageError(f"{option} must be given with --compile-to or --compare-phases; passes have their own")


def _explanation(arguments: Arguments) -> str:
    # Most uses of this command need no lowering.
    from qdialect.lowering.cost import matrix_tiles
    from qdialect.lowering.cost.register_tiles import explained
    from qdialect.lowering.cost.strategy import strategy_of, tile_model
    from qdialect.targets import resolve

    target = resolve(args.target_name(arguments))
    model = tile_model(target)
    text = explained(model) if model else "vector code alone, one vector of 16 sums and up to 6 rows"
    strategy = strategy_of(target)
    models = [strategy.model_of(layout) for layout in strategy.others]
    text += "".join(f"\n{explained(other)}" for other in models if other)
    text += f"\n{matrix_tiles.explained(strategy.matrix_machine)}" if strategy.matrix_machine else ""
    return f"{target.name}: code for {target.kind.name}\n{text}\n"


def _passes(arguments: Arguments, flags: Sequence[str]) -> PassManager:
    if arguments.pass_pipeline is None:
        manager = PassManager(verify=arguments.verify_each)
        for flag in flags:
            _add(manager, flag)
        return manager
    if flags:
        raise UsageError(f"'--pass-pipeline' cannot be used together with '{flags[0]}'")
    return PassManager.parse(arguments.pass_pipeline, verify=arguments.verify_each)


def _add(manager: PassManager, flag: str) -> None:
    """Add the pass that `flag` is; one of MLIR's that works on functions alone is nested in them."""
    match = _PASS_FLAG.fullmatch(flag)
    if not match or not is_known(match["name"]):
        raise UsageError(f"unknown argument '{flag}'{_suggestion(flag)}")
    text = f"{match['name']}{{{match['options']}}}" if match["options"] else match["name"]
    try:
        manager.add(text)
    except PipelineError as error:
        message = error.diagnostics[0].message
        anchor = _RESTRICTED.search(message)
        if not anchor:
            raise UsageError(f"argument '{flag}': {message}") from error
        manager.add(f"{anchor[1]}({text})")


def _suggestion(flag: str) -> str:
    return did_you_mean(flag.partition("=")[0], [*_parser().flags(), *(f"--{name}" for name in pass_names())])


class _Parser(argparse.ArgumentParser):
    def flags(self) -> list[str]:
        return [flag for action in self._actions for flag in action.option_strings]

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def _versions() -> str:
    # It takes long to import, and few ask for it.
    from importlib.metadata import version

    return f"qdialect {qdialect.__version__}, MLIR of torch-mlir {version('torch-mlir')}\n"


def _pass_list() -> str:
    rows = [(str(pass_class()), pass_class.summary()) for pass_class in all_passes().values()]
    width = max(len(text) for text, _ in rows)
    own = "".join(f"{text:{width}}  {summary}\n" for text, summary in rows)
    return f"{own}\npasses of MLIR:\n{fill(' '.join(UPSTREAM_PASSES), 120, break_on_hyphens=False)}\n"


def _dialect_list() -> str:
    return f"Available Dialects: {', '.join(available_dialects())}\n"


def _truth(text: str) -> bool:
    if text.lower() not in TRUTH:
        raise argparse.ArgumentTypeError(f"must be true or false, but got '{text}'")
    return TRUTH[text.lower()]


class _Names(argparse.Action):
    """Pass names, from several flags or separated by commas."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object, option: str | None = None
    ) -> None:
        names = frozenset(name for name in str(values).split(",") if name)
        setattr(namespace, self.dest, getattr(namespace, self.dest) | names)


def _parser() -> _Parser:
    parser = _Parser(
        prog=PROGRAM,
        usage=f"{PROGRAM} [flags and passes] [input file]",
        description="Run passes on MLIR text with the qnn dialect. Without a file it reads stdin; it prints to stdout.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    for names, answer, text in (
        (("-h", "--help"), parser.format_help, "print this text"),
        (("--version",), _versions, "print the versions of qdialect and of the MLIR bindings"),
        (("--list-passes",), _pass_list, "list the passes: ours and those of plugins with their options, and MLIR's"),
        (
            ("--print-targets",),
            args.target_list,
            "list the CPUs that code can be made for, and the kind that each gets",
        ),
        (("--show-dialects",), _dialect_list, "list the dialects that can be read"),
    ):
        parser.add_argument(*names, dest="answer", action="store_const", const=answer, help=text)
    _add_input_flags(parser.add_argument_group("input and output").add_argument)
    _add_pass_flags(parser.add_argument_group("passes").add_argument)
    _add_watching_flags(parser.add_argument_group("watching").add_argument)
    return parser


def _add_input_flags(add: Callable[..., object]) -> None:
    switch = partial(add, action="store_true")
    add("-o", dest="output", default="-", metavar="FILE", help="write here instead of to stdout")
    add(
        "--split-input-file",
        dest="split_marker",
        metavar="[=MARKER]",
        help=f"treat the parts between lines '{MARKER}' (or MARKER) as modules of their own",
    )
    add(
        "--output-split-marker",
        dest="output_marker",
        default=MARKER,
        metavar="TEXT",
        help=f"what is printed between the modules of --split-input-file (default: '{MARKER}')",
    )
    switch("--verify-diagnostics", help="check diagnostics against the expected-* comments of the input")
    switch(
        "--verify-roundtrip",
        help="check first that the input is the same after a print and a parse of it, as text and as bytecode",
    )
    switch("--allow-unregistered-dialect", help="accept ops of dialects that nobody knows")
    add_printing_flags(add)


def _add_pass_flags(add: Callable[..., object]) -> None:
    switch = partial(add, action="store_true")
    add("--pass-pipeline", metavar="TEXT", help="the passes as text: builtin.module(...)")
    add_plugin_argument(add)
    add("--compile-to", dest="phase", choices=PHASES, help="lower to this phase after the passes")
    args.add_target_arguments(add)
    switch(
        "--tune",
        help="measure kernels in several variants on this machine, print what the fastest win on stderr, and note them "
        "on the module",
    )
    switch("--explain-strategy", help="print the register tiles for the CPU, and what bounds each")
    args.add_threads_argument(add)
    args.add_jobs_argument(add)
    add(
        "--verify-each",
        type=_truth,
        default=True,
        metavar="[=BOOL]",
        help="check the module after each pass (default: true)",
    )


def _add_watching_flags(add: Callable[..., object]) -> None:
    switch = partial(add, action="store_true")
    switch("--explain-matches", help="remark on every op that a pattern refused to rewrite, and why")
    for when in ("before", "after"):
        add(
            f"--mlir-print-ir-{when}",
            action=_Names,
            default=frozenset(),
            metavar="PASS",
            help=f"print the module on stderr {when} this pass",
        )
        switch(f"--mlir-print-ir-{when}-all", help=f"print the module on stderr {when} each pass")
    for flag, text in (("change", "only where it changed the module"), ("failure", "and only when it fails")):
        switch(f"--mlir-print-ir-after-{flag}", help=f"print the module after a pass {text}")
    switch(
        "--mlir-print-ir-module-scope",
        help="print the whole module around passes on functions, rather than each function",
    )
    add(
        "--mlir-print-ir-tree-dir",
        dest="tree_dir",
        metavar="DIR",
        help="write what is printed around passes into files of this folder",
    )
    args.add_quiet_argument(add)
    switch("--dump-pass-pipeline", help="print the pipeline on stderr")
    switch("--mlir-timing", help="report the time of each pass")
    switch("--mlir-pass-statistics", help="report how often patterns were applied")
    add(
        "--mlir-pass-pipeline-crash-reproducer",
        dest="crash_reproducer",
        metavar="FILE",
        help="if a pass fails, or the process ends in one, write the module and the passes here",
    )
    switch("--run-reproducer", help="run the passes that a crash reproducer names")
    switch("--mlir-disable-threading", help="use one thread, as --jobs=1")
    switch(
        "--compare-phases",
        help="run the module at each phase and compare the results bit for bit; exit status 1 if they differ",
    )
    add(
        "--input",
        dest="compared_inputs",
        action="append",
        default=[],
        metavar="FILE",
        help="with --compare-phases: a .npy file, once for each input; without any, inputs are random",
    )
