"""Helpers of all commands: reading and writing whole files, tables, and exit statuses."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, cast

from qdialect.cli import plugins
from qdialect.support import log
from qdialect.support.diagnostics import ParseError, QDialectError, printable
from qdialect.support.files import read_bytes, write_files
from qdialect.support.late_imports import LATE_IMPORTS

# Aligned tables for a terminal.


def render_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Lines of `header` and `rows` in columns as wide as they need; the columns `right` are flush right.

    Cells are names of a model more often than not: they are shown `printable`.
    """
    lines = [[printable(cell) for cell in line] for line in (header, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]

    def text(line: Sequence[str]) -> str:
        cells = (
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    return "\n".join(map(text, lines))


_INTERRUPTED = 130


def run(program: str, work: Callable[[], int]) -> int:
    """The exit code of `work`; whatever it raises becomes a message on stderr and the code that LLVM's tools have."""
    try:
        log.configure("error" if _QUIET else "warning")
        plugins.load_installed()
        code = work()
        if sys.stdout:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone, which is its right: `qdialect-opt x.mlir | head`.
        _abandon_stdout()
        return 1
    except QDialectError as error:
        say(error.render())
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    except OSError as error:
        _abandon_stdout()
        say(f"{program}: error: {error.strerror or error}")
        return 1
    except MemoryError as error:
        say(f"{program}: error: not enough memory: {error}")
        return 1
    except Exception as error:
        say(f"{program}: internal error: {type(error).__name__}: {error} ({_raised_at(error)})")
        return 1
    finally:
        _QUIET.clear()
    return code


_QUIET: list[bool] = []


def be_quiet() -> None:
    """Say nothing but errors, until the command has ended."""
    _QUIET.append(True)


def note(text: str) -> None:
    """As `say`, but for what a quiet command does not say."""
    if not _QUIET:
        say(text)


def say(text: str) -> None:
    """Print lines on stderr, if it is open; control characters are escaped."""
    if text and sys.stderr:
        with contextlib.suppress(OSError):
            print("\n".join(map(printable, text.split("\n"))), file=sys.stderr, flush=True)


def progress(what: str) -> None:
    """Announce on a terminal a step that takes a while."""
    if sys.stderr and sys.stderr.isatty():
        note(f"{what} ...")


def read_input(name: str) -> str | bytes:
    """The text of a file, or of stdin for ``-``; the bytes of MLIR bytecode.

    Raises `ParseError` where it cannot be read or is neither.
    """
    with LATE_IMPORTS:
        # A network that was compiled before is run without MLIR.
        from qdialect.ir import untrusted_input
        from qdialect.ir.context import decoded

    content = read_bytes(Path(name)) if name != "-" else _stdin()
    return (
        content
        if content.startswith(untrusted_input.BYTECODE_MAGIC)
        else decoded(content, "<stdin>" if name == "-" else name)
    )


def write_output(name: str, content: str | bytes) -> None:
    """Write a file as a whole or not at all, or stdout for ``-``; raises `QDialectError` where that is impossible."""
    raw = content if isinstance(content, bytes) else content.encode(errors="surrogateescape")
    if name == "-":
        _write_stdout(raw)
    else:
        write_file(name, raw)


def write_json(name: str, report: object) -> None:
    """As `write_output`, a report as JSON: dataclasses become objects, and shapes lists."""
    write_output(name, f"{json.dumps(report, default=_json_value)}\n")


def _json_value(value: object) -> object:
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    # Types and numbers of NumPy, which is not imported for that.
    item: Callable[[], Any] | None = getattr(value, "item", None)
    found = item() if item else None
    # JSON has no infinities.
    return found if isinstance(found, int | float) and math.isfinite(found) else str(value)


def make_folder(folder: Path) -> None:
    """Make a folder that may be there already; raises `QDialectError` where that is impossible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        # A path with NUL is a ValueError.
        reason = error.strerror if isinstance(error, OSError) else error
        raise QDialectError(f"cannot make folder '{folder}': {reason}") from error


def write_file(name: str, content: bytes) -> None:
    """Write a file as a whole or not at all; raises `QDialectError` where that is impossible."""
    write_files({Path(name): content})


def _stdin() -> bytes:
    if not sys.stdin:
        raise ParseError("cannot read '<stdin>': it is closed")
    return sys.stdin.buffer.read()


def _write_stdout(content: bytes) -> None:
    if not sys.stdout:
        raise QDialectError("cannot write '<stdout>': it is closed")
    rest = memoryview(content)
    while rest:
        # With PYTHONUNBUFFERED a write may take less than it was given.
        rest = rest[sys.stdout.buffer.write(rest) :]
    # Later output on stderr must come after it.
    sys.stdout.buffer.flush()


def _abandon_stdout() -> None:
    """Discard the buffer, so that it does not fail again when the interpreter ends."""
    if sys.stdout:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _raised_at(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}:{last.lineno}"
