"""From a model, in whatever form a user has it, to a module."""

from __future__ import annotations

from pathlib import Path

from qdialect._mlir import ir
from qdialect.context import parse
from qdialect.diagnostics import ImportModelError

SUFFIXES = (".mlir", ".tflite", ".onnx")


def read_model(model: str | Path | ir.Module) -> ir.Module:
    """The module of a ``.mlir``, ``.tflite`` or ``.onnx`` file; a module is itself.

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
    if path.suffix == ".onnx":
        from qdialect.frontends.onnx import import_onnx

        return import_onnx(path)
    kinds = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
    raise ImportModelError(f"'{path}' must be a model of kind {kinds}, but got '{path.suffix}'")
