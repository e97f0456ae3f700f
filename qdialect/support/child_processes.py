"""Child processes: tools of the system, and functions of this package that must not run in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from qdialect.support.late_imports import LATE_IMPORTS

_MARK_BYTES = 16


class ChildError(Exception):
    """A child process could not be started, or ended without its answer."""

    def __init__(self, reason: str, *, is_crash: bool = False) -> None:
        super().__init__(reason)
        self.is_crash = is_crash
        """Whether it ran, and a signal or the end of its time ended it."""


def tool_output(command: Sequence[str], folder: Path) -> str:
    """The output of a tool run in `folder`; raises `ChildError`, with the last line of its errors, if it fails."""
    with LATE_IMPORTS:
        import subprocess

    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    except (OSError, ValueError) as error:
        raise ChildError(getattr(error, "strerror", None) or str(error)) from error
    if done.returncode != 0:
        raise ChildError(_last_line(done.stderr))
    return done.stdout.decode(errors="replace")


def answer(function: str, content: bytes, arguments: Sequence[str], *, seconds: float) -> bytes:
    """The result of ``MODULE:NAME`` of this package for `content` and `arguments`, in a Python process of its own.

    It imports from where this process does, but never from the current folder, and no environment variable changes
    what it runs. Its answer stands between two marks that nobody else knows: what other code prints is no part of it,
    and an answer that was cut off is none. Raises `ChildError`.
    """
    with LATE_IMPORTS:
        import subprocess

    mark = os.urandom(_MARK_BYTES).hex()
    paths = [path for path in sys.path if os.path.isabs(path)]
    # Of the interpreter's options only the encoding of names matters: paths are to mean the same.
    options = ["-I", "-X", f"utf8={sys.flags.utf8_mode}"]
    start = f"import sys; sys.path[:] = {paths!a}; from {__name__} import serve; serve(*sys.argv[1:])"
    command = [sys.executable, *options, "-c", start, function, mark, *arguments]
    try:
        done = subprocess.run(command, input=content, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise ChildError(f"it did not end in {seconds:.0f} seconds", is_crash=True) from error
    except (OSError, ValueError) as error:
        raise ChildError(f"cannot start Python, '{sys.executable}': {error}") from error
    _, *parts = done.stdout.split(mark.encode())
    if done.returncode != 0 or len(parts) != 2:
        reason = f"it ended with status {done.returncode} and without an answer: {_last_line(done.stderr)}"
        raise ChildError(reason, is_crash=done.returncode < 0)
    return parts[0]


def serve(function: str, mark: str, *arguments: str) -> None:
    """The main function of the child of `answer`."""
    output = os.dup(1)
    # Prints of other code go to stderr.
    os.dup2(2, 1)
    module, _, name = function.partition(":")
    found: bytes = getattr(import_module(module), name)(sys.stdin.buffer.read(), *arguments)
    with os.fdopen(output, "wb") as file:
        file.write(mark.encode() + found + mark.encode())


def _last_line(printed: bytes) -> str:
    lines = printed.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it printed nothing"
