"""The way of archives that are trusted: PyTorch reads them, and runs whatever they hold."""

from __future__ import annotations

import io
import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from qdialect.frontends.torch.program.pytorch_operators import torch_package
from qdialect.support.diagnostics import ImportModelError


def load_trusted(content: bytes) -> Any:
    """The exported program of an archive.

    Raises `ImportModelError` for a damaged one and one that calls operators which are not registered.
    """
    with _held_back("torch.export") as records:
        try:
            return torch_package().export.load(io.BytesIO(content))
        # The archive is a zip of JSON and pickles, and its reader lets through whatever these raise.
        except Exception as error:
            # The first failure is logged; the error is that of another try, at the format before this one.
            logged = next((record.exc_info[1] for record in records if record.exc_info), None)
            raise ImportModelError(
                f"file is no archive that torch.export.load reads: {_reason(logged or error)}"
            ) from error


@contextmanager
def _held_back(logger: str) -> Generator[list[logging.LogRecord]]:
    """Capture log messages inside the `with`, instead of showing them."""
    records: list[logging.LogRecord] = []

    def keep(record: logging.LogRecord) -> bool:
        records.append(record)
        return False

    source = logging.getLogger(logger)
    source.addFilter(keep)
    try:
        yield records
    finally:
        source.removeFilter(keep)


def _reason(error: BaseException) -> str:
    """The first sentence of the innermost error; the rest is advice on PyTorch's own use."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = str(error) or type(error).__name__
    return text.splitlines()[0].split(". ")[0].rstrip(".")
