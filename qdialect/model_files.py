"""From a model, in whatever form a user has it, to a module."""

from __future__ import annotations

from pathlib import Path

from qdialect._mlir import ir
from qdialect.context import parse
from qdialect.diagnostics import ImportModelError

SUFFIXES = (".mlir", ".tflite")


def read_model(model: str | Path | ir.Module) -> ir.Module:
    """The module of a ``.mlir`` or ``.tflite`` file; a module is itself.

    Raises `ParseError` and `ImportModelError` for a file that cannot be read, is damaged or uses what is not supported,
    and for a file of another kind.
    """
    if isinstance(model, ir.Module):
        return model
    path = Path(model)
    if path.suffix == ".mlir":
        return parse(path)
    if path.suffix == ".tflite":
        from qdialect.frontends.tflite import import_tflite

        return import_tflite(path)
    raise ImportModelError(f"'{path}' must be a model of kind {' or '.join(SUFFIXES)}, but got '{path.suffix}'")
