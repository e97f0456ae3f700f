"""A lit format that runs the Python commands of RUN lines in forks of lit's worker, which has imported what they need.

Most of these commands work for a hundredth of a second, and a new interpreter would import modules for half a second.
Everything else is lit's own: the shell, pipes, redirections, ``not``, exit statuses. Tests of `test/cli/` start the
commands as processes of their own.
"""

import gc
import os
import pkgutil
import runpy
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import lit.TestRunner
from lit.formats import ShTest
from lit.LitConfig import LitConfig
from lit.Test import Result, Test

import qdialect
from qdialect.ir._mlir import dialect_module

# By the name after ``python -m``: the module with the function `main`, which takes its arguments from sys.argv.
_NAMES = ("cache", "commands", "compile", "import_model", "opt", "run")
_COMMANDS = {**{f"qdialect.cli.{name}": f"qdialect.cli.{name}" for name in _NAMES}, "filecheck": "filecheck.main"}
# What they import at the first use only, themselves and the bindings.
_LATE = ("numpy.ma", "numpy.random")
_DIALECTS = ("bufferization", "complex", "linalg", "tensor", "ub")
_STDERR = 2


def _preload() -> None:
    """Import what the commands import; the engines of `qdialect.bench` are big, and no RUN line measures."""
    for module in pkgutil.walk_packages(qdialect.__path__, "qdialect."):
        if not module.name.startswith("qdialect.bench"):
            import_module(module.name)
    for name in (*_COMMANDS.values(), *_LATE):
        import_module(name)
    for namespace in _DIALECTS:
        dialect_module(namespace)


_preload()


class ForkedShTest(ShTest):
    """`ShTest`, whose Python commands are forks of lit's worker."""

    def __init__(self) -> None:
        super().__init__()
        # Collections of garbage in the forks would look at all that is imported, and copy its pages.
        gc.freeze()

    def execute(self, test: Test, litConfig: LitConfig) -> Result:  # noqa: N803
        lit.TestRunner.subprocess = ForkingSubprocess
        return super().execute(test, litConfig)


class ForkingSubprocess:
    """The names that lit's shell takes from the module `subprocess`."""

    PIPE = subprocess.PIPE
    STDOUT = subprocess.STDOUT

    @staticmethod
    def Popen(args: Sequence[str], **options: Any) -> subprocess.Popen[str]:  # noqa: N802
        """A process that runs a command: a fork of this one for a command of `_COMMANDS` and for a Python script."""
        environment: Mapping[str, str] = options["env"]
        if (work := _work(args, environment)) is None:
            return subprocess.Popen(args, **options)
        # subprocess makes the pipes and redirections, and forks; the function never returns to execute the program.
        options |= {"preexec_fn": lambda: _run(work, environment), "restore_signals": False}
        return subprocess.Popen(args, **options)


def _work(args: Sequence[str], environment: Mapping[str, str]) -> Callable[[], object] | None:
    """The work of the interpreter for a command line; None for one that is left to a real process."""
    if args[0] != sys.executable or len(args) < 2 or "PYTHONPATH" in environment:
        return None
    if args[1] == "-m" and len(args) > 2 and args[2] in _COMMANDS:
        return lambda: _run_module(_COMMANDS[args[2]], args[2:])
    return (lambda: _run_script(args[1:])) if args[1].endswith(".py") else None


def _run_module(name: str, arguments: Sequence[str]) -> NoReturn:
    sys.argv = list(arguments)
    sys.path.insert(0, os.getcwd())
    sys.exit(import_module(name).main())


def _run_script(arguments: Sequence[str]) -> None:
    sys.argv = list(arguments)
    sys.path.insert(0, str(Path(arguments[0]).parent))
    runpy.run_path(arguments[0], run_name="__main__")


def _run(work: Callable[[], object], environment: Mapping[str, str]) -> NoReturn:
    """Run as a new interpreter would, and end the process."""
    # Among these is the pipe by which subprocess learns that the program has started.
    for number in map(int, os.listdir("/dev/fd")):
        if number > _STDERR:
            with suppress(OSError):
                os.close(number)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(environment)
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        old = getattr(sys, f"__{name}__")
        setattr(sys, name, open(number, mode, encoding=old.encoding, errors=old.errors, closefd=False))  # noqa: SIM115
    gc.enable()
    status = _status(work)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _status(work: Callable[[], object]) -> int:
    """The exit status of an interpreter that does `work`."""
    try:
        work()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0
