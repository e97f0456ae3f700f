"""Logs what is done in addition to the request, a line each: the logger ``qdialect`` of the standard library.

Programs configure it as any other. Without that warnings alone are seen, on stderr; the environment variable
``QDIALECT_LOG`` names the level from which on lines are printed there.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from qdialect.support.diagnostics import InputError, printable

LOG = logging.getLogger("qdialect")
VARIABLE = "QDIALECT_LOG"
_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}


_QUANTIZERS = {
    ".onnx": "quantize_static of onnxruntime.quantization quantizes it",
    ".pt2": "torchao's prepare_pt2e and convert_pt2e quantize the model before torch.export.save",
    ".tflite": "the converter quantizes it with optimizations and a representative_dataset, or ai-edge-quantizer does",
}


def _is_shown(record: logging.LogRecord) -> bool:
    """Make the message `printable`: names of files and nodes may hold what no encoding has."""
    record.msg, record.args = printable(record.getMessage()), ()
    return True


LOG.addFilter(_is_shown)


class _Handler(logging.Handler):
    """Prints lines on what is stderr now, if there is one that takes them."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            print(f"qdialect: {record.levelname.lower()}: {record.getMessage()}", file=sys.stderr, flush=True)
        except Exception:
            self.handleError(record)


@cache
def configure(default: str = "") -> None:
    """Print lines of the level `VARIABLE` or, if it is not set, `default`; raises `InputError` for what is no level.

    A program that has handlers for the logger keeps them alone.
    """
    level = os.environ.get(VARIABLE, "") or default
    if not level:
        return
    if level not in _LEVELS:
        raise InputError(f"{VARIABLE} must be one of {', '.join(map(repr, _LEVELS))}, but got {level!r}")
    LOG.setLevel(_LEVELS[level])
    if not LOG.handlers:
        LOG.addHandler(_Handler())


_told: ContextVar[tuple[Callable[[str], None], ...]] = ContextVar("told", default=())


@contextmanager
def telling(progress: Callable[[str], None]) -> Generator[None]:
    """Tell `progress` of every step of a compilation that begins inside; what it raises ends the compilation."""
    token = _told.set((*_told.get(), progress))
    try:
        yield
    finally:
        _told.reset(token)


def tell(step: str) -> None:
    """A step of a compilation begins."""
    for progress in _told.get():
        progress(step)


@cache
def once(level: int, message: str) -> None:
    """Log `message`, unless it was logged before."""
    LOG.log(level, "%s", message)


def tell_float32(path: Path) -> None:
    """Log that nothing of a model file is quantized, and how to quantize it."""
    how = _QUANTIZERS.get(path.suffix.lower(), "quantize the model before it is written")
    once(logging.WARNING, f"'{path.name}' has no quantized node and computes in floats: {how}")
