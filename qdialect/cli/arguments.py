"""The parser of a command, and the options of commands that compile: the CPU, jobs and threads."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn, Protocol

from qdialect.cli.plugins import add_plugin_argument
from qdialect.cli.terminal import be_quiet, render_table
from qdialect.frontends.model_files import FORMATS
from qdialect.support.diagnostics import CompileError, InputError, bounded
from qdialect.support.files import is_regular, is_same_file
from qdialect.support.limits import checked, checked_jobs
from qdialect.support.options import DYNAMIC, FALLBACKS, ImportOptions
from qdialect.targets import TARGETS, host, resolve
from qdialect.targets.cpus import CPUS


class CommandParser(argparse.ArgumentParser):
    """One whose errors end the command as every other error does: one line, exit status 1."""

    def __init__(self, prog: str, description: str, examples: str) -> None:
        super().__init__(
            prog=prog, description=description, epilog=examples, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        add_plugin_argument(self.add_argument)
        add_quiet_argument(self.add_argument)

    def switch(self, *flags: str, help: str) -> None:
        """Add a flag without a value."""
        self.add_argument(*flags, action="store_true", help=help)

    def flags(self) -> dict[str, Sequence[str]]:
        return {action.dest: action.option_strings for action in self._actions}

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"{self.prog}: error: {bounded(message)}\n")


def check_output(option: str, output: str | None, model: str) -> None:
    """Raise `InputError` where what an option writes has no place, or would take that of the model's file.

    It is known before the work whose result it is.
    """
    folder = Path(output or ".").parent
    if not folder.is_dir():
        raise InputError(f"{option} must be in a folder that is there, but got '{output}'")
    if output and is_same_file(Path(output), Path(model)) and is_regular(Path(model)):
        raise InputError(f"{option} must not name the model, but got '{output}'")


def refuse(given: Mapping[str, object], wanted: str) -> None:
    """Raise `InputError` for the first option of `given` that has a value: it is `wanted` otherwise."""
    option = next((name for name, value in given.items() if value), None)
    if option is not None:
        raise InputError(f"{option} {wanted}")


class _Quiet(argparse.Action):
    def __call__(self, *_: object) -> None:
        be_quiet()


def add_quiet_argument(add: Callable[..., object]) -> None:
    """Add ``--quiet`` by the method `add` of a parser or group."""
    add("--quiet", "-q", action=_Quiet, nargs=0, help="print no warnings, progress or remarks on stderr, only errors")


def add_json_argument(add: Callable[..., object]) -> None:
    """Add ``--json`` by the method `add` of a parser or group."""
    add("--json", action="store_true", help="print the report as one JSON object instead of tables")


def add_jobs_argument(add: Callable[..., object]) -> None:
    """Add ``--jobs N`` by the method `add` of a parser or group."""
    count = _count("jobs", checked_jobs)
    add("--jobs", "-j", type=count, metavar="N", help="compile on N threads (default: one for each CPU)")


def _count(name: str, check: Callable[[object], int]) -> Callable[[str], int]:
    def count(text: str) -> int:
        try:
            return check(int(text) if text.isascii() and text.isdigit() else text)
        except CompileError as error:
            # The name of the option stands before it.
            raise argparse.ArgumentTypeError(str(error).removeprefix(f"{name} ")) from error

    return count


def add_threads_argument(add: Callable[..., object]) -> None:
    """Add ``--threads N`` by the method `add` of a parser or group."""
    add(
        "--threads",
        type=_count("threads", checked),
        default=1,
        metavar="N",
        help="divide a call among N threads (default: %(default)s)",
    )


# The options for the CPU that code is for, and the list of CPUs.


class TargetArguments(Protocol):
    """The values of the options."""

    target: str
    mattr: str | None


def target_name(options: TargetArguments) -> str:
    """The target that options name, as `qdialect.targets.resolve` takes it."""
    return f"{options.target},{options.mattr}" if options.mattr else options.target


def add_target_arguments(add: Callable[..., object]) -> None:
    """Add `--target`, `--mcpu` and `--mattr`."""
    add(
        *("--target", "--mcpu"),
        dest="target",
        default="host",
        metavar="NAME",
        help=f"the CPU: host (default: all this one has), {', '.join(TARGETS)} or one that --print-targets lists",
    )
    add_features_argument(add)


def add_features_argument(add: Callable[..., object]) -> None:
    """Add `--mattr`."""
    add("--mattr", metavar="+F,-F", help="features that the CPU has more or less: --mattr=+avxvnni,-fma")


def target_list() -> str:
    """A line for each CPU: its name and the kind of code that it gets."""
    rows = [[name, resolve(name).kind.name] for name in (*TARGETS, *(one for one in CPUS if one not in TARGETS))]
    return f"{render_table(['target', 'kind of code'], rows)}\n\nhost is {host().name}\n"


# The options of a model's import, the same on every command that takes one.


class ImportArguments(argparse.Namespace):
    """The values of the options."""

    model: str
    batch: int | str
    dim: list[tuple[str, int]]
    profile: str
    signature: str
    branch: list[tuple[str, bool]]
    trust_pt2: bool


def add_import_arguments(parser: argparse.ArgumentParser, *, takes_any_batch: bool = False) -> None:
    """Add the options to `parser`; with `takes_any_batch` the batch may be `DYNAMIC`."""
    parser.add_argument(
        "--batch",
        type=_batch if takes_any_batch else int,
        default=1,
        metavar=f"N|{DYNAMIC}" if takes_any_batch else "N",
        help="first extent of inputs that leave it open (default 1)"
        + (f"; {DYNAMIC} is any, given with each call" if takes_any_batch else ""),
    )
    parser.add_argument(
        "--dim",
        action="append",
        default=[],
        type=_dim,
        metavar="NAME=N",
        help="another extent that an input leaves open, by its name or as INPUT:AXIS; may be given again",
    )
    profiles = "; ".join(f"{suffix}: {', '.join(entry.profiles())}" for suffix, entry in FORMATS.items())
    parser.add_argument(
        "--profile", default="", metavar="NAME", help=f"whose arithmetic, the first by default ({profiles})"
    )
    parser.add_argument(
        "--signature",
        default="",
        metavar="NAME",
        help="which signature of a .tflite file (default: its first subgraph)",
    )
    parser.add_argument(
        "--branch",
        action="append",
        default=[],
        type=_branch,
        metavar="NAME=0|1",
        help="the value of a condition of If nodes that an .onnx file leaves to run time; may be given again",
    )
    parser.add_argument(
        "--trust-pt2",
        action="store_true",
        help="let PyTorch load a .pt2 file, which can run any code; needed for pickled weights and older files",
    )


def add_fallback_argument(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the option to `parser`; `default` describes the default in its help."""
    parser.add_argument(
        "--fallback",
        choices=FALLBACKS,
        help=f"who runs what cannot be compiled: the model's own framework or nobody (default: {default})",
    )


def import_options(arguments: argparse.Namespace) -> ImportOptions:
    """The options in the arguments."""
    return ImportOptions(
        batch=1 if arguments.batch == DYNAMIC else arguments.batch,
        dims=dict(arguments.dim),
        profile=arguments.profile,
        trust=arguments.trust_pt2,
        signature=arguments.signature,
        branches=dict(arguments.branch),
    )


def _batch(text: str) -> int | str:
    if text != DYNAMIC and not text.removeprefix("-").isdecimal():
        raise argparse.ArgumentTypeError(f"must be an integer or '{DYNAMIC}', but got '{text}'")
    return text if text == DYNAMIC else int(text)


def _branch(text: str) -> tuple[str, bool]:
    name, _, value = text.rpartition("=")
    if not name or value not in ("0", "1"):
        raise argparse.ArgumentTypeError(f"must be NAME=0 or NAME=1, but got '{text}'")
    return name, value == "1"


def _dim(text: str) -> tuple[str, int]:
    name, _, extent = text.rpartition("=")
    if not name or not extent.isdecimal():
        raise argparse.ArgumentTypeError(f"must be NAME=N, but got '{text}'")
    return name, int(extent)
