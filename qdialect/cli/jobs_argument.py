"""The option ``--jobs`` of the commands that compile."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from qdialect.diagnostics import CompileError
from qdialect.jobs import checked


def add_jobs_argument(add: Callable[..., object]) -> None:
    """Add ``--jobs N`` by the method `add` of a parser or group."""
    add("--jobs", "-j", type=_count, metavar="N", help="compile on N threads (default: one for each CPU)")


def _count(text: str) -> int:
    try:
        return checked(int(text) if text.isascii() and text.isdigit() else text)
    except CompileError as error:
        # The name of the option stands before it.
        raise argparse.ArgumentTypeError(str(error).removeprefix("jobs ")) from error
