"""The option ``--threads`` of the commands that compile."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from qdialect.diagnostics import CompileError
from qdialect.threads import checked


def add_threads_argument(add: Callable[..., object]) -> None:
    """Add ``--threads N`` by the method `add` of a parser or group."""
    add("--threads", type=_count, default=1, metavar="N", help="divide a call among N threads (default: %(default)s)")


def _count(text: str) -> int:
    try:
        return checked(int(text) if text.isascii() and text.isdigit() else text)
    except CompileError as error:
        # The name of the option stands before it.
        raise argparse.ArgumentTypeError(str(error).removeprefix("threads ")) from error
