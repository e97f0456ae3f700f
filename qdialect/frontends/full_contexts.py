"""Modules for users: in contexts with every dialect loaded, so that users may build any op of MLIR.

The functions of these names in `context` and `model_files` load no more than a graph needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from qdialect.frontends import model_files
from qdialect.ir import context as contexts
from qdialect.ir._mlir import ir
from qdialect.support.diagnostics import ParseError

if TYPE_CHECKING:
    from qdialect.frontends.model_files import ImportOptions, Model


def make_context() -> ir.Context:
    """A context with `qnn` and every upstream dialect loaded and threads off::

    with qdialect.make_context():
        scale = ir.Attribute.parse("0.5 : f64")
    """
    return _filled(contexts.make_context())


def parse(source: str | bytes | Path, context: ir.Context | None = None, file_name: str | None = None) -> ir.Module:
    """Parse MLIR text or bytecode, or the file at a path, into a verified module::

        module = qdialect.parse("func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> { return %x : tensor<4xi8> }")

    A `Path`, or a one-line `str` that ends in ``.mlir`` or ``.mlirbc``, is a file to read; any other `str` is MLIR
    text. Bytecode is told by its first bytes. `file_name` is the file in the diagnostics of a text. A `dense_resource`
    whose data the text has becomes a dense constant. Raises `ParseError` with every diagnostic, each with file, line
    and column.
    """
    if not isinstance(cast("object", source), str | bytes | Path):
        raise ParseError(f"source must be a text, bytes or a path, but got an object of {type(source).__name__}")
    return contexts.parse(source, context or make_context(), file_name)


def read_model(model: Model, options: ImportOptions | None = None) -> ir.Module:
    """The module of a model in any form that `qdialect.compile` takes; a module is itself::

        module = qdialect.read_model("model.tflite")

    Raises `ParseError` and `ImportModelError` for a file that cannot be read, is damaged or has unsupported operations,
    and for a file of another kind.
    """
    module = model_files.read_model(model, options)
    if module is not model:
        _filled(module.context)
    return module


def _filled(context: ir.Context) -> ir.Context:
    contexts.load_dialects(context, None)
    return context
